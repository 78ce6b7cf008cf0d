"""Engines in files: what a change, a half-written file and a file that goes away do to the list."""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pinchpoint.daemon.finding import engine_described
from pinchpoint.snapshot import Reason
from pinchpoint.sources.discovery import Finding
from pinchpoint.sources.discovery import file as file_module
from pinchpoint.sources.discovery.file import GONE_AFTER_LOOKS, MAX_FILE_BYTES, MAX_FILES, MAX_WAITS, FileFinder, parsed
from pinchpoint.sources.discovery.groups import read_groups
from pinchpoint.sources.discovery.settings import FileDiscoverySettings
from pinchpoint.sources.http import SourceError
from tests.sources.discovery.listing import Clock, ground, names

CLOCK = Clock()


def finder(*paths: Path, **more) -> FileFinder:
    settings = FileDiscoverySettings(name="fleet", paths=tuple(map(str, paths)), **more)
    return FileFinder(settings, ground(CLOCK))


def engines(*addresses: str) -> str:
    return json.dumps([{"targets": list(addresses)}])


async def after_a_change(finder: FileFinder) -> Finding:
    """A change is taken at the second look: it must stand still for one."""
    await finder.find()
    return await finder.find()


def failure(finding: Finding) -> SourceError:
    assert finding.failure is not None
    return finding.failure


