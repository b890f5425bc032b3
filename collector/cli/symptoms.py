"""Current symptoms of a broker, and the screen of ``top``: as many as it has room for, worst first.

Times are monotonic seconds. A family without a recent scrape is unknown, never healthy.
"""

import math
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from textwrap import wrap
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.text import Text

from collector.agent.plan import Task
from collector.catalogue import Family
from collector.cli.format import amount, ranges, span, styled, subject
from collector.encoding.expired_offsets import HIGH, LOW, NonConsumed, add_up, increases
from collector.model import Identity, Scrape, Series
from lakehouse.tables import MAX_GAP_INTERVALS
from lakehouse.tables.error_text import printable

SYMPTOMS: Final = {
    "kafka.partition.leaderless": ("no leader", ""),
    "kafka.controller.offline_partitions": ("no leader", "in the cluster"),
    "kafka.partition.under_min_isr": ("under min ISR", ""),
    HIGH: ("lost unread", ""),
    "kafka.controller.fenced_brokers": ("fenced", "in the cluster"),
    "kafka.cluster.node.fenced": ("fenced", ""),
    "kafka.client.produce.throttle_time": ("throttled", "produce"),
    "kafka.client.fetch.throttle_time": ("throttled", "fetch"),
    "kafka.client.request.throttle_time": ("throttled", "request"),
    "kafka.client.controller_mutation.throttle_time": ("throttled", "topic changes"),
    "kafka.producer.produce_throttle_time.avg": ("throttled", "produce"),
    "kafka.consumer.fetch_throttle_time.avg": ("throttled", "fetch"),
    "kafka.topic.remote_copy_lag.bytes": ("lagging", "copy to tier"),
    "kafka.topic.remote_delete_lag.segments": ("lagging", "delete in tier"),
    "kafka.partition.upload_lag.bytes": ("lagging", "copy to tier"),
    "kafka.partition.delete_lag.bytes": ("lagging", "delete in tier"),
    "kafka.partition.delete_failed.segments": ("lagging", "failed deletions"),
    "kafka.partition.upload_tier_lag": ("lagging", "copy to tier"),
    "kafka.partition.delete_tier_lag": ("lagging", "delete in tier"),
}
"""Kind and variant of the symptom of each metric that is bad above zero, worst first."""
KINDS: Final = tuple(dict.fromkeys(kind for kind, _ in SYMPTOMS.values()))
_FOR_ALL: Final = ("no leader", "fenced")
"""Kinds that two brokers report for all brokers, through the Admin API."""
_REPORTERS: Final = "kafka.cluster.node.fenced"
"""Metric that only the two reporting brokers have series of."""
NOT_YET: Final = "not scraped yet"
_STYLES: Final = dict(
    zip(KINDS, ("bold red", "red", "bold magenta", "magenta", "yellow", "cyan"), strict=True)
)
_WIDE: Final = 60  # minimum columns for long labels
_PART: Final = 3  # unknown families use at most a third of the lines
_GAP: Final = "   "
Row = tuple[int, str, tuple[str, str, str, str]]


class Symptom(NamedTuple):
    """A current problem of one series.

    Attributes:
        kind: One of ``KINDS``.
        word: Variant of the kind. Can be empty.
        series: The series.
        value: The value, or its upper bound, in the unit of the metric.
        unit: UCUM unit of the value.
        least: Lower bound of the value. None if the value is exact.
        since: Time of the first scrape that showed it.
        at_first_look: True if the first scrape showed it, so that it started before ``since``.
    """

    kind: str
    word: str
    series: Series
    value: float
    unit: str
    since: float
    at_first_look: bool = False
    least: float | None = None


class Unknown(NamedTuple):
    """A family without a recent scrape, the reason in one line, and its start."""

    family: str
    why: str
    since: float


class State(NamedTuple):
    """The state of all families at one time.

    Attributes:
        identity: Identity of the source. None before the first response.
        counts: Number of symptoms by kind; ``?``: unknown, ``-``: other brokers report it.
        symptoms: Symptoms, worst first.
        unknown: Families without a recent scrape.
        blind: True if no family has a recent scrape.
    """

    identity: Identity | None
    counts: Mapping[str, str]
    symptoms: Sequence[Symptom]
    unknown: Sequence[Unknown]
    blind: bool


@dataclass(slots=True)
class _Track:
    """The state of one family.

    ``until`` is the time at which the last response expires; ``why`` is a reason if it has.
    """

    family: Family
    max_gap: float
    seen: float
    until: float = -math.inf
    why: str = NOT_YET
    symptoms: dict[Series, Symptom] = field(default_factory=dict)
    reports_for_all: bool = False
    offsets: NonConsumed = field(default_factory=NonConsumed)
    lost: dict[Series, float] = field(default_factory=dict)
    """Records that groups lost since the first response."""


