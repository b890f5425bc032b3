"""One writer of gold at a time: a lease in the lake, taken and renewed by compare and swap.

A holder renews while it works. It trusts its lease by its own clocks alone, and stops before the
next commit when it has run out; others take it over only some time after it has run out by theirs.
Where clocks differ by more than that, the holder's next renewal fails and says so; commits that
were under way meet Delta's own check for conflicts.
"""

from __future__ import annotations

import datetime as dt
import os
import socket
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import tables
from lakehouse.errors import LeaseHeldError, LeaseLostError
from lakehouse.lease_row import Row, read, swap
from lakehouse.periods import instant, micros

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake


class Terms(NamedTuple):
    """How long a lease holds, seconds.

    Attributes:
        holds: From its last renewal.
        renewed: It is renewed so often.
        skew: Others wait so much longer: clocks differ by less.
    """

    holds: float = 300.0
    renewed: float = 60.0
    skew: float = 60.0


USUAL: Final = Terms()


class Lease:
    """A lease that is held; ask ``check`` before every commit."""

    def __init__(self, spark: SparkSession, lake: Lake, terms: Terms, row: Row) -> None:
        self._spark, self._lake, self._terms, self._row = spark, lake, terms, row
        self._trusted_from = _clocks()
        self._lost = ""
        self._lock = threading.Lock()

    def check(self) -> None:
        """See that it still holds.

        Raises:
            LeaseLostError: It does not.
        """
        with self._lock:
            past = max(now - then for now, then in zip(_clocks(), self._trusted_from, strict=True))
            if past < self._terms.holds and not self._lost:
                return
            if not self._lost:
                self._renew()
        if self._lost:
            raise LeaseLostError(
                f"{self._lake.name(tables.LEASE)}: {self._lost}; nothing was committed since. "
                "Run it again: what is done stays done"
            )

    def keep(self, stop: threading.Event) -> None:
        """Renew it until told to stop."""
        while not stop.wait(self._terms.renewed):
            with self._lock:
                if self._lost:
                    return
                try:
                    self._renew()
                except Exception:  # noqa: BLE001, S112 - check() tries again, and tells
                    continue

    def give_back(self) -> None:
        """Let others take it at once."""
        with self._lock:
            if not self._lost:
                # Where that fails it runs out by itself.
                with suppress(Exception):
                    swap(self._spark, self._lake, self._row, Row())

    def _renew(self) -> None:
        clocks, until = _clocks(), _micros_now() + round(self._terms.holds * 1e6)
        renewed = self._row._replace(until=until)
        if swap(self._spark, self._lake, self._row, renewed):
            self._row, self._trusted_from = renewed, clocks
        else:
            found = read(self._spark, self._lake)
            self._lost = f"{found.holder or 'another rollup'} has taken it over"


@contextmanager
def held(
    spark: SparkSession, lake: Lake, terms: Terms, *, take_over: bool = False
) -> Iterator[Lease]:
    """Hold the lease of a lake's gold, whose table is there.

    Args:
        spark: The session.
        lake: The lake.
        terms: How long it holds.
        take_over: Take it, whoever has it.

    Raises:
        LeaseHeldError: Somebody else holds it.
    """
    row = _taken(spark, lake, terms, take_over=take_over)
    lease, stop = Lease(spark, lake, terms, row), threading.Event()
    keeper = threading.Thread(target=lease.keep, args=(stop,), daemon=True, name="lease")
    keeper.start()
    try:
        yield lease
    finally:
        stop.set()
        keeper.join()
        lease.give_back()


def holder(spark: SparkSession, lake: Lake) -> str | None:
    """Who holds the lease or died holding it, and since when; None where nobody does."""
    found = read(spark, lake)
    return None if found.id is None else _told(found)


def _taken(spark: SparkSession, lake: Lake, terms: Terms, *, take_over: bool) -> Row:
    now = _micros_now()
    mine = Row(uuid.uuid4().hex, _self(), now, now + round(terms.holds * 1e6))
    # As a rule nobody has it: to look first would cost as much again.
    if swap(spark, lake, Row(), mine):
        return mine
    found = read(spark, lake)
    if found.id is not None and now < _waits(found, terms) and not take_over:
        raise LeaseHeldError(_refusal(lake, found, terms))
    if not swap(spark, lake, found, mine):
        found = read(spark, lake)
        raise LeaseHeldError(_refusal(lake, found, terms))
    return mine


def _waits(found: Row, terms: Terms) -> int:
    """Until when others wait."""
    return (found.until or 0) + round(terms.skew * 1e6)


def _refusal(lake: Lake, found: Row, terms: Terms) -> str:
    waits = _waits(found, terms)
    return (
        f"{lake.name(tables.LEASE)}: {_told(found)}; wait for it. If it is dead, a rollup goes on "
        f"after {instant(waits):%H:%M:%S} UTC, or at once with --take-over"
    )


def _told(found: Row) -> str:
    since = "" if found.since is None else f" since {instant(found.since):%Y-%m-%d %H:%M:%S} UTC"
    return f"{found.holder or 'another process'} is rolling up{since}"


def _self() -> str:
    return f"{socket.gethostname()}, process {os.getpid()},"


def _micros_now() -> int:
    return micros(dt.datetime.now(dt.UTC))


def _clocks() -> tuple[float, ...]:
    """The clock on the wall, and one that nobody sets and that goes on while a laptop sleeps."""
    return time.time(), time.clock_gettime(_BOOT)


_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
