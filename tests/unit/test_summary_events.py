"""Events in the short report: time, impact, cause, next step and used budget in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.report.summary.summarize import summarize
from lakehouse.report.summary.texts import plain
from tests.summary_facts import MINUTE, Facts, at, cause, event, facts, hit

if TYPE_CHECKING:
    from lakehouse.report.summary.events import Event

KINDS = ("availability", "throttling", "loss", "tiered", "consumer_lag", "latency", "errors",
         "replication", "other")  # fmt: skip
CAUSES = ("rolling_restart", "restarted", "no_answer", "fenced", "unclean_election",
          "leader_change", "reassignment", "config_change", "quota", "retention", "slow_group",
          "copy_errors", "hanging_transaction", "not_known", "unheard_of")  # fmt: skip


def told(row: Facts, **given: Any) -> Event:
    """Return the words of one event."""
    (found,) = summarize(facts(events=[row], **given)).events
    return found


def availability(*sources: str, kind: str = "not_known", **given: Any) -> Facts:
    why = {"error", "single_replica", "no_spare", "also", "ruled_out", "unobserved",
           "leader_changes"} & given.keys()  # fmt: skip
    found = cause(kind, "18 14:27", "18 14:47", *sources, **{key: given.pop(key) for key in why})
    row: Facts = {"topics": ["orders"], "hits": [hit("orders", "under_min_isr", 3, 12)]}
    return event(1, "availability", "18 14:27:30", "18 14:47:30", 20 * MINUTE, found,
                 **(row | given))  # fmt: skip


def test_events_of_week() -> None:
    summary = summarize(facts())
    assert summary.events_note == (
        "5 events used at least 50 % of a weekly error budget. 2 others did not."
    )
    assert [
        (one.number, one.status, one.when, one.length, one.repeats, plain(one.title), one.used)
        for one in summary.events
    ] == [
        (1, "missed", "Wed 18 Nov 02:40 to 04:45", "2 h 5 min", "happened 3 weeks in a row",
         "Group audit-archive lost up to 42,000 messages unread", "1,240 % of loss budget"),
        (2, "missed", "7 of 7 days, 11:02 to 12:23", "4 h 24 min in total",
         "happened 3 weeks in a row",
         "Client billing / invoicing throttled while producing", "262 % of throttling budget"),
        (3, "missed", "Wed 18 Nov 14:27 to 14:47", "20 min", "happened 3 weeks in a row",
         "Partitions of orders fell under min ISR", "198 % of min-ISR budget"),
        (4, "missed", "Thu 19 Nov 15:29 to 15:36", "7 min 20 s", "happened 3 weeks in a row",
         "An outage of broker-2 hit payments and scratch", "146 % of leader budget"),
        (5, "at_risk", "Tue 17 Nov 05:00 to 05:13", "4 min 40 s", "happened 3 weeks in a row",
         "A rolling restart hit payments and scratch", "93 % of leader budget"),
        (6, "met", "Fri 20 Nov 17:00 to 18:09", "1 h 9 min", "",
         "Uploads of sessions to tiered storage fell behind", "14 % of upload budget"),
        (7, "met", "Sat 21 Nov 10:50 to 10:56", "6 min", "",
         "Client reporting / nightly throttled while fetching", "6 % of throttling budget"),
    ]  # fmt: skip
    assert [one.is_major for one in summary.events] == [True] * 5 + [False] * 2


def test_impact_cause_and_next_step_of_week() -> None:
    loss, throttling, unexplained, outage, rolling, *_ = summarize(facts()).events
    assert plain(loss.impact) == "Retention deleted them unread from 6 partitions of audit."
    assert plain(loss.cause) == (
        "Likely audit-archive read more slowly than retention deletes. No restart at that time. "
        "Group lag is not collected."
    )
    assert plain(loss.next_step) == (
        "Find why audit-archive was behind on Wed 18 Nov at 02:40. Then consider longer retention "
        "for audit."
    )
    assert plain(throttling.impact) == "Requests were delayed by 259 ms on average, 410 ms at most."
    assert plain(throttling.cause) == (
        "Reached its quota on broker-2 (8.0 MiB/s per broker). Its highest rate was 8.6 MiB/s."
    )
    assert plain(throttling.next_step) == (
        "Raise the produce quota of billing / invoicing, or spread its load of 11:02 to 12:23 "
        "over more time."
    )
    assert plain(unexplained.impact) == ("3 of 12 partitions of orders rejected acks=all writes.")
    assert plain(unexplained.cause) == (
        "Not known. No restart, scrape failure or leader change at that time."
    )
    assert plain(outage.cause) == (
        "Likely broker-2, down 15:29 to 15:36 (connection refused) until the restart. payments has "
        "no spare replica; scratch has one replica."
    )
    assert plain(outage.next_step).endswith("Add a replica to payments and scratch.")
    assert plain(rolling.impact) == (
        "6 of 6 partitions of payments rejected acks=all writes (4 at a time); "
        "6 of 6 partitions of scratch had no leader (2 at a time)."
    )
    assert plain(rolling.cause).startswith("Likely a rolling restart of broker-1, broker-2 and")
    assert [one.owner.text for one in (loss, outage) if one.owner] == [
        "Compliance data",
        "Payments",
    ]
    assert loss.subject
    assert loss.subject.text == "audit-archive"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("why", CAUSES)
def test_every_kind_and_cause_has_words(kind: str, why: str) -> None:
    by_kind: dict[str, Facts] = {
        "throttling": {"user": "billing", "client_id": "invoicing"},
        "loss": {"group": "audit", "topics": ["audit"]},
        "consumer_lag": {"group": "audit", "topics": ["audit"]},
        "latency": {"source": "broker-1"},
        "errors": {"source": "broker-1"},
    }
    names = by_kind.get(kind, {"topics": ["audit"]})
    row = event(1, kind, "18 14:27", "18 14:47", 20 * MINUTE,
                cause(why, "18 14:27", "18 14:47", "broker-1"), objective="min-isr",
                used=1.2, **names)  # fmt: skip
    summary = summarize(facts(events=[row]))
    (found,) = summary.events
    for text in (found.title, found.cause, found.next_step, summary.lead[0]):
        words = plain(text)
        assert words
        assert not re.search(r"  |\{|\[| [.,;:)]|\bNone\b|: *$|^[a-z]+ (was|lost) *$", words), words
    cause_text = plain(found.cause)
    is_known = why not in {"not_known", "unheard_of"}
    assert cause_text.startswith("Not known") == (not is_known)
    if is_known and why != "quota":
        assert cause_text.startswith("Likely ")
    assert {"audit", "billing", "broker-1"} & set(re.findall(r"[\w-]+", plain(found.title)))


@pytest.mark.parametrize(
    ("kind", "of", "title"),
    [
        ("throttling", "request", "Client u throttled by its request quota"),
        (
            "throttling",
            "controller_mutation",
            "Client u throttled by its controller-mutation quota",
        ),
        ("tiered", "delete", "Deletions of t in tiered storage fell behind"),
        ("latency", "kafka.broker.produce.time.p99", "Produce latency of b was above its limit"),
        ("errors", "kafka.broker.fetch.answers_good", "Fetch requests to b failed"),
        ("errors", "kafka.broker.other.failed", "Client requests to b failed"),
        ("replication", "kafka.partition.under_replicated", "t had replicas out of sync"),
        ("replication", "kafka.partition.unclean_leader", "t had an unclean leader"),
        ("replication", "kafka.partition.without_spare", "t had no spare in-sync replica"),
        ("other", "kafka.broker.offline_log_directories", "Log directories of b were offline"),
        ("other", "kafka.broker.request_handler.idle", "Request handlers of b were saturated"),
        ("other", "acme.gateway.calls", "b was outside its limit"),
    ],
)
def test_title_by_kind_and_what_of_it(kind: str, of: str, title: str) -> None:
    by_kind: dict[str, Facts] = {
        "throttling": {"user": "u"},
        "tiered": {"topics": ["t"]},
        "replication": {"topics": ["t"]},
    }
    names = by_kind.get(kind, {"source": "b"})
    row = event(1, kind, "18 14:27", "18 14:47", MINUTE,
                cause("not_known", "18 14:27", "18 14:47"), of=of, used=1.0, **names)  # fmt: skip
    summary = summarize(facts(events=[row]))
    assert plain(summary.events[0].title) == title
    assert re.search(r"\w.* for 1 min\.$", plain(summary.lead[0]))


@pytest.mark.parametrize("kind", KINDS)
def test_event_without_names_is_of_the_cluster(kind: str) -> None:
    found = told(event(1, kind, "18 14:27", "18 14:47", 20 * MINUTE,
                       cause("not_known", "18 14:27", "18 14:47"), used=0.2))  # fmt: skip
    for text in (found.title, found.impact, found.cause, found.next_step):
        assert not re.search(r"  |^ | [.,;:)]|\bNone\b", plain(text)), plain(text)
    assert found.used == ""


def test_ongoing_event_has_no_end() -> None:
    assert told(availability(ongoing=True)).when == "since Wed 18 Nov 14:27"


def test_event_across_midnight_names_both_days() -> None:
    parts = [{"start": at("18 23:50"), "end": at("19 00:10")}]
    row = event(1, "loss", "18 23:50", "19 00:10", MINUTE,
                cause("retention", "18 23:50", "19 00:10"), parts=parts)  # fmt: skip
    assert told(row).when == "Wed 18 Nov 23:50 to Thu 19 Nov 00:10"


def test_event_below_a_minute_has_seconds() -> None:
    row = availability() | {"from": at("18 14:27:10"), "to": at("18 14:27:40")}
    assert told(row).when == "Wed 18 Nov 14:27:10 to 14:27:40"


def test_recurring_event_across_midnight_has_no_hours() -> None:
    parts = [{"start": at(f"{day} 23:50"), "end": at(f"{day + 1} 00:10")} for day in (16, 17, 18)]
    row = event(1, "throttling", "16 23:50", "19 00:10", MINUTE,
                cause("quota", "16 23:50", "19 00:10"), parts=parts, user="u")  # fmt: skip
    assert told(row).when == "3 of 7 days"


def test_event_in_the_hour_that_occurs_twice_names_its_zone() -> None:
    start, end = "2026-10-25T00:30:00Z", "2026-10-25T00:50:00Z"
    row = availability() | {"from": start, "to": end, "parts": [{"start": start, "end": end}]}
    found = told(row, time_zone="Europe/Berlin", **{
        "from": "2026-10-18T22:00:00Z", "to": "2026-10-25T23:00:00Z"
    })  # fmt: skip
    assert found.when == "Sun 25 Oct 02:30 CEST to 02:50 CEST"


def test_hits_are_bounded() -> None:
    hits = [hit(f"t{number}", "leaderless", 1, None) for number in range(40)]
    found = told(availability(hits=hits, topics=[one["topic"] for one in hits]))
    assert plain(found.title) == "Partitions of t0, t1, t2 and 37 more had no leader"
    assert plain(found.impact) == (
        "1 partition of t0 had no leader; 1 partition of t1 had no leader; 1 partition of t2 had "
        "no leader; 37 more topics."
    )


def test_other_evidence_and_unobserved_time_follow_the_cause() -> None:
    row = availability("broker-2", kind="no_answer", also=["reassignment", "broker-3"],
                       unobserved=[{"source": "broker-1", "us": 4 * MINUTE}])  # fmt: skip
    assert plain(told(row).cause) == (
        "Likely broker-2, which did not answer from 14:27 to 14:47. Also at that time: partition "
        "reassignment and broker-3. broker-1 was not observed for 4 min."
    )


def test_leader_changes_are_counted() -> None:
    row = availability(kind="leader_change", leader_changes=3)
    assert plain(told(row).cause) == "Likely leader changes at 14:27."


def test_planned_and_agreed_events_are_marked() -> None:
    row = availability(planned=True, agreed=True, objective="min-isr", used=0.1)
    assert told(row).notes == ("planned", "agreed not to count")


@pytest.mark.parametrize(
    ("used", "status", "text"),
    [
        (None, "no_data", ""),
        (0.4999, "met", "50 % of min-ISR budget"),
        (0.5, "at_risk", "50 % of min-ISR budget"),
        (0.9999, "at_risk", "99.99 % of min-ISR budget"),
        (1.0, "missed", "100 % of min-ISR budget"),
        (12.4, "missed", "1,240 % of min-ISR budget"),
    ],
)
def test_status_by_used_budget(used: float | None, status: str, text: str) -> None:
    found = told(availability(objective="min-isr", used=used))
    assert (found.status, found.used) == (status, text)


def test_budget_of_other_objective_has_its_title() -> None:
    found = told(availability(objective="orders-in-time", used=0.7))
    assert found.used == "70 % of the budget of orders-in-time"


def test_budget_of_an_objective_that_the_report_lacks_has_a_name() -> None:
    """A team's report has events of brokers, without the objectives on brokers."""
    found = told(availability(objective="produce-latency", used=10.62))
    assert found.used == "1,062 % of latency budget"