class Board:
    """The symptoms of all families, with their start. It is thread-safe.

    Args:
        tasks: All tasks.
        now: The start time.

    Attributes:
        tasks: Tasks of families with symptoms.
    """

    def __init__(self, tasks: Sequence[Task], now: float) -> None:
        self.tasks = [task for task in tasks if kinds_of(task.family)]
        self._lock = threading.Lock()
        self._identity: Identity | None = None
        self._tracks = {
            task.read: _Track(task.family, task.interval_us / 1e6 * MAX_GAP_INTERVALS, now)
            for task in self.tasks
        }

    def read(self, task: Task) -> None:
        """Scrape a family now."""
        self.take(task.scraper.attempt(task.family, task.interval_us), time.monotonic())

    def take(self, scrape: Scrape, now: float) -> None:
        """Update the state of a family from a scrape."""
        with self._lock:
            if scrape.identity is not None and scrape.identity.kafka_version:
                self._identity = scrape.identity
            track = self._tracks[scrape.source, scrape.family]
            looked = now <= track.until
            # A symptom after an interval without responses starts now.
            before = track.symptoms if looked else {}
            track.symptoms = {}
            if scrape.answer is None or scrape.outcome != "ok":
                track.until, track.why = -math.inf, scrape.error or scrape.outcome
                return
            if (offsets := scrape.answer.offsets) is not None:
                for rises in increases(track.offsets.advance(offsets, after_gap=not looked)):
                    add_up(track.lost, rises)
            units = {metric.name: metric.unit for metric in track.family.metrics}
            readings = (reading.values for reading in scrape.answer.readings)
            for series, value in chain(track.lost.items(), *(one.items() for one in readings)):
                kind, word = SYMPTOMS.get(series.metric, ("", ""))
                if kind and value is not None and value > 0:
                    is_loss, unit = series in track.lost, units[series.metric]
                    new = Symptom(kind, word, series, 0, unit, now, not looked and not is_loss)
                    low = track.lost.get(series._replace(metric=LOW), 0.0) if is_loss else None
                    known = before.get(series, new)
                    track.symptoms[series] = known._replace(value=value, least=low)
            track.reports_for_all = any(
                reading.metric == _REPORTERS and bool(reading.zeros or reading.values)
                for reading in scrape.answer.readings
            )
            track.seen, track.until = now, now + track.max_gap
            track.why = "the last response is too old"

    def state(self, now: float) -> State:
        """Return all symptoms and the unknown families."""
        with self._lock:
            tracks = self._tracks.values()
            known = [track for track in tracks if now <= track.until]
            several = len({source for source, _ in self._tracks}) > 1
            unknown = [
                Unknown(f"{source} {name}" if several else name, track.why, track.seen)
                for (source, name), track in self._tracks.items()
                if now > track.until
            ]
            counts = {kind: count for kind in KINDS if (count := _count(kind, tracks, now))}
            symptoms = sorted(_symptoms(known).values(), key=_severity)
            return State(self._identity, counts, symptoms, unknown, bool(tracks) and not known)


def _symptoms(tracks: Iterable[_Track]) -> dict[Series, Symptom]:
    """Return one symptom per series: the highest value that a source reports."""
    found: dict[Series, Symptom] = {}
    for series, symptom in chain.from_iterable(track.symptoms.items() for track in tracks):
        known = found.get(series, symptom)
        if known is symptom or known.value < symptom.value:
            found[series] = symptom._replace(since=min(symptom.since, known.since))
    return found


def kinds_of(family: Family) -> tuple[str, ...]:
    """Return the kinds of symptoms that a family's metrics can show."""
    found = {SYMPTOMS[metric.name][0] for metric in family.metrics if metric.name in SYMPTOMS}
    return tuple(kind for kind in KINDS if kind in found)


def _count(kind: str, tracks: Collection[_Track], now: float) -> str | None:
    """Return the number of symptoms, as in ``State``; None if no family has the kind."""
    reporting = [track for track in tracks if kind in kinds_of(track.family)]
    if not reporting or any(now > track.until for track in reporting):
        return "?" if reporting else None
    number = sum(symptom.kind == kind for symptom in _symptoms(reporting).values())
    shared = [track.family for track in reporting if track.family.via == "admin"]
    if number or kind not in _FOR_ALL or all("broker" not in family.roles for family in shared):
        return f"{number:,}"
    reporters = [
        track for track in tracks if any(m.name == _REPORTERS for m in track.family.metrics)
    ]
    if not reporters or any(now > track.until for track in reporters):
        return "?"
    return "0" if any(track.reports_for_all for track in reporters) else "-"


def _severity(symptom: Symptom) -> tuple[int, str, float, float, str, int, str]:
    rank, series = KINDS.index(symptom.kind), symptom.series
    number = -1 if series.partition is None else series.partition
    topic = series.topic or ""
    return rank, symptom.unit, -symptom.value, symptom.since, topic, number, str(series)


