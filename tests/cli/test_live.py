"""diagnose and probe against a simulated engine on a real socket."""

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from pinchpoint.cli import app
from pinchpoint.simulator import SimulatedNode, ThreadedNode


@pytest.fixture(scope="module")
def node() -> Iterator[SimulatedNode]:
    simulated = SimulatedNode(scenario="memory_wall")
    thread = ThreadedNode(simulated)
    thread.start()
    yield simulated
    thread.stop()


def test_diagnose_watches_running_engines_and_names_each(node: SimulatedNode) -> None:
    urls = [target.url for target in node.targets()]
    result = CliRunner().invoke(app, ["diagnose", *urls, "--seconds", "8", "--json"], catch_exceptions=False)
    answers = json.loads(result.stdout)["engines"]
    classes = {
        node_target.engine: answers[node_target.url.removeprefix("http://")]["class"] for node_target in node.targets()
    }
    assert classes == {
        "chat-llama3.3-70b": "kv_capacity",
        "rag-qwen2.5-14b": "healthy",
        "code-llama3.1-8b": "healthy",
        "mail-qwen2.5-14b": "healthy",
    }
    assert result.exit_code == 1


def test_probe_measures_a_running_engine(node: SimulatedNode) -> None:
    target = next(target for target in node.targets() if target.engine.startswith("rag"))
    result = CliRunner().invoke(app, ["probe", target.url, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    (reading,) = json.loads(result.stdout)
    assert reading["outcome"] == "ok"
    assert 0 < reading["ttft_seconds"] < reading["duration_seconds"]
    assert reading["tpot_seconds"] > 0
    table = CliRunner().invoke(app, ["probe", target.url], catch_exceptions=False).stdout
    assert "TTFT" in table
    assert "outcome" in table
