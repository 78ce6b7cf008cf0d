"""A running daemon and an engine that lets in only who has the token of the day."""

from pathlib import Path

from tests.fakes.certificates import Authority
from tests.fakes.daemon import RunningDaemon
from tests.fakes.guarded_engine import GuardedEngine


def test_a_token_rotated_under_a_running_daemon_costs_no_scrape_and_never_prints(tmp_path: Path) -> None:
    ours, token, file = Authority(tmp_path), tmp_path / "token", tmp_path / "pinchpoint.yaml"
    token.write_text("hunter2-monday\n")
    with GuardedEngine(ours.issue("IP:127.0.0.1"), "hunter2-monday") as engine:
        file.write_text(
            "gpu: {enabled: false}\n"
            "engines:\n"
            "  interval_seconds: 1\n"
            f"  targets: [{{name: chat, url: '{engine.url}', bearer_token_file: {token}, "
            f"tls: {{ca_file: {ours.file}}}}}]\n"
        )
        with RunningDaemon(tmp_path, "--config.file", str(file)) as daemon:
            daemon.wait_for_series("pinchpoint_engine_up", 1.0, engine="chat")
            token.write_text("hunter2-tuesday\n")
            engine.token, before = "hunter2-tuesday", engine.scrapes
            daemon.wait_for(lambda: engine.scrapes >= before + 2, "scrapes with the new token")
            assert daemon.series("pinchpoint_engine_up", engine="chat") == [1.0]
            told = daemon.log + daemon.get("/metrics").decode() + daemon.get("/api/v1/status").decode()
    assert "engine lost" not in told
    assert "file has changed and is in force" in told
    assert "hunter2" not in told
