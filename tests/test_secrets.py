"""No secret gets out: a canary in every place where one can be given, every failure made to happen, everything read.

The server that is asked is the worst there is: it gives back all that it was sent, in every shape that is read.
"""

import base64
import contextlib
import io
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from pinchpoint import logs
from pinchpoint.config import load
from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe import Prober, ProbeTargetSettings
from pinchpoint.sources.probe.dialects import Parameters
from pinchpoint.sources.probe.dialects.openai_chat import OpenAIChat
from tests.fakes.daemon import RunningDaemon
from tests.fakes.openai_server import Answer, FakeOpenAI, FakeRequest, Wire, replying
from tests.fakes.own_thread import in_a_thread
from tests.fakes.process_logging import restored_logging

# None looks like a key of a known kind, so no pattern finds it by luck.
WORD = "canarybird"
PLACES = (
    "api-key", "api-key-file", "api-key-variable", "taotoken-variable", "taotoken-folder", "taotoken-settings-json",
    "bearer", "bearer-file", "basic", "basic-file", "header", "discovery-bearer", "pause-token", "user-info",
)  # fmt: skip


def canary(place: str) -> str:
    return f"{WORD}-{place}-of-ours"


def echo(request: FakeRequest) -> str:
    basic = request.headers.get("authorization", "").removeprefix("Basic ")
    with contextlib.suppress(ValueError):
        return f"{request.headers} {base64.b64decode(basic, validate=True).decode()} {request.text}"
    return f"{request.headers} {request.text}"


def words(request: FakeRequest) -> str:
    """The bare secret, without a name beside it that would give it away."""
    headers = request.headers
    return " ".join(value.split(" ")[-1] for name, value in headers.items() if name.startswith(("auth", "x-", "api-")))


def _raw(*pieces: str) -> Answer:
    """Bytes as they are, and the end of the connection."""

    async def answer(_request: FakeRequest, wire: Wire) -> None:
        await wire.send(*(piece.encode() for piece in pieces))
        wire.close()

    return answer


async def _reset(_request: FakeRequest, wire: Wire) -> None:
    wire.reset()


SSE = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: "
# All that was sent, and the bare secrets -> an answer.
MODES: Mapping[str, Callable[[str, str], Answer]] = {
    "said": lambda s, b: replying(401, {"error": {"message": f"Incorrect API key: {b}. {s}", "code": b}}),
    "error": lambda s, _: replying(500, {"error": s}),
    "code": lambda _, b: replying(400, {"error": dict.fromkeys(("message", "type", "param", "code"), b)}),
    "html": lambda s, _: replying(200, f"<html>{s}</html>", "text/html"),
    "gateway": lambda _, b: replying(502, f"<html>nginx {b}</html>", "text/html"),
    "redirect": lambda _, b: replying(302, "", Location=f"http://{b.replace(' ', '.')}.invalid/{b}"),
    "plain": lambda _, b: replying(404, b, "text/plain"),
    "whole": lambda _, b: replying(200, dict.fromkeys(("data", "model", "object"), b)),
    "stream": lambda _, b: _raw(SSE, json.dumps({"error": {"message": b, "type": b}}), "\n\n"),
    "malformed": lambda _, b: _raw(SSE, f"{b}\n\nevent: {b}\ndata: {{{b}}}\n\n"),
    "encoding": lambda s, b: replying(200, s, "text/plain", Content_Encoding=b, Retry_After=b),
    "type": lambda s, b: replying(200, s, f"text/{b.replace(' ', '-')}; charset={b}"),
    "phrase": lambda _, b: _raw(f"HTTP/1.1 401 {b}\r\nContent-Length: 0\r\n\r\n"),
    "garbage": lambda s, b: _raw(f"HTTP/1.1 200 OK\r\n{b}\r\n{s}\r\n\r\n"),
    "junk": lambda s, b: replying(200, f"# HELP {b}\nx{{{s}}} {b}\n{b} {b}\n", "text/plain; version=0.0.4"),
    "none": lambda _, __: _reset,
}


async def parrot(request: FakeRequest, wire: Wire) -> None:
    """Answers by the first part of the path."""
    await MODES[request.path.split("/")[1]](echo(request), words(request))(request, wire)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with in_a_thread(FakeOpenAI(parrot)) as fake:
        yield fake


