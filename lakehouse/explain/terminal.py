"""A story as text for a terminal, a pipe or a file."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from lakehouse.core import display
from lakehouse.core.metrics import with_components
from lakehouse.core.periods import DAY_US, Span, instant, iso, length, overlap, touching, union
from lakehouse.core.subjects import is_whole
from lakehouse.report import figures
from lakehouse.report.facts.fields import bounds_in
from lakehouse.report.figures import Row, span_of
from lakehouse.report.summary import texts
from lakehouse.report.summary.lines import MARKS, STYLES, printed
from lakehouse.report.summary.opening import elapsed, period
from lakehouse.report.tables.table_spec import words

MOST: Final = 20
"""Maximum number of incidents, and of lines of changes. The JSON has all."""

_FEW: Final = 4
_GAPS: Final = 8
_NO_GAP: Final = (
    "There was no gap then. Leaders were moving, the metric was not in the responses, or its rows "
    "were rejected."
)
_NAMES: Final = 8
_NEAR_US: Final = 60_000_000
"""Elections and changes are noticed when the topology is read, once a minute."""

GOOD: Final = "·"
UNKNOWN: Final = "░"
ABSENT: Final = " "
BAD: Final = "▁▂▃▄▅▆▇█"
"""Bars by the bad share of the time; the lowest bar includes any bad time, however short."""

LEGEND: Final = f"{BAD[0]}{BAD[3]}{BAD[-1]} bad, by its share   {UNKNOWN} not known   {GOOD} good"

_OF_INSTANTS: Final = {"source_restart", "clock_step"}
"""Kinds of changes whose values are instants, in microseconds since 1970."""


def view(story: Row, *, terminal: bool | None = None, width: int | None = None) -> str:
    """Return the story with colour for a terminal, plain for anything else.

    Args:
        story: The JSON of the story, see docs/explain.md.
        terminal: Whether the output is a terminal; None looks at standard output.
        width: Columns; None: the width of the terminal, or 100 in a pipe or file.
    """
    with display.shown_in(display.zone_of(story)):
        parts = lambda columns: _parts(story, min(columns, 120))  # noqa: E731
        return printed(parts, terminal=terminal, width=width)


def _parts(story: Row, width: int) -> Iterator[RenderableType]:
    subject = ", ".join(
        f"{key.replace('_', ' ')} {figures.name(value).text}"
        for key, value in story["subject"].items()
        if key != "kind" and value is not None
    )
    cluster, frame = figures.name(story["cluster"]).text, texts.frame_of(story)
    owner = story.get("owner")
    owned = "" if owner is None else f", owner {figures.name(owner).text}"
    yield Text(f"{subject[:1].upper()}{subject[1:]} of cluster {cluster}{owned}", "bold")
    yield Text(", ".join(filter(None, (period(frame), elapsed(frame), _life(story)))), "dim")
    yield from _objectives(story)
    yield from _events(story)
    yield Text()
    yield from _timelines(story, width)
    yield from _incidents(story)
    yield from _section("Coverage", _stated(story["answers"]))
    yield from _section("Gaps", _gaps(story["gaps"], _GAPS))
    yield from _section("Changes", _changes(story))
    if story["until"]:
        until = display.day_and_time(story["until"])
        yield Text(f"\nThe story ends at {until}: the rest has too many rows.", "yellow")
    if floor := story["detection_floor_us"]:
        shortest = display.length(floor, "up")
        yield Text(f"\nIncidents shorter than {shortest} might not be observed.", "dim")


def _section(title: str, lines: Iterable[str]) -> Iterator[RenderableType]:
    if shown := [*lines]:
        yield Text(f"\n{title}", "bold")
        yield _indented("\n".join(shown))


def _indented(text: str) -> Padding:
    return Padding(Text(text), (0, 0, 0, 3))


def _life(story: Row) -> str:
    exists = story["exists"]
    if exists is None:
        return "it did not exist then"
    if (exists["from"], exists["to"]) == (story["from"], min(story["to"], story["generated_at"])):
        return ""
    return "it existed {} to {}".format(*map(display.day_and_time, exists.values()))


def _objectives(story: Row) -> Iterator[RenderableType]:
    for row in story["objectives"]:
        of_topic = story["subject"]["kind"] == "partition" != row["level"]
        title = display.line(row["title"]) + " (of its topic)" * of_topic
        unknown = f", {display.length(row['unknown_us'], 'up')} unknown" * bool(row["unknown_us"])
        status, used = row["status"], f"; {_used(row)} of its error budget used"
        attained = f"{_attained(row)}, target {display.percent(row['target'])}{unknown}"
        badge = f"{MARKS[status]} {texts.words(f'status.{status}')}", STYLES[status]
        yield Text.assemble(badge, f"  {title}: {attained}{used * (row['used'] is not None)}")
        yield from map(_indented, _details(row))


def _attained(row: Row) -> str:
    share, low, high = bounds_in(row, "attainment")
    text = display.share(share)
    if share is None or low is None or high is None or low == high:
        return text
    return f"{text} ({texts.between_shares(low, high, 2, row['target'])})"


def _used(row: Row) -> str:
    """Return the used budget; its bounds if these decide the status, as in the report."""
    if row["status"] == "uncertain":
        return texts.used_between(row["used_low"], row["used_high"])
    return texts.used(row["used"])


def _details(row: Row) -> Iterator[str]:
    """Yield how unknown time counts, what would decide an objective, and its bad windows."""
    if (policy := row["unknown_counts"]) not in {None, "interval"}:
        verdict = display.VERDICTS[display.verdict(row.get("interval_verdict"))]
        most = display.length(row.get("unknown_us") or 0, "up")
        counts = "is left out" if policy == "exclude" else f"counts as {policy}"
        yield f"unknown time (at most {most}) {counts}; counted both ways: {verdict}"
    if row["undecided_us"] is not None:
        needed = display.length(row["undecided_us"], "up")
        yield f"Undecided: met if {needed} more were known to be good."
        if row["unknown_us"] and not row["gaps"]:
            yield _NO_GAP
        yield from _gaps(row["gaps"], _FEW)
    if row["op"] != "lte" or row["threshold"]:
        # Gold has no incidents of a metric with another threshold, only windows.
        shown, left = _greatest(row["bad"], _FEW, lambda bad: bad["bad_high_us"])
        yield from (f"{_from_to(bad)} bad for {_time(bad, 'bad_us')}" for bad in shown)
        if left:
            yield f"{display.plural(left, 'time')} more: see --json"


def _events(story: Row) -> Iterator[RenderableType]:
    """Yield the events of the report that touch the subject, in its words."""
    rows, total = story["events"], story["events_in_report"]
    if rows is None:
        if story["events_reason"]:
            yield Text(f"\nEvents: {story['events_reason']}")
        return
    yield Text(f"\n{len(rows)} of the report's {display.plural(total, 'event')}", "bold")
    for row in rows:
        text = row["words"]
        yield Text.assemble(f"{row['number']}. ", (text["title"], "bold"))
        step = text["next_step"] and f"Next: {text['next_step']}"
        action = " ".join(filter(None, (text["owner"], step)))
        when = ", ".join(filter(None, (text["time"], text["used"])))
        lines = filter(None, (when, text["impact"], f"Cause: {text['cause']}", action))
        yield _indented("\n".join(lines))


def _greatest(rows: Sequence[Row], most: int, key: Callable[[Row], Any]) -> tuple[list[Row], int]:
    """Return the greatest rows in their order, and how many others there are."""
    greatest = sorted(range(len(rows)), key=lambda place: key(rows[place]), reverse=True)[:most]
    return [rows[place] for place in sorted(greatest)], len(rows) - len(greatest)


def _from_to(row: Row) -> str:
    """Return the start and the end of a row; a common day once."""
    first, last = (display.parse(row[key]) for key in ("start", "end"))
    end = display.day_and_time(row["end"])
    if display.local(first).date() == display.local(last).date():
        end = display.clock(last, seconds=True)
    return f"{display.day_and_time(row['start'])} to {end}"


def _time(row: Row, key: str) -> str:
    """Return a duration with its bounds where they differ from it."""
    found = bounds_in(row, key)
    text, bounds = figures.length(found.value), texts.exactly(found)
    return text if found.low == found.high == found.value else f"{text} ({bounds})"


def _length(row: Row) -> int:
    start, end = span_of(row)
    return end - start


def _timelines(story: Row, width: int) -> Iterator[RenderableType]:
    """Yield a line for each metric, its name before it or, on a narrow terminal, above it."""
    life = story["exists"] and span_of(story["exists"], "from", "to")
    rows = [
        (
            display.line(row["title"]),
            [span_of(one) for one in story["intervals"] if one["metric"] == row["metric"]],
            _unknown(story, row),
        )
        for row in story["answers"]
        if row["state"] != "not_applicable"
    ]
    if story["subject"]["kind"] == "source":
        rows.append(("Not observed", [*map(span_of, story["gaps"])], []))
    narrow = width < 72
    label = 0 if narrow else min(width // 3, max((len(title) for title, *_ in rows), default=0)) + 2
    drawn = _cells(span_of(story, "from", "to"), max(7, width - label))
    for title, bad, unknown in rows:
        letters = "".join(_letter(cell, life, bad, unknown) for cell in drawn)
        if narrow:
            yield Text(title)
        named = "" if narrow else display.shorten(title, max(label - 2, 30)).ljust(label)
        yield Text.assemble(named, (letters, "red" if bad else "green"))
    if line := _axis(drawn):
        yield Text(" " * label + line, "dim")
    yield Text(LEGEND, "dim")


def _cells(within: Span, width: int) -> list[Span]:
    """Return the period in at most ``width`` cells; as many each day, if it is of whole days."""
    start, end = within
    days, rest = divmod(end - start, DAY_US)
    number = width // days * days if days and not rest and width >= days else width
    return list(pairwise(start + (end - start) * at // number for at in range(number + 1)))


def _axis(cells_: Sequence[Span]) -> str:
    """Return the days below their cells; empty where there is no room for their names."""
    each = sum(1 for cell in cells_ if cell[0] < cells_[0][0] + DAY_US)
    if each == len(cells_) or len(cells_) % each:
        return ""
    for form in ("%a %-d", "%a", "%-d"):
        days = [f"{display.local(instant(cell[0])):{form}}" for cell in cells_[::each]]
        if max(map(len, days)) < each:
            return "".join(day.ljust(each) for day in days).rstrip()
    return ""


def _letter(cell: Span, life: Span | None, bad: Iterable[Span], unknown: Iterable[Span]) -> str:
    """Return the letter of a cell.

    Args:
        cell: Its span.
        life: Active period of the subject; None: not in this period.
        bad: Bad intervals.
        unknown: Unknown time.
    """
    if bad_us := _covered(cell, bad):
        return BAD[min(len(BAD) - 1, bad_us * len(BAD) // (cell[1] - cell[0]))]
    alive = life and overlap(cell, life)
    if alive is None:
        return ABSENT
    return UNKNOWN if _covered(alive, unknown) else GOOD


def _covered(cell: Span, spans: Iterable[Span]) -> int:
    return length(one for span in spans if (one := overlap(cell, span)))


def _unknown(story: Row, answer: Row) -> list[Span]:
    """Return unknown time by the objective on a metric, otherwise by any, otherwise by gaps.

    A metric without any observation is unknown in the whole period.
    """
    if answer["state"] == "not_collected" or not answer["observed_us"]:
        return [span_of(story, "from", "to")]
    every, metric = story["objectives"], answer["metric"]
    rows = [row for row in every if metric in with_components([row["metric"]])] or every
    if not rows:
        return [span_of(row) for row in story["gaps"]]
    return [span_of(span) for row in rows for span in row["unknown"]]


def _incidents(story: Row) -> Iterator[RenderableType]:
    if not story["intervals"]:
        if all(row["state"] == "good" for row in story["answers"]):
            yield Text("\n0 incidents.")
        return
    yield Text("\nIncidents", "bold")
    shown, left = _greatest(story["intervals"], MOST, _length)
    for row in shown:
        lasted = "" if row["lasted_us"] is None else f", {_time(row, 'lasted_us')}"
        title = f"{display.line(row['title'])}  {_from_to(row)}{lasted}"
        edges = (
            f"{verb} up to {display.length(row[key], 'up')} earlier"
            for verb, key in (("started", "lead_us"), ("ended", "tail_us"))
            if row[key]
        )
        parts = [display.line(part, display.NAME_LIMIT) for part in row["parts"]]
        noun = "partition" if len(parts) == 1 else "partitions"
        affected = f"{noun} {_listed(parts)}" if parts else ""
        reporters = [figures.name(source).text for source in row["sources"]]
        reported = f"reported by {_listed(reporters)}" if reporters else ""
        details = "; ".join(filter(None, (*edges, _worst(row), affected, reported)))
        yield _indented(title)
        yield Padding(Text(details), (0, 0, 0, 6))
    if left:
        yield Text(f"{display.plural(left, 'shorter incident')} more: see --json.", "dim")


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    return texts.plain(texts.listed(names, _NAMES))


def _worst(row: Row) -> str:
    """Return the worst value; a gap can hide a worse one."""
    low, high, unit = row["worst_low"], row["worst_high"], str(row["unit"])
    if (not low and high is None) or (unit == "partitions" and len(row["parts"]) == low == 1):
        return ""
    write = display.milliseconds if unit == "ms" else lambda value: display.quantity(value, unit)
    at_once = " at once" * (unit == "partitions" and row["lasted_us"] is not None)
    if high is None:
        return f"at least {write(low)}{at_once}"
    # A noun once: 12,000 to 12,431 offsets.
    least = display.count(low) if unit.startswith("{") else write(low)
    text = write(high) if low == high else f"{least} to {write(high)}"
    return text if row["lasted_us"] is None else f"at worst {text}{at_once}"


def _gaps(gaps: Sequence[Row], most: int) -> Iterator[str]:
    """Yield the longest gaps; gaps of several families of a source are one line."""
    by_source = sorted(gaps, key=lambda row: (row["source"], row["start"]))
    found = [
        {**rows[0], "end": max(row["end"] for row in rows), "families": rows}
        for _, own in groupby(by_source, key=lambda row: row["source"])
        for rows in touching(own, lambda row: (row["start"], row["end"]))
    ]
    shown, left = _greatest(sorted(found, key=lambda row: row["start"]), most, _length)
    for row in shown:
        families = sorted({display.line(one["family"]) for one in row["families"]})
        family = families[0] if len(families) == 1 else f"{len(families)} families"
        failed = next((one for one in row["families"] if one["error"]), row)
        error = f": {_reason(failed['error'])}" if failed["error"] else ""
        reason = f"{words('outcome', failed['outcome'])}{error}"
        lasted, source = display.length(_length(row)), figures.name(row["source"]).text
        yield f"{display.day_and_time(row['start'])}  {source}, {family}: {lasted}, {reason}"
    if left:
        yield f"{display.plural(left, 'shorter gap')} more: see --json"


def _reason(error: str) -> str:
    """Return the first part of an error. Advice after it is for the agent's operator."""
    return display.line(error.partition(";")[0])


