"""Takes the pictures of ``docs/dashboards.md``: ``python -m tests.e2e.dashboard_pictures``. Takes some minutes.

A day's worth of trouble in an hour, and two weeks for capacity, in a real Prometheus; drawn by ``viewer``, which is no
Grafana.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pinchpoint.simulator.scenarios import SCENARIOS
from tests.contracts.dashboard_queries import dashboards, marks, queries
from tests.contracts.promql import selectors
from tests.e2e.backfilled import BackfilledPrometheus, write_openmetrics
from tests.e2e.browser import Chromium
from tests.e2e.history import PlayedNode, Scrape
from tests.e2e.sickness import SICK_NODE
from tests.e2e.viewer import answers, page
from tests.e2e.weeks import weeks

IMAGES = Path("docs/images")
WIDTH = 1500
_BEGIN = 1_796_025_600.0  # a Monday
_CHAPTER_SECONDS, _SCRAPE_SECONDS, _DAYS = 240.0, 15.0, 14
_LAST = ("memory_wall", SICK_NODE, "slots_exhausted")
_ORDER = (*(name for name in SCENARIOS if name not in _LAST), "slots_exhausted", SICK_NODE, "memory_wall")


def _hour(node: PlayedNode) -> Iterator[Scrape]:
    for scenario in _ORDER:
        yield from node.scrapes(scenario, _CHAPTER_SECONDS, _SCRAPE_SECONDS)


async def _draw(folder: Path, past: Path, lookback: str, shots: dict[str, tuple[float, float, dict[str, str]]]) -> None:
    async with BackfilledPrometheus(folder, past, lookback) as prometheus, Chromium() as browser:
        for uid, (begin, end, chosen) in shots.items():
            dashboard = dashboards()[uid]
            document = folder / f"{uid}.html"
            document.write_text(page(dashboard, await answers(prometheus, dashboard, begin, end, chosen)))
            await browser.open(document.as_uri(), WIDTH, "dark")
            assert await browser.evaluate("document.documentElement.dataset.drawn") == "yes", browser.complaints
            await browser.screenshot(IMAGES / f"{uid}.png")
            print(f"{IMAGES / uid}.png")


async def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        node = PlayedNode(_BEGIN)
        write_openmetrics(folder / "hour.om", _hour(node))
        began, ended = node.begin + 60, node.chapters[-1].end
        sick = next(chapter for chapter in node.chapters if chapter.scenario == SICK_NODE)
        shots = {
            "pinchpoint-fleet": (began, ended, {}),
            "pinchpoint-engine": (began, ended, {"engine": "chat-llama3.3-70b"}),
            "pinchpoint-gpu": (began, sick.end, {}),
            "pinchpoint-self": (began, sick.end, {}),
        }
        await _draw(folder, folder / "hour.om", "40s", shots)
        capacity = dashboards()["pinchpoint-capacity"]
        asked = {each.name for _, expr in [*queries(capacity), *marks(capacity)] for each in selectors(expr)}
        write_openmetrics(folder / "weeks.om", weeks(_BEGIN, _DAYS, sorted(asked - {"ALERTS"})))
        end = _BEGIN + _DAYS * 86_400 - 300
        await _draw(folder, folder / "weeks.om", "10m", {"pinchpoint-capacity": (_BEGIN, end, {"gpu_hour_usd": "2"})})


if __name__ == "__main__":
    asyncio.run(main())