def view(state: State, now: float, heading: tuple[str, str], size: tuple[int, int]) -> Group:
    """Return the whole screen.

    Args:
        state: The symptoms and unknown families.
        now: The end of durations (monotonic seconds).
        heading: Left and right text of the first line.
        size: Columns and lines. 0 lines: no limit.
    """
    width, height = size
    lines = [_heading(*heading, width), *_counts(state.counts, width)]
    lines += [*_unknown(state.unknown, now, width, height), Text()]
    if state.symptoms:
        lines += _table(state.symptoms, now, width, height and max(1, height - len(lines) - 2))
    elif not state.unknown:
        lines.append(styled("No problems in these families.", "green"))
    return Group(*lines)


def _heading(left: str, right: str, width: int) -> Text:
    text = styled(left, "bold")
    text.truncate(max(1, width - len(right) - 1), overflow="ellipsis", pad=True)
    return text.append(f" {right}", "dim")


def _counts(counts: Mapping[str, str], width: int) -> list[Text]:
    """Return the number of symptoms of each kind, without splitting a kind from its number."""
    lines = [Text()]
    for kind, count in counts.items():
        label = f"{kind} {count}"
        if len(lines[-1]) + len(_GAP) + len(label) > width:
            lines.append(Text())
        style = {"?": "bold red", "-": "dim", "0": "dim"}.get(count, _STYLES[kind])
        lines[-1].append(_GAP if lines[-1] else "").append(label, style)
    return lines


def _unknown(unknown: Sequence[Unknown], now: float, width: int, height: int) -> list[Text]:
    """Return a paragraph per reason, or a line per reason if they do not fit."""
    causes: dict[str, list[Unknown]] = {}
    for family in unknown:
        causes.setdefault(family.why, []).append(family)
    lines = [
        f"unknown {', '.join(each.family for each in families)} for"
        f" {span(now - min(each.since for each in families))}: {printable(why)}"
        for why, families in causes.items()
    ]
    if height:  # the reader of a pipe needs whole lines
        most = max(1, height // _PART)
        wrapped = [part for line in lines for part in wrap(line, width, break_on_hyphens=False)]
        lines = wrapped if len(wrapped) <= most else lines[:most]
    texts = [styled(line, "bold red") for line in lines]
    for text in texts if height else ():
        text.truncate(width, overflow="ellipsis")
    return texts


def _table(symptoms: Sequence[Symptom], now: float, width: int, most: int) -> list[Text]:
    """Return a header, at most ``most`` rows (0: all), and the number of hidden symptoms."""
    rows = _rows(symptoms, now, wide=width >= _WIDE)
    shown = rows[:most] if most else rows
    rest = len(symptoms) - sum(stands_for for stands_for, _, _ in shown)
    cells = [row for _, _, row in shown]
    value_title = "Value" if any(row[2] for row in cells) else ""
    cells.insert(0, ("Problem", "Subject", value_title, "Age"))
    what, of, value, since = (max(map(cell_len, column)) for column in zip(*cells, strict=True))
    if most:
        of = min(of, max(1, width - what - value - since - 6))
    lines = []
    for style, row in zip(["bold", *(style for _, style, _ in shown)], cells, strict=True):
        text = styled(set_cell_size(row[0], what), style)
        text.append(f"  {_middle(row[1], of)}  {row[2]:>{value}}  {row[3]:>{since}}")
        lines.append(text)
    return [*lines, styled(f"and {rest:,} more", "dim")] if rest else lines


def _rows(symptoms: Sequence[Symptom], now: float, *, wide: bool) -> list[Row]:
    """Return rows with their style and their number of symptoms.

    Partitions of a topic with the same symptom and start share one row.
    """

    def together(symptom: Symptom) -> object:
        shared = (
            symptom.kind, symptom.word, symptom.since, symptom.at_first_look, symptom.series.topic
        )  # fmt: skip
        is_grouped = symptom.unit == "1" and symptom.series.partition is not None
        return shared if is_grouped else symptom

    rows = []
    for _, group in groupby(symptoms, key=together):
        first, *others = group
        number = 1 + len(others)
        if others:
            partitions = ranges(symptom.series.partition or 0 for symptom in (first, *others))
            of = f"{first.series.topic}-{{{partitions}}}"
            value = f"{number:,} partitions" if wide else f"{number:,}x"
        else:
            of = subject(first.series) or first.word
            value = "" if first.unit == "1" else amount(first.value, first.unit)
            if first.least is not None and first.least < first.value:
                value = f"{first.least:,.0f} to {value}"
        what = f"{first.kind} {first.word}".rstrip() if wide else first.kind
        since = f"{'>' if first.at_first_look else ''}{span(now - first.since)}"
        rows.append((number, _STYLES[first.kind], (what, printable(of), value, since)))
    return rows


def _middle(text: str, width: int) -> str:
    """Return a text in ``width`` cells, without its middle: the end has the partition."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    tail = text[len(text) - (width - 1) // 2 :]
    head = set_cell_size(text, max(0, width - 1 - cell_len(tail)))
    return set_cell_size(f"{head}…{tail}", width)
