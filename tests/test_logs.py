"""The log: what is written, for every form, ours and the libraries' alike."""

import io
import json
import logging
import re
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint import logs
from tests.fakes.process_logging import restored_logging

FORMS: tuple[logs.Format, ...] = ("console", "logfmt", "json")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _the_process_keeps_its_own_logging() -> Iterator[None]:
    with restored_logging():
        yield


def written(form: logs.Format, level: logs.Level = "info") -> io.StringIO:
    stream = io.StringIO()
    logs.configure(level, form, stream)
    return stream


def fail(error: Exception) -> None:
    raise error


def test_a_terminal_gets_colour_and_a_pipe_gets_logfmt() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        logs.configure(stream=stream)
        structlog.get_logger("pinchpoint.daemon").info("engine is down", engine="chat")
    assert "\x1b[" in terminal.getvalue()
    assert re.fullmatch(
        r'ts=\S+Z level=info logger=pinchpoint.daemon msg="engine is down" engine=chat\n', pipe.getvalue()
    )


def test_time_is_utc_in_iso_form() -> None:
    stream = written("json")
    structlog.get_logger("x").info("now")
    stamp = datetime.fromisoformat(json.loads(stream.getvalue())["ts"])
    assert abs((datetime.now(UTC) - stamp).total_seconds()) < 5


@pytest.mark.parametrize("form", FORMS)
def test_records_of_libraries_take_the_same_way_with_the_context_of_the_job(form: logs.Format) -> None:
    stream = written(form)
    structlog.contextvars.bind_contextvars(job="engine/chat")
    logging.getLogger("aiohttp.server").warning("bad %s", "request")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("old call", stacklevel=1)
    first, second = stream.getvalue().splitlines()
    assert "bad request" in first
    assert "engine/chat" in first
    assert "aiohttp.server" in first
    assert "old call" in second


def test_a_scrape_and_a_run_of_a_job_write_no_line() -> None:
    stream = written("logfmt", "debug")
    logging.getLogger("aiohttp.access").info("GET /metrics")
    logging.getLogger("apscheduler.executors.default").info("Running job")
    logging.getLogger("apscheduler.scheduler").warning("Execution of job skipped")
    assert stream.getvalue() == ""


def test_the_level_changes_while_loggers_are_in_use() -> None:
    stream = written("logfmt")
    log = structlog.get_logger("x")
    log.debug("one")
    logs.set_level("debug")
    log.debug("two")
    logs.set_level("error")
    log.warning("three")
    assert [line.rpartition("msg=")[2] for line in stream.getvalue().splitlines()] == ["two"]


def test_a_logger_in_use_follows_a_new_form_and_stream() -> None:
    written("logfmt")
    log = structlog.get_logger("x")
    log.info("one")
    stream = written("json")
    log.info("two")
    assert json.loads(stream.getvalue())["msg"] == "two"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "values",
    [
        {"authorization": "HUSH-hush-1234"},
        {"api_key": "HUSH-hush-1234"},
        {"x-api-key": "HUSH-hush-1234"},
        {"bearer_token": b"HUSH-hush-1234"},
        {"password": ["HUSH-hush-1234"]},
        {"headers": {"Authorization": "HUSH-hush-1234", "Accept": "*/*"}},
        {"deep": [{"list": ({"token": "HUSH-hush-1234"},)}]},
        {"error": ValueError("401 for Bearer HUSH-hush-1234")},
        {"header": "Authorization: Basic HUSH-hush-1234"},
        {"url": "https://user:p@ss-HUSH-hush-1234@host:8000/metrics"},
        {"url": "https://host/v1?access_token=HUSH-hush-1234&n=1"},
        {"body": '{"error": {"token": "HUSH-hush-1234"}}'},
        {"detail": "Incorrect API key provided: sk-HUSH-hush-1234."},
        {"sk-HUSH-hush-1234": 1},
    ],
    ids=lambda values: str(values)[:40],
)
def test_no_secret_is_written(form: logs.Format, values: dict[str, object]) -> None:
    stream = written(form)
    structlog.get_logger("x").warning("probe failed", **{"nested": values} if "sk-" in next(iter(values)) else values)
    assert "HUSH" not in stream.getvalue()
    assert "***" in stream.getvalue()


