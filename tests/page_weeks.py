"""Weeks for tests of the page: of the design, running, uncertain, blind, hostile, of a fleet."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.core.periods import micros
from lakehouse.report.figures import name
from lakehouse.report.summary.events import Event
from lakehouse.report.summary.objective_rows import Objective, Week
from lakehouse.report.summary.opening import Headline, Tile
from lakehouse.report.summary.summarize import Summary
from lakehouse.report.summary.texts import Strong, Text

if TYPE_CHECKING:
    from lakehouse.report.facts.objectives.statement_rows import Status

START: Final = datetime(2026, 11, 16, tzinfo=UTC)
END: Final = START + timedelta(days=7)
WORDS: Final = {
    "missed": "Missed", "at_risk": "At risk", "uncertain": "Uncertain", "no_data": "No data",
    "on_track": "On track", "met": "Met",
}  # fmt: skip
_LETTERS: Final[dict[str, Status]] = {
    "m": "missed", "n": "met", "u": "uncertain", "-": "no_data", "r": "at_risk", "o": "on_track",
}  # fmt: skip


class Fold(NamedTuple):
    """A section of the details, as helper-free stand-in."""

    anchor: str
    title: str
    line: str
    is_open: bool = False
    tables: tuple[str, ...] = ()
    note: str = ""


FOLDS: Final = (
    Fold("availability", "Availability and min ISR", "3 of 8 topics affected; worst orders"),
    Fold("loss", "Unread data loss", "1 of 2 groups affected; up to 42,000 messages"),
    Fold("throttling", "Client throttling", "2 of 12 clients affected"),
    Fold("tiered", "Tiered storage", "sessions behind 1 h 9 min, up to 9.0 GiB"),
    Fold("risks", "Configuration risks", "2 topics have no spare replica"),
    Fold("incidents", "All incidents", "37 incidents in 7 events"),
    Fold("coverage", "Monitoring coverage", "99.98 % of expected observations of 4 sources"),
)


def at(day: int, clock: str) -> datetime:
    """Return an instant of the week, by the day of the month."""
    hours, minutes = map(int, clock.split(":"))
    return datetime(2026, 11, day, hours, minutes, tzinfo=UTC)


def parts(*spans: tuple[int, str, str]) -> tuple[tuple[int, int], ...]:
    return tuple((micros(at(day, start)), micros(at(day, end))) for day, start, end in spans)


def weeks(letters: str) -> tuple[Week, ...]:
    return tuple(Week(f"W{40 + nth}", _LETTERS[one]) for nth, one in enumerate(letters))


def objective(  # noqa: PLR0917  as a row of the table
    file: str, title: str, letters: str, used: float, worst: Text, attained: str, target: str,
    owner: str | None, section: str, **more: Any,
) -> Objective:  # fmt: skip
    status = _LETTERS[letters[-1]]
    left = tuple(1 - used * max(0, hour - 40) / 128 for hour in range(168))
    return Objective(
        file, title, status, WORDS[status], worst, attained, "98.720 % to 98.760 %",
        f"target {target}", f"{100 * used:,.0f} %", used, used * 0.95, used * 1.08 + 0.02, left,
        weeks(letters), name(owner) if owner else None, section, "",
    )._replace(**more)  # fmt: skip


def event(  # noqa: PLR0917  as a card
    number: int, used: float, when: str, length: str, title: Text, impact: Text, cause: Text,
    step: Text, owner: str | None, what: str, spans: Any, **more: Any,
) -> Event:  # fmt: skip
    status: Status = "missed" if used >= 1 else "at_risk" if used >= 0.5 else "met"
    return Event(
        number, status, used >= 0.5, when, length, "3rd week" if used > 0.5 else "", title, impact,
        cause, step, name(owner) if owner else None,
        f"{100 * used:,.0f} % of {what} budget", used, "Unread data loss", (), spans, None,
    )._replace(**more)  # fmt: skip


ORDERS, AUDIT, SCRATCH, PAYMENTS = map(name, ("orders", "audit-archive", "scratch", "payments"))
BILLING: Final = name("billing / invoicing")
BROKER: Final = name("broker-2")
_DAILY: Final = parts(
    (16, "11:10", "11:59"), (17, "11:05", "11:47"), (18, "11:11", "11:40"), (19, "11:20", "11:59"),
    (20, "11:02", "11:30"), (21, "11:40", "12:23"), (22, "11:12", "11:59"),
)  # fmt: skip

EVENTS: Final = (
    event(1, 12.4, "Wed 18 Nov 02:40 to 04:45", "2 h 5 min", (AUDIT, " lost up to 42,000 messages"),
          ("Retention deleted them unread from 6 partitions of ", name("audit"), "."),
          ("Likely a slow group: no broker event at that time. Group lag is not collected.",),
          ("Find why it was behind at 02:40; raise retention of audit",), "Compliance data", "loss",
          parts((18, "02:40", "04:45"))),
    event(2, 2.62, "7 of 7 days, 11:02 to 12:23", "4 h 24 min",
          (BILLING, " throttled while producing"),
          ("Requests delayed 259 ms on average, 410 ms at most.",),
          ("Reached its quota on ", BROKER, " at up to 9.0 MB/s.",),
          ("Raise the quota or spread the daily batch",), "Billing", "throttling", _DAILY),
    event(3, 1.98, "Wed 18 Nov 14:27 to 14:47", "20 min", (ORDERS, " fell under min ISR"),
          ("3 of 12 partitions of ", ORDERS, " rejected acks=all writes.",),
          ("Not known. No restart, scrape failure or leader change within 60 s.",),
          ("Check followers of orders at 14:27: disk, network, GC",), "Order platform", "min-ISR",
          parts((18, "14:27", "14:47"))),
    event(4, 1.46, "Thu 19 Nov 15:29 to 15:36", "7 min 20 s",
          (BROKER, " outage hit ", PAYMENTS, " and ", SCRATCH),
          ("4 of 6 partitions of ", PAYMENTS, " rejected acks=all writes; 2 of 6 partitions "
           "of ", SCRATCH, " had no leader."),
          ("Likely ", BROKER, ", down 15:29 to 15:36 (connection refused) until the restart. ",
           PAYMENTS, " has no spare replica; ", SCRATCH, " has one replica.",),
          ("Find why broker-2 stopped; add a replica to payments and scratch",),
          "Payments", "leader",
          parts((19, "15:29", "15:36"))),
    event(5, 0.93, "Tue 17 Nov 05:00 to 05:13", "4 min 40 s",
          ("Rolling restart hit ", PAYMENTS, " and ", SCRATCH),
          ("6 of 6 partitions of ", PAYMENTS, " rejected acks=all writes (4 at a time); 6 of "
           "6 partitions of ", SCRATCH, " had no leader (2 at a time).",),
          ("Likely broker-1, broker-2, broker-3 restarting in turn. ", PAYMENTS,
           " has no spare replica; ", SCRATCH, " has one replica."),
          ("Add a replica to payments and scratch",), "Payments", "leader",
          parts((17, "05:00", "05:02"), (17, "05:06", "05:08"), (17, "05:12", "05:13"))),
    event(6, 0.14, "Fri 20 Nov 17:00 to 18:08", "1 h 9 min",
          (name("sessions"), " uploads to tiered storage fell behind"),
          ("Up to 9.0 GiB waited for upload.",), ("Not known.",), (), "Web platform", "upload",
          parts((20, "17:00", "18:08"))),
    event(7, 0.06, "Sat 21 Nov 10:50 to 10:56", "6 min",
          (name("reporting / nightly"), " throttled while fetching"),
          ("Requests delayed 263 ms on average, 410 ms at most.",), ("Reached its quota.",), (),
          "BI", "throttling", parts((21, "10:50", "10:56"))),
)  # fmt: skip

OBJECTIVES: Final = (
    objective("lost-before-read", "Unread data loss", "mmnmmmmm", 12.4,
              (AUDIT, ": 2 h 5 min · 1 of 2 groups missed"), "98.76 %", "99.9 %",
              "Compliance data", "loss"),
    objective("produce-throttling", "Producer throttling", "numnmmmm", 2.62,
              (BILLING, ": 4 h 24 min · 1 of 12 clients missed"), "97.38 %", "99.0 %", "Billing",
              "throttling"),
    objective("leaderless", "Partition availability", "nnmnmmmm", 2.38,
              (SCRATCH, ": 12 min (±40 s) · 1 of 8 topics missed"), "99.88 %", "99.95 %", None,
              "availability"),
    objective("min-isr", "Write availability (min ISR)", "nnnmnmmm", 1.98,
              (ORDERS, ": 20 min · 3 of 8 topics missed"), "99.80 %", "99.9 %", "Order platform",
              "availability"),
    objective("copy-lag", "Tiered-storage upload lag", "nnnnnnnn", 0.14,
              (name("sessions"), ": 1 h 9 min · all 2 topics met"), "99.32 %", "95.0 %",
              "Web platform", "tiered"),
    objective("coverage", "Monitoring coverage", "nnunnnnn", 0.09,
              (BROKER, ": 8 min 51 s · all 4 sources met"), "99.91 %", "99.0 %", "Kafka platform",
              "coverage"),
    objective("fetch-throttling", "Consumer throttling", "nnnnnnnn", 0.06,
              (name("reporting / nightly"), ": 6 min (4 min 50 s to 6 min 10 s) · all 12 clients "
               "met"), "99.94 %", "99.0 %", "BI", "throttling"),
    objective("delete-lag", "Tiered-storage deletion lag", "nnnnnnnn", 0.0,
              (name("clicks"), ": none · all 2 topics met"), "100 %", "95.0 %", "Web platform",
              "tiered"),
    objective("request-throttling", "Request-quota throttling", "--nnnnnn", 0.0,
              (name("audit / archive"), ": none · all 12 clients met"), "100 %", "99.0 %",
              "Compliance data", "throttling"),
)  # fmt: skip

TILES: Final = (
    Tile("availability", "Writes unavailable", "20 min", "missed", ("worst topic: ", ORDERS),
         "+9 min vs W46", "worse", (6, 8, 7, 13, 9, 12, 11, 20), "19 min 50 s to 20 min 10 s"),
    Tile("availability", "No leader", "12 min", "missed", ("worst topic: ", SCRATCH, " (±40 s)"),
         "+1 min; no clear change", "unclear", (3, 4, 7, 4, 8, 10, 11, 12), "11 min to 13 min"),
    Tile("loss", "Messages lost unread", "≤ 42,000", "missed", (AUDIT,), "+1,680 vs W46", "worse",
         (9e3, 14e3, 0, 22e3, 26e3, None, 40_320, 42e3), "0 to 42,000"),
    Tile("throttling", "Clients throttled", "2 of 12", "missed", (BILLING, ": 4 h 24 min"),
         "+23 min vs W46", "worse", (90, 101, 131, 160, 210, 230, 241, 264), ""),
    Tile("coverage", "Coverage, all sources", "99.98 %", "met", (BROKER, " unobserved 8 min 51 s"),
         "same as W46", "same", (0.03, 0.02, 0.09, 0.02, 0.03, 0.02, 0.02, 0.02), ""),
)  # fmt: skip


def bad_week(**more: Any) -> Summary:
    """Return the week of the design's picture."""
    return Summary(
        title="Kafka SLO report", cluster=name("sample"), team=None, week="Week 47",
        period="Mon 16 to Sun 22 Nov 2026, UTC", running="", span=(micros(START), micros(END)),
        elapsed_to=micros(END),
        headline=Headline("missed", "4 of 9 objectives missed", "the same 4 as last week"),
        lead=(
            ("Group ", AUDIT, " lost up to ", Strong("42,000 messages"), " unread."),
            (BILLING, " was throttled for ", Strong("4 h 24 min"), ", every day."),
            ("A rolling restart and an outage of ", BROKER, " left partitions of ", PAYMENTS,
             " and ", SCRATCH, " unavailable."),
        ),
        tiles=TILES, events=EVENTS,
        events_note="5 events used at least 50 % of a weekly error budget. 2 others did not.",
        objectives=OBJECTIVES,
        objectives_note="4 missed, 5 met. The worst subject sets the status.",
        has_owners=True,
        notes=(("Not observed, and counted neither good nor bad: up to 1 min 52 s per topic, "
                "11 min per client. No status in this report depends on it.",),),
        not_collected=("consumer lag (metric kafka.group.lag)",), is_blind=False,
    )._replace(**more)  # fmt: skip


