"""Where state is kept that outlives the process."""

import os
from collections.abc import Mapping
from pathlib import Path

from pinchpoint.config.settings import Settings


def state_directory(settings: Settings, environment: Mapping[str, str] | None = None) -> Path | None:
    """The folder that the settings name, else systemd's, else the user's own; ``None`` where there is no such place.

    Touches no disk. ``environment`` stands in for the process's.
    """
    environment = os.environ if environment is None else environment
    if settings.state_directory is not None:
        return settings.state_directory
    if systemd := environment.get("STATE_DIRECTORY"):
        return Path(systemd.split(":")[0])  # a unit can have several
    if (home := environment.get("XDG_STATE_HOME", "")).startswith("/"):
        return Path(home) / "pinchpoint"
    if (home := environment.get("HOME", "")).startswith("/") and home != "/":
        return Path(home) / ".local" / "state" / "pinchpoint"
    return None
