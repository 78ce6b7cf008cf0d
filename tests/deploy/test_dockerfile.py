"""The image: what a reviewer would look for in the Dockerfile, without building it."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """Each instruction with its arguments; continuation lines joined, comments dropped."""
    lines = [line for line in dockerfile.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split(maxsplit=1)[0].upper(), line.split(maxsplit=1)[1]) for line in joined.splitlines()]


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, str]]:
    return instructions((ROOT / "Dockerfile").read_text())


@pytest.fixture(scope="module")
def final(steps: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The steps of the last stage: the image itself."""
    last = max(number for number, (name, _) in enumerate(steps) if name == "FROM")
    return steps[last:]


def test_both_stages_stand_on_one_base_pinned_by_tag(steps: list[tuple[str, str]]) -> None:
    bases = [arguments.split()[0] for name, arguments in steps if name == "FROM"]
    assert bases == ["${BASE}", "${BASE}"]
    (default,) = [arguments.removeprefix("BASE=") for name, arguments in steps if name == "ARG"]
    assert re.fullmatch(r"docker\.io/library/python:3\.\d+(\.\d+)?-slim-\w+", default)


def test_the_process_is_not_root_and_has_a_numeric_user(final: list[tuple[str, str]]) -> None:
    assert [arguments for name, arguments in final if name == "USER"] == ["65532:65532"]
    assert [name for name, _ in final].index("USER") < [name for name, _ in final].index("ENTRYPOINT")


def test_nothing_is_fetched_past_the_lock_files(steps: list[tuple[str, str]]) -> None:
    assert not [arguments for name, arguments in steps if name == "ADD"]
    assert not [arguments for name, arguments in steps if re.search(r"\b(curl|wget|apt-get)\b", arguments)]
    installs = re.findall(r"pip (?:install|wheel) .*?(?=&&|\n|$)", "\n".join(arguments for _, arguments in steps))
    assert len(installs) == 4
    assert all("--require-hashes" in install or "--no-deps" in install for install in installs)


def test_it_is_started_and_watched_in_exec_form(final: list[tuple[str, str]]) -> None:
    named = dict(final)
    assert (named["ENTRYPOINT"], named["CMD"]) == ('["pinchpoint"]', '["run"]')
    assert 'CMD ["python3"' in named["HEALTHCHECK"]
    assert f"127.0.0.1:{named['EXPOSE']}/-/healthy" in named["HEALTHCHECK"]


def test_it_writes_nothing_beside_itself_and_sees_the_gpus(final: list[tuple[str, str]]) -> None:
    environment = dict(pair.split("=", 1) for name, arguments in final if name == "ENV" for pair in arguments.split())
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert environment["NVIDIA_DRIVER_CAPABILITIES"] == "utility"


def test_what_is_copied_exists_and_is_let_through_and_nothing_else_is(steps: list[tuple[str, str]]) -> None:
    copied = {
        source
        for name, arguments in steps
        if name == "COPY" and not arguments.startswith("--from")
        for source in arguments.split()[:-1]
    }
    assert all((ROOT / source).exists() for source in copied)
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignored
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == copied


def test_the_wheel_finds_the_files_that_its_metadata_names(steps: list[tuple[str, str]]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    copied = " ".join(arguments for name, arguments in steps if name == "COPY")
    assert all(name in copied for name in (project["readme"], *project["license-files"], "pyproject.toml"))
