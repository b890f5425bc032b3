"""While the lake is away, the courier says so until something was delivered."""

from __future__ import annotations

import threading

import pytest

from collector.courier import Courier
from collector.errors import CommitError
from collector.vitals import Vitals


class FakeClock:
    now_us = 0

    def wall_us(self) -> int:
        return self.now_us

    def steady_us(self) -> int:
        return self.now_us


class FakeDelivery:
    away = True
    tried = 0

    def deliver_next(self) -> bool:
        self.tried += 1
        if self.away:
            raise CommitError("the lake is away")
        return False


def test_waiting_after_a_failure_is_no_success() -> None:
    clock, delivery, stop = FakeClock(), FakeDelivery(), threading.Event()
    courier = Courier(delivery, 10_000_000, clock, Vitals())  # type: ignore[arg-type]
    for _ in range(3):
        with pytest.raises(CommitError, match="the lake is away"):
            courier.deliver(stop)
    assert delivery.tried == 1
    clock.now_us, delivery.away = 60_000_000, False
    courier.deliver(stop)
    assert delivery.tried == 2