def points(values: dict[int, float | None], quiet: float | None = 0.0, hours: int = 168) -> Any:
    """Points of a timeline of hours."""
    found = (values.get(hour, quiet) for hour in range(hours))
    return [
        [(START + timedelta(hours=hour)).isoformat(), value, value, value]
        for hour, value in enumerate(found)
    ]


def facts(**more: Any) -> dict[str, Any]:
    """Return the facts of this week for the drawings."""
    kinds = ("loss", "throttling", "availability", "availability", "availability", "tiered",
             "throttling")  # fmt: skip
    return {
        "format": 2, "jmxlake": "0.1.0", "cluster": "sample", "from": START.isoformat(),
        "to": END.isoformat(), "time_zone": "UTC", "generated_at": "2026-11-28T17:41:00Z",
        "maintenance": [], "min_coverage_percent": 50.0,
        "events": [
            {"number": one.number, "kind": kind,
             "parts": [{"start": _iso(start), "end": _iso(end)} for start, end in one.parts]}
            for one, kind in zip(EVENTS, kinds, strict=True)
        ],
        "timelines": [
            {"name": "lost_offsets", "unit": "{offset}", "subject": "audit-archive",
             "points": points({50: 5000.0, 51: 20160.0, 52: 16840.0})},
            {"name": "copy_lag_bytes", "unit": "By", "subject": "sessions",
             "points": points({113: 9.6e9, 114: 2e9})},
            {"name": "remote_fetch_bytes", "unit": "By", "subject": None,
             "points": points(dict.fromkeys(range(1, 168, 24), 7.2e9))},
            {"name": "coverage", "unit": "%", "subject": None,
             "points": points({29: 98.0, 87: 94.0, 88: None}, 100.0)},
        ],
    } | more  # fmt: skip


