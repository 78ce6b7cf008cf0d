"""A failed connection in words that a person can use."""

import errno
import socket
import ssl

import pytest

from pinchpoint.sources.http.os_cause import os_cause


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 8000)"), "connection refused"),
        (OSError(errno.EHOSTUNREACH, "Connect call failed ('10.0.0.5', 8000)"), "no route to host"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"), ""),
        (socket.gaierror(-2, "Name or service not known"), ""),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0)"), ""),
        (None, ""),
    ],
)
def test_the_systems_words_are_told_and_pythons_are_not(error: OSError | None, words: str) -> None:
    assert os_cause(error) == words
