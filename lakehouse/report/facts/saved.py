"""The facts as JSON: made of records, written to a file, and read from it without a lake."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from lakehouse.errors import FactsError

FORMAT: Final = 1
"""The ``format`` of docs/report-json.md that this version writes and reads."""

_NEEDED: Final = ("cluster", "from", "to", "verdicts", "objectives")


class Bounds(NamedTuple):
    """A figure and the least and greatest that it can truly be; None: not known.

    A field ``name_us`` is three keys in JSON: ``name_us``, ``name_low_us`` and ``name_high_us``; a
    field ``name`` is ``name``, ``name_low`` and ``name_high``.
    """

    value: float | None
    low: float | None
    high: float | None

    def times(self, factor: float | None) -> Bounds:
        """All three, multiplied by a factor; None: it is not known, and so none of them is."""
        if factor is None:
            return Bounds(None, None, None)
        return Bounds(*(None if figure is None else figure * factor for figure in self))


def to_json(value: Any) -> Any:
    """A record, or a list of records, as report.json has it: a key for each field, in order."""
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if not hasattr(value, "_asdict"):
        return value
    found: dict[str, Any] = {}
    for name, field in value._asdict().items():
        if isinstance(field, Bounds):
            stem = name.removesuffix("_us")
            unit = name[len(stem) :]
            keys = (name, f"{stem}_low{unit}", f"{stem}_high{unit}")
            found |= dict(zip(keys, field, strict=True))
        else:
            found[name] = to_json(field)
    return found


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
