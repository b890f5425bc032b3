"""Short reports: a bad week, a running one, a quiet one, a blind one and a hostile one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report.figures import name
from lakehouse.report.summary.events import Event
from lakehouse.report.summary.objective_rows import Objective, Week
from lakehouse.report.summary.opening import Headline, Tile
from lakehouse.report.summary.summarize import Summary
from lakehouse.report.summary.texts import Strong
from tests.hostile.values import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.report.facts.objectives.statement_rows import Status
    from lakehouse.report.summary.opening import Change
    from lakehouse.report.summary.texts import Text

HOUR: Final = 3_600_000_000
WEEK: Final = 168 * HOUR
START: Final = 1_794_787_200_000_000  # Mon 16 Nov 2026, UTC
WORDS: Final = {
    "missed": "Missed", "at_risk": "At risk", "uncertain": "Uncertain", "no_data": "No data",
    "on_track": "On track", "met": "Met",
}  # fmt: skip


def tile(
    label: str, value: str, note: Text, delta: str, change: Change, status: Status | None
) -> Tile:
    trend = (None, 1.0, 2.0, 2.0, 1.0, 3.0, 2.0, 4.0)
    return Tile("availability", label, value, status, note, delta, change, trend, value)


def event(number: int, share: float, when: str, length: str, title: Text, **more: Any) -> Event:
    status: Status = "missed" if share >= 1 else "at_risk" if share >= 0.5 else "met"
    made = Event(
        number=number, status=status, is_major=share >= 0.5, when=when, length=length, repeats="",
        title=title, impact=("It hit partitions.",), cause=("Not known.",), next_step=(),
        owner=None, used=f"{share:,.0%} of its budget".replace("%", " %"), used_share=share,
        objective="Unread data loss", notes=(), parts=((START, START + HOUR),), subject=None,
    )  # fmt: skip
    return made._replace(**more)


def objective(
    title: str, status: Status, attained: str, target: str, used: float | None, **more: Any
) -> Objective:
    made = Objective(
        name=title.lower().replace(" ", "-"), title=title, status=status, word=WORDS[status],
        worst=("worst: ", name("orders")), attained=attained, bounds="", target=f"target {target}",
        used="not known" if used is None else f"{used:,.0%}".replace("%", " %"), used_share=used,
        used_low=used, used_high=used, left=(), weeks=(Week("W47", status),), owner=None,
        section="availability", note="",
    )  # fmt: skip
    return made._replace(**more)


def summary(
    headline: Headline,
    tiles: Sequence[Tile] = (),
    events: Sequence[Event] = (),
    objectives: Sequence[Objective] = (),
    **more: Any,
) -> Summary:
    made = Summary(
        title="Kafka SLO report", cluster=name("sample"), team=None, week="Week 47",
        period="Mon 16 to Sun 22 Nov 2026, UTC", running="", span=(START, START + WEEK),
        elapsed_to=START + WEEK, headline=headline, lead=(), tiles=tuple(tiles),
        events=tuple(events), events_note="", objectives=tuple(objectives), objectives_note="",
        has_owners=True, notes=(), not_collected=(), is_blind=False,
    )  # fmt: skip
    return made._replace(**more)


_CAUSE: Final = (
    "Likely ", name("broker-2"), ", down 15:29 to 15:36 (connection refused) until the restart. "
    "payments has no spare replica; scratch has one replica.",
)  # fmt: skip


def bad_week() -> Summary:
    """The week of the sample's lake that the design shows."""
    orders, audit, scratch = name("orders"), name("audit-archive"), name("scratch")
    billing = name("billing / invoicing")
    return summary(
        Headline("missed", "4 of 9 objectives missed", "the same 4 as last week"),
        (
            tile("Writes unavailable", "20 min", ("worst topic: ", orders), "+9 min vs W46",
                 "worse", "missed"),
            tile("No leader", "12 min", ("worst topic: ", scratch, " (±40 s)"),
                 "+1 min; no clear change", "unclear", "missed"),
            tile("Messages lost unread", "≤ 42,000", (audit,), "+1,680 vs W46", "worse", "missed"),
            tile("Clients throttled", "2 of 12", (billing, ": 4 h 24 min"), "+23 min vs W46",
                 "worse", "missed"),
            tile("Coverage, all sources", "99.98 %", (name("broker-2"), " unobserved 8 min 51 s"),
                 "same as W46", "same", "met"),
        ),
        (
            event(1, 12.4, "Wed 18 Nov 02:40 to 04:45", "2 h 5 min",
                  (audit, " lost up to 42,000 messages"), owner=name("Compliance data"),
                  cause=("Likely a slow group: no broker event at that time.",),
                  next_step=("Find why it was behind at 02:40; raise retention of audit.",),
                  used="1,240 % of loss budget", subject=audit),
            event(2, 2.62, "7 of 7 days, 11:02 to 12:23", "4 h 24 min",
                  (billing, " throttled while producing"), owner=name("Billing"),
                  repeats="3rd week",
                  cause=("Reached its quota on ", name("broker-2"), " at up to 9.0 MB/s.",),
                  next_step=("Raise the quota or spread the daily batch.",),
                  used="262 % of throttling budget", subject=billing),
            event(3, 1.98, "Wed 18 Nov 14:27 to 14:47", "20 min", (orders, " fell under min ISR"),
                  owner=name("Order platform"), subject=orders,
                  cause=("Not known. No restart, scrape failure or leader change within 60 s.",),
                  next_step=("Check followers of orders at 14:27: disk, network, GC.",),
                  used="198 % of min-ISR budget"),
            event(4, 1.46, "Thu 19 Nov 15:29 to 15:36", "7 min 20 s",
                  (name("broker-2"), " outage hit payments and scratch"), cause=_CAUSE,
                  owner=name("Payments"), next_step=("Give payments a third replica.",),
                  used="146 % of leader budget"),
            event(5, 0.93, "Tue 17 Nov 05:00 to 05:13", "4 min 40 s",
                  ("Rolling restart hit payments and scratch",), notes=("planned",),
                  cause=("Likely broker-1, broker-2, broker-3 restarting in turn.",),
                  used="93 % of leader budget"),
            event(6, 0.14, "Fri 20 Nov 17:00 to 18:09", "1 h 9 min",
                  (name("sessions"), " uploads to tiered storage fell behind")),
            event(7, 0.06, "Sat 21 Nov 10:50 to 10:56", "6 min",
                  (name("reporting / nightly"), " throttled while fetching")),
        ),
        (
            objective("Unread data loss", "missed", "98.76 %", "99.9 %", 12.4, used_high=13.0),
            objective("Producer throttling", "missed", "97.38 %", "99 %", 2.62, used_high=2.9),
            objective("Partition availability", "missed", "99.88 %", "99.95 %", 2.38),
            objective("Write availability (min ISR)", "missed", "99.80 %", "99.9 %", 1.98),
            objective("Tiered-storage upload lag", "met", "99.32 %", "95 %", 0.14),
            objective("Monitoring coverage", "met", "99.91 %", "99 %", 0.09),
            objective("Consumer throttling", "met", "99.94 %", "99 %", 0.06),
            objective("Tiered-storage deletion lag", "met", "100 %", "95 %", 0.0),
            objective("Request-quota throttling", "met", "100 %", "99 %", 0.0),
        ),
        lead=(
            ("Group ", audit, " lost up to ", Strong("42,000 messages"), " unread."),
            (billing, " was throttled for ", Strong("4 h 24 min"), ", every day."),
            ("Why ", orders, " fell under min ISR is not known.",),
        ),
        events_note="5 events used at least 50 % of a weekly error budget. 2 others did not.",
        objectives_note="4 missed, 5 met. The worst subject sets the status.",
        notes=(("Not observed: up to 1 min 52 s per topic, 11 min per client.",),),
        not_collected=("consumer lag (metric kafka.group.lag)",),
    )  # fmt: skip


