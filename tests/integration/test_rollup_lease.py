"""One rollup at a time: who holds the lease, who waits, and what a dead holder leaves."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from lakehouse import lake as lakes
from lakehouse import lease, tables
from lakehouse.errors import LeaseHeldError, LeaseLostError
from lakehouse.lake import Lake
from lakehouse.lease import Terms
from tests.rollups import prepare
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LONG = Terms(holds=3600, renewed=3600, skew=3600)
OVER = Terms(holds=0, renewed=3600, skew=0)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    prepare(spark, tmp_path)
    return Lake(str(tmp_path))


def test_a_second_one_is_refused_with_who_and_since_when(spark: SparkSession, lake: Lake) -> None:
    with lease.held(spark, lake, LONG) as first:
        first.check()
        with pytest.raises(LeaseHeldError) as refused, lease.held(spark, lake, LONG):
            pass
        told = str(refused.value)
        assert "\n" not in told
        assert "is rolling up since 20" in told
        assert "process " in told
        assert "--take-over" in told
        first.check()
    assert lease.holder(spark, lake) is None
    with lease.held(spark, lake, LONG) as second:
        second.check()
    assert lakes.read(spark, lake, tables.LEASE).count() == 1


def test_of_many_at_once_one_has_it(spark: SparkSession, lake: Lake) -> None:
    """Also where there is no row yet: Delta lets one of the commits in."""
    together, decided = threading.Barrier(3), threading.Barrier(3)

    def attempt() -> bool:
        together.wait(60)
        try:
            with lease.held(spark, lake, LONG):
                decided.wait(300)
                return True
        except LeaseHeldError:
            decided.wait(300)
            return False

    for _ in range(2):
        with ThreadPoolExecutor(3) as pool:
            had = [one.result() for one in [pool.submit(attempt) for _ in range(3)]]
        assert had.count(True) == 1
        assert lakes.read(spark, lake, tables.LEASE).count() == 1


def test_one_that_has_run_out_is_taken_and_its_holder_stops(
    spark: SparkSession, lake: Lake
) -> None:
    with lease.held(spark, lake, OVER) as slow:
        with lease.held(spark, lake, LONG._replace(skew=0)) as next_one:
            with pytest.raises(LeaseLostError, match="has taken it over"):
                slow.check()
            with pytest.raises(LeaseLostError):
                slow.check()
            next_one.check()
        with pytest.raises(LeaseLostError):
            slow.check()
    with lease.held(spark, lake, LONG) as after:
        after.check()


def test_clocks_may_differ_by_the_skew(spark: SparkSession, lake: Lake) -> None:
    """It has run out by the clock of who comes, but not for long enough."""
    with lease.held(spark, lake, OVER) as slow:
        patient = OVER._replace(skew=3600)
        with pytest.raises(LeaseHeldError), lease.held(spark, lake, patient):
            pass
        slow.check()


def test_it_is_renewed_while_its_holder_works(spark: SparkSession, lake: Lake) -> None:
    def until() -> int:
        (row,) = lakes.read(spark, lake, tables.LEASE).collect()
        return int(row["until"].timestamp() * 1e6)

    with lease.held(spark, lake, LONG._replace(renewed=0.1)) as busy:
        first = until()
        wait_for(lambda: until() > first, 300)
        busy.check()


def test_it_can_be_taken_from_one_that_is_known_to_be_dead(spark: SparkSession, lake: Lake) -> None:
    with (
        lease.held(spark, lake, OVER) as dead,
        lease.held(spark, lake, LONG, take_over=True) as alive,
    ):
        with pytest.raises(LeaseLostError):
            dead.check()
        alive.check()
