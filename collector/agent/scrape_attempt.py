"""Scrape of one family from one source, and its outcome."""

from dataclasses import replace
from typing import Final

from collector.agent.removed_values import HeldUploads, PartitionCounts, StaleValues
from collector.catalogue import Family
from collector.errors import SourceError
from collector.model import Answer, Clock, Identity, Outcome, Reading, Scrape, Source
from collector.sources.base.hidden_names import HiddenNames
from collector.telemetry import logs
from lakehouse.tables import FLAG_DISTRIBUTION
from lakehouse.tables.error_text import unexpected

_ERROR_LENGTH: Final = 500


class Scraper:
    """Scrapes one source on one thread, one family at a time.

    Args:
        source: The source.
        clock: Clock of all instants.
        hidden: Names that must not leave the host.
        name: Name of the source in the lake. Empty for the only source of an agent.
        held: Topics that hold uploads back. All scrapers of a broker share them.
    """

    def __init__(
        self,
        source: Source,
        clock: Clock,
        hidden: HiddenNames | None = None,
        name: str = "",
        held: HeldUploads | None = None,
    ) -> None:
        self._source, self._name = source, name
        self._clock = clock
        self._hidden = hidden
        self._stale = StaleValues()
        self._held = held or HeldUploads(by_admin=False)
        self._counts = PartitionCounts()

    def attempt(self, family: Family, interval_us: int) -> Scrape:
        """Scrape a family once. Errors are in the outcome."""
        asked_us = self._clock.wall_us()
        tick_us = asked_us - asked_us % interval_us
        outcome: Outcome = "ok"
        answer: Answer | None = None
        identity: Identity | None = None
        error: str | None = None
        try:
            identity = self._source.identify()
            answer = as_catalogued(self._source.read(family), family)
            answer = self._held.learned_from(self._stale.removed_from(answer, family))
            answer = self._held.removed_from(answer, family, identity.kafka_version)
            asked_us -= answer.listed_us
        except SourceError as failure:
            outcome, error = failure.outcome, _line(str(failure))
        except Exception as failure:  # noqa: BLE001 - a failed scrape is data
            outcome, error = "error", _line(unexpected(failure))
            logs.trace(failure)
            self._source.close()
        answered_us = self._clock.wall_us()
        if answer is not None and identity is not None:
            version = identity.kafka_version
            answer, error = self._counts.checked(answer, family, version, asked_us, answered_us)
            outcome = "ok" if error is None else "error"
        if self._hidden is not None:
            answer = answer and self._hidden.answer(answer)
            error = error and self._hidden.error(error)
        exact = answer is not None and bool(answer.moments)  # moments have exact instants
        if answer is not None and not exact and answered_us - asked_us > interval_us:
            outcome, answer = "timeout", None
            age = f"{(answered_us - asked_us) / 1e6:,.0f} s"
            error = (
                f"the values of the response are up to {age} old, which is longer"
                " than the interval; check whether the source or this host is overloaded, or raise"
                f" families.{family.name}.interval"
            )
        if answered_us < asked_us and not exact:
            outcome, answer, answered_us = "clock_step", None, asked_us
            error = "the clock was set back during the scrape"
        return Scrape(
            family.name, tick_us, asked_us, answered_us, interval_us, outcome, identity, answer,
            error, source=self._name,
        )  # fmt: skip

    def close(self) -> None:
        """Close the connection."""
        self._source.close()


def as_catalogued(answer: Answer, family: Family) -> Answer:
    """Return the response without values below the catalogue's minimum, and with its flags."""
    spread = {metric.name for metric in family.metrics if metric.percentiles}
    least = {metric.name: metric.above for metric in family.metrics if metric.above is not None}
    if not spread and not least:
        return answer

    def recorded(reading: Reading) -> Reading:
        flags = (*reading.flags, FLAG_DISTRIBUTION) if reading.metric in spread else reading.flags
        above = least.get(reading.metric)
        if above is None:
            return replace(reading, flags=flags)
        values = {series: n for series, n in reading.values.items() if n is None or n > above}
        return replace(reading, zeros=frozenset(), values=values, flags=flags)

    return answer.mapped(lambda readings: tuple(map(recorded, readings)))


def skipped(family: Family, interval_us: int, tick_us: int, source: str = "") -> Scrape:
    """Return the skipped scrape of a tick at which the previous scrape was running."""
    return Scrape(
        family.name, tick_us, tick_us, tick_us + 1, interval_us, "skipped",
        error="the previous scrape was still running", source=source,
    )  # fmt: skip


def _line(error: str) -> str:
    line = " ".join(error.split())[:_ERROR_LENGTH]
    return line.encode(errors="backslashreplace").decode()  # it can contain foreign text