def test_several_owners_and_none() -> None:
    found = told(availability(owners=["Payments", "Web"]))
    assert found.owner
    assert found.owner.text == "Payments and Web"
    assert told(availability(owners=None)).owner is None


@pytest.mark.parametrize(
    ("events", "note"),
    [
        ([], "0 events in the observed time."),
        (None, "Not known: this report does not contain events."),
    ],
)
def test_note_without_events(events: list[Facts] | None, note: str) -> None:
    assert summarize(facts(events=events, answers=[])).events_note == note


def test_note_without_events_names_what_is_not_known() -> None:
    answers = [
        {"question": name, "state": "not_known", "reason": "Not known: family x failed."}
        for name in ("lost", "throttling")
    ]
    found = facts(events=[], answers=answers)
    found["coverage"]["percent"] = 81.0
    assert summarize(found).events_note == (
        "0 events in the observed time (81.0 % of this week). "
        "Not known: unread data loss and client throttling."
    )


def test_lag_is_in_the_unit_of_its_metric() -> None:
    row = event(1, "consumer_lag", "18 14:27", "18 14:47", MINUTE,
                cause("slow_group", "18 14:27", "18 14:47"), group="g")  # fmt: skip
    incidents = [
        {"event": 1, "metric": "kafka.group.lag", "worst": 120_000.0},
        {"event": 1, "metric": "kafka.group.time_lag.high", "worst": 1_800.0},
        {"event": 2, "metric": "kafka.group.lag", "worst": 9e9},
    ]
    assert plain(told(row, incidents=incidents).impact) == (
        "Up to 120,000 records were unread. The oldest unread record was up to 30 min old."
    )


