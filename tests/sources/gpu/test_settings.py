"""What an operator may set about the GPUs, and what is no secret to whoever reads a log."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from pinchpoint.config import ConfigError, load
from pinchpoint.sources.gpu import GpuSettings

TOKEN = "a-token-of-more-than-16-characters"


def test_a_token_comes_from_the_setting_or_a_file_and_prints_as_stars(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"  {TOKEN}\n")
    for settings in (GpuSettings(pause_token=TOKEN), GpuSettings(pause_token_file=file)):
        token = settings.token()
        assert token is not None
        assert token.get_secret_value() == TOKEN
        assert TOKEN not in f"{settings!r} {settings} {token!r} {token} {settings.model_dump_json()}"
    assert GpuSettings().token() is None


@pytest.mark.parametrize("token", ["", "short", "fifteen-letters", "two words of more than 16", "käse" * 5, "a\nb" * 9])
def test_a_token_that_guards_nothing_is_refused_without_being_told(token: str) -> None:
    with pytest.raises(ValidationError) as refused:
        GpuSettings(pause_token=token)
    assert "16 or more ASCII characters; make one with: openssl rand -hex 32" in str(refused.value)
    assert not token or token not in str(refused.value)


def test_a_token_and_a_file_are_one_too_many_and_a_file_must_be_readable(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="keep one"):
        GpuSettings(pause_token=TOKEN, pause_token_file=tmp_path / "token")
    with pytest.raises(ConfigError) as refused:
        load(flags={"gpu": {"pause_token_file": str(tmp_path / "nowhere")}}, environment={})
    (problem,) = refused.value.problems
    assert "can't be read" in problem.what
    assert problem.remedy == "make it readable to pinchpoint"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("true", True),
        ("false", False),
        (True, True),
        (None, None),
        ("/var/log/kern.log", Path("/var/log/kern.log")),
    ],
)
def test_the_kernel_log_is_a_switch_or_a_path(given: object, meant: object) -> None:
    assert GpuSettings.model_validate({"kernel_log": given}).kernel_log == meant


def test_a_kernel_log_that_is_neither_is_refused() -> None:
    with pytest.raises(ValidationError, match="neither true, false nor an absolute path"):
        GpuSettings.model_validate({"kernel_log": "ture"})


def test_a_reading_that_goes_stale_before_the_next_is_due_is_no_setting() -> None:
    with pytest.raises(ValidationError, match="so every GPU would be called hung; raise it"):
        GpuSettings(interval_seconds=5, stale_after_seconds=5)
    assert GpuSettings(interval_seconds=5, stale_after_seconds=12).fresh_for_seconds == 12
