"""Names that must not leave the host do not, wherever in an answer they stand."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

import pytest

from collector import catalogue
from collector.agent.scrape_attempt import Scraper
from collector.config import loader
from collector.errors import ConfigError, SourceDataError
from collector.model import (
    Answer,
    Commit,
    Identity,
    Moment,
    Notice,
    Offsets,
    Partition,
    Reading,
    Series,
    SystemClock,
)
from collector.sources.base.hidden_names import HiddenNames, NameRule, Names
from lakehouse.tables import OTHER

if TYPE_CHECKING:
    from pathlib import Path

    from collector.catalogue import Family

KEY = "sixteen letters!"
FAMILY = catalogue.load().family("offsets")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text(f"{KEY}\n")
    return tmp_path / "key"


def digest(name: str) -> str:
    return hmac.new(KEY.encode(), name.encode(), hashlib.sha256).hexdigest()[:16]


def everything() -> Answer:
    """An answer with the names ``secret`` and ``plain`` wherever there may be some."""
    topics = [Series("m", name, 0) for name in ("secret", "plain")]
    clients = [Series("m", user=name, client_id=name) for name in ("secret", "plain")]
    groups = [Series("m", "plain", group=name) for name in ("secret", "plain")]
    named = (*topics, *clients, *groups, Series("m", OTHER), Series("m", "__consumer_offsets", 0))
    reading = Reading("m", "gauge", frozenset(named), dict.fromkeys(named, 1.0))
    commits: dict[Commit, int | None] = {
        Commit(group, topic, 0): 1 for group in ("secret", "plain") for topic in ("secret", "plain")
    }
    partitions = [Partition("secret", 0), Partition("plain", 0)]
    offsets = Offsets(
        commits, dict.fromkeys(partitions, 7), commits, frozenset(partitions),
        {"secret": "id-1", "plain": "id-2"}, frozenset(partitions), frozenset({"secret", "plain"}),
        dict.fromkeys(commits, 3),
    )  # fmt: skip
    notices = tuple(Notice("leader_change", one, None, "broker-2") for one in topics)
    moments = (Moment(1, (reading,)), Moment(2, None))
    return Answer((reading,), 9, offsets=offsets, notices=notices, moments=moments)


@pytest.mark.parametrize(
    "rule",
    [
        NameRule(exclude=("sec*",)),
        NameRule(include=("pl?in", "none")),
        NameRule(hash=True),
        NameRule(exclude=("[s]ecret",), hash=True),
    ],
)
def test_a_hidden_name_is_nowhere_in_an_answer(rule: NameRule, key: Path) -> None:
    hidden = HiddenNames(Names(rule, rule, rule, rule, key))
    told = hidden.answer(everything())
    text = repr(told)
    assert "secret" not in text
    assert (digest("secret") in text) == (rule.hash and not rule.exclude)
    assert ("plain" in text) == (not rule.hash)
    assert OTHER in text
    assert "__consumer_offsets" in text
    assert len(told.moments) == 2
    assert told.offsets is not None
    kept = digest("plain") if rule.hash else "plain"
    assert told.offsets.commits_after[Commit(kept, kept, 0)] == 1
    assert told.offsets.uncertain[Commit(kept, kept, 0)] == 3
    assert told.offsets.topic_ids[kept] == "id-2"


def test_each_kind_of_name_has_rules_of_its_own(key: Path) -> None:
    hidden = HiddenNames(Names(users=NameRule(hash=True), key_file=key))
    (reading,) = hidden.answer(everything()).readings
    assert {one.topic for one in reading.values} == {
        "secret",
        "plain",
        None,
        OTHER,
        "__consumer_offsets",
    }
    assert {one.client_id for one in reading.values} == {"secret", "plain", None}
    assert {one.user for one in reading.values} == {digest("secret"), digest("plain"), None}


def test_zeros_that_did_not_change_are_the_same_object_again() -> None:
    hidden = HiddenNames(Names(topics=NameRule(exclude=("secret",))))
    answer = everything()
    first, second = (hidden.answer(answer).readings[0].zeros for _ in range(2))
    assert first is second


class FakeSource:
    """Says the name of a bean in its error."""

    def identify(self) -> Identity:
        return Identity("c", "1", None, 1)

    def read(self, family: Family) -> Answer:
        bean = r'a:topic=secret,client-id="se,\"cret",user=secret'
        raise SourceDataError(f"JMX of h:1: {bean} Value failed ({family.name})")

    def close(self) -> None:
        return


def test_an_error_names_nobody() -> None:
    hidden = HiddenNames(Names(topics=NameRule(exclude=("secret",))))
    scrape = Scraper(FakeSource(), SystemClock(), hidden).attempt(FAMILY, 10_000_000)
    assert scrape.error == "JMX of h:1: a:topic=***,client-id=***,user=*** Value failed (offsets)"


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ({"topics": {"hash": True}}, "names.key_file: required because a rule has hash: true"),
        ({"topics": {"hashed": True}}, "names.topics.hashed: unknown key; did you mean 'hash'"),
        ({"groups": {"include": "a"}}, "names.groups.include: Expected `array`, got `str`"),
    ],
)
def test_wrong_rules_are_refused(names: object, told: str) -> None:
    raw = {
        "source": {"node": 1, "jmx": {"port": 9999}}, "lake": {"path": "/l"},
        "spool": {"path": "/s"}, "names": names,
    }  # fmt: skip
    with pytest.raises(ConfigError) as refused:
        loader.parse(raw, "agent.yaml")
    assert told in str(refused.value)


@pytest.mark.parametrize(("content", "told"), [("short", "has 5 bytes"), (None, "cannot read")])
def test_a_key_that_hides_nothing_is_refused(
    tmp_path: Path, content: str | None, told: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=told):
        HiddenNames(Names(topics=NameRule(hash=True), key_file=file))
