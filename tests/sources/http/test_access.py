"""What an operator may write to be let in, and what a mistake is told."""

import os
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from pinchpoint.snapshot import HttpAccess
from pinchpoint.sources.http import AccessSettings, TlsSettings
from tests.fakes.certificates import Authority


def mistake(**fields: object) -> str:
    with pytest.raises(ValidationError) as caught:
        AccessSettings.model_validate(fields)
    assert "hunter2" not in str(caught.value)
    return str(caught.value)


def test_all_that_is_said_reaches_the_value_and_no_secret_prints(tmp_path: Path):
    authority = Authority(tmp_path)
    mine = authority.issue("DNS:a")
    settings = AccessSettings.model_validate(
        {
            "basic_auth": {"username": "me", "password": "hunter2"},
            "headers": {"X-Api-Key": "hunter2"},
            "tls": {
                "ca_file": authority.file,
                "certificate_file": mine.certificate,
                "key_file": mine.key,
                "server_name": "chat.example",
            },
        }
    )
    assert settings.access() == HttpAccess(
        basic_username="me",
        basic_password="hunter2",
        headers={"X-Api-Key": "hunter2"},
        ca_file=str(authority.file),
        certificate_file=str(mine.certificate),
        key_file=str(mine.key),
        server_name="chat.example",
    )
    assert "hunter2" not in repr(settings) + settings.model_dump_json() + repr(settings.access())


def test_nothing_said_is_nothing_sent():
    assert AccessSettings().access() == HttpAccess()


@pytest.mark.parametrize(
    ("fields", "remedy"),
    [
        ({"bearer_token": "hunter2", "basic_auth": {"username": "me"}}, "bearer_token and basic_auth are both given"),
        ({"bearer_token": "hunter2", "headers": {"authorization": "x"}}, "bearer_token and headers.authorization"),
        ({"basic_auth": {"username": "m:e"}}, "basic_auth.username"),
        ({"basic_auth": {"username": "me", "password": "hunter2", "password_file": "x"}}, "keep one"),
        ({"basic_auth": {"username": "me", "password_file": "/nowhere"}}, "password_file /nowhere can't be read"),
        ({"headers": {"Host": "hunter2"}}, "header Host is set by the connection itself; remove it"),
        ({"headers": {"transfer-encoding": "hunter2"}}, "remove it"),
        ({"headers": {"Connection": "hunter2"}}, "remove it"),
        ({"headers": {"Accept-Encoding": "hunter2"}}, "remove it"),
        ({"headers": {"X Key": "hunter2"}}, "is no name of a header"),
        ({"headers": {"X-Key": "hunter2\r\nHost: evil"}}, "header X-Key has a value"),
        ({"headers": {"X-Key": "hunter2" * 2000}}, "header X-Key has a value"),
        ({"headers": {f"X-{n}": "a" for n in range(21)}}, "headers"),
        ({"bearer_token": "hunter2 ü"}, "give the bare token"),
        ({"tls": {"key_file": "/nowhere"}}, "without certificate_file"),
        ({"tls": {"ca_file": "/nowhere"}}, "ca_file /nowhere: no such file or directory"),
        ({"tls": {"verify": False, "server_name": "a"}}, "verify is off"),
        ({"tls": {"server_name": "a b"}}, "server_name"),
    ],
)
def test_a_mistake_is_told_with_its_remedy_and_without_the_secret(fields: dict[str, object], remedy: str):
    assert remedy in mistake(**fields)


def test_files_that_are_no_certificates_are_told_apart(tmp_path: Path):
    authority, nonsense = Authority(tmp_path), tmp_path / "nonsense"
    nonsense.write_text("hunter2")
    one, other = authority.issue("DNS:a"), authority.issue("DNS:b")
    assert "should hold certificates in PEM form" in mistake(tls={"ca_file": nonsense})
    assert "PEM" in mistake(tls={"certificate_file": nonsense})
    mixed = mistake(tls={"certificate_file": one.certificate, "key_file": other.key})
    assert "key values mismatch" in mixed
    assert str(other.key) in mixed


def test_a_key_with_a_passphrase_is_told_instead_of_asked_for(tmp_path: Path):
    mine, locked = Authority(tmp_path).issue("DNS:a"), tmp_path / "locked.key"
    command = ["openssl", "ec", "-in", mine.key, "-aes256", "-passout", "pass:hunter2", "-out", locked]
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    assert "the key is encrypted" in mistake(tls={"certificate_file": mine.certificate, "key_file": locked})


@pytest.mark.parametrize("key", ["ca_file", "certificate_file"])
def test_a_certificate_that_is_a_pipe_or_without_end_is_refused_at_once(tmp_path: Path, key: str) -> None:
    """OpenSSL waited for the pipe's writer, and so did check-config and every reload."""
    pipe, large = tmp_path / "pipe.pem", tmp_path / "large.pem"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(2**30)
    for path, said in ((pipe, "is no regular file"), (large, "is larger than 4 MiB"), (Path("/dev/zero"), "is no reg")):
        with pytest.raises(ValidationError, match=f"{key} {path} {said}"):
            TlsSettings(**{key: path})