async def test_json_and_yaml_are_read_at_the_first_look(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(engines("a:1", "a:2"))
    (tmp_path / "b.yml").write_text("- targets: ['b:1']\n  labels: {engine: chat, __scheme__: https}\n")
    (tmp_path / "c.txt").write_text(engines("c:1"))
    (tmp_path / ".d.json").write_text(engines("d:1"))
    finding = await finder(tmp_path / "*.json", tmp_path / "*.yml").find()
    assert [(t.engine, t.url) for t in finding.targets] == [
        ("a:1", "http://a:1"), ("a:2", "http://a:2"), ("chat", "https://b:1"),
    ]  # fmt: skip
    assert (finding.refused, finding.failure) == ((), None)
    assert {target.found_by for target in finding.targets} == {"file/fleet"}


async def test_what_lets_us_in_to_the_engines_is_the_settings_and_never_the_lists(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(engines("a:1"))
    (target,) = (await finder(tmp_path / "a.json", engine_access={"bearer_token": "abc"}).find()).targets
    assert target.access.bearer_token == "abc"
    assert "abc" not in repr(target)


async def test_a_change_is_taken_once_it_has_stood_still_for_a_look(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(engines("a:1"))
    fleet = finder(path)
    await fleet.find()
    path.write_text(engines("a:1", "b:1"))
    assert names((await fleet.find()).targets) == ["a:1"]
    assert names((await fleet.find()).targets) == ["a:1", "b:1"]


async def test_a_yaml_that_is_being_written_is_not_taken_for_a_shorter_list(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    lines = [f"- targets: ['h{n}:1']\n" for n in range(4)]
    path.write_text("".join(lines))
    fleet = finder(path)
    await fleet.find()
    for so_far in (1, 2, 3):
        path.write_text("".join(lines[:so_far]))
        assert len((await fleet.find()).targets) == 4
    path.write_text("".join(lines) + "- targets: ['new:1']\n")
    assert len((await fleet.find()).targets) in (4, 5)
    assert len((await fleet.find()).targets) == 5


async def test_a_file_that_never_stands_still_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(engines("h0:1"))
    fleet = finder(path)
    await fleet.find()
    seen = set()
    for n in range(1, 2 * (MAX_WAITS + 1) + 1):
        (tmp_path / "new").write_text(engines(f"h{n}:1"))
        os.replace(tmp_path / "new", path)
        seen.update(names((await fleet.find()).targets))
    assert len(seen) == 3


async def test_a_file_replaced_by_one_of_the_same_size_and_time_is_another(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(engines("a:1"))
    fleet = finder(path)
    await fleet.find()
    time = path.stat()
    (tmp_path / "new").write_text(engines("b:1"))
    os.utime(tmp_path / "new", ns=(time.st_atime_ns, time.st_mtime_ns))
    os.replace(tmp_path / "new", path)
    assert names((await after_a_change(fleet)).targets) == ["b:1"]


async def test_a_swap_of_symbolic_links_as_kubernetes_does_it_is_seen(tmp_path: Path) -> None:
    for version, address in (("v1", "a:1"), ("v2", "b:1")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "fleet.json").write_text(engines(address))
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "fleet.json").symlink_to("..data/fleet.json")
    fleet = finder(tmp_path / "*.json")
    assert names((await fleet.find()).targets) == ["a:1"]
    (tmp_path / "..new").symlink_to("v2")
    os.replace(tmp_path / "..new", tmp_path / "..data")
    shutil.rmtree(tmp_path / "v1")
    assert names((await after_a_change(fleet)).targets) == ["b:1"]


@pytest.mark.parametrize(
    ("content", "reason", "said"),
    [
        (b'[{"targets": ["a:1"', Reason.INVALID, "fleet.json:1 is no valid JSON"),
        (b"", Reason.TRUNCATED, "is empty, so it may be half written; [] says that there is none"),
        (b"  \n", Reason.TRUNCATED, "is empty"),
        (b"null", Reason.INVALID, "is no list of groups"),
        (b"\x7fELF\x02\x01\xff\xfe", Reason.INVALID, "is not UTF-8 text"),
        (b"[" * 100_000, Reason.INVALID, "holds what no list of engines has"),
        (b"[" + b" " * MAX_FILE_BYTES + b"]", Reason.TOO_LARGE, "larger than 1048576 bytes; make several files"),
    ],
)
async def test_a_bad_file_stands_as_it_was_and_is_named(tmp_path: Path, content: bytes, reason, said: str) -> None:
    bad, good = tmp_path / "fleet.json", tmp_path / "other.json"
    bad.write_text(engines("a:1"))
    good.write_text(engines("b:1"))
    fleet = finder(tmp_path / "*.json")
    await fleet.find()
    bad.write_bytes(content)
    good.write_text(engines("b:1", "c:1"))
    for _ in range(3):
        finding = await after_a_change(fleet)
        assert names(finding.targets) == ["a:1", "b:1", "c:1"]
        assert failure(finding).reason is reason
        assert said in failure(finding).detail
    bad.write_text(engines("d:1"))
    finding = await after_a_change(fleet)
    assert names(finding.targets) == ["d:1", "b:1", "c:1"]
    assert finding.failure is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- targets: ['a:1'\n", "fleet.yaml:2 is no valid YAML"),
        ("- targets: [a\x00]\n", "is no valid YAML (a character that YAML does not allow)"),
        ("[" * 100_000, "fleet.yaml:1 is no valid YAML"),
        ("- targets: [!!bool x]\n", "holds what no list of engines has"),
        ("- targets: [!!int '', !!bool x]\n", "holds what no list of engines has"),
        ("!!python/object/apply:os.getcwd []\n", "is no valid YAML"),
    ],
)
async def test_bad_yaml_is_named_with_its_line(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "fleet.yaml").write_text(content)
    assert said in failure(await finder(tmp_path / "fleet.yaml").find()).detail


async def test_a_named_file_that_vanishes_is_a_failure_and_its_engines_stay(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(engines("a:1"))
    fleet = finder(path)
    await fleet.find()
    path.rename(tmp_path / "away")
    for _ in range(5):
        finding = await fleet.find()
        assert names(finding.targets) == ["a:1"]
        assert failure(finding).reason is Reason.UNREADABLE
        assert f"{path} can't be read: no such file or directory" in failure(finding).detail
    (tmp_path / "away").rename(path)
    assert (await fleet.find()).failure is None


async def test_a_file_that_a_pattern_no_longer_meets_takes_its_engines_with_it_after_a_grace(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(engines(f"{name}:1"))
    fleet = finder(tmp_path / "*.json")
    await fleet.find()
    (tmp_path / "b.json").unlink()
    for _ in range(GONE_AFTER_LOOKS - 1):
        assert names((await fleet.find()).targets) == ["a:1", "b:1"]
    finding = await fleet.find()
    assert (names(finding.targets), finding.failure) == (["a:1"], None)


async def test_a_folder_that_is_gone_is_a_failure_and_not_the_end_of_all_engines(tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / "a.json").write_text(engines("a:1"))
    fleet = finder(folder / "*.json")
    await fleet.find()
    folder.rename(tmp_path / "away")
    for _ in range(5):
        finding = await fleet.find()
        assert names(finding.targets) == ["a:1"]
        assert failure(finding).reason is Reason.UNREADABLE
    (tmp_path / "away").rename(folder)
    assert (await fleet.find()).failure is None


async def test_a_folder_without_any_list_is_well_and_empty(tmp_path: Path) -> None:
    assert await finder(tmp_path / "*.json").find() == Finding()


async def test_what_is_no_regular_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    finding = await finder(tmp_path / "*.json").find()
    assert "folder.json can't be read: is a directory" in failure(finding).detail
    assert failure(finding).detail.endswith("; 2 more files fail")
    assert "is no regular file" in failure(await finder(tmp_path / "pipe.json").find()).detail


async def test_a_file_that_looks_unchanged_is_read_again_after_its_refresh_interval(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(engines("a:1"))
    fleet = finder(path, refresh_seconds=60)
    await fleet.find()
    times = path.stat()
    path.write_text(engines("b:1"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert names((await after_a_change(fleet)).targets) == ["a:1"]
    CLOCK.now += 60
    assert names((await fleet.find()).targets) == ["b:1"]


async def test_more_files_than_are_read_are_said(tmp_path: Path) -> None:
    for n in range(MAX_FILES + 20):
        (tmp_path / f"{n:03}.json").write_text(engines(f"h{n}:1"))
    finding = await finder(tmp_path / "*.json").find()
    assert len(finding.targets) == MAX_FILES
    assert "make the pattern narrower" in finding.refused[0]


async def test_a_disk_that_hangs_is_one_thread_and_a_failure_until_it_answers(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "fleet.json").write_text(engines("a:1"))
    monkeypatch.setattr(file_module, "DEADLINE_SECONDS", 0.05)
    fleet, stat, answers, looks = finder(tmp_path / "fleet.json"), os.stat, threading.Event(), []

    def hanging(path):
        looks.append(path)
        answers.wait(20)
        return stat(path)

    monkeypatch.setattr(file_module.os, "stat", hanging)
    for _ in range(3):
        with pytest.raises(SourceError, match="is its disk there") as raised:
            await fleet.find()
        assert raised.value.reason is Reason.HUNG
    assert len(looks) == 1
    answers.set()
    monkeypatch.setattr(file_module, "DEADLINE_SECONDS", 10)
    assert names((await fleet.find()).targets) == ["a:1"]


@given(st.binary(max_size=60) | st.text("[]{}:-!&*?'\"|>%@,# \nabc019tTnN~.", max_size=60).map(str.encode))
@pytest.mark.parametrize("path", ["fleet.json", "fleet.yaml"])
def test_whatever_stands_in_a_file_it_is_a_list_or_a_failure(path: str, content: bytes) -> None:
    try:
        said = read_groups(parsed(path, content), path, "file/fleet", engine_described).refused
    except SourceError as error:
        said = (error.detail,)
    assert all(line.startswith(path) for line in said)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("targets/a.json", "is no absolute path"),
        ("/etc/targets/a.txt", "is no absolute path that ends in .json, .yml, .yaml"),
        ("/etc/*/a.json", "has a pattern in its folder"),
    ],
)
def test_a_path_that_can_t_be_is_refused_by_the_settings(path: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        FileDiscoverySettings(name="fleet", paths=(path,))


def test_a_list_without_a_path_is_refused_by_the_settings() -> None:
    with pytest.raises(ValidationError, match="names no file"):
        FileDiscoverySettings(name="fleet", paths=())


async def test_plain_values_in_yaml_are_the_texts_that_prometheus_takes_them_for(tmp_path: Path) -> None:
    labels = "{release: 1.10, rack: 12:30, day: 2026-11-30, code: 007, on: yes, __pinchpoint_max_num_seqs: 256}"
    (tmp_path / "fleet.yaml").write_text(f"- targets: [a:1]\n  labels: {labels}\n")
    (target,) = (await finder(tmp_path / "fleet.yaml").find()).targets
    assert target.labels == {"release": "1.10", "rack": "12:30", "day": "2026-11-30", "code": "007", "on": "yes"}
    assert target.facts.max_num_seqs == 256


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- &g {targets: [], labels: {" + ", ".join(f"l{n}: x" for n in range(40_000)) + "}}\n" + "- *g\n" * 80_000,
         "more than 10000 groups"),
        ("- &g {targets: [], labels: {" + ", ".join(f"l{n}: x" for n in range(60)) + "}}\n" + "- *g\n" * 200_000,
         "more than 10000 groups"),
        ("- {targets: [a:1], labels: {x: 1" + ":59" * 300_000 + "}}", "above 1024 characters"),
    ],
    ids=["aliases of a group with many labels", "aliases of a group", "a number to the base 60"],
)  # fmt: skip
async def test_a_small_yaml_that_takes_long_to_unfold_is_left_soon(tmp_path: Path, content: str, said: str) -> None:
    """They took from half a minute to hours, and held the finder as long."""
    (tmp_path / "fleet.yaml").write_text(content)
    finding = await finder(tmp_path / "fleet.yaml").find()  # within its deadline of five seconds
    assert said in finding.refused[0]
    assert finding.targets == ()