class Site:
    """A configuration with a canary in every place, and the environment that it needs."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        for place in ("api-key-file", "bearer-file", "basic-file"):
            (folder / place).write_text(canary(place) + "\n")
        self.secrets = folder / "secrets"
        self.secrets.mkdir()
        (self.secrets / "PINCHPOINT_GPU__PAUSE_TOKEN").write_text(canary("pause-token"))
        (self.secrets / "TAOTOKEN_API_KEY").write_text(canary("taotoken-folder"))
        shared = {"TAOTOKEN_BASE_URL": f"{url}/said/shared", "TAOTOKEN_MODEL": "m"}
        self.settings = folder / "settings.json"
        self.settings.write_text(json.dumps({**shared, "TAOTOKEN_API_KEY": canary("taotoken-settings-json")}))
        self.config = folder / "pinchpoint.yaml"
        self.config.write_text(yaml.safe_dump(self.content()))
        own = {name: value for name, value in os.environ.items() if not name.startswith(("PINCHPOINT_", "TAOTOKEN_"))}
        self.environment = {
            **own,
            "XDG_STATE_HOME": str(folder / "state"),
            "CANARY_KEY": canary("api-key-variable"),
            "HTTP_PROXY": f"http://u:{canary('user-info')}@127.0.0.1:9",
            "TAOTOKEN_API_KEY": canary("taotoken-variable"),
        }

    def content(self) -> dict[str, object]:
        keys: Sequence[Mapping[str, str]] = (
            {"api_key": canary("api-key")},
            {"api_key_file": str(self.folder / "api-key-file")},
            {"api_key_variable": "CANARY_KEY"},
        )
        headers = {"X-Canary": canary("header")}
        accesses: Sequence[Mapping[str, object]] = (
            {"bearer_token": canary("bearer"), "headers": headers},
            {"bearer_token_file": str(self.folder / "bearer-file"), "headers": headers},
            {"basic_auth": {"username": "u", "password": canary("basic")}},
            {"basic_auth": {"username": "u", "password_file": str(self.folder / "basic-file")}},
        )
        dialects = ("openai_chat", "anthropic", "gemini", "openai_responses")
        return {
            "settings_file": str(self.settings),
            "web": {"enable_lifecycle": True},
            "log": {"level": "debug"},
            "gpu": {"enabled": False},
            "engines": {
                "interval_seconds": 1,
                "timeout_seconds": 1,
                "targets": [
                    {"name": f"{mode}-{n}", "url": f"{self.url}/{mode}/{n}", **access}
                    for number, mode in enumerate(MODES)
                    for n, access in enumerate(accesses[number % 2 :: 2])
                ],
            },
            "discovery": {
                "http": [
                    {"name": mode, "url": f"{self.url}/{mode}/list", "bearer_token": canary("discovery-bearer")}
                    for mode in MODES
                ]
            },
            "probes": {
                "targets": [
                    {
                        "name": f"{mode}-{n}",
                        "url": f"{self.url}/{mode}",
                        "dialect": dialects[(n + number) % len(dialects)],
                        "model": "m",
                        **key,
                    }
                    for number, mode in enumerate(MODES)
                    for n, key in enumerate(keys)
                ]
            },
        }

    @property
    def options(self) -> tuple[str, ...]:
        return ("--config.file", str(self.config), "--secrets.dir", str(self.secrets))

    def command(self, *arguments: str, **more: str) -> str:
        """All that a command says; it says it without a traceback."""
        ended = subprocess.run(
            [sys.executable, "-m", "pinchpoint", *arguments],
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )
        assert "Traceback" not in ended.stderr, ended.stderr
        assert ended.stdout + ended.stderr
        return ended.stdout + ended.stderr


@pytest.fixture
def site(tmp_path: Path, server: FakeOpenAI) -> Site:
    server.requests.clear()
    return Site(tmp_path, server.url)


def leaks(text: str) -> set[str]:
    """The places whose canary is in the text: as it is, or as a basic credential."""
    coded = {p: base64.b64encode(f"u:{canary(p)}".encode()).decode() for p in PLACES}
    return {place for place in PLACES if canary(place) in text or coded[place] in text}


def assert_none(**texts: str) -> None:
    found = {name: (leaks(text), text) for name, text in texts.items() if leaks(text) or WORD in text}
    shown = {}
    for name, (places, text) in found.items():
        at = text.index(WORD) if WORD in text else 0
        shown[name] = f"{sorted(places)} in …{text[max(0, at - 200) : at + 150]}…"
    assert not shown, "\n".join(f"{name}: {text}" for name, text in shown.items())


def asked(daemon: RunningDaemon, path: str, **headers: str) -> str:
    request = urllib.request.Request(daemon.url + path, headers=headers, method="POST" if "/-/" in path else "GET")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return f"{answer.headers}\n{answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.headers}\n{error.read().decode()}"


def test_the_parrot_is_heard_and_the_test_would_find_what_it_says(server: FakeOpenAI) -> None:
    request = urllib.request.Request(f"{server.url}/html/x", headers={"Authorization": f"Bearer {canary('bearer')}"})
    with urllib.request.urlopen(request) as answer:
        assert leaks(answer.read().decode()) == {"bearer"}
    assert leaks(base64.b64encode(f"u:{canary('basic')}".encode()).decode()) == {"basic"}


def test_a_daemon_whose_every_request_fails_keeps_every_secret(site: Site, server: FakeOpenAI) -> None:
    recording = site.folder / "recording"
    with RunningDaemon(site.folder, *site.options, "--record", str(recording), env=site.environment) as daemon:
        names = [f"{mode}-{n}" for mode in MODES for n in range(3)]

        def all_probed() -> bool:
            failures = daemon.samples().get("pinchpoint_probe_failures_total", {})
            failed = {dict(labels)["target"] for labels, value in failures.items() if value}
            return {*names, "taotoken"} <= failed

        daemon.wait_for(all_probed, "every probe to fail", 60)
        daemon.wait_for(lambda: len(list(recording.glob("**/*.jsonl"))) > 0, "a recording")
        texts = {
            path: asked(daemon, path)
            for path in (
                *("/", "/metrics", "/api/v1/status", "/api/v1/diagnosis", "/-/reload", "/-/gpu/pause"),
                *(f"/probe?target={name}" for name in (*names, "taotoken", "no-such", canary("x").replace(WORD, "y"))),
            )
        }
        texts["openmetrics"] = asked(daemon, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
        texts["wrong pause"] = asked(daemon, "/-/gpu/pause", Authorization="Bearer wrong")
        texts["right pause"] = asked(daemon, "/-/gpu/pause", Authorization=f"Bearer {canary('pause-token')}")
        good = site.config.read_text()
        site.config.write_text(good.replace("model: m", "model: [m]").replace("api_key: ", "api_key: [1, ") + "\n]")
        texts["reload of no YAML"] = asked(daemon, "/-/reload")
        site.config.write_text(good.replace("model: m", "model: [m]").replace("X-Canary", "X Canary"))
        texts["reload with mistakes"] = asked(daemon, "/-/reload")
        site.config.write_text(good)
        texts["reload again"] = asked(daemon, "/-/reload")
        daemon.hang_up()
        daemon.terminate()
        texts["log"] = daemon.log
    sent = " ".join(echo(request) for request in server.requests)
    expected = set(PLACES) - {"taotoken-folder", "taotoken-settings-json", "pause-token", "user-info"}
    assert leaks(sent) == expected, "every secret has been sent, or the test shows nothing"
    assert "Traceback" not in texts["log"]
    assert "level=debug" in texts["log"]
    assert "is no" in texts["reload with mistakes"] or "should be" in texts["reload with mistakes"]
    for folder in (recording, site.folder / "state"):
        texts |= {str(path): path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()}
    assert_none(**texts)


def test_commands_keep_every_secret(site: Site) -> None:
    names = [f"{mode}-{n}" for mode in MODES for n in range(3)]
    config = ("--config.file", str(site.config))
    variables = {"PINCHPOINT_GPU__PAUSE_TOKEN": canary("pause-token")}
    texts = {
        "explain": site.command("check-config", str(site.config), "--secrets.dir", str(site.secrets), "--explain"),
        "explain as JSON": site.command("check-config", str(site.config), "--json", **variables),
        "probe": site.command("probe", *names[:6], *config),
        "probe as JSON": site.command("probe", *names, *config, "--json"),
        "check": site.command("probe", "--check", *names[:6], *config),
        "check as JSON": site.command("probe", "--check", *config, "--json"),
        "diagnose": site.command(
            *("diagnose", f"{site.url}/junk", f"{site.url}/said", "--seconds", "5", "--json"),
            *("--bearer-token-file", str(site.folder / "bearer-file")),
        ),
        "pause": site.command("gpu", "pause", f"{site.url}/said", **variables),
    }
    told = texts["explain"]
    assert "engines.targets.0.bearer_token = ***" in told
    assert "probes.targets.0.api_key = ***" in told
    assert "gpu.pause_token = ***" in told
    assert_none(**texts)


@pytest.mark.parametrize(
    "change",
    [
        {"web": {"listen_adress": canary("api-key")}},
        {"probes": {"targets": [{"name": "a", "url": f"http://u:{canary('user-info')}@h"}]}},
        {"probes": {"targets": [{"name": "a", "url": f"http://h:{canary('user-info')}"}]}},
        {"probes": {"targets": [{"name": "a", "url": "http://h", "proxy": f"http://u:{canary('user-info')}@p"}]}},
        {"probes": {"targets": [{"name": "a", "url": "http://h", "api_key": [canary("api-key")]}]}},
        {"probes": {"targets": [{"name": "a", "url": "http://h", "api_key": canary("api-key"), "api_key_file": "/x"}]}},
        {"probes": {"targets": [{"name": "a", "url": "http://h", "api_key_file": [canary("api-key")]}]}},
        {"probes": {"targets": [{"name": "a", "url": "http://h", "api_key_variable": f"${canary('api-key')}"}]}},
        {"engines": {"targets": [{"name": "a", "url": f"http://u:{canary('user-info')}@h"}]}},
        {"engines": {"targets": [{"name": "a", "url": "http://h", "bearer_token": f"{canary('bearer')}\n2"}]}},
        {"engines": {"targets": [{"name": "a", "url": "http://h", "headers": {"X Y": canary("header")}}]}},
        {"engines": {"targets": [{"name": "a", "url": "http://h", "headers": {"X": f"{canary('header')}\n"}}]}},
        {"engines": {"targets": [{"name": "a", "url": "http://h", "headers": [canary("header")]}]}},
        {"engines": {"targets": [{"name": "a", "url": "http://h", "headers": canary("header")}]}},
        {"engines": {"targets": [{"name": "a", "url": "http://h", "basic_auth": {"password": canary("basic")}}]}},
        {"engines": {"targets": [{"name": "a", "url": "http://h", "basic_auth": canary("basic")}]}},
        {"gpu": {"pause_token": canary("pause-token")[:12]}},
        {"gpu": {"pause_token": [canary("pause-token")]}},
        {"discovery": {"http": [{"name": "a", "url": f"http://u:{canary('user-info')}@h"}]}},
    ],
    ids=str,
)
def test_a_mistake_in_the_configuration_does_not_quote_a_secret(tmp_path: Path, change: dict[str, object]) -> None:
    from pinchpoint.config import ConfigError

    file = tmp_path / "pinchpoint.yaml"
    file.write_text(yaml.safe_dump(change))
    with pytest.raises(ConfigError) as caught:
        load(file, environment={})
    assert_none(error=str(caught.value), representation=repr(caught.value))


@pytest.mark.parametrize("form", ["console", "logfmt", "json"])
async def test_a_defect_whose_exception_holds_the_key_is_logged_without_it(form: logs.Format) -> None:
    """A library may quote what it was given; the log knows the secrets of the configuration by their values."""

    class Defect(OpenAIChat):
        def body(self, model: str, prompt: str, parameters: Parameters) -> dict[str, object]:
            raise RuntimeError(f"header value {canary('api-key')!r} is odd") from ValueError(canary("api-key"))

    settings = load(
        flags={"probes": {"targets": [{"name": "a", "url": "http://127.0.0.1:9", "api_key": canary("api-key")}]}},
        environment={},
    )
    target: ProbeTargetSettings = settings.probes.targets[0].model_copy(update={"model": "m"})
    stream = io.StringIO()
    with restored_logging():
        logs.configure("debug", form, stream)
        prober = Prober(target, dialect=Defect())
        reading = await prober.probe()
        await prober.close()
    assert reading.outcome is ProbeOutcome.INTERNAL
    assert "RuntimeError" in stream.getvalue()
    assert_none(log=stream.getvalue(), reading=repr(reading), settings=repr(settings), target=repr(target))
