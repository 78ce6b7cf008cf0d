"""A mistake in a configuration, as a value and as the error that carries every one of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it stands, which key, what is wrong, what to do."""

    where: str
    key: str
    what: str
    remedy: str

    def __str__(self) -> str:
        key = f" {self.key}:" if self.key else ""
        return f"{self.where}:{key} {self.what}; {self.remedy}"


class ConfigError(Exception):
    """Every mistake of one configuration."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
