"""What people read: why, what speaks against, what is missing, what to do; on terminals of any width, and in a pipe."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pinchpoint.cli import app
from pinchpoint.cli.how_to_see import how_to_see
from pinchpoint.cli.strip import strip

DATA = Path("tests/data")
SATURATED = DATA / "vllm-real" / "d-kv-saturated"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def explained(folder: Path) -> list[str]:
    return CliRunner().invoke(app, ["diagnose", "--replay", str(folder)], catch_exceptions=False).stdout.splitlines()


def on_a_terminal(folder: Path, columns: int, **environment: str) -> str:
    """What a terminal of so many columns is sent."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | environment
        command = [sys.executable, "-m", "pinchpoint", "diagnose", "--replay", str(folder)]
        os.execve(sys.executable, command, {**environment, "TERM": "xterm-256color", "COLUMNS": str(columns)})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    sent = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the command has ended
            break
        if not part:
            break
        sent += part
    os.close(terminal)
    os.waitpid(pid, 0)
    return sent.decode().replace("\r", "")


def test_the_answer_begins_with_what_it_is_in_words_and_how_sure() -> None:
    head, why, *_ = explained(SATURATED)
    assert head == "d-kv-saturated: Out of KV cache  kv_capacity, 95 % sure, 53 of 58 s"
    assert why.strip() == "The KV cache is full: requests wait for room and running ones are preempted."


def test_a_ratio_with_a_threshold_is_a_bar_with_a_mark() -> None:
    lines = [line for line in explained(SATURATED) if "█" in line]
    assert [line.split()[-1] for line in lines] == ["%", "scrapes"]
    assert all(re.search(r"[█·]*[╂┃][█·]* ", line) for line in lines)
    assert any(line.strip() == "120 preemptions a minute" for line in explained(SATURATED))


def test_levers_are_numbered_and_come_with_flag_reason_effect_and_risk() -> None:
    text = "\n".join(explained(SATURATED))
    first = text[text.index("1. ") : text.index("2. ")]
    assert "--kv-cache-dtype fp8" in first
    for label in ("why: ", "expect: ", "risk: "):
        assert label in first
    assert "more GPUs  yes: " in text


def test_the_classes_are_a_strip_of_letters_where_there_is_no_colour() -> None:
    line, legend = explained(SATURATED)[-2:]
    assert re.fullmatch(r"  timeline   \.{5}K{55}", line)
    assert legend.strip() == ". 0–5 s idle, K 5–58 s kv_capacity"


def test_many_intervals_are_summed_up_by_class() -> None:
    timeline = [{"start": 10 * n, "end": 10 * n + 10, "class": ("healthy", "compute")[n % 2]} for n in range(9)]
    line, legend = strip(timeline, 18, coloured=False)
    assert line.plain == "--CC--CC--CC--CC--"
    assert legend.plain == "- 50 s healthy, C 40 s compute"
    (alone,) = strip(timeline[:1], 18, coloured=False)
    assert alone.plain == "0–10 s healthy"


def test_each_replica_of_a_service_has_its_line() -> None:
    lines = explained(DATA / "recordings" / "replica-folders")
    at = lines.index("each of its engines")
    assert [line.split()[0] for line in lines[at + 1 : at + 5]] == ["engine-0", "engine-1", "engine-2", "engine-3"]


def test_what_is_missing_comes_with_how_to_provide_it(tmp_path: Path) -> None:
    for scrape in (DATA / "recordings" / "one-engine").glob("*.prom"):
        (tmp_path / scrape.name).write_bytes(scrape.read_bytes().replace(b"num_preemptions_total", b"unheard_of_total"))
    answer = json.loads(CliRunner().invoke(app, ["diagnose", "--replay", str(tmp_path), "--json"]).stdout)
    assert "preemptions_per_second" in answer["missing"]
    assert set(answer["how_to_see"]) == set(answer["missing"])
    assert any(line.lstrip().startswith("not seen   preemptions_per_second: ") for line in explained(tmp_path))


@pytest.mark.parametrize(
    ("signal", "words"),
    [
        ("gpu_tensor_active_ratio", "Hopper"),
        ("gpu_readings", "gpu.jsonl"),
        ("max_num_seqs", "command line"),
        ("host_cpu_throttled_ratio", "host.jsonl"),
        ("link_worst_bytes_per_second", "topo -m"),
        ("probe_client_ttft_seconds", "probes.targets"),
        ("roofline_ratio", "model_config"),
        ("kv_cache_usage_ratio", "/metrics"),
    ],
)
def test_each_signal_is_to_be_had_somewhere(signal: str, words: str) -> None:
    assert words in how_to_see(signal)


@pytest.mark.parametrize("columns", [48, 80, 200])
def test_a_page_keeps_within_its_terminal_and_its_indent(columns: int) -> None:
    page = ESCAPES.sub("", on_a_terminal(SATURATED, columns))
    lines = page.splitlines()
    assert max(map(len, lines)) <= min(columns, 110)
    assert "more room" not in page
    assert all(line.startswith("  ") for line in lines[2:] if line), lines


def test_colour_is_for_terminals_that_want_it() -> None:
    assert "\x1b[" not in "\n".join(explained(SATURATED))
    assert "\x1b[31m" in on_a_terminal(SATURATED, 100)
    plain = on_a_terminal(SATURATED, 100, NO_COLOR="1")
    assert not re.search(r"\x1b\[(\d+;)*[349]\dm", plain)
    assert ".....KKK" in plain


def test_the_json_says_all_that_it_said_and_more() -> None:
    answer = json.loads(CliRunner().invoke(app, ["diagnose", "--replay", str(SATURATED), "--json"]).stdout)
    assert answer["score"] == answer["scores"]["kv_capacity"]
    assert answer["contradicted_by"] == []
    for lever in answer["advice"]:
        assert {"action", "text"} <= lever.keys() <= {"action", "text", "reason", "effect", "flag", "risk"}


def test_names_from_elsewhere_reach_the_terminal_without_what_it_would_obey(tmp_path: Path) -> None:
    folder = tmp_path / "chat\x1b[2J\udcff"  # a byte that is no text
    folder.mkdir()
    for scrape in sorted(SATURATED.glob("*.prom"))[:8]:
        (folder / scrape.name).symlink_to(scrape.resolve())
    links = [{"gpu": "\x1b]0;x\x07", "peer": "1", "link": "\x9b31m"}]
    (folder / "meta.json").write_text(json.dumps({"gpus": ["0", "1"], "links": links}))
    gpus = [{"gpu": "\x1b]0;x\x07", "up": 0, "detail": "\x1b[8m"}, {"gpu": "1", "name": "\u202e"}]
    (folder / "gpu.jsonl").write_text(json.dumps({"t": 0, "gpus": gpus}) + "\n")
    said = on_a_terminal(folder, 100)
    assert "chat\ufffd[2J\ufffd" in ESCAPES.sub("", said)
    assert ESCAPES.sub("", said).replace("\n", "").isprintable()


def test_a_terminal_that_says_it_has_no_columns_is_told_all_the_same() -> None:
    assert "requests wait for room" in " ".join(on_a_terminal(SATURATED, 0).split())


def test_what_an_encoding_lacks_is_a_question_mark() -> None:
    command = [sys.executable, "-m", "pinchpoint", "diagnose", "--replay", str(SATURATED)]
    told = subprocess.run(
        command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, timeout=60, check=False
    )
    assert told.returncode == 1
    assert b"because    ???" in told.stdout
    assert told.stderr == b""
