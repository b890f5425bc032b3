"""Compares a statement of a channel with the facts of the same run that it is about."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from lakehouse.report.figures import name as shown_name
from tests import report_figures
from tests.report_details import Sections, rough
from tests.report_faults import us_of
from tests.report_statements import LABELS, Statement, clean
from tests.truth.steps import length, united

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Row = dict[str, Any]

STATUSES: Final = {
    "missed": ("Missed", "✗", r"(?:already )?missed"),
    "at_risk": ("At risk", "!", "at risk"),
    "uncertain": ("Uncertain", "?", "uncertain"),
    "no_data": ("No data", "-", "without data"),
    "on_track": ("On track", "~", "on track"),
    "met": ("Met", "✓", "met"),
}
"""Statuses, worst first: word, mark, and words in the headline."""
_VERDICTS: Final = {one: word[0].lower() for one, word in STATUSES.items()}
_BOUNDS: Final = ("", "_low", "_high")
_NAMES: Final = ("topic", "user", "client_id", "group", "source")
_NO_CAUSE: Final = "not_known"
_TOTAL: Final = re.compile(r"(?<= for )[^.;]+(?= in total; the cause is not known)")
"""The sum over several events in the lead."""

_CAUSES: Final = {
    "rolling_restart": "a rolling restart",
    "restarted": "restart",
    "no_answer": "did not answer",
    "fenced": "fenced",
    "unclean_election": "unclean leader election",
    "leader_change": "leader change",
    "reassignment": "reassignment",
    "config_change": "configuration change",
    "quota": "quota",
    "retention": "retention",
    "slow_group": "slow group",
    "copy_errors": "remote storage errors",
    "hanging_transaction": "hanging transaction",
    "not_known": "Not known",
}
"""Words that a cause of this kind has."""


class Claims:
    """The facts of one run, and what a statement on each part of them may say.

    Args:
        facts: The JSON of the run.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = facts
        self.zone = ZoneInfo(facts.get("time_zone") or "UTC")
        self.events: dict[str, Row] = {str(one["number"]): one for one in facts["events"] or ()}
        self.objectives: dict[str, Row] = {clean(one["title"]): one for one in facts["objectives"]}
        self.figures: dict[str, Row] = {one["name"]: one for one in facts["key_figures"]}
        self.verdicts = {one["objective"]: one for one in facts["verdicts"]}
        coverage = facts["coverage"]["percent"]
        self.is_blind = not coverage or coverage < facts["min_coverage_percent"]

    @cached_property
    def sections(self) -> Sections:
        """The facts by section of the details."""
        return Sections(self.facts)

    @cached_property
    def worst(self) -> Mapping[int, list[float]]:
        """The greatest values of the incidents of each event."""
        found: defaultdict[int, list[float]] = defaultdict(list)
        for one in self.facts["incidents"] or ():
            found[one["event"]].append(one["worst"])
        return found

    @cached_property
    def unobserved(self) -> list[int]:
        """The longest unobserved time of a subject of each level."""
        found: dict[str, int] = {}
        for row in self.facts["objectives"]:
            times = [one["unknown_us"] or 0 for one in row["subjects"]]
            found[row["level"]] = max(found.get(row["level"], 0), *times, 0)
        return [*found.values()]

    @cached_property
    def tally(self) -> Counter[str]:
        """Objectives by status; below the floor only what is missed for certain counts."""
        return Counter(map(self.status, self.facts["objectives"]))

    def status(self, objective: Mapping[str, Any]) -> str:
        """Return the status that an objective must have."""
        status = str(objective["status"])
        return "no_data" if self.is_blind and status != "missed" else status

    def wrong(self, one: Statement) -> list[str]:
        """Return what contradicts the facts."""
        check = _CHECKS.get(one.about)
        return list(check(self, one)) if check else [f"nothing is known about {one.about}"]

    def clocks(self, instants: Iterable[str | None]) -> set[str]:
        """Return the local times of day of instants, and the same to the second."""
        local = [_at(one).astimezone(self.zone) for one in instants if one]
        return {f"{one:%H:%M}" for one in local} | {f"{one:%H:%M:%S}" for one in local}

    def days(self, instants: Iterable[str | None]) -> set[str]:
        """Return the local days of instants, such as ``Sat 21``."""
        local = [_at(one).astimezone(self.zone) for one in instants if one]
        return {f"{one:%a} {one.day}" for one in local}