def running_week() -> Summary:
    """A week that is not over, with bounds that leave verdicts open."""
    return summary(
        Headline("at_risk", "2 of 4 objectives at risk", ""),
        (
            tile("Writes unavailable", "not known", ("metric not read",), "", "none",
                 None),
            tile("Consumer lag", "not collected", (), "", "none", None),
        ),
        (
            event(1, 0.6, "since Sat 14:02", "34 min", (name("orders"), " has no leader"),
                  next_step=("Check broker-1.",)),
        ),
        (
            objective("Partition availability", "at_risk", "98.9 % to 99.9 %", "99.95 %", 0.6,
                      used_low=0.3, used_high=2.4),
            objective("Unread data loss", "uncertain", "6 % to 94 %", "99.9 %", None),
            objective("Producer throttling", "no_data", "not known", "99 %", None),
            objective("Monitoring coverage", "on_track", "99.9 %", "99 %", 0.1),
        ),
        running="week running: 81 % elapsed", elapsed_to=START + 136 * HOUR, has_owners=False,
    )  # fmt: skip


def quiet_week() -> Summary:
    """A week in which every objective was met, without events."""
    return summary(
        Headline("met", "All 2 objectives met", ""),
        (tile("No leader", "0", (), "same as W46", "same", "met"),),
        (),
        (
            objective("Partition availability", "met", "100 %", "99.95 %", 0.0),
            objective("Monitoring coverage", "met", "99.91 %", "99 %", 0.09),
        ),
    )


def blind_week() -> Summary:
    """A week with too few observations to state anything."""
    return summary(
        Headline("no_data", "Not known: only 0.1 % of this week was observed", ""),
        objectives=(objective("Monitoring coverage", "missed", "0.1 %", "99 %", 99.9),),
        is_blind=True,
        not_collected=("consumer lag (metric kafka.group.lag)",),
    )


ODD_NAMES: Final = (
    *NAMES.values(),
    "<!channel> <@U024BE7LH> ```x``` @all @here <http://evil.example|x> &amp;",
    "**bold** _it_ [click](https://evil.example) <at>everyone</at> {{DATE(2017-02-14T06:08:39Z)}}",
    "https://evil.example/login mailto:x@evil.example",
    "\u05d0\u05d1\u05d2 \u0627\u0644\u0639 (topic)",
    "| a | b |\n# heading\n- item\n1. item",
    "\u6f22\u5b57" * 200,
)
"""Names with markup of chats, cards, mails and terminals."""


def hostile_week(odd: str) -> Summary:
    """The bad week with one odd name at each place that a name can have, words included."""
    named = name(odd)
    week = bad_week()

    def spoilt(text: Text) -> Text:
        return tuple(part if isinstance(part, str) else named for part in text)

    return week._replace(
        cluster=named,
        team=named,
        lead=tuple(map(spoilt, week.lead)),
        tiles=tuple(one._replace(note=(named, " ", named.text)) for one in week.tiles),
        events=tuple(
            one._replace(
                title=(named, " hit ", named.text), cause=("Likely ", named, ".", named.text),
                next_step=("Check ", named), owner=named, subject=named,
            )
            for one in week.events
        ),
        objectives=tuple(
            one._replace(title=named.text, owner=named, worst=("worst: ", named))
            for one in week.objectives
        ),
        notes=(("Not observed: ", named),),
        not_collected=(named.text,),
    )  # fmt: skip
