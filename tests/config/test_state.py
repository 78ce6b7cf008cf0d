"""Where state is kept."""

from pathlib import Path

import pytest

from pinchpoint.config import Settings
from pinchpoint.config.state import state_directory

HOME = {"HOME": "/home/ada"}


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"STATE_DIRECTORY": "/var/lib/pinchpoint:/var/lib/other", **HOME}, "/var/lib/pinchpoint"),
        ({"XDG_STATE_HOME": "/state", **HOME}, "/state/pinchpoint"),
        ({"XDG_STATE_HOME": "relative", **HOME}, "/home/ada/.local/state/pinchpoint"),
        (HOME, "/home/ada/.local/state/pinchpoint"),
        ({"HOME": "/"}, None),
        ({}, None),
    ],
)
def test_systemd_comes_before_the_user_and_a_service_without_a_home_has_none(environment, folder) -> None:
    assert state_directory(Settings(), environment) == (folder and Path(folder))


def test_the_setting_wins() -> None:
    assert state_directory(Settings(state_directory="/mine"), {"STATE_DIRECTORY": "/theirs"}) == Path("/mine")
