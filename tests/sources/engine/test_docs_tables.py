"""The document on engines says what the code does with every exposition there is."""

from pathlib import Path

from tests.sources.engine.docs_tables import DATA, DOCUMENT, SHOWN, files, written


def test_the_tables_are_those_that_the_code_makes():
    text = DOCUMENT.read_text()
    assert written(text) == text, "write them anew: PYTHONPATH=src:. python -m tests.sources.engine.docs_tables"


def test_no_exposition_is_left_out():
    synthetic = [path for path in files() if path.parent == DATA / "engine-metrics"]
    assert len(synthetic) == 38
    assert {path.parent.name for path in files()} >= {"a-fresh", "c-moderate", "d-kv-saturated"}


def test_every_kind_has_its_part_in_the_document():
    text = Path(DOCUMENT).read_text()
    assert [kind.title for kind in SHOWN if f"### {kind.title}" not in text] == []
