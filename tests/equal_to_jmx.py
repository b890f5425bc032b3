"""Whether a source gives what JMX gives of the same broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from collector import catalogue
from collector.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.model import Answer, Series, Source

CATALOGUE: Final = catalogue.load()
MIN_ISR: Final = CATALOGUE.family("min_isr")
# Clients in a broker's JVM are no broker's: they have their own reporters of metrics.
# Families that are off by default have counters that appear and rise between two ways of reading.
BEANS: Final = [
    one
    for one in CATALOGUE.families
    if one.via == "jmx" and "broker" in one.roles and (one.enabled or one.name == "log_offsets")
]
# As one family: jmxquery starts a JVM for every question.
EVERYTHING: Final = replace(
    BEANS[0], name="everything", metrics=tuple(one for family in BEANS for one in family.metrics)
)

_ATTEMPTS: Final = 5


def values_of(answer: Answer) -> dict[Series, float | None]:
    found: dict[Series, float | None] = {}
    for one in answer.readings:
        assert not one.zeros & one.values.keys()
        assert 0 not in one.values.values()
        found.update(dict.fromkeys(one.zeros, 0.0))
        found.update(one.values)
    return found


def while_no_bean_comes(read: Callable[[], tuple[Answer, Any, Answer]]) -> Any:
    """What is read, where JMX has the same beans first and last; some come late, or just then."""
    for _ in range(_ATTEMPTS):
        found = read()
        if values_of(found[0]).keys() == values_of(found[-1]).keys():
            break
    return found


def equal_to_jmx(source: Source, jmx: Source) -> set[str]:
    """The families that a source shows, whose values are those of JMX."""
    shown: list[catalogue.Family] = []
    for family in BEANS:
        try:
            source.read(family)
        except SourceError as error:
            assert "the exporter's rules hide" in str(error)  # noqa: PT017
        else:
            shown.append(family)
    source.close()  # a page may be shared by what is asked soon after
    everything = replace(
        EVERYTHING, metrics=tuple(metric for family in shown for metric in family.metrics)
    )

    def read() -> tuple[Answer, Answer, Answer]:
        return jmx.read(everything), source.read(everything), jmx.read(everything)

    before, given, again = map(values_of, while_no_bean_comes(read))
    still = {series for series, value in before.items() if again[series] == value}
    assert len(still) > 50
    assert given.keys() == before.keys()
    other = {one: (given[one], before[one]) for one in still if given[one] != before[one]}
    assert not other, other
    return {one.name for one in shown}
