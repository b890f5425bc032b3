"""``jmxlake-agent import prometheus``: history from before the agent was installed.

A broker's past is read from Prometheus in parts of a few hours, and goes through the encoder and
delivery of the agent. Each scrape of Prometheus becomes a scrape of that instant in a spool of the
import. Batches are delivered as an agent's batches are, so an interrupted import continues and
delivers nothing twice.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import dropwhile, islice
from pathlib import Path
from typing import Any, Final

import click
from deltalake import QueryBuilder

from collector.agent import plan
from collector.agent.scrape_attempt import Scraper
from collector.catalogue import load
from collector.cli.command import guarded
from collector.config.loader import parse
from collector.config.schema import Config
from collector.delivery.bronze_table import BronzeTable
from collector.delivery.delivery import Delivery
from collector.delivery.store import of_lake
from collector.errors import ConfigError, SourceError
from collector.model import Notice, Scrape, Series
from collector.sources.base.identity import Expected
from collector.sources.prometheus import exporter_rules, past_scrapes
from collector.sources.prometheus.api import PrometheusApi
from collector.sources.prometheus.past_scrapes import NO_PAGE, PastSource, Scrapes, Span, scrapes
from collector.sources.transports import Prometheus
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
_FAMILIES: Final = ("min_isr", "quotas", "tiered", "requests")
_OF_SECTION: Final = ("rules_file", "kafka_version", "user", "password_file", "ca_file", "timeout")
_WHERE: Final = "import prometheus"
_INSTANT: Final = click.DateTime(
    [f"%Y-%m-%d{rest}" for rest in ("", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S%z", "T%H:%M:%S.%f%z")]
)


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
        filled: Scrapes with readings.
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
    filled: int = 0
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
            self.filled += attempt.answer is not None
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


@click.group(name="import")
def import_() -> None:
    """Import history from before the agent was installed."""


@import_.command
@click.argument("url")
@click.argument("lake")
@click.option("--from", "start", type=_INSTANT, metavar="TIME", required=True, help="Start (UTC).")
@click.option(
    "--to", "end", type=_INSTANT, metavar="TIME",
    help="End (UTC), usually the agent's first start. Default: now.",
)  # fmt: skip
@click.option("--cluster", required=True, help="Kafka cluster ID, which exporters do not provide.")
@click.option("--match", default="", help="Label matchers of the targets, such as 'job=\"kafka\"'.")
@click.option(
    "--label", default="instance", show_default=True, help="Label that identifies a broker."
)
@click.option(
    "--node", multiple=True, metavar="VALUE=ID",
    help="Broker ID for a label value, if no app-info metric exists. Repeatable.",
)  # fmt: skip
@click.option(
    "--family", multiple=True, default=_FAMILIES, show_default=True,
    help="Family to import. Repeatable.",
)  # fmt: skip
@click.option("--rules-file", type=click.Path(), help="jmx_exporter configuration file.")
@click.option("--kafka-version", help="Kafka version of the brokers, such as 4.1.0.")
@click.option(
    "--step", default="15s", show_default=True, help="Minimum time between two imported scrapes."
)
@click.option("--user", help="User name.")
@click.option("--password-file", type=click.Path(), help="File that contains only the password.")
@click.option("--ca-file", type=click.Path(), help="CA bundle (PEM) for https.")
@click.option("--timeout", default="60s", show_default=True, help="Timeout per request.")
@click.option(
    "--options-file", type=click.Path(), help="File with delta-rs storage options (YAML)."
)
@click.option("--tenant", help="Mimir tenant (X-Scope-OrgID).")
@click.option(
    "--state", type=click.Path(),
    help="Folder for the state of an interrupted import. Default: ~/.local/state/jmxlake.",
)  # fmt: skip
def prometheus(url: str, lake: str, **options: Any) -> None:
    """Import from Prometheus, Thanos or Mimir.

    URL is the address of the API. An interrupted import continues if the same command is run again.
    Hours that LAKE already has are skipped.
    """
    made = partial(_config, url, lake, options)
    guarded(_WHERE, lambda config: _run(config, options), made=made)


def _config(url: str, lake: str, options: Mapping[str, Any], node: str = "0") -> Config:
    """Return the configuration that an agent of one broker would have."""
    known = {
        family.name
        for family in load().families
        if family.via == "jmx" and "broker" in family.roles
    }
    if unknown := sorted({*options["family"]} - known):
        raise ConfigError(f"--family {unknown[0]}: unknown. Use one of {', '.join(sorted(known))}")
    home = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    state = Path(options["state"] or f"{home}/jmxlake").absolute()
    identity = [options["cluster"], node, lake, options["start"], sorted(options["family"])]
    name = hashlib.sha256(repr(identity).encode()).hexdigest()[:12]
    exporter = {"url": url, **{key: options[key] for key in _OF_SECTION if options[key]}}
    raw = {
        "source": {"node": node, "cluster": options["cluster"], "prometheus": exporter},
        "lake": {"path": lake, "options_file": options["options_file"]},
        "spool": {"path": f"{state}/import-{node}-{name}.db"},
        "families": {
            family: {"interval": options["step"], "enabled": family in options["family"]}
            for family in known
        },
    }
    return parse(raw, _WHERE)


def _run(config: Config, options: Mapping[str, Any]) -> None:
    section, now_us = config.source.prometheus, time.time_ns() // 1000
    span = _us(options["start"]), min(_us(options["end"]) or now_us, now_us)
    if section is None or not 0 <= span[0] < span[1]:
        raise ConfigError("--to must be after --from, and --from must be between 1970 and now")
    given = dict(pair.rpartition("=")[::2] for pair in options["node"])
    rules, match = exporter_rules.read(section.rules_file), options["match"]
    with closing(PrometheusApi(section, options["tenant"])) as api:
        empty = list[str]()
        found = past_scrapes.brokers(api, rules, match, options["label"], given, span)
        for number, (value, node) in enumerate(found.items(), 1):
            label = f"import: {number} of {len(found)} brokers"
            selector = ",".join(
                filter(None, (match, past_scrapes.matcher(options["label"], value)))
            )
            of_broker = _config(section.url, config.lake.path, options, node)
            empty += _import(of_broker, section, api, selector, span, label)
        if empty:
            raise SourceError("; ".join(empty))


def _in_part(past: Past) -> str:
    """Return a note about incomplete scrapes; empty if all were complete."""
    parts = past.filled + past.failed - past.read
    return f", {parts:,} of them incomplete ({past.why})" if parts else ""


def _us(at: datetime | None) -> int:
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6) if at else 0


def _import(
    config: Config, section: Prometheus, api: PrometheusApi, selector: str, span: tuple[int, int],
    label: str,
) -> list[str]:  # fmt: skip
    """Import the history of one broker; return an error if nothing was imported."""
    source, catalogue = config.source, plan.catalogue(config)
    families = plan.families(config, catalogue)
    expected = Expected(source.role, str(source.node), source.cluster)
    config.spool.path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as resources:
        spool = resources.enter_context(Spool(config.spool.path, config.spool.max_size))
        recorder = Recorder(spool, plan.scope(config, catalogue), config.window.us)
        sources = tuple(
            PastSource(expected, section, api, selector, family) for family, _ in families
        )
        lake = config.lake
        to_lake = Delivery(lake.path, of_lake(lake), spool, recorder, lambda: catalogue)
        past = Past(api, selector, sources, families[0][1], spool, recorder, to_lake)
        bar = resources.enter_context(click.progressbar(
            length=(span[1] - span[0]) // 1_000_000, label=label, file=sys.stderr,
        ))  # fmt: skip
        past.run(
            span,
            lambda: seen(config, [family.name for family, _ in families]),
            lambda at_us: bar.update((at_us - span[0]) // 1_000_000 - bar.pos),
        )
    click.echo(
        f"{source.name}: {past.filled:,} of {past.read:,} scrapes had samples"
        f"{_in_part(past)};"
        f" skipped {past.left_out_us / 3.6e9:,.2f} of {(span[1] - span[0]) / 3.6e9:,.2f} h"
    )
    if past.filled or not (past.failed or (past.holes and not past.left_out_us)):
        return []
    why = past.why or "no scrapes in Prometheus for that time. Correct --from, --to or --match"
    return [f"{source.name}: no data imported: {why}"]