def _at(instant: str) -> datetime:
    return datetime.fromisoformat(instant)


def bounds(row: Mapping[str, Any], stem: str, end: str = "") -> list[float]:
    """Return a figure of a row, its bounds, and how far these are from it."""
    value, low, high = (row.get(f"{stem}{bound}{end}") for bound in _BOUNDS)
    found = [one for one in (value, low, high) if one is not None]
    if value is not None:
        found += [abs(one - value) for one in (low, high) if one is not None]
    return found


def _figures(text: str, facts: Any, *names: str) -> list[str]:
    known = [*report_figures.names(facts)]
    parts = [part for one in known for part in (one.partition(";")[0], shown_name(one).text)]
    return report_figures.wrong(text, facts, [*names, *parts])


def _percents(*shares: float | None) -> list[float]:
    """Return shares as a text has them; a share below 1 is not a percentage below 1."""
    return [100 * one for one in shares if one is not None]


def _names_of(row: Mapping[str, Any]) -> list[str]:
    """Return the names of a row's subject as they are shown."""
    return [clean(shown_name(row[key]).text) for key in _NAMES if row.get(key) is not None]


def _lacks(text: str, names: Iterable[str]) -> list[str]:
    bare = text.replace(" ", "")
    return [f"{name} is not named" for name in names if name.replace(" ", "") not in bare]


# The headline and the lead.


def _headline(claims: Claims, one: Statement) -> Iterator[str]:
    worst = next((status for status in STATUSES if claims.tally[status]), "no_data")
    if one.key and one.key != ("no_data" if claims.is_blind else worst):
        yield f"status {one.key}"
    if claims.is_blind:
        if "Not known" not in one.text:
            yield "states something below the floor of coverage"
        yield from _figures(one.text, claims.facts["coverage"]["percent"])
        return
    before = claims.facts["previous"] or {}
    missed = [row["name"] for row in claims.facts["objectives"] if row["status"] == "missed"]
    newly = len({*missed} & {*before.get("newly_missed", ())})
    opened = claims.facts["coverage"].get("since") or ""
    yield from _figures(
        one.text.partition(", observed only since")[0] if opened else one.text,
        [*claims.tally.values(), len(claims.facts["objectives"]), newly, before.get("missed")],
    )
    total = len(claims.facts["objectives"])
    count = claims.tally[worst]
    opening = rf"(?:{count} of {total} objectives?|All {total} objectives|No data for|1 objective)"
    if not re.match(rf"{opening} (?:{STATUSES[worst][2]}|{total} objectives?)", one.text):
        yield f"{count} of {total} are {worst}"
    if missed and " met" in one.text:
        yield "says met, and objectives are missed"
    if newly and worst == "missed" and "newly" not in one.text and "not missed" not in one.text:
        yield f"{newly} newly missed"
    if "the same" in one.text and (newly or before.get("no_longer_missed")):
        yield "not the same as last week"


def _lead(claims: Claims, one: Statement) -> Iterator[str]:
    if claims.is_blind:
        yield from _figures(one.text, claims.facts["coverage"]["percent"])
        return
    events = [row for row in claims.events.values() if not _lacks_all(one.text, row)]
    facts = [
        [_of_event(claims, row) for row in events],
        [_of_objective(claims, row) for row in claims.objectives.values()
         if clean(row["title"]) in one.text],
        [len(events), *(len(row["cause"]["sources"]) for row in events)],
        _left_out(claims),
    ]  # fmt: skip
    rest = one.text
    if total := _TOTAL.search(rest):
        yield from _figures(total[0], _unexplained_us(claims))
        rest = rest[: total.start()] + rest[total.end() :]
    yield from _figures(rest, facts, *claims.objectives)
    # "an outage of A and 3 more", "and 2 more": how many of a list are not named
    instants = [row[end] for row in events for end in ("from", "to")]
    yield from _times(claims, one.text, instants)


