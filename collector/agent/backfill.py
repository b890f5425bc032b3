"""Import of a broker's past from Prometheus, with the encoder and delivery of the agent.

The past is read in parts of a few hours. Each scrape of Prometheus becomes a scrape of that instant
in a spool of the import. Batches are delivered as an agent's batches are, so an interrupted import
continues and delivers nothing twice.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import dropwhile, islice
from typing import Final

from deltalake import QueryBuilder

from collector.agent.scrape_attempt import Scraper
from collector.config.schema import Config
from collector.delivery.bronze_table import BronzeTable
from collector.delivery.delivery import Delivery
from collector.delivery.store import of_lake
from collector.errors import SourceError
from collector.model import Notice, Scrape, Series
from collector.sources.prometheus.api import PrometheusApi
from collector.sources.prometheus.history import NO_PAGE, PastSource, Scrapes, Span, scrapes
from collector.spool.recorder import Recorder
from collector.spool.spool import Spool
from lakehouse import tables

EVENT: Final = "imported"
"""Event kind that names the Prometheus server of an import. Agents do not write it."""
_REACHED: Final = "imported until"  # key in the spool
_WAITING: Final = 64  # batches of one delivery
_AT_ONCE: Final = 100  # scrapes of one transaction
_LEAST_STEPS: Final = 4  # of an interval that is worth reading
_NO_END_US: Final = 1 << 62
_DAY_US: Final = 86_400_000_000


@dataclass
class Past:
    """Import of one broker: its source, its destination and its counts.

    Attributes:
        api: Prometheus.
        selector: Matchers that select the broker's target.
        sources: One source per family.
        step_us: Minimum time between two scrapes.
        spool: Spool of this import.
        recorder: Recorder of that spool.
        delivery: Delivery of that spool.
        read: Recorded scrapes of all families.
        failed: Failed scrapes.
        brought: Scrapes with readings.
        holes: Parts without a scrape in Prometheus.
        why: Error of the last failed scrape.
        left_out_us: Skipped time: it was in the lake, or an agent covers it.
        day: Last day (since the epoch) with an event ``imported``.
    """

    api: PrometheusApi
    selector: str
    sources: tuple[PastSource, ...]
    step_us: int
    spool: Spool
    recorder: Recorder
    delivery: Delivery
    read: int = 0
    failed: int = 0
    brought: int = 0
    holes: int = 0
    why: str = ""
    left_out_us: int = 0
    day: int = 0

    def run(
        self, span: Span, seen: Callable[[], Iterable[Span]], progress: Callable[[int], None]
    ) -> None:
        """Import an interval without the time that the lake has.

        Args:
            span: Start and end (µs since the epoch).
            seen: Returns the intervals to skip, after the spool is delivered.
            progress: Called with the end of each imported part.

        Raises:
            JmxlakeError: The import stopped. The next run continues there.
        """
        self._deliver(0)
        readers = [(source, Scraper(source, source)) for source in self.sources]
        free = list(without(span, seen(), _LEAST_STEPS * self.step_us))
        self.left_out_us = span[1] - span[0] - sum(end - start for start, end in free)
        for start_us, end_us in free:
            reached_us = max(start_us, int(self.spool.recall(_REACHED) or 0))
            first_us = -(-reached_us // self.step_us) * self.step_us
            # One step more, because the last scrape shows there.
            for part in self.api.spans(first_us, end_us + self.step_us, self.step_us):
                after_us = max(part[0] - self.step_us, start_us - 1)
                self._part(part, (after_us, end_us), readers)
                progress(part[1])
            if first_us < end_us:
                self.recorder.flush(end_us)
        self._deliver(0)

    def _part(self, part: Span, between: Span, readers: list[tuple[PastSource, Scraper]]) -> None:
        found = scrapes(self.api, self.selector, part, self.step_us, between)
        if not self.recorder.recorded_until_us(self.sources[0].family.name):
            before = dropwhile(lambda mark: not mark.target, found.marks)
            found = found._replace(marks=list(before))  # the target may be newer than the interval
        self.holes += not any(mark.target for mark in found.marks)
        if any(mark.target for mark in found.marks):
            for source, scraper in readers:
                attempts = self._attempts(source, scraper, found)
                while some := list(islice(attempts, _AT_ONCE)):
                    self._check(source, some)
                    self.recorder.record(*some)
        self.recorder.seal(part[1])
        self.spool.remember(_REACHED, str(min(part[1], between[1])))
        self._deliver(_WAITING)

    def _check(self, source: PastSource, some: list[Scrape]) -> None:
        """Check the first pages before they are recorded: no recorded time is read twice.

        Raises:
            SourceError: None of the pages can be parsed.
        """
        first = not self.recorder.recorded_until_us(source.family.name)
        errors = (scrape.error or "" for scrape in some if scrape.answer is None)
        reasons = [why for why in errors if not why.endswith(NO_PAGE)]
        if first and reasons and not any(scrape.answer for scrape in some):
            raise SourceError(f"{source.family.name}: import failed: {reasons[-1]}")

    def _attempts(self, source: PastSource, scraper: Scraper, found: Scrapes) -> Iterator[Scrape]:
        """Yield the scrapes. The first one of a day with readings gets an event ``imported``."""
        # The encoder rejects earlier scrapes, but it cannot detect that the last one is the same.
        last_us = self.recorder.recorded_until_us(source.family.name)
        for mark in source.pages(found.marks, self.step_us):
            if mark.asked_us == last_us:
                continue
            attempt = scraper.attempt(source.family, found.interval_us)
            self.read += 1
            self.failed += attempt.outcome != "ok"
            self.brought += attempt.answer is not None
            self.why = (
                (attempt.error if attempt.answer else None) or self.why or attempt.error or ""
            )
            if attempt.answer is not None and (day := attempt.answered_us // _DAY_US) > self.day:
                self.day = day
                notice = Notice(EVENT, Series(""), None, self.api.where)
                attempt = replace(attempt, answer=replace(attempt.answer, notices=(notice,)))
            yield attempt

    def _deliver(self, least: int) -> None:
        """Deliver all batches if there are at least so many."""
        if self.spool.depth().batches >= least:
            while self.delivery.deliver_next():
                pass


def without(span: Span, seen: Iterable[Span], least_us: int) -> Iterator[Span]:
    """Yield the parts of an interval outside others, if they have a minimum length."""
    start_us, end_us = span
    for from_us, to_us in [*sorted(seen), (end_us, end_us)]:
        if min(from_us, end_us) - start_us >= least_us:
            yield start_us, min(from_us, end_us)
        start_us = max(start_us, to_us)


def seen(config: Config, families: Iterable[str]) -> list[Span]:
    """Return the intervals in which the lake has scrapes of a broker's families.

    The interval of an agent has no end, because it may have undelivered scrapes. A writer without
    an event ``imported`` is an agent.

    Raises:
        LakeError: The lake cannot be read.
    """
    source = config.source
    mine = f"cluster = {_text(str(source.cluster))} AND source = {_text(source.name)}"
    query = f"""
        SELECT CAST(s.start AS BIGINT), CAST(s."end" AS BIGINT), p.agent IS NULL
        FROM (SELECT start, "end", agent FROM scrapes WHERE {mine}
              AND family IN ({", ".join(map(_text, families))})) s
        LEFT JOIN (SELECT DISTINCT agent FROM events
                   WHERE {mine} AND kind = {_text(EVENT)}) p ON p.agent = s.agent"""  # noqa: S608 - of literals
    builder, options = QueryBuilder(), of_lake(config.lake)
    for table in (tables.SCRAPES, tables.EVENTS):
        builder.register(
            table.name, BronzeTable(config.lake.path, table, options).load_for_reading()
        )
    found, newest_us = list[Span](), 0
    for batch in builder.execute(query):
        columns = (column.to_pylist() for column in batch.columns)
        for start, end, of_agent in zip(*columns, strict=True):
            found.append((start, end))
            newest_us = max(newest_us, end if of_agent else 0)
    return [*found, (newest_us, _NO_END_US)] if newest_us else found


def _text(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