@pytest.mark.parametrize(
    ("metric", "title"),
    [
        ("kafka.broker.produce_errors.not_enough_replicas", "Brokers rejected acks=all writes"),
        ("kafka.broker.under_min_isr_partitions", "Brokers had partitions under min ISR"),
        ("kafka.controller.offline_partitions", "Partitions had no leader"),
        ("kafka.partition.leaderless", "Partitions were unavailable"),
    ],
)
def test_availability_without_topics_is_by_its_metric(metric: str, title: str) -> None:
    row = availability(kind="fenced", topics=[], hits=[], used=0.8)
    summary = summarize(facts(events=[row], incidents=[{"event": 1, "metric": metric, "worst": 1}]))
    assert plain(summary.events[0].title) == title
    assert plain(summary.lead[0]) == f"{title} for 20 min."


def test_lag_of_partitions_is_of_a_partition() -> None:
    row = event(1, "consumer_lag", "18 14:27", "18 14:47", MINUTE,
                cause("slow_group", "18 14:27", "18 14:47"), group="g")  # fmt: skip
    incidents = [{"event": 1, "metric": "kafka.group.partition_lag", "worst": 155_871.0}]
    assert plain(told(row, incidents=incidents).impact) == (
        "Up to 156,000 records of a partition were unread."
    )