def _unexplained_us(claims: Claims) -> int:
    """Return the time in which any great availability event without a known cause was bad."""
    rows = [row for row in _great(claims) if row["topics"] and row["cause"]["kind"] == _NO_CAUSE]
    parts = [(us_of(part["start"]), us_of(part["end"])) for row in rows for part in row["parts"]]
    return min(length(united(parts)), sum(row["bad_us"] for row in rows))


def _great(claims: Claims) -> list[Row]:
    return [row for row in claims.events.values()
            if row["kind"] == "availability" and (row["used"] or 0) >= 0.5]  # fmt: skip


def _left_out(claims: Claims) -> list[int]:
    """Return how many topics and sources a sentence on all availability events does not name."""
    rows = _great(claims)
    unknown = [row for row in rows if row["cause"]["kind"] == _NO_CAUSE]
    known = [row for row in rows if row not in unknown]
    topics = [len({topic for row in each for topic in row["topics"]}) for each in (known, unknown)]
    by_kind: defaultdict[str, set[str]] = defaultdict(set)
    for row in known:
        by_kind[row["cause"]["kind"]].update(row["cause"]["sources"])
    return [count - 3 for count in (*topics, *map(len, by_kind.values()))]


def _lacks_all(text: str, row: Mapping[str, Any]) -> bool:
    names = [*_names_of(row), *(clean(shown_name(topic).text) for topic in row["topics"])]
    return not any(name in text for name in names)


