"""A probe of a hosted target by hand: it says what it may cost, and counts under the daemon's caps."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fakes.openai_server import FakeOpenAI, streaming

PRICE = {"input_usd_per_million_tokens": 1.0, "output_usd_per_million_tokens": 2.0}


def configuration(folder: Path, url: str, *, state: Path | None, **target: Any) -> Path:
    hosted = {"name": "h", "url": url, "model": "m", "placement": "hosted", **target}
    given = {"probes": {"targets": [hosted]}, **({"state_directory": str(state)} if state else {})}
    file = folder / "pinchpoint.yaml"
    file.write_text(json.dumps(given))
    return file


async def probe(file: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_STATE_HOME")}
    command = [sys.executable, "-m", "pinchpoint", "probe", "h", "--config.file", str(file), "--json"]
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, env=kept | environment, timeout=60, check=False
    )


async def test_it_says_what_it_may_cost_counts_in_the_ledger_and_is_not_sent_beyond_its_cap(tmp_path: Path) -> None:
    async with FakeOpenAI(streaming()) as server:
        file = configuration(tmp_path, server.url, state=tmp_path, price=PRICE, caps={"tokens_per_day": 1300})
        first, second = await probe(file), await probe(file)
        assert len(server.requests) == 1
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)[0]["outcome"] == "ok"
    assert first.stderr.startswith("pinchpoint: h: a probe may cost up to 12"), first.stderr
    assert "USD" in first.stderr
    assert second.returncode == 1
    assert json.loads(second.stdout) == [{"target": "h", "placement": "hosted", "skipped": "budget"}]
    assert "h: not sent (budget: tokens_per_day: 1188 are left, a probe may take 12" in second.stderr


async def test_where_the_ledger_was_asked_for_and_fails_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with FakeOpenAI(streaming()) as server:
        result = await probe(configuration(tmp_path, server.url, state=tmp_path / "file"))
        assert server.requests == []
    assert result.returncode == 1
    assert "h: not sent (ledger: " in result.stderr
    assert "the price is not known" in result.stderr


async def test_where_there_is_no_place_for_one_it_is_sent_and_that_it_is_not_counted_is_said(tmp_path: Path) -> None:
    async with FakeOpenAI(streaming()) as server:
        result = await probe(configuration(tmp_path, server.url, state=None))
        assert len(server.requests) == 1
    assert result.returncode == 0
    assert "h: not counted in a ledger: there is no folder for it; set state_directory" in result.stderr


async def test_without_a_setting_the_users_own_state_is_the_place(tmp_path: Path) -> None:
    async with FakeOpenAI(streaming()) as server:
        result = await probe(configuration(tmp_path, server.url, state=None), HOME=str(tmp_path))
    assert result.returncode == 0
    assert (tmp_path / ".local/state/pinchpoint/probe-spend.json").exists()