@pytest.mark.parametrize("form", FORMS)
def test_no_secret_is_written_by_a_library_or_an_exception(form: logs.Format) -> None:
    stream = written(form, "debug")
    logging.getLogger("aiohttp.client").error("%s", "http://me:HUSH@host/", exc_info=ValueError("Bearer HUSH-hush"))
    try:
        fail(ValueError("sk-HUSH-hush-1234"))
    except ValueError:
        structlog.get_logger("x").exception("failed")
    assert "HUSH" not in stream.getvalue()


def test_what_only_looks_like_a_secret_stays() -> None:
    stream = written("json")
    structlog.get_logger("x").info("probed", token=3, prompt_tokens=17, text="tokens=5 http://host:80/a@b task-force")
    line = json.loads(stream.getvalue())
    assert (line["token"], line["prompt_tokens"]) == (3, 17)
    assert line["text"] == "tokens=5 http://host:80/a@b task-force"


@pytest.mark.parametrize("form", FORMS)
def test_an_exception_is_one_line_with_its_place(form: logs.Format) -> None:
    stream = written(form)
    try:
        fail(RuntimeError("first\nsecond"))
    except RuntimeError:
        structlog.get_logger("x").exception("failed")
        logging.getLogger("asyncio").exception("failed too")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "RuntimeError" in line
        assert re.search(r"first\\+nsecond", line)
        assert re.search(r"test_logs.py:\d+ test_an_exception", line)
        assert "Traceback" not in line


def test_a_traceback_is_shown_only_on_the_console_and_only_when_debugging() -> None:
    cases: list[tuple[logs.Format, logs.Level, bool]] = [
        ("console", "debug", True),
        ("console", "info", False),
        ("logfmt", "debug", False),
    ]
    for form, level, shown in cases:
        stream = written(form, level)
        try:
            fail(RuntimeError("\x1b[2Jgone"))
        except RuntimeError:
            structlog.get_logger("x").exception("failed")
        assert ("\nTraceback (most recent call last):\n" in stream.getvalue()) is shown
        assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("form", FORMS)
@given(text=st.text(), key=st.text(min_size=1))
def test_no_text_makes_a_second_line_or_reaches_the_terminal_raw(form: logs.Format, text: str, key: str) -> None:
    stream = written(form)
    structlog.get_logger("x").info(text or "-", value=text, **{"k" + key: 1})
    line = stream.getvalue().removesuffix("\n")
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", line) or form == "json"
    assert len(line.splitlines()) == 1


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200).filter(lambda t: logs.redact(t) == t))
def test_logfmt_gives_every_text_back(text: str) -> None:
    stream = written("logfmt")
    structlog.get_logger("x").info("read", value=text)
    value = stream.getvalue().removesuffix("\n").partition("value=")[2]
    assert (json.loads(value) if value.startswith('"') else value) == text


def test_a_huge_value_is_cut() -> None:
    stream = written("logfmt")
    structlog.get_logger("x").info("answered", body="x" * 10_000_000, many=list(range(100_000)))
    assert len(stream.getvalue()) < 4_000


def test_a_value_that_contains_itself_is_cut() -> None:
    loop: list[object] = []
    loop.append(loop)
    stream = written("json")
    structlog.get_logger("x").info("looped", value=loop)
    assert "…" in json.loads(stream.getvalue())["value"][0][0][0][0][0][0]


def test_the_defaults_are_info_and_auto() -> None:
    assert logs.LogSettings() == logs.LogSettings(level="info", format="auto")
