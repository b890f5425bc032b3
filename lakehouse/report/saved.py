"""Facts of an earlier report, read again: other outputs of it need no Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from lakehouse.errors import FactsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT: Final = 1
"""The ``format`` of docs/report-json.md that this version writes and reads."""

_NEEDED: Final = ("cluster", "from", "to", "verdicts", "objectives")


def is_saved(place: str) -> bool:
    """Whether a place is such a file and no lake."""
    return place.endswith(".json") and "://" not in place


def load(path: Path) -> dict[str, Any]:
    """The facts that ``jmxlake report --json`` wrote.

    Raises:
        FactsError: The file cannot be read, or holds something else.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FactsError(f"{path}: {error.strerror}; name what report --json wrote") from error
    except (ValueError, RecursionError) as error:
        raise FactsError(f"{path}: no JSON; name what report --json wrote") from error
    if not isinstance(told, dict) or any(key not in told for key in _NEEDED):
        raise FactsError(f"{path}: no facts of a report; name what report --json wrote")
    if told.get("format") != FORMAT:
        raise FactsError(
            f"{path}: format {str(told.get('format'))[:20]}, and this version reads {FORMAT}; "
            "use the jmxlake that wrote it"
        )
    return told


def text(facts: Mapping[str, Any]) -> str:
    """The facts as ``load`` reads them; half characters are escaped, as UTF-8 has none."""
    told = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    return told.encode("utf-8", "backslashreplace").decode("utf-8")
