"""What an operator may and may not write."""

import pytest
from pydantic import ValidationError

from pinchpoint.outputs.web import WebSettings
from pinchpoint.outputs.web.listen import split_address
from pinchpoint.outputs.web.negotiation import wants_gzip, wants_openmetrics


def test_the_defaults_are_every_interface_on_10770_and_no_lifecycle() -> None:
    settings = WebSettings()
    assert (settings.listen_address, settings.telemetry_path) == (":10770", "/metrics")
    assert (settings.enable_lifecycle, settings.max_requests) == (False, 40)


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        (":10770", ("", 10770)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:9", ("::1", 9)),
        ("node-7.lan:80", ("node-7.lan", 80)),
    ],
)
def test_an_address_is_split_into_host_and_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "10770", "::1:80", "host:", "host:99999", "http://host:80", "a b:1", "h:-1"])
def test_a_wrong_address_is_refused_with_the_accepted_forms(address: str) -> None:
    with pytest.raises(ValidationError, match="use HOST:PORT"):
        WebSettings(listen_address=address)


@pytest.mark.parametrize("path", ["metrics", "/", "/api/v1/x", "/-/healthy", "/probe", "/static/x", "/a{b}", "/a?b"])
def test_a_metrics_path_that_is_taken_or_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="no free path"):
        WebSettings(telemetry_path=path)


@pytest.mark.parametrize("accept", ["", "*/*", "text/html", "text/plain;version=0.0.4", ",;,", "application/json"])
def test_only_a_client_that_asks_gets_openmetrics(accept: str) -> None:
    assert not wants_openmetrics(accept)


@pytest.mark.parametrize(
    ("header", "wanted"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("*", True), ("", False), ("identity", False), ("gzip; q=0", False)],
)
def test_gzip_goes_only_to_clients_that_take_it(header: str, wanted: bool) -> None:
    assert wants_gzip(header) is wanted
