"""The file of facts, which ``report --json`` writes, and of which pages are made without a lake."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lakehouse.errors import FactsError

FORMAT: Final = 1
"""The ``format`` of docs/report-json.md that this version writes and reads."""

_NEEDED: Final = ("cluster", "from", "to", "verdicts", "objectives")


def is_saved(place: str) -> bool:
    """Whether a place is a file of facts and no lake."""
    return place.endswith(".json") and "://" not in place


def load(path: Path) -> dict[str, Any]:
    """The facts that ``jmxlake report --json`` wrote.

    Raises:
        FactsError: The file cannot be read, or holds something else.
    """
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FactsError(f"{path}: {error.strerror}; name what report --json wrote") from error
    except (ValueError, RecursionError) as error:
        raise FactsError(f"{path}: no JSON; name what report --json wrote") from error
    if not isinstance(facts, dict) or any(key not in facts for key in _NEEDED):
        raise FactsError(f"{path}: no facts of a report; name what report --json wrote")
    if facts.get("format") != FORMAT:
        raise FactsError(
            f"{path}: format {str(facts.get('format'))[:20]}, and this version reads {FORMAT}; "
            "use the jmxlake that wrote it"
        )
    return facts


def text(facts: Mapping[str, Any]) -> str:
    """The facts as ``load`` reads them; lone surrogates are escaped, as UTF-8 has none."""
    content = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    return content.encode("utf-8", "backslashreplace").decode("utf-8")
