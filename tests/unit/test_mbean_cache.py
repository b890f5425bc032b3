"""The MBean cache drops the right patterns and sends few requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from collector.sources.jmx.mbean_cache import MBeanCache, _is_of

if TYPE_CHECKING:
    from collector.sources.jmx.rmi_calls import MBeanServer


@pytest.mark.parametrize(
    ("pattern", "kind", "concerned"),
    [
        ("kafka.log:type=Log,name=Size,topic=*", ("kafka.log", "Log"), True),
        ("kafka.log:type=Log,name=Size,topic=*", ("kafka.log", "LogManager"), False),
        ("kafka.log:type=Log,name=Size,topic=*", ("kafka.server", "Log"), False),
        ("kafka.*:type=producer-metrics,*", ("kafka.producer", "producer-metrics"), True),
        ("kafka.producer:type=producer-*,*", ("kafka.producer", "producer-metrics"), True),
        ("kafka.producer:type=producer-metric?,*", ("kafka.producer", "producer-metrics"), True),
        ("kafka.producer:client-id=*,*", ("kafka.producer", "producer-metrics"), True),
    ],
)
def test_wildcards_match_any_bean(pattern: str, kind: tuple[str, str], *, concerned: bool) -> None:
    assert _is_of(pattern, frozenset({kind})) is concerned


class FakeServer:
    """Counts the requests for changes."""

    asked = 0

    def changed(self) -> frozenset[tuple[str, str]]:
        self.asked += 1
        return frozenset()


def test_families_in_a_row_share_an_answer_once() -> None:
    now, server = 100.0, FakeServer()
    cache = MBeanCache(cast("MBeanServer", server), lambda: now)
    assert cache.refresh("min_isr") == 0
    now = 100.125
    assert cache.refresh("quotas") == 0.125, "age of the shared answer"
    assert server.asked == 1
    assert cache.refresh("quotas") == 0, "scrapes of a family must not overlap"
    now = 100.5
    assert cache.refresh("tiered") == 0, "the shared answer is too old"
    assert server.asked == 3
