"""Whom a name means that a person types, and what is said where it means nobody."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lakehouse.core.metrics import PARTITION_COUNT
from lakehouse.core.subjects import Subject
from lakehouse.errors import SubjectError
from lakehouse.explain.subject import find, name_of
from tests.sample_facts import EVIL

LAKE = "/lake"


def one(kind: str, cluster: str = "c", **names: str | None) -> Subject:
    every = dict.fromkeys(("topic", "user", "client_id", "group", "source")) | names
    told = {PARTITION_COUNT: 4.0} if kind == "topic" else {}
    return Subject(cluster, kind, **every, first_us=0, last_us=1, attributes=told)


def partition_of(topic: Subject, number: int | None) -> Subject:
    return topic if number is None else replace(topic, kind="partition", partition=number)


ORDERS = one("topic", topic="orders")
BOTH = one("client", user="alice", client_id="billing")
USER = one("client", user="bob")
CLIENT = one("client", client_id="loader")
GROUP = one("group", group="nightly")
BROKER = one("source", source="broker-1")
OTHER = one("source", source="client-billing-7")
KNOWN = [ORDERS, BOTH, USER, CLIENT, GROUP, BROKER, OTHER, one("quota", user="quota-only")]


@pytest.mark.parametrize(
    ("text", "meant", "partition"),
    [
        ("orders", ORDERS, None),
        ("topic:orders", ORDERS, None),
        ("orders/3", ORDERS, 3),
        ("topic:orders/0", ORDERS, 0),
        ("partition:orders/0", ORDERS, 0),
        ("alice/billing", BOTH, None),
        ("client:billing", BOTH, None),
        ("client:alice/billing", BOTH, None),
        ("bob", USER, None),
        ("user:bob", USER, None),
        ("loader", CLIENT, None),
        ("client:loader", CLIENT, None),
        ("nightly", GROUP, None),
        ("group:nightly", GROUP, None),
        ("broker-1", BROKER, None),
        ("broker:1", BROKER, None),
        ("source:client-billing-7", OTHER, None),
    ],
)
def test_each_way_to_write_a_name_means_its_subject(
    text: str, meant: Subject, partition: int | None
) -> None:
    assert find(text, KNOWN, LAKE) == (
        meant if partition is None else partition_of(meant, partition)
    )


@pytest.mark.parametrize("subject", KNOWN[:-1])
def test_the_name_that_is_told_means_it_again(subject: Subject) -> None:
    assert find(name_of(subject), KNOWN, LAKE) == subject
    if subject.kind == "topic":
        second = partition_of(subject, 2)
        assert find(name_of(second), KNOWN, LAKE) == second


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        ("ordrs", "topic:orders"),
        ("Orders", "topic:orders"),
        ("ordrs/3", "topic:orders"),
        ("group:nightli", "group:nightly"),
        ("alice/biling", "alice/billing"),
        ("broker-11", "broker-1"),
        ("group:orders", "topic:orders"),
    ],
)
def test_a_name_that_is_nobody_s_is_one_line_with_those_that_are_alike(
    text: str, alike: str
) -> None:
    with pytest.raises(SubjectError, match=rf"did you mean .*{re.escape(alike)}") as told:
        find(text, KNOWN, LAKE)
    assert "\n" not in str(told.value)
    assert LAKE in str(told.value)


def test_where_nothing_is_alike_nothing_is_suggested() -> None:
    with pytest.raises(SubjectError) as told:
        find("zzz", KNOWN, LAKE)
    assert "did you mean" not in str(told.value)
    with pytest.raises(SubjectError):
        find("quota-only", KNOWN, LAKE)


def test_what_is_most_alike_is_suggested_alone() -> None:
    known = [one("topic", topic="other"), one("topic", topic="t"), one("group", group="g")]
    with pytest.raises(SubjectError, match=r"did you mean topic:other\?$"):
        find("othr", known, LAKE)


def test_a_name_of_several_asks_which_one() -> None:
    known = [*KNOWN, one("group", group="orders"), one("client", user="eve", client_id="billing")]
    with pytest.raises(SubjectError, match=r"ambiguous\. Use group:orders or topic:orders"):
        find("orders", known, LAKE)
    with pytest.raises(SubjectError, match=r"ambiguous\. Use alice/billing or eve/billing"):
        find("client:billing", known, LAKE)
    assert find("topic:orders", known, LAKE) == ORDERS


def test_one_subject_of_two_clusters_asks_for_the_cluster() -> None:
    with pytest.raises(SubjectError, match="clusters c, d, and --cluster chooses one"):
        find("orders", [*KNOWN, one("topic", "d", topic="orders")], LAKE)


def test_a_partition_beyond_the_topic_s_is_refused() -> None:
    with pytest.raises(SubjectError, match="but not partition 4"):
        find("orders/4", KNOWN, LAKE)


@pytest.mark.parametrize("evil", [text for text in EVIL if text])
def test_a_hostile_name_is_found_as_the_report_spells_it_and_never_told_raw(evil: str) -> None:
    hostile = one("client", client_id=evil)
    assert find(f"client:{evil}", [*KNOWN, hostile], LAKE) == hostile
    with pytest.raises(SubjectError) as told:
        find(f"{evil}x", [*KNOWN, hostile], LAKE)
    message = str(told.value)
    assert len(message) < 1000
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", message)


def test_a_name_can_be_typed_as_it_is_spelt_out() -> None:
    hostile = one("client", client_id="safe\u202egnp.exe")
    assert find(r"client:safe\u202egnp.exe", [hostile], LAKE) == hostile
