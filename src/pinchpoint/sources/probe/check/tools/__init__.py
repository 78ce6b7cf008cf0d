"""Configurations of coding tools that speak these APIs, told apart by what is in them, each read by a file of its own.

Nothing here runs, writes or follows what a file says: a program that would print the key is named, not started.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pinchpoint.sources.probe.check.tools import cc_switch, claude_code, cline, codex, plain, taotoken
from pinchpoint.sources.probe.check.tools.document import Document, ToolFileError, mapping, read_document
from pinchpoint.sources.probe.check.triple import Triple

__all__ = ["ToolFileError", "triples_in"]

_KNOWN = (
    "Codex' auth.json or config.toml, Claude Code's settings.json, Cline's globalState.json, CC Switch's config.json, "
    "cc-switch.db or export, or a settings.json or .env with TAOTOKEN_… names"
)


def triples_in(path: Path, environment: Mapping[str, str]) -> list[Triple]:
    """Every use of an API that the file describes; one at least.

    A second half beside it (Codex, Cline) is read too. ``environment`` is where a key may be that the file only names.
    Raises ``ToolFileError`` with cause and remedy.
    """
    if path.suffix == ".db":
        found = cc_switch.from_database(path, environment)
    elif path.suffix == ".sql":
        found = cc_switch.from_sql(path, environment)
    else:
        found = _in_document(path, read_document(path), environment)
    if not found:
        raise ToolFileError(f"{path}: names no base URL, key and model that are known; give {_KNOWN}")
    return [replace(triple, name=f"{triple.name} ({path})") for triple in found]


def _in_document(path: Path, document: Document, environment: Mapping[str, str]) -> list[Triple]:
    if cc_switch.is_config(document):
        return cc_switch.from_config(document, environment)
    if taotoken.is_settings(document):
        return [taotoken.triple(document, environment)]
    if claude_code.is_settings(document):
        return [claude_code.triple(document)]
    if cline.is_state(document):
        return [cline.from_state(path, document)]
    if path.suffix == ".toml" and codex.is_config(document):
        return [codex.from_config(path, document, environment)]
    if path.name == "auth.json" or (codex.is_auth(document) and mapping(document, "tokens")):
        return [codex.from_auth(path, document, environment)]
    if cline.is_secrets(document):
        return [cline.from_secrets(path, document)]
    for each in (document, mapping(document, "env")):
        if plain.is_plain(each):
            return [plain.triple(each)]
    return [codex.from_auth(path, document, environment)] if codex.is_auth(document) else []
