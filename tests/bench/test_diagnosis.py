"""The bench of the diagnosis counts right what is right, keeps what it has played, and judges it again alike."""

import json
import subprocess
import sys

import pytest

from bench.diagnosis_figures import Share, confusion, recall, shares
from bench.diagnosis_rows import FULL, Answer, Row
from bench.vllm_doctor import CLASSES, NOTHING_FOUND, classes_of, last_scrape
from pinchpoint.simulator.truth import Truth, world_of


def _row(said: str, *true: str, second: str | None = None, confidence: float = 0.9, helps: bool | None = None) -> Row:
    answer = Answer(named=(said,), others=(second,) if second else (), confidence=confidence, more_gpus_help=helps)
    return Row(name="1", story="", truth=Truth(label=true[0], ties=true), answers={FULL: answer})


def _count(row: Row, what: str) -> tuple[int, int | None]:
    share = next(share for share in shares([row], FULL) if share.what.startswith(what))
    return share.count, share.strict


def test_a_cause_that_ties_counts_and_strictly_it_does_not():
    tied = _row("compute", "memory_bandwidth", "compute")
    assert _count(tied, "top-1") == (1, 0)
    assert _count(_row("compute", "compute"), "top-1") == (1, 1)


def test_the_runner_up_counts_for_the_first_two():
    row = _row("scheduler", "kv_capacity", second="kv_capacity")
    assert _count(row, "top-1") == (0, 0)
    assert _count(row, "top-2") == (1, 1)


def test_who_abstains_is_neither_right_nor_confidently_wrong():
    row = _row("unknown", "compute", confidence=1.0)
    assert _count(row, "abstained") == (1, 1)
    assert _count(row, "top-1") == (0, 0)
    assert _count(row, "wrong at") == (0, 0)


@pytest.mark.parametrize(("confidence", "wrong"), [(0.79, 0), (0.8, 1)])
def test_wrong_is_confident_from_a_threshold_on(confidence, wrong):
    assert _count(_row("compute", "network", confidence=confidence), "wrong at")[0] == wrong


@pytest.mark.parametrize(("said", "counted"), [(True, "said that more"), (None, "did not say"), (False, "")])
def test_more_gpus_are_wrongly_promised_or_not_spoken_of(said, counted):
    row = _row("compute", "network", helps=said)  # in truth they don't help
    for what in ("said that more", "said that they don't", "did not say"):
        assert _count(row, what)[0] == (what == counted)


def test_an_interval_holds_what_chance_leaves_open():
    low, high = Share(what="", count=46, of=50).interval
    assert (round(low, 3), round(high, 3)) == (0.812, 0.968)
    assert Share(what="", count=0, of=0).interval == (0.0, 1.0)


def test_recall_and_confusion_take_a_tie_for_what_was_said():
    rows = [_row("compute", "memory_bandwidth", "compute"), _row("network", "memory_bandwidth")]
    assert recall(rows, FULL)["memory_bandwidth"].count == 1
    assert confusion(rows, FULL) == {("compute", "compute"): 1, ("memory_bandwidth", "network"): 1}


def test_the_peers_first_finding_is_its_answer_and_any_of_a_rules_classes_counts():
    check = {"id": "queue_pressure", "finding": {"severity": "warning"}}
    other = {"id": "preemption_pressure", "finding": {"severity": "info"}}
    silent = {"id": "error_rate", "finding": None}
    assert classes_of({"checks": [check, other, silent]}) == {
        "named": CLASSES["queue_pressure"],
        "others": CLASSES["preemption_pressure"],
    }
    assert classes_of({"checks": [silent]}) == {"named": NOTHING_FOUND}


def test_the_peer_is_shown_servers_side_by_side_as_one_exposition(tmp_path):
    for name, value in (("engine-0", 3), ("engine-1", 9)):
        (tmp_path / name).mkdir()
        for step, running in ((0, 0), (1, value)):
            text = f'# HELP vllm:running r\n# TYPE vllm:running gauge\nvllm:running{{engine="0"}} {running}\n'
            (tmp_path / name / f"{step:03d}.prom").write_text(text)
    body = last_scrape(tmp_path)
    assert body is not None
    assert body.decode().splitlines() == [
        "# HELP vllm:running r",
        "# TYPE vllm:running gauge",
        'vllm:running{engine="0",instance="engine-0"} 3',
        'vllm:running{engine="0",instance="engine-1"} 9',
    ]


def _ended(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "bench/diagnosis.py", "--no-peer", "--json", "--jobs", "1", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
    )


def _bench(*arguments: object) -> dict:
    ended = _ended(*arguments)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_what_was_played_is_kept_and_judged_again_alike(tmp_path):
    quiet = next(seed for seed in range(100) if world_of(seed).story == "sleeping")
    played = _bench("--seeds", quiet, "--out", tmp_path, "--ablate")
    assert (tmp_path / f"{quiet:06d}" / "meta.json").exists()
    assert played["n"] == 1
    assert played["rows"][0]["truth"]["label"] == "sleeping"
    assert len(played["judges"]) == 5
    again = _bench("--from", tmp_path, "--seeds", f"0-{quiet}", "--ablate")
    assert again["rows"] == played["rows"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--seeds", "x"], "--seeds x: give a range like 0-99"),
        (["--seeds", "3-1"], "--seeds 3-1: give a range"),
        (["--seeds", "0-9999999"], "numbers below a million"),
        (["--seeds", "2", "--odd"], "--seeds 2: none of them is odd"),
        (["--jobs", "0"], "--jobs 0: it takes at least one process"),
        (["--from", "{}/gone"], "gone: is no folder"),
        (["--from", "{}"], "truth.json: is no file of truths (KeyError); remove it"),
        (["--out", "{}/truth.json"], "File exists"),
    ],
)
def test_a_mistake_is_one_line_of_wrong_usage(tmp_path, arguments: list[str], told: str):
    (tmp_path / "truth.json").write_text('{"worlds": {}}')
    ended = _ended(*(each.format(tmp_path) for each in arguments))
    assert ended.returncode == 2
    assert told in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "gone").exists()
