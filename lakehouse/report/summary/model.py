"""The short report as typed data: every output shows these words and draws these figures.

Texts are plain, with plain spaces between words, and safe to show on one line; names from outside
are of type ``Name``, so that a page can isolate and abbreviate them. Instants are microseconds
since 1970 (UTC). Shares of an error budget are fractions: 1.0 is the whole budget of the window.
"""

from typing import Literal, NamedTuple

from lakehouse.core.periods import Span
from lakehouse.report.facts.objectives.statement_rows import Status
from lakehouse.report.figures import Name

Change = Literal["worse", "better", "unclear", "same", "none"]
"""Against the week before; ``none``: there is nothing to compare with."""


class Strong(NamedTuple):
    """A figure in a sentence that a reader looks for."""

    text: str


Text = tuple[str | Name | Strong, ...]
"""A sentence: words, names and figures in reading order."""


class Headline(NamedTuple):
    """The worst status and its count.

    Attributes:
        status: The worst status of all objectives; ``no_data`` below the coverage floor.
        text: ``4 of 9 objectives missed``.
        then: ``the same 4 as last week``; empty if there is nothing to compare with.
    """

    status: Status
    text: str
    then: str


class Tile(NamedTuple):
    """A key figure with its change and its trend.

    Attributes:
        anchor: The section of the details that it links to.
        label: ``Writes unavailable``.
        value: ``20 min``, ``≤ 42,000``, ``2 of 12``, ``not known``, ``not collected``.
        status: The worst status of its objectives; None: no objective is on it.
        note: ``worst topic: orders (±40 s)``.
        delta: ``+9 min vs W46``, ``+1 min; no clear change``.
        change: Kind of the change.
        trend: The last eight weeks, oldest first. Greater is worse. None: not known.
        title: Exact figure and bounds, for a tooltip.
    """

    anchor: str
    label: str
    value: str
    status: Status | None
    note: Text
    delta: str
    change: Change
    trend: tuple[float | None, ...]
    title: str


class Event(NamedTuple):
    """One event in words.

    Attributes:
        number: Its place in the list, from 1; the same in every output.
        status: ``missed`` from a whole budget, ``at_risk`` from half of it, otherwise ``met``;
            ``no_data`` if no objective counts it.
        is_major: Whether it used at least half of an error budget.
        when: ``Wed 18 Nov 14:27 to 14:47``, ``7 of 7 days, 11:02 to 12:23``, ``since Sat 14:02``.
        length: Its bad time: ``20 min``, ``4 h 20 min in total``.
        repeats: ``happened 3 weeks in a row``; empty the first time.
        title: Subject and verb: ``An outage of broker-2 hit payments and scratch``.
        impact: Its impact, with counts.
        cause: Starts with *Likely* if inferred, or *Not known* with the causes that were ruled out.
        next_step: Imperative; empty if there is nothing to do.
        owner: None: no owners file, or no owner.
        affects: ``affects Finance``, where it belongs to the owner of the brokers.
        used: ``1,240 % of loss budget``; empty: no objective has it.
        used_share: Greatest share of an error budget that it used.
        objective: Name of the objective of ``used``.
        notes: ``planned``, ``agreed not to count``, ``no objective``.
        parts: Its bad intervals, for drawings.
        subject: Subject for ``jmxlake explain``: a topic, group, client or source.
    """

    number: int
    status: Status
    is_major: bool
    when: str
    length: str
    repeats: str
    title: Text
    impact: Text
    cause: Text
    next_step: Text
    owner: Name | None
    used: str
    used_share: float | None
    objective: str | None
    notes: tuple[str, ...]
    parts: tuple[Span, ...]
    subject: Name | None
    affects: Text = ()


class Week(NamedTuple):
    """The status of an objective in one week."""

    name: str
    status: Status


class Objective(NamedTuple):
    """One row of the table of objectives.

    Attributes:
        name: Name of its file, for anchors.
        title: ``Unread data loss``.
        status: Its one status.
        word: ``Missed``.
        worst: Worst subject, its bad time with wide bounds, and how many subjects missed.
        attained: ``98.76 %``, ``98.9 to 99.9 %`` where the bounds could change the status.
        bounds: Exact figure and bounds, for a tooltip.
        target: ``target 99.9 %``; with windows that are not the period: ``28 days to 22 Nov``.
        used: Budget used by the worst subject: ``1,240 %``, ``not known``.
        used_share: The same, as a fraction of the whole window's budget; None: not known.
        used_low: At least; None: not known.
        used_high: At most, unobserved time included; None: not known.
        left: Budget left at the end of each hour so far, fraction of the whole; empty: not known.
        weeks: The last eight weeks, oldest first.
        owner: Owner of the worst subject; None: no owners file, or no owner.
        section: Anchor of the details.
        note: Business hours, corrections: a second line, mostly empty.
        subject: Name of the worst subject; empty without subjects.
        unobserved_us: Its unobserved time, microseconds; None: not known.
    """

    name: str
    title: str
    status: Status
    word: str
    worst: Text
    attained: str
    bounds: str
    target: str
    used: str
    used_share: float | None
    used_low: float | None
    used_high: float | None
    left: tuple[float, ...]
    weeks: tuple[Week, ...]
    owner: Name | None
    section: str
    note: str
    subject: Text = ()
    unobserved_us: int | None = None


class Summary(NamedTuple):
    """A report in short.

    Attributes:
        title: ``Kafka SLO report``.
        cluster: Its name.
        team: The team of a team's report; None: all.
        week: ``Week 47``; empty if the period is not an ISO week.
        period: ``Mon 16 to Sun 22 Nov 2026, UTC``.
        running: ``week running: 81 % elapsed``; empty if it has ended.
        span: The period.
        elapsed_to: End of the observable time; the end of the period if it has ended.
        headline: The worst verdict.
        lead: The greatest events, at most three sentences.
        tiles: Four to six key figures.
        events: All events, most of a budget first.
        events_note: ``5 events used at least 50 % of a weekly error budget. 2 others did not.``
        objectives: Worst first.
        objectives_note: ``4 missed, 5 met. The worst subject sets the status.``
        has_owners: Whether an owners file is known.
        notes: Unobserved time, pooled score, restated weeks: one sentence each.
        not_collected: ``consumer lag (metric kafka.group.lag)``.
        is_blind: Whether too little was observed to state anything; then ``tiles`` and ``events``
            are empty, and ``headline`` has the observed share.
    """

    title: str
    cluster: Name
    team: Name | None
    week: str
    period: str
    running: str
    span: Span
    elapsed_to: int
    headline: Headline
    lead: tuple[Text, ...]
    tiles: tuple[Tile, ...]
    events: tuple[Event, ...]
    events_note: str
    objectives: tuple[Objective, ...]
    objectives_note: str
    has_owners: bool
    notes: tuple[Text, ...]
    not_collected: tuple[str, ...]
    is_blind: bool
