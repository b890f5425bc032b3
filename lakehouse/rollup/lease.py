"""Lease of gold: one writer at a time, by compare and swap on the only row of gold/lease.

The holder renews the lease while it runs. It judges the lease by its own clocks only, and stops
before the next commit when the lease has expired. Other processes wait some time after the expiry
by their clocks. If clocks differ by more than that time, the holder's next renewal fails, and
Delta's conflict check catches its running commits.
"""

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
from lakehouse.core.periods import instant, now_us
from lakehouse.engines.engine import Engine, LeaseRow, ask
from lakehouse.errors import LeaseHeldError, LeaseLostError, TableSchemaError


class Terms(NamedTuple):
    """Durations of a lease (seconds).

    Attributes:
        holds: Time from the last renewal to the expiry.
        renewed: Time between renewals.
        skew: Extra time that others wait. Clocks must differ by less.
    """

    holds: float = 300.0
    renewed: float = 60.0
    skew: float = 60.0


USUAL: Final = Terms()

WRITER: Final = "jmxlake.writer"
"""Property of gold/lease: the writer of gold. delta-rs and Spark on Databricks order commits with
different mechanisms, so both could commit the same version."""

COLUMNS: Final = "jmxlake.columns"
"""Property of gold/lease: number of columns in gold's tables in the writer's version. Versions only
add columns, so an older version has fewer, and would write null to the others."""

_COLUMNS: Final = sum(len(one.columns) for one in (*tables.GOLD, *tables.ROLLUP_STATE))


class Lease:
    """A held lease. Call ``check`` before each commit."""

    def __init__(self, engine: Engine, terms: Terms, row: LeaseRow) -> None:
        self._engine, self._terms, self._row = engine, terms, row
        self._trusted_from = _clocks()
        self._lost = ""
        self._lock = threading.Lock()

    def check(self, *, anew: bool = False) -> None:
        """Check by the clocks that the lease has not expired; ``anew`` renews it.

        Raises:
            LeaseLostError: The lease is lost.
        """
        with self._lock:
            past = max(now - then for now, then in zip(_clocks(), self._trusted_from, strict=True))
            if (anew or past >= self._terms.holds) and not self._lost:
                self._renew()
        if self._lost:
            raise LeaseLostError(
                f"{self._engine.lake.name(tables.LEASE)}: {self._lost}. Later commits were not "
                "made. Run the command again; completed batches are kept"
            )

    def keep(self, stop: threading.Event) -> None:
        """Renew the lease until ``stop`` is set."""
        while not stop.wait(self._terms.renewed):
            with self._lock, suppress(Exception):  # check() tries again, and raises the error
                if not self._lost:
                    self._renew()

    def release(self) -> None:
        """Release the lease."""
        with self._lock, suppress(Exception):  # otherwise it expires
            if not self._lost:
                self._engine.swap(self._row, LeaseRow())

    def _renew(self) -> None:
        clocks, until = _clocks(), now_us() + round(self._terms.holds * 1e6)
        renewed = self._row._replace(until=until)
        if self._engine.swap(self._row, renewed):
            self._row, self._trusted_from = renewed, clocks
        else:
            found = _read(self._engine) or LeaseRow()
            self._lost = f"{found.holder or 'another rollup'} has the lease now"


@contextmanager
def hold(
    engine: Engine, terms: Terms, *, take_over: bool = False, lease_id: str | None = None
) -> Iterator[Lease]:
    """Hold the lease of a lake's gold; its table must exist.

    Args:
        engine: Engine of the lake.
        terms: Durations of the lease.
        take_over: Take the lease even if another rollup holds it.
        lease_id: ID of the lease. A lease with this ID belongs to the caller, which could not
            release it. None means a new ID.

    Raises:
        LeaseHeldError: Another rollup holds the lease, or another kind of engine writes this gold.
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
            # Before the first renewal, because two simultaneous commits would conflict.
            engine.set_properties(tables.LEASE, named)
        keeper.start()
        yield lease
    finally:
        stop.set()
        if keeper.ident is not None:
            keeper.join()
        lease.release()


def _check_writer(engine: Engine, properties: Mapping[str, str], *, take_over: bool) -> None:
    """Check that this version and this kind of engine can write gold."""
    name, columns = engine.lake.name(tables.LEASE), properties.get(COLUMNS, "")
    if columns.isdecimal() and int(columns[:9]) > _COLUMNS:
        raise TableSchemaError(
            f"{name}: a newer jmxlake wrote this gold and added columns. Use that version"
        )
    writer = properties.get(WRITER)
    if writer not in {None, engine.writer} and not take_over:
        raise LeaseHeldError(
            f"{name}: {display.line(writer)} writes this gold, so {engine.writer} must not. Use "
            "the same engine as before. If that rollup no longer runs anywhere, use --take-over"
        )


def holder(engine: Engine) -> str | None:
    """Return the holder of the lease, alive or dead, and its start. None if the lease is free."""
    found = _read(engine)
    return None if found is None or found.id is None else _holder_text(found)


def _read(engine: Engine) -> LeaseRow | None:
    """Return the current row. None if the table is new."""
    rows = ask(engine, _ROW, lease=engine.rows(tables.LEASE))
    return LeaseRow(*rows[0]) if rows else None


_ROW: Final = "SELECT r.id, r.holder, r.since, r.until FROM {lease} r"


def _take(engine: Engine, terms: Terms, lease_id: str, *, take_over: bool) -> LeaseRow:
    now, holder = now_us(), f"{socket.gethostname()}, process {os.getpid()},"
    mine = LeaseRow(lease_id, holder, now, now + round(terms.holds * 1e6))
    # Usually the lease is free, and a read before the swap would double the cost.
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
    """Return the time after which another rollup can take the lease (µs)."""
    return ((found and found.until) or 0) + round(terms.skew * 1e6)


def _refusal(lake: Lake, row: LeaseRow | None, terms: Terms) -> str:
    found = row or LeaseRow()
    waits = _free_after_us(found, terms)
    return (
        f"{lake.name(tables.LEASE)}: {_holder_text(found)}. Wait for it. If that process is dead, "
        f"a rollup can start after {instant(waits):%H:%M:%S} UTC, or at once with --take-over"
    )


def _holder_text(found: LeaseRow) -> str:
    since = "" if found.since is None else f" since {instant(found.since):%Y-%m-%d %H:%M:%S} UTC"
    return f"{found.holder or 'another process'} is rolling up{since}"


def _clocks() -> tuple[float, ...]:
    """Return the wall clock, and a clock that is never set and also runs during sleep."""
    return time.time(), time.clock_gettime(_BOOT)


_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
