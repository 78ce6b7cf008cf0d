"""The status page as a person sees it: real Chromium, wide and narrow."""

import asyncio
from pathlib import Path

import pytest

from tests.e2e.browser import Chromium
from tests.fakes.daemon import RunningDaemon


@pytest.mark.timeout(180)
async def test_within_ten_seconds_the_page_names_each_engine_its_class_and_its_gpus(tmp_path: Path) -> None:
    with RunningDaemon(tmp_path, "--scenario", "memory_wall", command=("demo",)) as daemon:
        async with Chromium() as browser:
            await asyncio.to_thread(
                daemon.wait_for_series,
                "pinchpoint_bottleneck",
                1.0,
                10,
                engine="chat-llama3.3-70b",
                **{"class": "kv_capacity"},
            )
            for width in (1280, 390):
                await browser.open(daemon.url + "/", width)
                text = await browser.evaluate("document.body.innerText")
                for expected in ("Out of KV cache", "chat-llama3.3-70b", "rag-qwen2.5-14b", "H100", "simulated"):
                    assert expected in text, f"{expected!r} is not on the page at {width} px"
                visible, needed = await browser.evaluate("[innerWidth, document.documentElement.scrollWidth]")
                assert (visible, needed) == (width, width), "the page scrolls sideways"
            before = await browser.evaluate("document.querySelector('#age').dataset.at")
            await asyncio.sleep(3)
            assert await browser.evaluate("document.querySelector('#age').dataset.at") > before, "the page stands still"
            assert browser.complaints == []
