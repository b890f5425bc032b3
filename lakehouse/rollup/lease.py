"""One writer of gold at a time: a lease in the lake, taken and renewed by compare and swap.

It is the one row of gold/lease. A holder renews it while it works, trusts it by its own clocks
alone, and stops before the next commit when it has run out; others take it over only some time
after it has run out by theirs. Where clocks differ by more than that, the holder's next renewal
fails and says so; commits that were under way meet Delta's own check for conflicts.
"""

import datetime as dt
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from lakehouse import tables
from lakehouse.core import display
from lakehouse.core.lake import Lake
from lakehouse.core.periods import instant, micros
from lakehouse.engines.engine import Engine, LeaseRow, ask
from lakehouse.errors import LeaseHeldError, LeaseLostError, TableSchemaError


class Terms(NamedTuple):
    """How long a lease holds, seconds.

    Attributes:
        holds: Time from its last renewal to its end.
        renewed: Time between renewals.
        skew: Extra time that others wait; clocks must differ by less.
    """

    holds: float = 300.0
    renewed: float = 60.0
    skew: float = 60.0


USUAL: Final = Terms()

WRITER: Final = "jmxlake.writer"
"""Property of gold/lease: the writer of gold. delta-rs and Spark on Databricks decide by different
means which commit is next, so both could believe that theirs was."""

COLUMNS: Final = "jmxlake.columns"
"""Property of gold/lease: the number of columns that gold's tables have in the writer's version.
Versions only add columns, so an older one knows fewer, and would leave the others null."""

_COLUMNS: Final = sum(len(one.columns) for one in (*tables.GOLD, *tables.ROLLUP_STATE))


class Lease:
    """A lease that is held; ask ``check`` before every commit."""

    def __init__(self, engine: Engine, terms: Terms, row: LeaseRow) -> None:
        self._engine, self._terms, self._row = engine, terms, row
        self._trusted_from = _clocks()
        self._lost = ""
        self._lock = threading.Lock()

    def check(self, *, anew: bool = False) -> None:
        """See that it still holds, by clocks; ``anew``: by renewing it.

        Raises:
            LeaseLostError: It does not.
        """
        with self._lock:
            past = max(now - then for now, then in zip(_clocks(), self._trusted_from, strict=True))
            if (anew or past >= self._terms.holds) and not self._lost:
                self._renew()
        if self._lost:
            raise LeaseLostError(
                f"{self._engine.lake.name(tables.LEASE)}: {self._lost}; nothing was committed "
                "since. Run it again: what is done stays done"
            )

    def keep(self, stop: threading.Event) -> None:
        """Renew it until it is to stop."""
        while not stop.wait(self._terms.renewed):
            with self._lock, suppress(Exception):  # check() tries again, and raises
                if not self._lost:
                    self._renew()

    def release(self) -> None:
        """Release the lease."""
        with self._lock, suppress(Exception):  # where that fails it runs out by itself
            if not self._lost:
                self._engine.swap(self._row, LeaseRow())

    def _renew(self) -> None:
        clocks, until = _clocks(), _micros_now() + round(self._terms.holds * 1e6)
        renewed = self._row._replace(until=until)
        if self._engine.swap(self._row, renewed):
            self._row, self._trusted_from = renewed, clocks
        else:
            found = _read(self._engine) or LeaseRow()
            self._lost = f"{found.holder or 'another rollup'} has taken it over"