def test_lag_is_between_the_bounds_of_a_histogram() -> None:
    row = event(1, "consumer_lag", "18 14:27", "18 14:47", MINUTE,
                cause("slow_group", "18 14:27", "18 14:47"), group="g", topics=["t"])  # fmt: skip
    incidents = [{"event": 1, "metric": "kafka.group.partition_lag", "worst": 155_871.0}]
    partitions = [{"group": "g", "topic": "t", "partition": 0, "records_low": 131_072}]
    found = told(row, incidents=incidents, consumer_lag={"partitions": partitions})
    assert plain(found.title) == "Group g lagged on t by over 10,000 records"
    assert plain(found.impact) == "131,000 to 156,000 records of a partition were unread."
    assert found.notes == ("no objective",)


@pytest.mark.parametrize(
    ("group", "lagged", "is_cause"),
    [
        ("audit-archive", ("18 02:00", "18 03:00"), True),
        ("audit-archive", ("18 02:00", "18 02:25"), True),
        ("audit-archive", ("18 02:00", "18 02:24"), False),
        ("audit-archive", ("18 02:45", "18 03:00"), False),
        ("warehouse", ("18 02:00", "18 03:00"), False),
    ],
)
def test_lag_before_a_loss_is_its_cause(
    group: str, lagged: tuple[str, str], *, is_cause: bool
) -> None:
    loss = event(1, "loss", "18 02:40", "18 04:45", MINUTE,
                 cause("retention", "18 02:40", "18 04:45"), group="audit-archive",
                 topics=["audit"])  # fmt: skip
    lag = event(2, "consumer_lag", *lagged, MINUTE, cause("slow_group", *lagged), group=group)
    found, _ = summarize(facts(events=[loss, lag])).events
    assert ("lagged from Wed 18 Nov 02:00 (event 2) until retention" in plain(found.cause)) == (
        is_cause
    )
    assert ("fell behind on Wed 18 Nov at 02:00." in plain(found.next_step)) == is_cause


