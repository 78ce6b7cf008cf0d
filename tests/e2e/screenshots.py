"""Takes the screenshots of the README from the demo: ``python -m tests.e2e.screenshots``."""

import asyncio
import tempfile
from pathlib import Path

from tests.e2e.browser import Chromium
from tests.fakes.daemon import RunningDaemon

IMAGES = Path("docs/images")
SETTLED_SECONDS = 75  # enough for the sparklines to show something


async def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        demo = RunningDaemon(Path(folder), "--seconds", str(SETTLED_SECONDS - 25), command=("demo",))
        with demo as daemon:
            async with Chromium() as browser:
                print(f"watching the demo for {SETTLED_SECONDS} s: healthy, then the memory wall")
                await asyncio.sleep(SETTLED_SECONDS)
                await browser.open(daemon.url + "/", 1280)
                await browser.screenshot(IMAGES / "status-1280.png")
                await browser.open(daemon.url + "/", 390)
                await browser.screenshot(IMAGES / "status-390.png", height=1100)
                await browser.open(daemon.url + "/", 1280, "dark")
                await browser.screenshot(Path(tempfile.gettempdir()) / "status-1280-dark.png")


if __name__ == "__main__":
    asyncio.run(main())
