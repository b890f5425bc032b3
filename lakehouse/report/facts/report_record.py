"""Record of a whole report: each key of report.json is a field of ``Report``."""

from typing import Annotated

from lakehouse.report.evidence import Evidence
from lakehouse.report.facts.build import Rack
from lakehouse.report.facts.compared import Previous
from lakehouse.report.facts.coverage import Coverage
from lakehouse.report.facts.event_records import Event, IncidentOfEvent
from lakehouse.report.facts.fields import Declared, Known, Means
from lakehouse.report.facts.kafka.consumer_groups import ConsumerLag, LostBeforeRead
from lakehouse.report.facts.kafka.golden_signals import Service
from lakehouse.report.facts.kafka.hygiene import Hygiene
from lakehouse.report.facts.kafka.min_isr import MinIsr
from lakehouse.report.facts.kafka.remote_reads import RemoteReads
from lakehouse.report.facts.kafka.replication import Replication
from lakehouse.report.facts.kafka.throttling import Throttling
from lakehouse.report.facts.kafka.tier_lag import TierLag
from lakehouse.report.facts.key_figures import KeyFigure
from lakehouse.report.facts.objectives.business_hours import BusinessHours
from lakehouse.report.facts.objectives.composites import Composite
from lakehouse.report.facts.objectives.restated import Restated
from lakehouse.report.facts.objectives.trends import Trends
from lakehouse.report.facts.objectives.verdicts import Verdict
from lakehouse.report.facts.other_metrics import OwnMetrics
from lakehouse.report.facts.owner_accounts import Account
from lakehouse.report.facts.statement_rows import (
    Change,
    Correction,
    Incomplete,
    Maintenance,
    Objective,
)
from lakehouse.report.facts.storage import Capacity, Tiering
from lakehouse.report.facts.timelines import Timeline


class Week(Declared):
    """An ISO week."""

    iso: Annotated[str, Means("ISO week, such as 2026-W47")]
    time_zone: Annotated[str, Means("time zone in which the period is that week")]


class Owners(Declared):
    """Cost allocation; only with an owners file."""

    currency: Annotated[str | None, Means("currency of the costs")]
    accounts: Annotated[list[Account], Means("owners; rows without an owner are last")]


class Report(Declared):
    """A report."""

    format: Annotated[int, Means("version of these keys; raised by a breaking change")]
    jmxlake: Annotated[str, Means("version of jmxlake")]
    cluster: Annotated[str, Means("cluster")]
    from_: Annotated[str, Means("start of the report period, widened to whole windows, UTC")]
    to: Annotated[str, Means("end of the report period, widened to whole windows, UTC")]
    time_zone: Annotated[str, Means("time zone of the page; times in JSON are UTC")]
    week: Annotated[Week | None, Means("ISO week of the period; null: it is not a week")]
    generated_at: Annotated[str, Means("time of the report, UTC")]
    running: Annotated[bool, Means("true: the period has not ended")]
    elapsed: Annotated[float, Means("elapsed share of the period, 0 to 1")]
    window_seconds: Annotated[float, Means("length of a window, seconds")]
    min_coverage_percent: Annotated[float, Means("minimum coverage for a good answer, percent")]
    key_figures: Annotated[list[KeyFigure], Means("figures at the start of the report")]
    previous: Annotated[
        Previous | None,
        Means("change in the missed objectives since the week before; null: not known"),
    ]
    answers: Annotated[list[Evidence], Means("state of each question or section of the page")]
    verdicts: Annotated[list[Verdict], Means("verdicts of the objectives, worst first")]
    composites: Annotated[
        list[Composite],
        Means("composites on all subjects, and on the subjects of each team and tier"),
    ]
    objectives: Annotated[list[Objective], Means("objectives and their subjects")]
    maintenance: Annotated[list[Maintenance], Means("planned maintenance in the period")]
    corrections: Annotated[list[Correction], Means("corrections that concern a subject")]
    restated: Annotated[
        list[Restated] | None,
        Means("subjects whose published figures have changed; null: no figures were published"),
    ]
    business_hours: Annotated[
        BusinessHours | None, Means("objectives over business hours; null: no business hours")
    ]
    events: Annotated[
        list[Event] | None, Means("events, most of an error budget first; null: not known")
    ]
    incidents: Annotated[list[IncidentOfEvent] | None, Means("incidents; null: not known")]
    incidents_omitted: Annotated[int | None, Means("number of further incidents")]
    service: Annotated[Service, Means("requests, latency and traffic")]
    min_isr: Annotated[MinIsr, Means("partitions under min ISR or leaderless (KIP-164)")]
    replication: Annotated[Replication, Means("missing and moving replicas, unclean leaders")]
    throttling: Annotated[Throttling, Means("quotas and throttling (KIP-13)")]
    tier_lag: Annotated[TierLag, Means("tiered-storage lag (KIP-963)")]
    consumer_lag: Annotated[ConsumerLag, Means("lag of consumer groups")]
    lost_before_read: Annotated[
        LostBeforeRead, Means("offsets deleted before a group had read them (KIP-490)")
    ]
    remote_reads: Annotated[RemoteReads, Means("reads from remote storage (KIP-1002)")]
    tiering: Annotated[Tiering, Means("use of remote storage")]
    capacity: Annotated[Capacity, Means("disk use")]
    own_metrics: Annotated[OwnMetrics, Means("metrics without a section of their own")]
    hygiene: Annotated[Hygiene, Means("recommendations")]
    coverage: Annotated[Coverage, Means("coverage and gaps")]
    collected: Annotated[list[str], Means("metrics of the questions with data in gold")]
    timelines: Annotated[list[Timeline], Means("values of the charts")]
    trends: Annotated[Trends, Means("the last weeks of each objective")]
    racks: Annotated[list[Rack], Means("racks of brokers")]
    changes: Annotated[list[Change], Means("changes in the cluster, in the order of notice")]
    changes_omitted: Annotated[dict[str, int], Means("number of further changes by kind")]
    rejected: Annotated[int, Means("number of rejected rows")]
    detection_floor_us: Annotated[
        Known,
        Means(
            "shorter incidents might not be observed, microseconds: 2.5 scrape intervals and twice "
            "the slowest scrape"
        ),
    ]
    incomplete: Annotated[
        list[Incomplete],
        Means("hours in which a table of gold may lack rows; figures of them are not known"),
    ]
    team: Annotated[str, Means("team of the report; only with --team")]
    owners: Annotated[Owners, Means("cost allocation; only with --owners")]
