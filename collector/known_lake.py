"""The lake that a spool has delivered to: its tables' ids, so that another in its place is noticed.

A folder whose file system is not mounted looks like a lake that has no tables yet.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

import msgspec

from collector.spool_file import meta, read_only
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from collector.spool import Spool

ACCEPT: Final = (
    "if the lake was made anew on purpose, stop the agent and run once"
    " `jmxlake-agent check --accept-lake`"
)
_KEY: Final = "tables"
_NONE: Final = ""


class _Known(msgspec.Struct):
    root: str
    ids: dict[str, str]


def recall(spool: Spool, root: str) -> dict[str, str]:
    """The ids of a lake's tables, by name; none where the spool has not delivered to it last.

    Raises:
        SpoolError: The spool cannot be read.
    """
    known = _known(spool)
    return known.ids if known is not None and known.root == root else {}


def remember(spool: Spool, root: str, ids: Mapping[str, str]) -> None:
    """From now on the lake has these tables; other ones know no member set.

    Raises:
        SpoolError: The spool cannot be written.
    """
    before, now = _known(spool), _Known(root, dict(ids))
    if before == now:
        return
    members = tables.MEMBERS.name
    if before is None or before.ids.get(members) != now.ids[members]:
        spool.forget_sets()
    spool.remember(_KEY, msgspec.json.encode(now, order="sorted").decode())


def forget(spool: Spool) -> None:
    """Whatever lake is there next is taken for the right one.

    Raises:
        SpoolError: The spool cannot be written.
    """
    spool.remember(_KEY, _NONE)


def copy(path: Path, spool: Spool) -> None:
    """Let a spool know what another knows, which an agent may hold; nothing where there is none."""
    known = None
    with suppress(sqlite3.Error), closing(read_only(path)) as db:
        known = meta(db, _KEY)
    spool.remember(_KEY, known or _NONE)


def _known(spool: Spool) -> _Known | None:
    known = spool.recall(_KEY)
    return msgspec.json.decode(known, type=_Known) if known else None
