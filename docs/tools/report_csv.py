"""Reference of the CSV folder, generated from ``csv_files.FILES``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from docs.tools.layout import code, page, table
from lakehouse.report.csv_files import COMMON, FILES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.report.facts.fields import Column

_INTRODUCTION: Final = """\
`jmxlake report LAKE --csv FOLDER` writes each table of the [report](report-json.md) as a file: RFC
4180, UTF-8 without a byte order mark, lines end with CR LF. All files are always written. A file
without rows is its header.

- Text is quoted, numbers are not. An empty field without quotes is unknown, or does not apply. It
  is not zero. `""` is an empty name.
- Times are ISO 8601, UTC. Durations are whole microseconds (`_us`).
- Lists are separated by spaces. A flag is 1 or 0.
- Clients of the cluster choose names, and a spreadsheet takes `=cmd(...)` for a formula. Therefore
  an apostrophe precedes `=`, `+`, `-` and `@` (and their full-width forms) at the start of a cell
  and after `,`, `;`, `|` and `"`. Invisible characters are written as `\\u000a`. Names beyond
  32,000 characters are shortened in the middle. The [JSON report](report-json.md) has the original
  names.

Every file starts with these columns."""


def text() -> str:
    """Return the page."""
    parts = []
    for file in FILES:
        parts += [f"## {file.name}.csv", f"One row per {file.each}.", _columns(file.columns)]
    return page("CSV folder", _INTRODUCTION, _columns(COMMON), *parts)


def _columns(columns: Iterable[Column]) -> str:
    rows = ((code(column.name), column.means) for column in columns)
    return table(("Column", "Meaning"), rows)
