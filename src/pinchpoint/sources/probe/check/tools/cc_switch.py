"""CC Switch: ``config.json`` up to 3.6, since then a SQLite database, which it exports as SQL.

Each app (claude, codex, gemini) has providers, of which one is current; a provider's ``settingsConfig`` is what is
written into that app's own files. Source: CC Switch's repository and manual. The current ones are checked.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from pinchpoint.sources.probe.check.tools import claude_code, codex
from pinchpoint.sources.probe.check.tools.document import MAX_BYTES, Document, ToolFileError, mapping, read_text, words
from pinchpoint.sources.probe.check.tools.sql_rows import rows_of
from pinchpoint.sources.probe.check.triple import Part, Triple
from pinchpoint.sources.probe.dialects import DialectName

_APPS = ("claude", "codex", "gemini")
MAX_SQL_BYTES = 64 << 20  # an export holds the log of requests too
MAX_STEPS = 1_000_000  # of SQLite's machine, a tenth of a second; the real table takes hundreds
_COLUMNS = ("app_type", "name", "settings_config")
_CURRENT = f"SELECT {', '.join(_COLUMNS)} FROM providers WHERE is_current = 1 LIMIT 20"  # noqa: S608 - names of ours


def is_config(document: Document) -> bool:
    return any("providers" in mapping(document, app) for app in _APPS) or {"providers", "current"} <= document.keys()


def from_config(document: Document, environment: Mapping[str, str]) -> list[Triple]:
    apps = {app: mapping(document, app) for app in _APPS if mapping(document, app)} or {"claude": document}
    found = []
    for app, manager in apps.items():
        provider = mapping(manager, "providers", words(manager, "current"))
        if provider:
            found.append(_triple(app, words(provider, "name"), mapping(provider, "settingsConfig"), environment))
    return found


def from_database(path: Path, environment: Mapping[str, str]) -> list[Triple]:
    if not path.is_file():  # a pipe would wait for its writer
        raise ToolFileError(f"{path}: is no file; name CC Switch's cc-switch.db")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            _bound(database)
            return list(_triples(database.execute(_CURRENT), environment))
    except sqlite3.Error:
        raise ToolFileError(f"{path}: is no database of CC Switch; name its cc-switch.db") from None


def _bound(database: sqlite3.Connection) -> None:
    """What is called a table may be a view, which is a stranger's program: it gets little memory and little time."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
    database.set_progress_handler(lambda: 1, MAX_STEPS)


def from_sql(path: Path, environment: Mapping[str, str]) -> list[Triple]:
    rows = rows_of(read_text(path, MAX_SQL_BYTES), "providers")
    current = (row for row in rows if row.get("is_current") == "1")
    return list(
        _triples(((row.get("app_type"), row.get("name"), row.get("settings_config")) for row in current), environment)
    )


def _triples(rows: Iterable[tuple[object, ...]], environment: Mapping[str, str]) -> Iterator[Triple]:
    for app, name, text in rows:
        try:
            settings: Any = json.loads(str(text))
        except (ValueError, RecursionError):
            continue
        if app in _APPS and isinstance(settings, dict):
            yield _triple(str(app), str(name), settings, environment)


def _triple(app: str, name: str, settings: Document, environment: Mapping[str, str]) -> Triple:
    if app == "claude":
        found = claude_code.triple(settings)
    elif app == "codex":
        found = codex.from_cc_switch(settings, environment)
    else:
        found = _gemini(mapping(settings, "env"))
    return replace(found, name=f"CC Switch: {name} for {found.name}"[:100])


def _gemini(env: Document) -> Triple:
    names = {Part.URL: "GOOGLE_GEMINI_BASE_URL", Part.KEY: "GEMINI_API_KEY", Part.MODEL: "GEMINI_MODEL"}
    return Triple(
        name="Gemini CLI",
        url=words(env, names[Part.URL]) or "https://generativelanguage.googleapis.com",
        key=words(env, names[Part.KEY], "GOOGLE_API_KEY"),
        model=words(env, names[Part.MODEL]),
        dialect=DialectName.GEMINI,
        appended="/v1beta",
        places={part: f"env.{variable}" for part, variable in names.items()},
    )