@contextmanager
def hold(
    engine: Engine, terms: Terms, *, take_over: bool = False, lease_id: str | None = None
) -> Iterator[Lease]:
    """Hold the lease of a lake's gold, whose table is there.

    Args:
        engine: The engine of the lake.
        terms: How long it holds.
        take_over: Take it even if another rollup holds it.
        lease_id: Its id; a lease with this id is the caller's own, which it could not release.
            None: a new id.

    Raises:
        LeaseHeldError: Another rollup holds it, or another kind of engine writes this gold.
        TableSchemaError: A newer version of jmxlake wrote this gold.
    """
    found = engine.detail(tables.LEASE)
    properties = {} if found is None else found.properties
    _check_writer(engine, properties, take_over=take_over)
    row = _take(engine, terms, lease_id or uuid.uuid4().hex, take_over=take_over)
    lease, stop = Lease(engine, terms, row), threading.Event()
    keeper = threading.Thread(target=lease.keep, args=(stop,), daemon=True, name="lease")
    try:
        named = {WRITER: engine.writer, COLUMNS: str(_COLUMNS)}
        if not named.items() <= properties.items():
            # Before it is renewed: that would be two commits at once.
            engine.set_properties(tables.LEASE, named)
        keeper.start()
        yield lease
    finally:
        stop.set()
        if keeper.ident is not None:
            keeper.join()
        lease.release()


def _check_writer(engine: Engine, properties: Mapping[str, str], *, take_over: bool) -> None:
    """Check that this version, and this kind of engine, may write gold."""
    name, columns = engine.lake.name(tables.LEASE), properties.get(COLUMNS, "")
    if columns.isdecimal() and int(columns[:9]) > _COLUMNS:
        raise TableSchemaError(
            f"{name}: a newer jmxlake wrote this gold, with columns that this one does not know; "
            "use that"
        )
    writer = properties.get(WRITER)
    if writer not in {None, engine.writer} and not take_over:
        raise LeaseHeldError(
            f"{name}: {display.line(writer)} writes this gold, and {engine.writer} must not write "
            "beside it: roll it up as before, or, once nothing does so any more, with --take-over"
        )


def holder(engine: Engine) -> str | None:
    """The holder of the lease, alive or dead, and since when; None where it is free."""
    found = _read(engine)
    return None if found is None or found.id is None else _holder_text(found)


def _read(engine: Engine) -> LeaseRow | None:
    """The row as it is now; None: the table is new."""
    rows = ask(engine, _ROW, lease=engine.rows(tables.LEASE))
    return LeaseRow(*rows[0]) if rows else None


_ROW: Final = "SELECT r.id, r.holder, r.since, r.until FROM {lease} r"


def _take(engine: Engine, terms: Terms, lease_id: str, *, take_over: bool) -> LeaseRow:
    now, holder = _micros_now(), f"{socket.gethostname()}, process {os.getpid()},"
    mine = LeaseRow(lease_id, holder, now, now + round(terms.holds * 1e6))
    # The lease is usually free: reading it first would double the cost.
    if engine.swap(LeaseRow(), mine):
        return mine
    found = _read(engine)
    is_others = found is not None and found.id not in {None, lease_id}
    if is_others and now < _free_after_us(found, terms) and not take_over:
        raise LeaseHeldError(_refusal(engine.lake, found, terms))
    if not engine.swap(found or LeaseRow(), mine, first=found is None):
        raise LeaseHeldError(_refusal(engine.lake, _read(engine), terms))
    return mine


def _free_after_us(found: LeaseRow | None, terms: Terms) -> int:
    """Instant after which another rollup may take it, microseconds."""
    return ((found and found.until) or 0) + round(terms.skew * 1e6)


def _refusal(lake: Lake, row: LeaseRow | None, terms: Terms) -> str:
    found = row or LeaseRow()
    waits = _free_after_us(found, terms)
    return (
        f"{lake.name(tables.LEASE)}: {_holder_text(found)}; wait for it. If it is dead, a rollup "
        f"goes on after {instant(waits):%H:%M:%S} UTC, or at once with jmxlake rollup --take-over"
    )


def _holder_text(found: LeaseRow) -> str:
    since = "" if found.since is None else f" since {instant(found.since):%Y-%m-%d %H:%M:%S} UTC"
    return f"{found.holder or 'another process'} is rolling up{since}"


def _micros_now() -> int:
    return micros(dt.datetime.now(dt.UTC))


def _clocks() -> tuple[float, ...]:
    """The wall clock, and a clock that is never set and runs while a laptop sleeps."""
    return time.time(), time.clock_gettime(_BOOT)


_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