def _times(claims: Claims, text: str, instants: list[str | None]) -> Iterator[str]:
    clocks, days = claims.clocks(instants), claims.days(instants)
    for clock in re.findall(r"\b\d\d:\d\d(?::\d\d)?\b", text):
        if clock not in clocks:
            yield f"{clock} is no time of it"
    for day in re.findall(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d+", text):
        if day not in days:
            yield f"{day} is no day of it"


# Tiles.


def _tile(claims: Claims, one: Statement) -> Iterator[str]:
    if (row := claims.figures.get(LABELS.get(one.key, ""))) is None:
        yield "no such key figure"
        return
    yield from _TILES[one.field](claims, one, row)


def _tile_status(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    by_name = {each["name"]: each for each in claims.facts["objectives"]}
    objective = by_name.get(row["objective"])
    if one.text != ("none" if objective is None else claims.status(objective)):
        yield "another status than its objective"


def _tile_value(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    value, low, high = (row[f"value{bound}"] for bound in _BOUNDS)
    if row["state"] in {"not_collected", "not_applicable"}:
        yield from () if one.text == row["state"].replace("_", " ") else ["it has no such figure"]
    if one.text in {"not known", "not collected", "not applicable"}:
        if row["state"] == "known" and value:
            yield f"it is known: {value}"
        return
    if row["state"] != "known":
        yield f"it is {row['state']}"
    if high is None and one.text[0] not in "≥≈":
        yield "it can be greater"
    total = [row["of"]] if " of " in one.text else []
    if one.text.startswith("≤"):
        yield from _figures(one.text, high)
    elif one.text[0] in "≥≈":
        yield from _figures(one.text, [low or value, *total])
    else:
        exact = [low, high] if " to " in one.text else value
        yield from _figures(one.text, [exact, *total])


def _tile_note(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    if row["state"] != "known":
        return
    answers = [each["observed_percent"] for each in claims.facts["answers"]]
    of_answers = answers if "observed" in one.text.split()[-1] else []
    own = [*bounds(row, "value"), *bounds(row, "subject_value"), *of_answers]
    yield from _figures(one.text, own, *_names_of(row))
    yield from _lacks(one.text, _names_of(row))


def _tile_delta(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    before = row["previous"] or {}
    old = before.get("value")
    if claims.facts["running"]:
        yield from ["a running week is compared"] if one.text else []
        return
    if old is None:
        if not re.search("no earlier|not known|not compared", one.text):
            yield "there is nothing to compare with"
        return
    difference = row["value"] - old
    share = row["unit"] == "share"
    yield from _figures(one.text, old if share else abs(difference))
    if before["week"].rpartition("-")[2] not in one.text and "no clear change" not in one.text:
        yield f"the week before is {before['week']}"
    if ("same as" in one.text) != (row["change"] == "same"):
        yield f"the change is {row['change']}"
    is_open = bool(re.search("no clear change|not fully known", one.text))
    if is_open != (row["change"] == "unclear"):
        yield f"the change is {row['change']}"
    sign = {"+": 1, "\u2212": -1}.get(one.text[0])
    if sign and difference * sign < 0:
        yield f"it changed by {difference}"


def _tile_title(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    yield from _figures(one.text, [*bounds(row, "value"), row["unknown_us"]])


_TILES: Final[dict[str, Callable[[Claims, Statement, Row], Iterator[str]]]] = {
    "status": _tile_status,
    "value": _tile_value,
    "note": _tile_note,
    "delta": _tile_delta,
    "title": _tile_title,
}


# Events.


def _of_event(claims: Claims, row: Row) -> list[Any]:
    """Return the facts that a statement on an event may state."""
    days = {day for part in row["parts"] for day in claims.days(part.values())}
    start, end = (_at(claims.facts[key]).astimezone(claims.zone) for key in ("from", "to"))
    period = (end - timedelta(microseconds=1)).date() - start.date()
    hidden = [
        max(0, len(names) - 3) for names in (row["topics"], row["hits"], row["cause"]["sources"])
    ]
    return [
        bounds(row, "bad", "_us"), row["used"], row["weeks_in_row"], row["size"], row["hits"],
        row["cause"], rough(claims.worst[row["number"]]), len(days), period.days + 1, hidden,
    ]  # fmt: skip


def _event(claims: Claims, one: Statement) -> Iterator[str]:
    if (row := claims.events.get(one.key)) is None:
        yield "no such event"
        return
    yield from _EVENTS[one.field](claims, one, row)


def _event_status(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    used = row["used"]
    status = (
        "no_data" if used is None else
        "missed" if used >= 1 else "at_risk" if used >= 0.5 else "met"
    )  # fmt: skip
    if one.text not in {status, "also"}:
        yield f"it used {used}"


def _event_title(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    topics = [clean(shown_name(topic).text) for topic in row["topics"]]
    yield from _figures(one.text, _of_event(claims, row), *topics, *_names_of(row))
    named = _names_of(row) or topics[:1]
    if row["kind"] != "availability" or row["topics"]:
        yield from _lacks(one.text, named)
    if "outage" in one.text:
        yield from _lacks(one.text, _brokers(row))


def _event_when(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    instants = [row["from"], row["to"], *(end for part in row["parts"] for end in part.values())]
    yield from _times(claims, one.text, instants)
    yield from _figures(one.text, _of_event(claims, row))
    if ("since" in one.text) and not row["ongoing"]:
        yield "it has ended"


def _event_length(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    if one.text == "not known":
        yield from [] if row["bad_us"] is None else ["it is known"]
    yield from _figures(one.text, row["bad_us"])


def _event_repeats(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    if int(re.search(r"\d+", one.text)[0]) != row["weeks_in_row"]:  # type: ignore[index]
        yield f"{row['weeks_in_row']} weeks in a row"


def _event_words(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    names = [*row["topics"], *(row["owners"] or ())]
    shown = [clean(shown_name(each).text) for each in names]
    cause = row["cause"]
    instants = [row["from"], row["to"], cause["start"], cause["end"]]
    instants += [end for part in row["parts"] for end in part.values()]
    if row["group"] is not None:  # its loss may be told with its lag
        instants += [each["from"] for each in claims.events.values()
                     if each["group"] == row["group"]]  # fmt: skip
    numbers = [each["number"] for each in claims.events.values() if each["group"] == row["group"]]
    facts = [numbers, _of_event(claims, row)]
    yield from _figures(one.text.replace("(event ", "("), facts, *_names_of(row), *shown)
    yield from _times(claims, one.text, instants)


def _event_cause(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    cause = row["cause"]
    yield from _event_words(claims, one, row)
    if _CAUSES[cause["kind"]] not in one.text:
        yield f"the cause is {cause['kind']}"
    if cause["kind"] != _NO_CAUSE:
        yield from _lacks(one.text, _brokers(row))
        if one.text.startswith("Not known"):
            yield f"the cause is {cause['kind']}"


def _event_next(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    yield from _event_words(claims, one, row)
    if one.text.startswith("Find why"):
        yield from _lacks(one.text, _brokers(row)[:1])


def _brokers(row: Row) -> list[str]:
    """Return the first two brokers of the cause, as they are shown."""
    return [clean(shown_name(each).text) for each in row["cause"]["sources"][:2]]


def _event_owner(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    owners = [clean(shown_name(each).text) for each in row["owners"] or ()]
    yield from _lacks(one.text, owners[:1])
    if one.text == "No owner" and owners:
        yield "it has an owner"


def _event_used(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    yield from _figures(one.text, _percents(row["used"]), *claims.objectives)


def _event_story(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    yield from _event_words(claims, one, row)
    for share in re.findall(r"[\d,]+ %(?= of [^.,;]+ budget)", one.text):
        yield from _figures(share, _percents(row["used"]))
    if "Likely" in one.text and row["cause"]["kind"] == _NO_CAUSE:
        yield "the cause is not known"


_EVENTS: Final[dict[str, Callable[[Claims, Statement, Row], Iterator[str]]]] = {
    "status": _event_status,
    "title": _event_title,
    "when": _event_when,
    "length": _event_length,
    "repeats": _event_repeats,
    "impact": _event_words,
    "cause": _event_cause,
    "next": _event_next,
    "owner": _event_owner,
    "used": _event_used,
    "story": _event_story,
}


# Objectives.


def _worst(row: Row) -> Row:
    subjects = row["subjects"]
    found = (one for one in subjects if row["used"] is not None and one.get("used") == row["used"])
    return next(found, subjects[0] if subjects else {})


def _of_objective(claims: Claims, row: Row) -> list[Any]:
    worst = _worst(row)
    return [
        bounds(worst, "bad", "_us"), worst.get("unknown_us"), worst.get("events"),
        bounds(worst, "attainment"), row["used"], row["used_low"], row["used_high"],
        len(row["subjects"]), claims.verdicts.get(row["name"], {}), row["target"],
    ]  # fmt: skip


def _objective(claims: Claims, one: Statement) -> Iterator[str]:
    titles = {title.replace(" ", ""): row for title, row in claims.objectives.items()}
    if (row := titles.get(one.key.replace(" ", ""))) is None:
        yield "no such objective"
        return
    yield from _OBJECTIVES[one.field](claims, one, row)


def _objective_status(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    word, mark, _ = STATUSES[claims.status(row)]
    if one.text != (mark if one.field == "mark" else word):
        yield f"it is {claims.status(row)}"


def _objective_worst(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    worst = _worst(row)
    facts = [bounds(worst, "bad", "_us"), worst.get("unknown_us"), worst.get("events"),
             len(row["subjects"]), claims.verdicts.get(row["name"], {})]  # fmt: skip
    yield from _figures(one.text, facts, *_names_of(worst))
    if claims.status(row) != "no_data":
        yield from _lacks(one.text, _names_of(worst))


def _objective_share(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    worst = _worst(row)
    yield from _figures(one.text, [worst.get(f"attainment{bound}") for bound in _BOUNDS])
    if one.field == "attained" and " to " not in one.text:
        yield from _figures(one.text, worst.get("attainment"))


def _objective_target(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    end, start = (row.get(key) or claims.facts[key] for key in ("to", "from"))
    days = (_at(end) - _at(start)).total_seconds() / 86_400
    yield from _figures(one.text, [row["target"], days])


def _objective_used(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    between = [row["used_low"], row["used_high"]] if " to " in one.text else [row["used"]]
    yield from _figures(one.text, _percents(*between))


def _objective_bar(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    yield from _figures(one.text, _percents(row["used"], row["used_low"], row["used_high"]))


def _objective_left(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    left = (_worst(row).get("left") or [None])[-1]
    text = one.text.replace(" percent", " %").replace("-", " ")
    yield from _figures(text, _percents(left))


def _objective_weeks(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    shown = [(week["week"].rpartition("-")[2], _VERDICTS[week["verdict"]])
             for week in row["history"]]  # fmt: skip
    if shown and claims.facts["week"]:
        shown[-1] = shown[-1][0], _VERDICTS[claims.status(row)]
    if one.text != ", ".join(f"{week} {verdict}" for week, verdict in shown):
        yield f"they are {shown}"


def _objective_owner(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    worst = _worst(row)
    owner = next(filter(None, (row["owner"], worst.get("team"), worst.get("owner"))), None)
    if one.text != ("no owner" if owner is None else clean(shown_name(owner).text)):
        yield f"its owner is {owner}"


def _objective_note(claims: Claims, one: Statement, row: Row) -> Iterator[str]:
    hours = (claims.facts["business_hours"] or {}).get("objectives") or ()
    own = [_worst(each) for each in hours if each["name"] == row["name"]]
    yield from _figures(one.text, [_worst(row).get("agreed"), own])


def _objective_drawn(_: Claims, one: Statement, row: Row) -> Iterator[str]:
    """The bar of the terminal crosses the line of 100 % exactly if the budget is overspent."""
    used = row["used"]
    is_over = one.text.partition("|")[2][:1] in {"#", ">"}
    if used is not None and is_over != (used > 1):
        yield f"it used {used}"


_OBJECTIVES: Final[dict[str, Callable[[Claims, Statement, Row], Iterator[str]]]] = {
    "status": _objective_status,
    "mark": _objective_status,
    "worst": _objective_worst,
    "attained": _objective_share,
    "bounds": _objective_share,
    "target": _objective_target,
    "note": _objective_note,
    "used": _objective_used,
    "bar": _objective_bar,
    "left": _objective_left,
    "weeks": _objective_weeks,
    "owner": _objective_owner,
    "drawn": _objective_drawn,
}


# Notes and details.


def _note(claims: Claims, one: Statement) -> Iterator[str]:
    facts = claims.facts
    used = [row["used"] or 0 for row in claims.events.values()]
    major = sum(share >= 0.5 for share in used)
    pooled = [
        (
            row["target"],
            *bounds(row, "attainment"),
            sum(each["subjects"] > 0 for each in row["objectives"]),
        )
        for row in facts["composites"]
    ]
    lenient = sum(
        all(each["verdict"] == "met" for each in row["subjects"])
        and any(each.get("interval_verdict") not in (None, "met") for each in row["subjects"])
        for row in facts["objectives"]
    )
    told = [
        [*claims.tally.values()], major, len(used) - major, pooled, claims.unobserved, lenient,
        len(facts["restated"] or ()), facts["coverage"]["percent"], facts["min_coverage_percent"],
        [len(used) - most for most in (3, 5)],
        [row["observed_percent"] for row in facts["answers"] or ()],
        [row.get("dropped_series") for row in facts["coverage"]["sources"]],
    ]  # fmt: skip
    yield from _figures(one.text, told, "1.5")
    if "No status in this report depends" in one.text and (
        claims.tally["uncertain"] or claims.tally["no_data"]
    ):
        yield "a status depends on unobserved time"


def _detail(claims: Claims, one: Statement) -> Iterator[str]:
    yield from claims.sections.line(one)


def _row(claims: Claims, one: Statement) -> Iterator[str]:
    yield from claims.sections.cell(one)


_CHECKS: Final[dict[str, Callable[[Claims, Statement], Iterator[str]]]] = {
    "headline": _headline,
    "lead": _lead,
    "tile": _tile,
    "event": _event,
    "objective": _objective,
    "note": _note,
    "detail": _detail,
    "row": _row,
}


def unlike(statements: Iterable[Statement]) -> Iterator[str]:
    """Yield where two channels say different things about one event, tile or objective.

    A story, which has a whole event in one text, must have what the page says of its parts.
    """
    said: dict[tuple[str, str, str], Statement] = {}
    listed = list(statements)
    for one in listed:
        first = said.setdefault((one.about, one.key.replace(" ", ""), one.field), one)
        is_one_thing = one.about != "row" and one.field not in {"line", "note", "text", "story"}
        if is_one_thing and one.text.replace(" ", "") != first.text.replace(" ", ""):
            yield f"{one.channel} says {one.text!r}, {first.channel} {first.text!r}: {one.key}"
    for one in listed:
        if one.field != "story":
            continue
        parts = [said.get(("event", one.key, field)) for field in ("title", "when", "cause")]
        is_short = one.channel in {"terminal", "mail"}
        for part in parts:
            whole = one.text.replace(" ", "")
            if part is None or part.text.replace(" ", "") in whole:
                continue
            if part.field == "cause" and is_short:
                continue
            yield f"{one.channel} does not say {part.text!r} of event {one.key}: {one.text!r}"
