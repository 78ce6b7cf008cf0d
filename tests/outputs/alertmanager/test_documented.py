"""The documented configuration is one, and a mistake in it is told by file and line."""

import re
from pathlib import Path

import pytest

from pinchpoint.config import ConfigError, load
from pinchpoint.config.settings import Settings
from pinchpoint.outputs.alertmanager import AlertmanagerSettings
from tests.fakes.certificates import Authority

DOCUMENT = Path("docs/direct-delivery.md").read_text()


@pytest.fixture
def documented(tmp_path: Path) -> Path:
    found = re.search(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found is not None
    (tmp_path / "alertmanager-password").write_text("hush-hush")
    (tmp_path / "ca.pem").write_bytes(Authority(tmp_path).file.read_bytes())
    file = tmp_path / "pinchpoint.yaml"
    file.write_text(found[1].replace("/etc/pinchpoint", str(tmp_path)))
    return file


def test_the_documented_configuration_loads_and_shows_no_secret(documented: Path) -> None:
    settings = load(documented, environment={})
    assert settings.alertmanager.enabled
    assert [target.alerts_url for target in settings.alertmanager.targets] == [
        "http://alertmanager-0.example:9093/api/v2/alerts",
        "https://alerts.example/alertmanager/api/v2/alerts",
    ]
    assert settings.alertmanager.targets[1].access().basic_username == "pinchpoint"
    assert "hush-hush" not in repr(settings)


def test_it_is_off_unless_asked_for_and_every_setting_is_documented() -> None:
    assert not Settings().alertmanager.enabled
    undocumented = [name for name in AlertmanagerSettings.model_fields if f"`{name}`" not in DOCUMENT]
    assert undocumented == []
    assert all(field.description for field in AlertmanagerSettings.model_fields.values())


def test_mistakes_are_told_by_file_line_and_key(documented: Path) -> None:
    text = documented.read_text()
    text = text.replace("timeout_seconds: 10", "timeout_seconds: 0").replace("cluster: prod", "source: mine")
    documented.write_text(text.replace("grafana_url", "grafana_ulr"))
    with pytest.raises(ConfigError) as error:
        load(documented, environment={})
    said = str(error.value).splitlines()
    assert len(said) == 3
    assert all(line.startswith(f"{documented}:") for line in said)
    assert [key in str(error.value) for key in ("timeout_seconds", "label source", "did you mean `grafana_url`")] == [
        True
    ] * 3
