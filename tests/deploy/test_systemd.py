"""The systemd unit: accepted by systemd where it is installed, and hardened in any case."""

import subprocess
from pathlib import Path

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "pinchpoint.service"


def settings() -> dict[str, list[str]]:
    """Each setting of the unit with its values, in order; a unit may give a setting more than once."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if line and not line.startswith(("#", "[")):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def steps() -> list[str]:
    """The commands in the unit's header."""
    header = UNIT.read_text().partition("[Unit]")[0]
    return [line.removeprefix("#   ") for line in header.splitlines() if line.startswith("#   ")]


def test_the_steps_install_from_the_locks_alone_and_name_files_of_the_checkout() -> None:
    installs = [step for step in steps() if " install " in step and "pip" in step]
    locks = [step.rsplit(" ", 1)[1] for step in installs if "--require-hashes" in step]
    assert locks == ["requirements-build.lock", "requirements.lock"]
    assert installs[-1].endswith("pip install --no-deps --no-build-isolation .")
    assert len(installs) == 3
    copied = [step.split()[-2] for step in steps() if step.startswith("install ")]
    assert all((UNIT.parents[2] / name).is_file() for name in (*locks, *copied))


def test_the_unit_starts_what_the_steps_install() -> None:
    (start,) = settings()["ExecStart"]
    program, _, configuration = start.partition(" run --config.file=")
    assert any(step.split()[-2:-1] == [program] for step in steps())  # linked into the path: runbooks call it by name
    assert any(step.endswith(configuration) for step in steps())
    assert steps()[-1] == "systemctl restart pinchpoint"


def test_it_is_neither_root_nor_able_to_become_it() -> None:
    unit = settings()
    assert unit["DynamicUser"] == ["yes"]
    assert unit["NoNewPrivileges"] == ["yes"]
    assert unit["CapabilityBoundingSet"] == [""]
    assert unit["ProtectSystem"] == ["strict"]


def test_it_sees_the_gpus_and_no_other_device() -> None:
    unit = settings()
    assert unit["DevicePolicy"] == ["closed"]
    assert unit["DeviceAllow"] == ["char-nvidia* rw"]
    assert "PrivateDevices" not in unit


def test_it_reloads_on_hangup_stops_in_time_and_gives_up_on_a_wrong_configuration() -> None:
    unit = settings()
    assert unit["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert unit["TimeoutStopSec"] == ["5"]
    assert (unit["Restart"], unit["RestartPreventExitStatus"]) == (["on-failure"], ["2"])


def test_systemd_accepts_it_and_finds_it_hardened(tmp_path: Path) -> None:
    unit = tmp_path / "pinchpoint.service"
    unit.write_text(UNIT.read_text().replace("/opt/pinchpoint/bin/pinchpoint", "/bin/true"))  # verify wants it there
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    exposure = ["systemd-analyze", "security", "--offline=true", "--threshold=25", unit]  # 2.5 of 10
    rated = subprocess.run(exposure, capture_output=True, text=True, check=False)
    assert rated.returncode == 0, rated.stdout + rated.stderr
