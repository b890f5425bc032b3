"""The file of facts, which ``report --json`` writes, and of which pages are made without a lake."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lakehouse.core import display
from lakehouse.errors import FactsError
from lakehouse.report import figures
from lakehouse.report.facts import shape
from lakehouse.report.facts.answers import with_answers
from lakehouse.report.facts.fields import FORMAT
from lakehouse.report.facts.key_figures.compared import with_figures
from lakehouse.report.facts_lookup import group_totals
from lakehouse.tables.strict_files import UnreadableFileError, parse_json, read_text
from lakehouse.tables.typed_settings import WrongSettingError

MOST_BYTES: Final = 200_000_000
"""Maximum size of report.json, bytes."""

_OLDER: Final = 1
"""The format without events, statuses, history and key figures."""

_RENAMED: Final = {"events": "changes", "events_omitted": "changes_omitted"}
"""Keys of format 1 by which format 2 has something else."""

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
    written = facts["format"]
    if written not in (_OLDER, FORMAT):
        what = f"format {display.line(written, 20)}, and this version reads {FORMAT}"
        raise FactsError(f"{path}: {what}; use the jmxlake that wrote it")
    if written == _OLDER:
        facts = {_RENAMED.get(name, name): value for name, value in facts.items()}
    try:
        shape.check(facts)
    except WrongSettingError as error:
        raise FactsError(f"{path}: no facts of a report: {error}; {_WANTED}") from None
    return facts if written == FORMAT else _upgraded(facts)


def _upgraded(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts of format 1 with what format 2 says more of them; events are not known."""
    end, made = (figures.moment(facts.get(key, facts["to"])) for key in ("to", "generated_at"))
    found = {**facts, "format": FORMAT, "running": made < end}
    found["objectives"] = [{**one, "history": []} for one in facts["objectives"]]
    if lost := facts.get("lost_before_read"):
        found["lost_before_read"] = {**lost, "totals": group_totals(lost["groups"])}
    return with_figures(found, with_answers)


def text(facts: Mapping[str, Any]) -> str:
    """The facts as ``load`` reads them; lone surrogates are escaped, as UTF-8 has none."""
    content = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    return content.encode("utf-8", "backslashreplace").decode("utf-8")