def _changes(story: Row) -> Iterator[str]:
    """Yield changes, a line for each kind, source and instant; near bad time first."""
    bad = [span_of(row) for row in story["intervals"]]
    bad += [span_of(part) for row in story["events"] or () for part in row["parts"]]
    near = union((start - _NEAR_US, end + _NEAR_US) for start, end in bad)
    same = groupby(story["changes"], key=lambda row: (row["at"], row["source"], row["kind"]))
    lines = [{"at": key[0], "rows": [*rows]} for key, rows in same]

    def is_near(line: Row) -> bool:
        at, _ = span_of(line, "at", "at")
        return any(start <= at < end for start, end in near)

    shown, _ = _greatest(lines, MOST, is_near)
    yield from (_change(line["rows"]) for line in shown)
    if left := len(story["changes"]) - sum(len(line["rows"]) for line in shown):
        yield f"{display.plural(left, 'more change')}: see --json"


def _change(rows: Sequence[Row]) -> str:
    first, kind = rows[0], display.line(rows[0]["kind"]).replace("_", " ")
    of = _listed(list(dict.fromkeys(texts.plain(texts.subject(row)) for row in rows)))
    values = {tuple(_value(row, key) for key in ("old", "new")) for row in rows}
    change = f": {' to '.join(filter(None, *values))}" if len(values) == 1 else ""
    source = figures.name(first["source"]).text
    by = "" if of == source else f" (reported by {source})"
    count = kind if len(rows) == 1 else display.plural(len(rows), kind)
    return f"{display.day_and_time(first['at'])}  {count} of {of}{change.rstrip(': ')}{by}"


def _value(row: Row, key: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if row["kind"] in _OF_INSTANTS and re.fullmatch("[0-9]{1,16}", str(value)):
        return display.day_and_time(iso(int(value)))
    return display.line(value)


def _stated(answers: Iterable[Row]) -> Iterator[str]:
    """Yield the state of metrics that are not fully covered by timeline and incidents."""
    for row in answers:
        title, share = display.line(row["title"]), display.per_cent(row["observed_percent"])
        if row["state"] == "partly_known":
            yield f"{title}: 0 incidents. Coverage {share}."
        elif row["state"] == "bad" and not is_whole(row["observed_percent"]):
            yield f"{title}: coverage {share}."
        elif row["state"] not in {"good", "bad"}:
            yield f"{title}: {row['reason']}"
