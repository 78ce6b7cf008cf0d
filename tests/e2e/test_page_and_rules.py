"""From a full KV cache to a page and back: simulated engines, the daemon, the real Prometheus and Alertmanager.

The shipped rules are used as they are, but for how long an alert waits.
"""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.contracts.dashboard_queries import dashboards, panels, queries
from tests.e2e.stack import Alertmanager, Prometheus, VictoriaMetrics, WebhookSink
from tests.fakes.daemon import RunningDaemon

RULES = Path("alerts/pinchpoint.rules.yml")
TURN_SECONDS = 20  # healthy, then the memory wall, then a scenario that leaves the KV cache empty
JOB = "pinchpoint"  # as in deploy/compose/prometheus.yml


def quick_rules(folder: Path) -> Path:
    """The shipped rules with every wait shortened to a second."""
    rules = folder / "rules.yml"
    text, changed = re.subn(r"\b(for|keep_firing_for): \w+", r"\1: 1s", RULES.read_text())
    assert changed >= 5
    rules.write_text(text)
    return rules


@pytest.mark.timeout(240)
async def test_a_full_kv_cache_pages_a_human_and_the_page_resolves(tmp_path: Path) -> None:
    async with WebhookSink() as human, Alertmanager(tmp_path, human.url) as alertmanager:
        with RunningDaemon(tmp_path, "--seconds", str(TURN_SECONDS), command=("demo",)) as daemon:
            scraped = {JOB: urlsplit(daemon.url).netloc}
            rules = quick_rules(tmp_path)
            async with Prometheus(tmp_path, scraped, rules=[rules], alertmanager=alertmanager) as prometheus:
                await human.wait_for("PinchpointWatchdog", "firing")
                page = await human.wait_for("PinchpointKVCacheHigh", "firing", timeout=90)
                assert page["labels"]["severity"] == "critical"
                assert page["labels"]["engine"].startswith("chat-")
                assert re.search(
                    r"has held 9\d(\.\d+)?% of its KV-cache blocks|100%", page["annotations"]["description"]
                )
                assert page["annotations"]["runbook_url"].endswith("/PinchpointKVCacheHigh.md")
                (target,) = await prometheus.targets()
                assert (target["health"], target["lastError"]) == ("up", "")
                resolved = await human.wait_for("PinchpointKVCacheHigh", "resolved", timeout=90)
                assert resolved["labels"] == page["labels"]
                assert await prometheus.query("pinchpoint_simulated == 1")


@pytest.mark.timeout(180)
async def test_both_databases_scrape_it_and_a_panel_without_an_answer_says_why(tmp_path: Path) -> None:
    with RunningDaemon(tmp_path, "--scenario", "memory_wall", command=("demo",)) as daemon:
        scraped = {JOB: urlsplit(daemon.url).netloc}
        async with Prometheus(tmp_path, scraped) as prometheus, VictoriaMetrics(tmp_path, scraped) as victoria:
            ready = 'pinchpoint_bottleneck{class="kv_capacity"} == 1 and on() count_over_time(up[1m]) > 12'
            for database in (prometheus, victoria):
                await database.wait_until(ready, timeout=60)
                (target,) = await database.targets()
                assert (target["health"], target["lastError"]) == ("up", "")
            empty = []
            for uid, dashboard in dashboards().items():
                may_be = {p["title"] for p in panels(dashboard) if "noValue" in p["fieldConfig"]["defaults"]}
                for title, expr in queries(dashboard):
                    if not await prometheus.query(expr) and title not in may_be:
                        empty.append((uid, title, expr))
                    await victoria.query(expr)
            assert empty == []
