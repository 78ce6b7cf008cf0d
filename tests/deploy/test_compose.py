"""The compose project: complete, pinned, hardened, and every file in it is one that its reader accepts."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pinchpoint import __version__
from tests.deploy.uncommenting import uncommented

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "deploy" / "compose"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"])


def test_it_has_the_four_services(services: dict[str, Any]) -> None:
    assert set(services) == {"pinchpoint", "prometheus", "alertmanager", "grafana"}


def test_every_image_is_pinned(services: dict[str, Any]) -> None:
    for service in services.values():
        assert re.search(r":v?\d+\.\d+\.\d+$", service["image"])
    assert services["pinchpoint"]["image"] == f"pinchpoint:{__version__}"


def test_every_service_is_hardened_and_reached_from_loopback_only(services: dict[str, Any]) -> None:
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert "privileged" not in service


def test_every_service_has_a_health_check_on_the_port_that_it_publishes(services: dict[str, Any]) -> None:
    assert "HEALTHCHECK" in (ROOT / "Dockerfile").read_text()
    for name in ("prometheus", "alertmanager", "grafana"):
        port = services[name]["ports"][0].rsplit(":", 1)[1]
        assert f"127.0.0.1:{port}/" in services[name]["healthcheck"]["test"][-1]


def test_every_file_that_is_mounted_exists_and_every_volume_is_declared(services: dict[str, Any]) -> None:
    declared = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["volumes"]
    for service in services.values():
        for volume in service["volumes"]:
            source, _, options = volume.partition(":")
            if source.startswith("."):
                assert (COMPOSE / source).exists(), source
                assert options.endswith(":ro")
            else:
                assert source in declared
    assert (COMPOSE / services["pinchpoint"]["build"]["context"] / "Dockerfile").exists()


def test_the_mounted_configurations_are_those_the_commands_name(services: dict[str, Any]) -> None:
    for name in ("pinchpoint", "prometheus", "alertmanager"):
        (config,) = [flag.partition("=")[2] for flag in services[name]["command"] if flag.startswith("--config.file=")]
        assert any(volume.endswith(f":{config}:ro") for volume in services[name]["volumes"])


def test_grafana_finds_its_datasource_and_its_dashboards(services: dict[str, Any]) -> None:
    provisioning = ROOT / "grafana" / "provisioning"
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "pinchpoint.yaml").read_text())["providers"]
    assert f"../../grafana/dashboards:{provider['options']['path']}:ro" in services["grafana"]["volumes"]
    (source,) = yaml.safe_load((provisioning / "datasources" / "pinchpoint.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (ROOT / "grafana" / "dashboards" / Path(home).name).exists()
    assert str(Path(home).parent) == provider["options"]["path"]


def test_prometheus_accepts_its_configuration_with_the_alerts(tmp_path: Path) -> None:
    (tmp_path / "alerts").mkdir()  # as the mounts lay it out
    for name in ("pinchpoint.rules.yml", "pinchpoint.recording.rules.yml"):
        (tmp_path / "alerts" / name).write_bytes((ROOT / "alerts" / name).read_bytes())
    (tmp_path / "prometheus.yml").write_bytes((COMPOSE / "prometheus.yml").read_bytes())
    checked = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert "2 rule files found" in checked.stdout


def test_prometheus_scrapes_pinchpoint_and_reports_to_alertmanager_where_compose_has_them(
    services: dict[str, Any],
) -> None:
    config = yaml.safe_load((COMPOSE / "prometheus.yml").read_text())
    (job,) = [job for job in config["scrape_configs"] if job["job_name"] == "pinchpoint"]
    assert job["scrape_interval"] == "5s"
    (peer,) = config["alerting"]["alertmanagers"]
    for static, name in ((job["static_configs"], "pinchpoint"), (peer["static_configs"], "alertmanager")):
        port = services[name]["ports"][0].rsplit(":", 1)[1]
        assert static == [{"targets": [f"{name}:{port}"]}]


def receivers(text: str) -> dict[str, dict[str, Any]]:
    return {receiver["name"]: receiver for receiver in yaml.safe_load(text)["receivers"]}


def test_nobody_is_paged_until_somebody_is_named_and_the_file_begins_with_that() -> None:
    text = (COMPOSE / "alertmanager.yml").read_text()
    assert receivers(text) == {"on-call": {"name": "on-call"}, "nobody": {"name": "nobody"}}
    assert text.startswith("# NOBODY IS PAGED YET")


def test_each_receiver_in_a_comment_is_one_that_alertmanager_takes(tmp_path: Path) -> None:
    text = uncommented((COMPOSE / "alertmanager.yml").read_text())
    assert set(receivers(text)["on-call"]) == {"name", "webhook_configs", "pagerduty_configs", "slack_configs"}
    (tmp_path / "alertmanager.yml").write_text(text)
    command = ["amtool", "check-config", tmp_path / "alertmanager.yml"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_alertmanager_accepts_its_configuration_and_routes_a_page_to_whoever_is_on_call() -> None:
    config = COMPOSE / "alertmanager.yml"
    subprocess.run(["amtool", "check-config", config], check=True, capture_output=True)
    for alert, receiver in (
        ("PinchpointKVCacheHigh", "on-call"),
        ("PinchpointWatchdog", "nobody"),
    ):
        routed = subprocess.run(
            ["amtool", "config", "routes", "test", f"--config.file={config}", f"alertname={alert}"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert routed.stdout.strip() == receiver


def test_the_second_file_gives_the_gpus_to_pinchpoint_alone() -> None:
    services = yaml.safe_load((COMPOSE / "compose.gpu.yaml").read_text())["services"]
    assert list(services) == ["pinchpoint"]
    (device,) = services["pinchpoint"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu", "utility"]}
