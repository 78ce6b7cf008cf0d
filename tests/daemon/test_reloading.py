"""Reloads: all or nothing, one at a time, and a storm of them is two."""

import asyncio
import threading
from pathlib import Path

from pinchpoint.config import ConfigError, Problem, Settings, load
from pinchpoint.daemon.reloading import Reloader

Taken = list[Settings]


def reloader(load_settings, taken: Taken) -> Reloader:
    async def take(settings: Settings) -> None:
        taken.append(settings)

    return Reloader(load_settings, take)


async def test_a_storm_of_reloads_is_the_one_under_way_and_one_after_it() -> None:
    loads = 0
    may_load = threading.Event()

    def slowly() -> Settings:
        nonlocal loads
        loads += 1
        may_load.wait(10)
        return Settings()

    taken: Taken = []
    storm = reloader(slowly, taken)
    first = asyncio.create_task(storm.reload())
    while not loads:
        await asyncio.sleep(0.001)
    others = [asyncio.create_task(storm.reload()) for _ in range(50)]
    await asyncio.sleep(0)
    may_load.set()
    assert await asyncio.gather(first, *others) == [None] * 51
    assert (loads, len(taken)) == (2, 2)


async def test_a_caller_that_leaves_does_not_end_the_reload_of_the_others() -> None:
    taken: Taken = []
    ours = reloader(Settings, taken)
    impatient, patient = asyncio.create_task(ours.reload()), asyncio.create_task(ours.reload())
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient is None
    assert len(taken) == 1


async def test_a_bad_configuration_changes_nothing_and_says_why() -> None:
    def bad() -> Settings:
        raise ConfigError(Problem("file:1", "a", "is wrong", "mend it"), Problem("file:2", "b", "is wrong", "mend it"))

    taken: Taken = []
    ours = reloader(bad, taken)
    assert await ours.reload() == "file:1: a: is wrong; mend it\nfile:2: b: is wrong; mend it"
    assert (taken, ours.successful) == ([], False)


async def test_a_token_file_that_is_missing_changes_nothing_and_is_named(tmp_path: Path) -> None:
    token, file = tmp_path / "token", tmp_path / "pinchpoint.yaml"
    file.write_text(f"engines: {{targets: [{{name: a, url: 'http://h:1', bearer_token_file: {token}}}]}}\n")
    taken: Taken = []
    ours = reloader(lambda: load(file, environment={}), taken)
    said = await ours.reload()
    assert said is not None
    assert f"engines.targets.0: bearer_token_file {token} can't be read: no such file or directory" in said
    assert "make it readable" in said
    assert (taken, ours.successful) == ([], False)
    token.write_text("secret\n")
    assert await ours.reload() is None
    assert [engine.bearer_token_file for new in taken for engine in new.engines.targets] == [token]
