"""What an operator may write, and what a mistake is told."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from pinchpoint.snapshot import EngineFacts, EngineTarget, HttpAccess, Slo
from pinchpoint.sources.engine import EngineSettings, EngineSourceSettings

MINIMAL = {"name": "chat", "url": "http://127.0.0.1:8000/"}


def mistake(**fields: object) -> str:
    with pytest.raises(ValidationError) as caught:
        EngineSettings.model_validate(MINIMAL | fields)
    assert "hunter2" not in str(caught.value)
    return str(caught.value)


def test_a_name_and_a_url_are_enough():
    assert EngineSettings.model_validate(MINIMAL).target() == EngineTarget(engine="chat", url="http://127.0.0.1:8000")


def test_everything_said_reaches_the_target():
    said = MINIMAL | {
        "metrics_path": "/x/metrics",
        "max_num_seqs": 64,
        "model_config": {"hidden_size": 768},
        "slo": {"ttft_seconds": 1},
        "gpus": [0, "1"],
        "bearer_token": "hunter2",
    }
    settings = EngineSettings.model_validate(said)
    assert settings.target() == EngineTarget(
        engine="chat",
        url="http://127.0.0.1:8000",
        metrics_path="/x/metrics",
        facts=EngineFacts(max_num_seqs=64, model_config={"hidden_size": 768}),
        slo=Slo(ttft_seconds=1),
        gpus=("0", "1"),
        access=HttpAccess(bearer_token="hunter2"),
    )
    assert "hunter2" not in repr(settings) + repr(settings.target())


@pytest.mark.parametrize(
    ("fields", "remedy"),
    [
        ({"url": "http://me:hunter2@host:8000"}, "give the token by its own setting"),
        ({"url": "host:8000"}, "like http://127.0.0.1:8000"),
        ({"url": "ftp://host"}, "like http://127.0.0.1:8000"),
        ({"url": "http://host:hunter2"}, "like http://127.0.0.1:8000"),
        ({"url": "http://host/?key=hunter2"}, "give the base URL alone"),
        ({"metrics_path": "metrics"}, "metrics_path"),
        ({"bearer_token": "hunter2", "bearer_token_file": "x"}, "keep one"),
        ({"bearer_token": "hunter2\nX: y"}, "give the bare token"),
        ({"bearer_token_file": "/nowhere/token"}, "make it readable"),
        ({"tls": {"verify": False}}, "write https://, or remove tls"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"headers": {"Host": "hunter2"}}, "header Host is set by the connection itself; remove it"),
        ({"max_num_seq": 3}, "max_num_seq"),
        ({"name": "a\nb"}, "name"),
    ],
)
def test_a_mistake_is_told_with_its_remedy_and_without_the_secret(fields: dict[str, object], remedy: str):
    assert remedy in mistake(**fields)


def test_a_token_file_is_named_in_the_target_and_not_read_for_it(tmp_path: Path):
    file = tmp_path / "token"
    file.write_text("one\n")
    settings = EngineSettings.model_validate(MINIMAL | {"bearer_token_file": file})
    assert settings.target().access == HttpAccess(bearer_token_file=str(file))


def test_an_empty_token_file_is_a_mistake(tmp_path: Path):
    (tmp_path / "token").write_text("\n")
    assert "put the bare secret into it" in mistake(bearer_token_file=tmp_path / "token")


def test_readings_must_outlive_the_interval():
    with pytest.raises(ValidationError, match="raise it"):
        EngineSourceSettings(interval_seconds=60, stale_after_seconds=50)


@pytest.mark.parametrize(("interval", "timeout", "fresh"), [(5, 4, 15), (15, 4, 45), (1, 4, 5)])
def test_readings_outlive_three_scrapes_and_one_that_takes_its_time(interval: float, timeout: float, fresh: float):
    settings = EngineSourceSettings(interval_seconds=interval, timeout_seconds=timeout)
    assert settings.fresh_for_seconds == fresh


def test_the_defaults_are_these():
    settings = EngineSourceSettings()
    assert (settings.interval_seconds, settings.timeout_seconds, settings.fresh_for_seconds) == (5, 4, 15)
    assert settings.max_body_bytes == 16 * 2**20
