"""One rollup at a time: who holds the lease, who waits, and what a dead holder leaves."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from lakehouse import tables
from lakehouse.engines.engine import ask
from lakehouse.errors import LeaseHeldError, LeaseLostError
from lakehouse.rollup import lease
from lakehouse.rollup.lease import Terms
from tests.rollups import prepare
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.engines.engine import Engine
    from tests.rollups import Engines

LONG = Terms(holds=3600, renewed=3600, skew=3600)
OVER = Terms(holds=0, renewed=3600, skew=0)


@pytest.fixture
def engine(local: Engines, tmp_path: Path) -> Engine:
    """That of a path; Spark on a path has its lease from it."""
    (tmp_path / tables.RUNS.path / "_delta_log").mkdir(parents=True)
    prepare(tmp_path)
    return local(tmp_path)


def untils(engine: Engine) -> list[int]:
    """Until when the lease holds: one row of the table."""
    return [
        until for (until,) in ask(engine, "SELECT r.until FROM {r} r", r=engine.rows(tables.LEASE))
    ]


def test_second_rollup_is_refused_with_holder_and_start(engine: Engine) -> None:
    with lease.hold(engine, LONG) as first:
        first.check()
        with pytest.raises(LeaseHeldError) as refused, lease.hold(engine, LONG):
            pass
        told = str(refused.value)
        assert "\n" not in told
        assert "is rolling up since 20" in told
        assert "process " in told
        assert "--take-over" in told
        first.check()
    assert lease.holder(engine) is None
    with lease.hold(engine, LONG) as second:
        second.check()
    assert len(untils(engine)) == 1


def test_concurrent_leases_have_one_holder(engine: Engine) -> None:
    """Also where there is no row yet: Delta lets one of the commits in."""
    together, decided = threading.Barrier(3), threading.Barrier(3)

    def attempt() -> bool:
        together.wait(60)
        try:
            with lease.hold(engine, LONG):
                decided.wait(300)
                return True
        except LeaseHeldError:
            decided.wait(300)
            return False

    for _ in range(2):
        with ThreadPoolExecutor(3) as pool:
            had = [one.result() for one in [pool.submit(attempt) for _ in range(3)]]
        assert had.count(True) == 1
        assert len(untils(engine)) == 1


def test_expired_lease_is_taken_and_its_holder_stops(engine: Engine) -> None:
    with lease.hold(engine, OVER) as slow:
        with lease.hold(engine, LONG._replace(skew=0)) as next_one:
            with pytest.raises(LeaseLostError, match="has the lease now"):
                slow.check()
            with pytest.raises(LeaseLostError):
                slow.check()
            next_one.check()
        with pytest.raises(LeaseLostError):
            slow.check()
    with lease.hold(engine, LONG) as after:
        after.check()


def test_clocks_may_differ_by_the_skew(engine: Engine) -> None:
    """It has run out by the clock of who comes, but not for long enough."""
    with lease.hold(engine, OVER) as slow:
        patient = OVER._replace(skew=3600)
        with pytest.raises(LeaseHeldError), lease.hold(engine, patient):
            pass
        slow.check()


def test_lease_is_renewed_while_its_holder_works(engine: Engine) -> None:
    def until() -> int:
        (found,) = untils(engine)
        return found

    with lease.hold(engine, LONG._replace(renewed=0.1)) as busy:
        first = until()
        wait_for(lambda: until() > first, 300)
        busy.check()


def test_lease_can_be_taken_from_a_dead_holder(engine: Engine) -> None:
    with (
        lease.hold(engine, OVER) as dead,
        lease.hold(engine, LONG, take_over=True) as alive,
    ):
        with pytest.raises(LeaseLostError):
            dead.check()
        alive.check()


def written_by(engine: Engine) -> str | None:
    found = engine.detail(tables.LEASE)
    return None if found is None else found.properties.get(lease.WRITER)


def test_gold_written_by_other_engine_is_untouched(engine: Engine) -> None:
    mine = engine.writer
    with lease.hold(engine, LONG):
        assert written_by(engine) == mine
    engine.writer = "another"
    refused = pytest.raises(LeaseHeldError, match=f"{mine} writes this gold.*--take-over")
    with refused, lease.hold(engine, LONG):
        pass
    with lease.hold(engine, LONG, take_over=True) as held:
        held.check()
    engine.writer = mine
    with pytest.raises(LeaseHeldError, match="another writes this gold"), lease.hold(engine, LONG):
        pass
