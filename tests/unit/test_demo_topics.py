"""Requests that librdkafka loses with its bootstrap handle are asked again; a fake loses them."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from demo import topics
from demo.errors import DemoError

if TYPE_CHECKING:
    from demo.cluster import Cluster

LOST, EXISTS, REFUSED = (
    KafkaError._DESTROY_BROKER, KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.POLICY_VIOLATION,
)  # fmt: skip
UNKNOWN = KafkaError.UNKNOWN_TOPIC_OR_PART


class FakeAdmin:
    """Gives each topic's answers in turn; None is a success."""

    def __init__(self, answers: dict[str, list[int | None]]) -> None:
        self.answers, self.asked = answers, list[list[str]]()

    def admin(self) -> FakeAdmin:
        return self

    def list_topics(self, timeout: float) -> None:
        assert timeout

    def create_topics(self, new: list[Any], **_: Any) -> dict[str, Future[None]]:
        self.asked.append([one.topic for one in new])
        return {one.topic: self._answer(one.topic) for one in new}

    def incremental_alter_configs(self, resources: list[Any]) -> dict[Any, Future[None]]:
        return {resources[0]: self._answer(resources[0].name)}

    def delete_topics(self, names: list[str]) -> dict[str, Future[None]]:
        return {names[0]: self._answer(names[0])}

    def _answer(self, topic: str) -> Future[None]:
        future: Future[None] = Future()
        code = self.answers[topic].pop(0)
        if code is None:
            future.set_result(None)
        else:
            future.set_exception(KafkaException(KafkaError(code)))
        return future


def create(admin: FakeAdmin) -> None:
    new = [topics.NewTopic(name, 1, 1) for name in admin.answers]
    topics._create(cast("Cluster", admin), new)


def test_only_what_was_lost_is_asked_again_and_may_be_there_by_then() -> None:
    admin = FakeAdmin({"a": [None], "b": [LOST, LOST, EXISTS], "c": [LOST, None]})
    create(admin)
    assert admin.asked == [["a", "b", "c"], ["b", "c"], ["b"]]


@pytest.mark.parametrize("answers", [[EXISTS], [REFUSED], [LOST, REFUSED], [LOST] * 5])
def test_what_kafka_refuses_is_an_error(answers: list[int | None]) -> None:
    with pytest.raises(DemoError, match=r"Topics? a could not be created"):
        create(FakeAdmin({"a": answers}))


def test_settings_are_asked_for_again_too() -> None:
    topics.configure(cast("Cluster", FakeAdmin({"a": [LOST, None]})), "a", {"k": "v"})
    for answers in ([REFUSED], [LOST] * 5):
        with pytest.raises(DemoError, match="Topic a could not be changed"):
            topics.configure(cast("Cluster", FakeAdmin({"a": [*answers]})), "a", {"k": "v"})


def test_a_topic_that_a_lost_request_deleted_is_deleted() -> None:
    for answers in ([None], [LOST, None], [LOST, UNKNOWN]):
        topics.delete(cast("Cluster", FakeAdmin({"a": [*answers]})), "a")
    for answers in ([UNKNOWN], [LOST, REFUSED], [LOST] * 5):
        with pytest.raises(DemoError, match="Topic a could not be deleted"):
            topics.delete(cast("Cluster", FakeAdmin({"a": [*answers]})), "a")
