"""The likely cause of an event, and the next step.

A cause that is inferred from evidence of the same time starts with *Likely*. Without evidence it is
*Not known*, with the causes that were ruled out and the sources that were not observed.
"""

from typing import Any, Final

from lakehouse.core import display
from lakehouse.report import figures
from lakehouse.report.figures import Row
from lakehouse.report.summary import amounts, impacts
from lakehouse.report.summary.model import Text
from lakehouse.report.summary.texts import joined, listed, text, words

_UNOBSERVED: Final = 2
_RATES: Final = {"produce": "By/s", "fetch": "By/s", "request": "%"}
"""The unit of a client's rate, by its quota."""

_ERRORS: Final = {"nothing listens there": "error.refused", "no answer in time": "error.timeout"}
"""Words by the beginning of an agent's error."""


def cause(row: Row, scene: impacts.Scene) -> Text:
    """Return the likely cause of an event."""
    found = row["cause"]
    kind = found["kind"] if words(f"cause.{found['kind']}") else "not_known"
    values = _values(row, found)
    if lag := impacts.lag_before(row, scene):
        return text("cause.retention_lag", **values, since=_since(lag), number=lag["number"])
    parts = [
        text(_template(kind, values), **values),
        _replicas(found),
        _also(found),
        *_unobserved(found),
    ]
    if row["kind"] == "loss" and not scene.has_lag:
        parts.append(text("cause.no_lag"))
    return joined(*parts, between=" ")


def _template(kind: str, values: dict[str, Any]) -> str:
    """Return the text of a kind of cause; a cause within a minute can have its own text."""
    is_short = values["start"].endswith(values["end"])
    name = f"cause.{kind}_at"
    return name if is_short and words(name) else f"cause.{kind}"


def _values(row: Row, found: Row) -> dict[str, Any]:
    start, end = (found.get(key) or row[own] for key, own in (("start", "from"), ("end", "to")))
    first, last = figures.moment(start), figures.moment(end)
    at = f"{amounts.day(first)} {amounts.clock(first)}"
    is_one_day = amounts.date(first) == amounts.date(figures.moment(row["from"]))
    error = found.get("error")
    return {
        "sources": listed(amounts.names(found.get("sources") or ())),
        "group": impacts.values(row)["group"],
        "start": amounts.clock(first) if is_one_day else at,
        "end": amounts.clock(last),
        "error": "" if error is None else short_error(error),
        "changes": found.get("leader_changes") or 1,
        "limit": _rate(row, "quota"),
        "rate": _rate(row, "rate_max"),
        "ruled_out": _ruled_out(found),
    }


def short_error(error: str) -> str:
    """Return the reason in an agent's error, on one line of at most 80 characters."""
    known = (word for opening, word in _ERRORS.items() if error.startswith(opening))
    name = next(known, "")
    return words(name) if name else display.line(error.partition(";")[0], 80)


def _since(lag: Row) -> str:
    start = figures.moment(lag["from"])
    return f"{amounts.day(start)} {amounts.clock(start)}"


def _ruled_out(found: Row) -> Text:
    known = [word for one in found.get("ruled_out") or () if (word := words(f"evidence.{one}"))]
    return listed(known, len(known), last="list.or")


def _rate(row: Row, key: str) -> str:
    """Return a rate of a throttled client; empty: not known."""
    rate = impacts.size(row).get(key)
    return "" if rate is None else display.quantity(rate, _RATES.get(str(row.get("of")), "1/s"))


def _replicas(found: Row) -> Text:
    """Return which of the topics that were hit cannot lose a broker."""
    spare, single = found.get("no_spare") or (), found.get("single_replica") or ()
    return text(
        "cause.replicas" if spare else "cause.single",
        spare=listed(amounts.names(spare)),
        spares=len(spare),
        single=listed(amounts.names(single)),
        singles=len(single),
    )


def _also(found: Row) -> Text:
    """Return other evidence of the same time: words of its kind, or names of sources."""
    also = map(str, found.get("also") or ())
    other = [words(f"evidence.{one}") or figures.name(one) for one in also]
    return text("cause.also", other=listed(other)) if other else ()


def _unobserved(found: Row) -> list[Text]:
    return [
        text(
            "cause.unobserved",
            source=figures.name(one["source"]),
            length=display.length(one["us"], "up"),
        )
        for one in (found.get("unobserved") or ())[:_UNOBSERVED]
    ]


def next_step(row: Row, scene: impacts.Scene) -> Text:
    """Return what to do next, with the subject and the time."""
    found, start = row["cause"], figures.moment(row["from"])
    exposed = [*(found.get("no_spare") or ()), *(found.get("single_replica") or ())]
    values = impacts.values(row)
    sources = amounts.names(found.get("sources") or ())
    hours = amounts.hours_of(amounts.parts_of(row)) or ("", "")
    values |= {
        "sources": listed(sources) or values["source"],
        "quota": words(f"quota.{row.get('of')}"),
        "at": amounts.at(start),
        "start": hours[0],
        "end": hours[1],
        "exposed": listed(amounts.names(exposed)),
    }
    lag = impacts.lag_before(row, scene)
    values["since"] = amounts.at(figures.moment(lag["from"])) if lag else ""
    return text("next.loss_lag" if lag else _name(row), **values)


def _name(row: Row) -> str:
    """Return the step of an event's kind and cause; of its kind only where there is none."""
    kind, why = impacts.kind_of(row), row["cause"]["kind"]
    if kind == "availability" and why == "not_known" and _is_leaderless(row):
        why = "no_leader"
    for name in (f"next.{kind}_{why}", f"next.{kind}"):
        if words(name):
            return name
    return "next.other"


def _is_leaderless(row: Row) -> bool:
    return {one["kind"] for one in row.get("hits") or ()} == {"leaderless"}
