"""The file of facts, which ``report --json`` writes, and of which pages are made without a lake."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lakehouse.core import display
from lakehouse.errors import FactsError
from lakehouse.report.facts import shape
from lakehouse.report.facts.fields import FORMAT
from lakehouse.tables.strict_files import UnreadableFileError, parse_json, read_text
from lakehouse.tables.typed_settings import WrongSettingError

MOST_BYTES: Final = 200_000_000
"""Maximum size of report.json, bytes."""

_CHANGES_WERE_EVENTS: Final = 1
"""The format that had no events: it has the raw changes under their name."""

_WANTED: Final = "name what report --json wrote"


def is_saved(place: str) -> bool:
    """Whether a place is a file of facts and no lake."""
    return place.endswith(".json") and "://" not in place


def load(path: Path) -> dict[str, Any]:
    """The facts that ``jmxlake report --json`` wrote.

    Raises:
        FactsError: The file cannot be read, or holds something else.
    """
    try:
        facts = parse_json(read_text(path, MOST_BYTES), str(path))
    except UnreadableFileError as error:
        raise FactsError(f"{error}; {_WANTED}") from None
    if not isinstance(facts, dict) or "format" not in facts:
        raise FactsError(f"{path}: no facts of a report; {_WANTED}")
    if (other := facts["format"]) == _CHANGES_WERE_EVENTS:
        facts = _with_changes(facts)
    elif other != FORMAT:
        what = f"format {display.line(other, 20)}, and this version reads {FORMAT}"
        raise FactsError(f"{path}: {what}; use the jmxlake that wrote it")
    try:
        shape.check(facts)
    except WrongSettingError as error:
        raise FactsError(f"{path}: no facts of a report: {error}; {_WANTED}") from None
    checked: dict[str, Any] = facts
    return checked


def _with_changes(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts of format 1, whose ``events`` are what format 2 calls ``changes``."""
    names = {"events": "changes", "events_omitted": "changes_omitted"}
    return {names.get(name, name): value for name, value in facts.items()} | {"format": FORMAT}


def text(facts: Mapping[str, Any]) -> str:
    """The facts as ``load`` reads them; lone surrogates are escaped, as UTF-8 has none."""
    content = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    return content.encode("utf-8", "backslashreplace").decode("utf-8")
