"""Which patterns a bean that came or went may concern."""

from __future__ import annotations

import pytest

from collector.sources.jmx.census import _is_of


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
def test_wildcards_may_mean_any_bean(
    pattern: str, kind: tuple[str, str], *, concerned: bool
) -> None:
    assert _is_of(pattern, frozenset({kind})) is concerned
