"""A story as text for a terminal, a pipe or a file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from lakehouse.core import display
from lakehouse.core.metrics import names_in_bronze
from lakehouse.core.observed_share import is_whole
from lakehouse.core.periods import DAY_US, instant
from lakehouse.core.spans import Span, length, overlap
from lakehouse.report import figures
from lakehouse.report.figures import Row, span_of
from lakehouse.report.resources import sentence
from lakehouse.report.tables.contents import words
from lakehouse.report.terminal import badge, printed

MOST: Final = 20
"""Intervals that are shown, the longest; the JSON has all."""

_FEW: Final = 4
_EVENTS: Final = 8
_NAMES: Final = 8

GOOD: Final = "·"
UNKNOWN: Final = "░"
ABSENT: Final = " "
BAD: Final = "▁▂▃▄▅▆▇█"
"""By the share of the time that was bad; the lowest bar stands for any bad time, however short."""

LEGEND: Final = f"{BAD[0]}{BAD[3]}{BAD[-1]} bad, by its share   {UNKNOWN} not known   {GOOD} good"


def view(story: Row, *, terminal: bool | None = None, width: int | None = None) -> str:
    """The story with colour for a terminal, plain for anything else.

    Args:
        story: The JSON of the story, as docs/explain.md describes it.
        terminal: Whether the output is a terminal; None looks at standard output.
        width: Columns; None: those of the terminal, or 100 without one.
    """
    return printed(lambda columns: _parts(story, min(columns, 120)), terminal=terminal, width=width)


def _parts(story: Row, width: int) -> Iterator[RenderableType]:
    subject = ", ".join(name.labelled for name in figures.subject(story["subject"]))
    cluster = figures.name(story["cluster"]).text
    yield Text(f"{subject[:1].upper()}{subject[1:]} of cluster {cluster}", "bold")
    yield Text(f"{display.period(story['from'], story['to'])}, {_life(story)}", "dim")
    yield from _objectives(story)
    yield Text()
    yield from _timelines(story, width)
    yield from _intervals(story)
    yield from _remarks(story)


def _life(story: Row) -> str:
    exists = story["exists"]
    if exists is None:
        return "in which it did not exist"
    if (exists["from"], exists["to"]) == (story["from"], story["to"]):
        return "all of which it existed"
    first, last = map(display.day_and_time, exists.values())
    return f"of which it existed {first} to {last}"


def _objectives(story: Row) -> Iterator[RenderableType]:
    for row in story["objectives"]:
        of_topic = story["subject"]["kind"] == "partition" != row["level"]
        title = display.line(row["title"]) + " (of its topic)" * of_topic
        good, target = figures.attainment(row).text, display.percent(row["target"])
        yield Text.assemble(badge(row["verdict"]), f"  {title}: {good}; target {target}")
        if policy := _policy(row):
            yield _indented(policy)
        if row["undecided_us"] is not None:
            yield _indented("\n".join(_undecided(row)))
        if row["op"] != "lte" or row["threshold"]:
            # But for what is bad above zero only windows are known, and no intervals.
            shown, left = _greatest(row["bad"], _FEW, lambda bad: bad["bad_high_us"])
            for bad in shown:
                lasted = figures.seen_time(bad, "bad").text
                yield _indented(f"between {_span_text(bad, 'and')} bad for {lasted}")
            if left:
                yield _indented(f"{display.plural(left, 'time')} more: see --json")


def _undecided(row: Row) -> Iterator[str]:
    """What would decide an objective, and the gaps that hide it."""
    needed = display.duration(row["undecided_us"], "up")
    yield f"undecided: met if {needed} more were known to be good"
    if row["unknown_us"] and not row["gaps"]:
        yield "nothing was silent then; parts are unknown for a moment as their leaders move"
    yield from _silent(row["gaps"], display.day_and_time)


def _greatest(rows: Sequence[Row], most: int, key: Callable[[Row], int]) -> tuple[list[Row], int]:
    """The greatest rows in their order, and how many others there are."""
    greatest = sorted(rows, key=key, reverse=True)[:most]
    return [row for row in rows if row in greatest], len(rows) - len(greatest)


def _indented(text: str) -> Padding:
    return Padding(Text(text), (0, 0, 0, 3))


def _span_text(row: Row, word: str) -> str:
    return f"{display.day_and_time(row['start'])} {word} {display.day_and_time(row['end'])}"


def _length(row: Row) -> int:
    start, end = span_of(row)
    return end - start


def _timelines(story: Row, width: int) -> Iterator[RenderableType]:
    """A line for each metric, its name before it or, on a narrow terminal, above it."""
    sums = story["sums"]
    narrow = width < 72
    label = 0 if narrow else min(width // 3, max(len(display.line(s["title"])) for s in sums)) + 2
    drawn = _cells(span_of(story, "from", "to"), max(7, width - label))
    life = story["exists"] and span_of(story["exists"], "from", "to")
    absent = {row["metric"] for row in story["answers"] if row["state"] == "not_applicable"}
    for row in sums:
        title = display.line(row["title"], max(label - 2, 30))
        bad = [span_of(one) for one in story["intervals"] if one["metric"] == row["metric"]]
        unknown = _unknown(story, row["metric"])
        applies = row["metric"] not in absent
        letters = "".join(_letter(cell, life if applies else None, bad, unknown) for cell in drawn)
        if narrow:
            yield Text(title)
        colour = "red" if bad else "green"
        yield Text.assemble("" if narrow else title.ljust(label), (letters, colour))
    if line := _axis(drawn):
        yield Text(" " * label + line, "dim")
    yield Text(LEGEND, "dim")


def _cells(within: Span, width: int) -> list[Span]:
    """The period in at most ``width`` equal cells; as many each day, if it is of whole days."""
    start, end = within
    days, rest = divmod(end - start, DAY_US)
    number = width // days * days if days and not rest and width >= days else width
    return list(pairwise(start + (end - start) * at // number for at in range(number + 1)))


def _axis(cells_: Sequence[Span]) -> str:
    """The days below their cells; empty where there is no room for their names."""
    each = sum(1 for cell in cells_ if cell[0] < cells_[0][0] + DAY_US)
    if each == len(cells_) or len(cells_) % each:
        return ""
    for form in ("%a %-d", "%a", "%-d"):
        days = [f"{instant(cell[0]):{form}}" for cell in cells_[::each]]
        if max(map(len, days)) < each:
            return "".join(day.ljust(each) for day in days).rstrip()
    return ""


def _letter(cell: Span, life: Span | None, bad: Iterable[Span], unknown: Iterable[Span]) -> str:
    """The letter of a cell.

    Args:
        cell: Its span.
        life: When the subject existed; None: not in this period.
        bad: When it was bad.
        unknown: When it is not known.
    """
    if bad_us := _covered(cell, bad):
        return BAD[min(len(BAD) - 1, bad_us * len(BAD) // (cell[1] - cell[0]))]
    alive = life and overlap(cell, life)
    if alive is None:
        return ABSENT
    return UNKNOWN if _covered(alive, unknown) else GOOD


def _covered(cell: Span, spans: Iterable[Span]) -> int:
    return length(one for span in spans if (one := overlap(cell, span)))


def _unknown(story: Row, metric: str) -> list[Span]:
    """Unknown time by the objective on this metric, else by any, else by the silences.

    Of a metric that was not observed at all it is the whole period.
    """
    own = [row for row in story["answers"] if row["metric"] == metric]
    if any(row["state"] == "not_collected" or not row["observed_us"] for row in own):
        return [span_of(story, "from", "to")]
    objectives = story["objectives"]
    rows = [row for row in objectives if metric in names_in_bronze([row["metric"]])] or objectives
    if not rows:
        return [span_of(row) for row in story["silences"]]
    return [span_of(span) for row in rows for span in row["unknown"]]


def _intervals(story: Row) -> Iterator[RenderableType]:
    yield Text()
    if not story["intervals"]:
        if all(row["state"] == "good" for row in story["answers"]):
            yield Text("0 bad intervals.")
        return
    shown, left = _greatest(story["intervals"], MOST, _length)
    for number, row in enumerate(shown, 1):
        title = f"{number}. {display.line(row['title'])}"
        yield Text.assemble((title, "bold"), f"  {_span_text(row, 'to')}")
        reporters = [figures.name(source).text for source in row["told_by"]]
        by = [f"reported by {_listed(reporters)}"] if reporters else []
        silent = _silent(row["silent"], partial(_at, row=row))
        lines = (_how_long(row), *by, *silent, *_events(row, story["subject"]))
        yield _indented("\n".join(line for line in lines if line))
    if left:
        yield Text(f"{display.plural(left, 'shorter interval')} more: see --json.", "dim")


def _listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    left = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {left} more" if left > 0 else "")


def _how_long(row: Row) -> str:
    lasted = "" if row["lasted_us"] is None else f"lasted {figures.seen_time(row, 'lasted').text}"
    edges = [
        f"{verb} up to {display.duration(row[key], 'up')} earlier"
        for verb, key in (("began", "lead_us"), ("ended", "tail_us"))
        if row[key]
    ]
    parts = [display.line(part, display.NAME_LIMIT) for part in row["parts"]]
    noun = "partition" if len(parts) == 1 else "partitions"
    affected = f"{noun} {_listed(parts)}" if parts else ""
    return "; ".join(text for text in (lasted, *edges, _worst(row), affected) if text)


def _worst(row: Row) -> str:
    low, high, unit = row["worst_low"], row["worst_high"], str(row["unit"])
    if (not low and high is None) or (unit == "partitions" and len(row["parts"]) == low == 1):
        return ""
    if high is None:
        return _worst_at_least(row)
    if unit == "ms":
        return f"at worst {display.milliseconds(high)} a request"
    most = display.quantity(high, unit)
    if row["lasted_us"] is None:
        return most if low == high else f"{display.count(low)} to {most}"
    if low != high:
        return f"at worst {display.quantity(low, unit)} to {most}"
    return f"at worst {most} at once" if unit == "partitions" else f"at worst {most}"


def _worst_at_least(row: Row) -> str:
    """The worst observed value beside silences, which may hide a worse one."""
    low, unit = row["worst_low"], str(row["unit"])
    least = f"at least {display.milliseconds(low) if unit == 'ms' else display.quantity(low, unit)}"
    if row["lasted_us"] is None:
        return least
    after = {"ms": " a request", "partitions": " at once"}.get(unit, "")
    return f"at worst {least}{after}"


def _policy(row: Row) -> str:
    """How unknown time counts, and the verdict with it taken both ways; empty: it is taken so."""
    policy = row["unknown_counts"]
    if policy in {None, "interval"}:
        return ""
    verdict = display.VERDICTS[display.verdict(row.get("interval_verdict"))]
    return sentence("policy", policy=policy, most=row.get("unknown_us") or 0, verdict=verdict)


def _silent(silences: Sequence[Row], at: Callable[[str], str]) -> list[str]:
    """The longest silences, with their instants as ``at`` has them."""
    shown, left = _greatest(silences, _FEW, _length)
    texts = []
    for one in shown:
        error = f": {display.line(one['error'])}" if one["error"] else ""
        source = f"{figures.name(one['source']).text} ({display.line(one['family'])})"
        length, outcome = display.duration(_length(one)), words("outcome", one["outcome"])
        since = at(one["start"])
        texts.append(f"silent: {source} from {since} for {length}, {outcome}{error}")
    return [*texts, f"silent: {left} more, see --json"] if left else texts


def _events(row: Row, subject: Row) -> list[str]:
    texts = []
    for event in row["events"][:_EVENTS]:
        keys = ("topic", "partition", "user", "client_id", "group")
        differing = [key for key in keys if event.get(key) not in (None, subject.get(key))]
        of = "".join(f" of {name.labelled}" for name in figures.subject(event, differing))
        values = [display.line(event[key]) for key in ("old", "new") if event.get(key) is not None]
        change = f": {' to '.join(values)}" if values else ""
        source, at = figures.name(event["source"]).text, _at(event["at"], row)
        kind = display.line(event["kind"]).replace("_", " ")
        texts.append(f"{at} {kind}{of}{change} (noticed by {source})")
    left = len(row["events"]) - _EVENTS
    return [*texts, f"{left} more events, see --json"] if left > 0 else texts


def _at(instant_: str, row: Row) -> str:
    """The time of day, with the day if the interval began on another one."""
    moment = display.parse(instant_)
    same = moment.date() == display.parse(row["start"]).date()
    return f"{moment:%H:%M:%S}" if same else display.day_and_time(instant_)


def _stated(row: Row) -> str:
    """What is known of a metric; empty where all that is known is drawn and listed above."""
    title, share = display.line(row["title"]), display.per_cent(row["observed_percent"])
    if row["state"] == "partly_known":
        return f"{title}: 0 bad intervals. Coverage {share}."
    if row["state"] == "bad":
        return "" if is_whole(row["observed_percent"]) else f"{title}: coverage {share}."
    return "" if row["state"] == "good" else f"{title}: {row['reason']}"


def _remarks(story: Row) -> Iterator[RenderableType]:
    yield Text()
    for row in story["answers"]:
        if stated := _stated(row):
            yield Text(stated)
    if story["silences"]:
        names = dict.fromkeys(figures.name(row["source"]).text for row in story["silences"])
        yield Text(f"Silent at some time in the period: {_listed(list(names))}.")
    for row in story["objectives"]:
        if unknown := row["unknown_us"]:
            yield Text(f"{display.line(row['title'])}: {figures.unknown_time(unknown)}.")
    if story["until"]:
        until = display.day_and_time(story["until"])
        yield Text(f"The story ends at {until}: the rest has too many rows.", "yellow")
    if floor := story["detection_floor_us"]:
        shortest = display.duration(floor, "up")
        yield Text(f"Incidents shorter than {shortest} may not have been seen.", "dim")
