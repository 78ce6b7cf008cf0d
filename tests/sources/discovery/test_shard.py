"""Shards: every engine is one shard's, the same everywhere and always, and a further shard moves few."""

import subprocess
import sys

import pytest

from pinchpoint.sources.discovery import Shard
from pinchpoint.sources.discovery.shard import shard_of

FLEET = [f"http://10.0.{n // 250}.{n % 250}:8000/metrics" for n in range(5000)]


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 16, 1000])
def test_every_engine_is_watched_by_exactly_one_shard(shards: int) -> None:
    for address in FLEET[:50]:
        assert sum(Shard(number, shards).has(address) for number in range(shards)) == 1


def test_shards_are_even() -> None:
    for shards in (2, 5, 16):
        sizes = [0] * shards
        for address in FLEET:
            sizes[shard_of(address, shards)] += 1
        assert max(sizes) - min(sizes) < 0.35 * len(FLEET) / shards


@pytest.mark.parametrize("shards", [1, 2, 4, 9])
def test_a_further_shard_takes_its_part_and_nothing_else_moves(shards: int) -> None:
    moved = [a for a in FLEET if shard_of(a, shards) != shard_of(a, shards + 1)]
    assert {shard_of(address, shards + 1) for address in moved} == {shards}
    assert len(moved) == pytest.approx(len(FLEET) / (shards + 1), rel=0.15)


def test_another_process_splits_alike() -> None:
    script = f"from pinchpoint.sources.discovery.shard import shard_of\nprint([shard_of(a, 7) for a in {FLEET[:200]}])"
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert said.strip() == str([shard_of(address, 7) for address in FLEET[:200]])


def test_the_split_of_a_release_stays_that_of_the_next() -> None:
    assert [shard_of(address, 10) for address in FLEET[:12]] == EXPECTED


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4/4", "the last is 3/4"),
        ("0/0", "is no shard"),
        ("-1/4", "write it like 0/4"),
        ("1", "write it like 0/4"),
        ("a/b", "write it like 0/4"),
        ("1/4 ", "write it like 0/4"),
        ("٠/4", "write it like 0/4"),
        ("0/1001", "at most 1000"),
    ],
)
def test_what_is_no_shard_is_refused_with_words(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="is no shard; ") as raised:
        Shard.written(text)
    assert said in str(raised.value)


def test_a_shard_is_read_and_written_alike() -> None:
    assert Shard.written("3/12") == Shard(3, 12)
    assert str(Shard(3, 12)) == "3/12"


EXPECTED = [8, 3, 6, 2, 1, 0, 3, 9, 9, 7, 7, 0]
