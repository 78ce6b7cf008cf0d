"""All lists together: who is believed, what a failure leaves in force, and what is said of it."""

from collections.abc import Iterator
from itertools import chain

import pytest
from structlog.testing import capture_logs

from pinchpoint.snapshot import EngineTarget, Reason
from pinchpoint.sources.discovery import Finding, Found, Shard
from pinchpoint.sources.discovery.found import MAX_ENGINES
from pinchpoint.sources.http import SourceError
from tests.sources.discovery.listing import names


@pytest.fixture
def found() -> Found:
    found = Found()
    found.keep(["file/fleet", "http/cmdb"])
    return found


@pytest.fixture
def said() -> Iterator[list]:
    with capture_logs() as lines:
        yield lines


def target(name: str, url: str = "", by: str = "file/fleet") -> EngineTarget:
    return EngineTarget(engine=name, url=url or f"http://{name}:1", found_by=by)


def finding(*targets: EngineTarget, **more) -> Finding:
    return Finding(targets=targets, **more)


BROKEN = SourceError(Reason.INVALID, "fleet.json:3 is no valid JSON; is it half written?")


def test_the_configuration_is_believed_before_any_list_and_the_first_list_before_the_second(found: Found) -> None:
    found.put("http/cmdb", finding(target("c", by="http/cmdb"), target("d", "http://a:1", by="http/cmdb")), 1.0)
    found.put("file/fleet", finding(target("a"), target("b", "http://named:1")), 1.0)
    merged = found.merged([target("named", by="")])
    assert names(merged) == ["named", "a", "c"]


def test_the_later_of_two_engines_with_one_name_is_refused_once_and_both_origins_are_said(found: Found, said) -> None:
    found.put("file/fleet", finding(target("chat", "http://a:1")), 1.0)
    found.put("http/cmdb", finding(target("chat", "http://b:1", by="http/cmdb")), 1.0)
    for _ in range(3):
        assert [t.url for t in found.merged([])] == ["http://a:1"]
    (line,) = said
    assert line["first"] == (
        "engine chat at http://b:1 (http/cmdb) has the name of engine chat at http://a:1 (file/fleet); "
        "make names unique"
    )


def test_two_paths_of_one_address_are_two_engines(found: Found) -> None:
    other = EngineTarget(engine="b", url="http://a:1", metrics_path="/other", found_by="file/fleet")
    found.put("file/fleet", finding(target("a"), other), 1.0)
    assert names(found.merged([])) == ["a", "b"]


def test_a_failure_keeps_the_last_good_list_in_force_and_says_so_once(found: Found, said) -> None:
    assert found.put("file/fleet", finding(target("a"), target("b")), 1.0)
    for at in (10.0, 12.0, 14.0):
        found.fail("file/fleet", BROKEN, at, 0.1)
    assert names(found.merged([])) == ["a", "b"]
    (absence,) = found.absences()
    assert (absence.source, absence.reason, absence.at) == ("discovery/file/fleet", Reason.INVALID, 10.0)
    assert "fleet.json:3 is no valid JSON; is it half written? The last good list stays in force (2 engines)." in (
        absence.detail
    )
    source = next(found.sources(100.0))
    assert (source.up, source.last_success_timestamp_seconds) == (False, 101.0)
    report, other = found.reports()
    assert (report.targets, report.failures_total) == (2, {Reason.INVALID: 3})
    assert (other.targets, other.refused, other.failures_total) == (None, None, {})
    assert not found.put("file/fleet", finding(target("a"), target("b")), 16.0), "the engines are the same"
    assert found.absences() == ()
    assert next(found.sources(100.0)).up
    assert [line["event"] for line in said] == ["discovery fails", "discovery is back"]


def test_a_list_that_never_came_leaves_nothing_in_force(found: Found) -> None:
    found.fail("file/fleet", BROKEN, 1.0)
    assert "stays in force" not in found.absences()[0].detail
    assert next(found.sources(0.0)).last_success_timestamp_seconds is None
    assert found.reports()[0].targets is None


def test_a_part_that_fails_is_a_failure_and_the_other_part_is_new(found: Found) -> None:
    assert found.put("file/fleet", finding(target("a"), failure=BROKEN), 1.0)
    assert names(found.merged([])) == ["a"]
    assert found.absences()[0].reason is Reason.INVALID
    assert not next(found.sources(0.0)).up


def test_another_cause_is_said_and_the_failure_counts_from_its_beginning(found: Found, said) -> None:
    found.fail("file/fleet", BROKEN, 1.0)
    found.fail("file/fleet", SourceError(Reason.UNREADABLE, "fleet.json can't be read"), 2.0)
    assert found.absences()[0].at == 1.0
    assert [line["reason"] for line in said] == ["invalid", "unreadable"]


def test_a_finder_that_is_gone_takes_its_engines_and_its_last_word_is_not_heard(found: Found) -> None:
    found.put("file/fleet", finding(target("a")), 1.0)
    found.keep(["http/cmdb"])
    assert found.merged([]) == ()
    assert not found.put("file/fleet", finding(target("a")), 2.0)
    assert found.merged([]) == ()
    assert [report.discovery for report in found.reports()] == ["http/cmdb"]


def test_refused_items_are_counted_and_said_when_they_change(found: Found, said) -> None:
    for _ in range(3):
        found.put("file/fleet", finding(refused=("fleet.json: group 1 is no mapping",)), 1.0)
    found.put("file/fleet", finding(refused=tuple(f"item {n}" for n in range(9))), 2.0)
    assert found.reports()[0].refused == 9
    assert next(found.sources(0.0)).up
    assert [(line["refused"], line["first"].count("|")) for line in said] == [(1, 0), (9, 4)]


def test_a_shard_watches_its_part_of_what_is_configured_and_found_and_all_on_this_host(found: Found) -> None:
    found.keep(["file/fleet", "loopback"])
    found.put("file/fleet", finding(*(target(f"f{n}") for n in range(40))), 1.0)
    found.put("loopback", finding(target("vllm-8000", "http://127.0.0.1:8000", by="loopback")), 1.0)
    named = [target(f"c{n}", by="") for n in range(40)]
    parts = [names(found.merged(named, Shard(n, 3), unshared=["loopback"])) for n in range(3)]
    assert all(part.pop() == "vllm-8000" for part in parts)
    assert sorted(chain(*parts)) == sorted(names(named) + [f"f{n}" for n in range(40)])
    assert all(any(name.startswith(kind) for name in part) for part in parts for kind in "cf")


def test_a_name_that_two_engines_have_is_refused_whichever_shards_they_fall_into(found: Found) -> None:
    found.put("file/fleet", finding(*(target("chat", f"http://h{n}:1") for n in range(20))), 1.0)
    parts = [found.merged([], Shard(n, 4)) for n in range(4)]
    assert [t.url for part in parts for t in part] == ["http://h0:1"]


def test_more_engines_than_one_pinchpoint_can_watch_are_refused_with_words(found: Found, said) -> None:
    found.put("file/fleet", finding(*(target(f"e{n}") for n in range(MAX_ENGINES + 7))), 1.0)
    assert len(found.merged([])) == MAX_ENGINES
    (line,) = said
    assert line["refused"] == 7
    assert "split them with --shard" in line["first"]
