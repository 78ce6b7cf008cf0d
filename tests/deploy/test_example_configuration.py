"""The configurations to copy: safe as they are, and right once they are filled in."""

from pathlib import Path

import pytest
import yaml

from pinchpoint.config import Settings, load
from tests.deploy.uncommenting import uncommented

DEPLOY = Path(__file__).parents[2] / "deploy"
EXAMPLE = DEPLOY / "pinchpoint.example.yaml"
EVERY = pytest.mark.parametrize("file", [EXAMPLE, DEPLOY / "compose" / "pinchpoint.yaml"], ids=lambda file: file.name)


@EVERY
def test_as_shipped_it_changes_nothing_so_nobody_is_paged_for_an_engine_that_is_not_there(file: Path) -> None:
    settings = load(file, environment={})
    assert settings.model_dump() == load(environment={}).model_dump()
    assert settings.engines.targets == ()
    assert settings.probes.targets == []
    assert settings.discovery.looks_on_loopback(0)


@EVERY
def test_what_stands_in_comments_is_valid_and_names_an_engine(file: Path, tmp_path: Path) -> None:
    for secret in ("chat", "hosted-api-key", "pause-token", "alertmanager"):
        (tmp_path / secret).write_text("a-key-of-16-or-more")
    (tmp_path / "settings.json").write_text('{"VLLM_MAX_NUM_SEQS": 16}')
    text = uncommented(file.read_text()).replace("/run/secrets", str(tmp_path))
    (tmp_path / "filled.yaml").write_text(text.replace("/etc/pinchpoint/settings.json", f"{tmp_path}/settings.json"))
    settings = load(tmp_path / "filled.yaml", environment={})
    assert [target.name for target in settings.engines.targets] == ["chat"]
    assert {target.engine for target in settings.probes.targets} <= {None, "chat"}


def test_the_example_shows_every_section_and_a_local_and_a_hosted_probe() -> None:
    content = yaml.safe_load(uncommented(EXAMPLE.read_text()))
    assert set(content) >= set(Settings.model_fields) - {"history_seconds"}
    named = [target.get("name") or target["preset"] for target in content["probes"]["targets"]]
    assert named == ["chat-local", "taotoken", "chat-hosted"]