def test_length_of_several_parts_is_in_total() -> None:
    parts = [{"start": at(one), "end": at(other)} for one, other in
             (("18 14:27", "18 14:30"), ("18 14:40", "18 14:47"))]  # fmt: skip
    assert told(availability(parts=parts)).length == "20 min in total"
    assert told(availability(parts=parts[:1])).length == "20 min"


def test_error_is_its_first_clause() -> None:
    row = availability("broker-2", kind="no_answer", error="connection refused; is it up?")
    assert "(connection refused)" in plain(told(row).cause)


def outages(*topics: str) -> list[Facts]:
    return [
        availability(f"broker-{number}", kind="restarted", topics=[topic], used=2.0)
        | {"number": number}
        for number, topic in enumerate(topics, 1)
    ]


def test_lead_joins_causes_of_one_kind() -> None:
    found = summarize(facts(events=outages("orders", "payments")))
    assert plain(found.lead[0]) == (
        "Outages of broker-1 and broker-2 hit orders and payments: partitions rejected acks=all "
        "writes."
    )


def test_lead_names_what_used_most_of_a_budget_first() -> None:
    rows = [*outages("orders"), availability(used=1.0) | {"number": 2}]
    assert plain(summarize(facts(events=rows)).lead[0]) == (
        "An outage of broker-1 hit orders: partitions rejected acks=all writes. Partitions of "
        "orders rejected acks=all writes for 20 min; the cause is not known."
    )


def test_lead_on_an_uncertain_objective_states_why() -> None:
    found = facts(events=[])
    row = found["objectives"][0]
    found["objectives"] = [{**row, "status": "uncertain"}]
    observed = {**row["subjects"][0], "unknown_us": 0}
    unobserved = {**observed, "unknown_us": 20 * MINUTE}
    for subject, reason in (
        (observed, "1,240 to 1,280 % of its error budget"),
        (unobserved, "audit-archive was not observed for 20 min"),
    ):
        found["objectives"][0]["subjects"] = [subject]
        assert plain(summarize(found).lead[0]).startswith("Unread data loss is uncertain: "), reason
        assert plain(summarize(found).lead[0]).endswith(f": {reason}.")


def test_load_within_a_minute_has_no_times_of_day() -> None:
    row = event(1, "throttling", "18 14:27:06", "18 14:27:50", 44_000_000,
                cause("quota", "18 14:27:06", "18 14:27:50"), of="produce",
                client_id="etl")  # fmt: skip
    assert " to 14:27" not in plain(told(row).next_step)


def test_lag_without_topics_names_its_group_once() -> None:
    row = event(1, "consumer_lag", "18 14:27", "18 14:47", 20 * MINUTE,
                cause("not_known", "18 14:27", "18 14:47"), group="warehouse")  # fmt: skip
    assert plain(told(row).title) == "Group warehouse lagged"


def test_lead_counts_time_of_two_events_once() -> None:
    later = availability(topics=["payments"], used=1.0)
    later |= {"number": 2, "from": at("18 14:37:30"), "to": at("18 14:57:30")}
    later["parts"] = [{"start": later["from"], "end": later["to"]}]
    assert plain(summarize(facts(events=[availability(used=2.0), later])).lead[0]) == (
        "Partitions of orders and payments rejected acks=all writes for 30 min in total; "
        "the cause is not known."
    )


def test_restart_within_a_minute_has_one_time() -> None:
    row = availability()
    row["cause"] = cause("restarted", "18 14:27:10", "18 14:27:20", "broker-2")
    assert plain(told(row).cause) == "Likely broker-2, which restarted at 14:27."


def test_lead_has_three_sentences_on_what_no_event_explains() -> None:
    found = summarize(facts(events=[]))
    assert [plain(one) for one in found.lead] == [
        "Unread data loss was missed: audit-archive, 1,240 % of its error budget.",
        "Client throttling (produce) was missed: billing / invoicing, 262 % of its error budget.",
        "Partition availability was missed: scratch, 238 % of its error budget.",
    ]


def test_lead_of_a_good_week_names_the_largest_event() -> None:
    found = facts()
    found["events"] = found["events"][5:]
    for one in found["objectives"]:
        one["status"] = "met"
    assert [plain(one) for one in summarize(found).lead] == [
        "No event used 50 % of an error budget. The largest: Uploads of sessions to tiered "
        "storage fell behind, 14 % of upload budget."
    ]
