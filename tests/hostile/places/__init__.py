"""Places where a name, a path, a file or an answer enters; each module has the cases of one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.case import Case

PLACES: Final = (
    "names", "columns", "delta_log", "folders", "files", "report_facts", "settings_values", "answers",
    "sending", "running", "jmx", "buckets", "spark",
)  # fmt: skip


def every() -> Iterator[Case]:
    """Every case, place by place."""
    for name in PLACES:
        yield from import_module(f"{__name__}.{name}").cases()