def _iso(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat()


def running_week() -> Summary:
    """Return the same week before its end."""
    status: tuple[Status, ...] = ("missed", "at_risk", "on_track", "no_data")
    rows = tuple(
        one._replace(status=status[nth % 4], word=WORDS[status[nth % 4]], left=one.left[:136])
        for nth, one in enumerate(OBJECTIVES)
    )
    return bad_week(
        headline=Headline("missed", "3 of 9 objectives already missed, 2 at risk", ""),
        running="week running: 81 % elapsed", elapsed_to=micros(at(21, "16:15")),
        objectives=tuple(sorted(rows, key=lambda one: list(WORDS).index(one.status))),
        tiles=tuple(one._replace(delta="", change="none") for one in TILES),
        events=(EVENTS[3]._replace(number=1, when="since Thu 15:29"),),
        objectives_note="Status so far.",
    )  # fmt: skip


def uncertain_week() -> Summary:
    """A week whose bounds leave a status open, with a figure that is not known."""
    first = OBJECTIVES[0]._replace(
        status="uncertain", word="Uncertain", attained="98.9 % to 99.9 %", used="6 to 94 %",
        used_share=None, used_low=0.06, used_high=0.94,
    )  # fmt: skip
    second = OBJECTIVES[1]._replace(
        status="no_data", word="No data", attained="not known", used="not known", used_share=None,
        used_low=None, used_high=None, left=(), worst=("12 clients: not observed long enough",),
    )  # fmt: skip
    tiles = (
        TILES[0]._replace(value="not known", status="no_data", trend=(None,) * 8, delta=""),
        TILES[1]._replace(value="not collected", status=None, trend=(), delta="", note=()),
        *TILES[2:],
    )
    return bad_week(
        headline=Headline("uncertain", "1 of 9 objectives uncertain, none missed", ""),
        objectives=(first, second, *OBJECTIVES[4:]), tiles=tiles, has_owners=False, events=(),
        events_note="",
    )  # fmt: skip


def blind_week() -> Summary:
    """A week that was hardly observed."""
    rows = tuple(
        one._replace(
            status="no_data", word="No data", attained="not known", bounds="", used="not known",
            used_share=None, used_low=None, used_high=None, left=(), owner=None,
            worst=("not observed long enough",), weeks=weeks("-" * 8),
        )
        for one in OBJECTIVES
    )  # fmt: skip
    return bad_week(
        headline=Headline("no_data", "Not known: only 0.1 % of this week was observed", ""),
        lead=("No statement is made about availability, throttling or data loss.",),
        tiles=(), events=(), events_note="", objectives=rows, has_owners=False, is_blind=True,
        objectives_note="No status below 50 % coverage.",
    )  # fmt: skip


def odd_week(odd: str) -> Summary:
    """The week with one odd name at each place of a name."""
    named = name(odd)

    def spoilt(text: Text) -> Text:
        return tuple(named if hasattr(part, "title") and part in _NAMES else part for part in text)

    return bad_week(
        cluster=named, team=named, lead=tuple(map(spoilt, bad_week().lead)),
        tiles=tuple(one._replace(note=(named,)) for one in TILES),
        events=tuple(
            one._replace(
                title=(named, " hit ", named), impact=(named,), cause=("Likely ", named),
                next_step=("Check ", named), owner=named, notes=("planned",),
            )
            for one in EVENTS
        ),
        objectives=tuple(
            one._replace(worst=(named, ": 2 h 5 min"), owner=named, bounds=named.text)
            for one in OBJECTIVES
        ),
        not_collected=(named.text,),
    )  # fmt: skip


_NAMES: Final = (ORDERS, AUDIT, SCRATCH, PAYMENTS, BILLING, BROKER)


def fleet() -> Summary:
    """Hundreds of events and all objectives that exist."""
    rows = tuple(
        OBJECTIVES[nth % 9]._replace(name=f"objective-{nth}", title=f"Objective {nth}")
        for nth in range(20)
    )
    events = tuple(EVENTS[nth % 5]._replace(number=nth + 1) for nth in range(800))
    return bad_week(
        events=events, objectives=tuple(sorted(rows, key=lambda one: -(one.used_share or 0)))
    )
