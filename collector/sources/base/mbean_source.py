"""The base of sources of MBeans: identity, time limit, errors; and of those without a connection.

A snapshot source gets all values of a family at once: over HTTP, or from a process. The readings
are the same as over RMI (see jmx/reader), though the other side filters nothing: only led
partitions where the metric says so, zeros apart from values, NaN as observed and idle, and the same
set of series again while nothing changed.

A JVM can restart between two questions without an error of either. So its start time is asked
with every family, and an answer of another JVM than the last one is not used.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from collector.catalogue import Family, Metric
from collector.errors import SourceDataError, SourceError
from collector.model import Answer, Identity, Partition, Series
from collector.sources.base.beans import (
    IN_SYNC,
    Answers,
    Failed,
    Question,
    all_asked,
    asked_for,
    series_of,
)
from collector.sources.base.calls import Backoff, Worker
from collector.sources.base.error_mapping import source_error
from collector.sources.base.identity import Expected
from collector.sources.base.readings import Readings, answer_of, number_of, split

_Result = TypeVar("_Result")


class Session(NamedTuple):
    """A JVM that was reached: who it is, and how its families are read."""

    identity: Identity
    read: Callable[[Family], Answer]
    connection: Any = None


class MBeanSource(ABC):
    """A JVM that is read through its MBeans; how it is reached is the subclass's part.

    Args:
        where: What is read, for messages; never holds a credential.
        expected: Who should answer.
        seconds: How long connecting, and how long one read, may take.
        credentials: The file that holds them, if any does.
    """

    def __init__(
        self, where: str, expected: Expected, seconds: float, credentials: Path | None = None
    ) -> None:
        self._where, self._expected, self._seconds = where, expected, seconds
        self._worker = Worker()
        self._backoff = Backoff(credentials)
        self._session: Session | None = None

    @abstractmethod
    def _open(self) -> Session:
        """Reach it; may raise what Java raises, or a SourceError."""

    def identify(self) -> Identity:
        """Connect if needed and say who answers; costs nothing while connected.

        Raises:
            SourceError: It cannot be reached, refused us, or is another than expected.
        """
        return self._opened().identity

    def read(self, family: Family) -> Answer:
        """Read one family.

        Raises:
            SourceError: The answer did not come, or not in time; the connection is given up.
        """
        session = self._opened()
        return self._guarded(lambda: session.read(family))

    def close(self) -> None:
        """Give up the connection; the source may be used again."""
        self._worker.close()
        self._session = None

    def _opened(self) -> Session:
        if self._session is None:
            self._session = self._backoff.attempt(lambda: self._guarded(self._open))
        return self._session

    def _guarded(self, call: Callable[[], _Result]) -> _Result:
        try:
            return self._worker.within(self._seconds, lambda: self._where, call)
        except SourceDataError:
            raise  # the connection works, and its census was expensive
        except Exception as error:  # noqa: BLE001 - source_error maps all of them
            self.close()
            raise source_error(self._where, error) from None


_WILDCARD: Final = re.compile(r"(?<!\\)(?:\\\\)*[*?]")
"""One that is not escaped."""
_HALF: Final = "\ud800"


def is_pattern(name: str) -> bool:
    """Whether an object name stands for many beans; no registered bean has such a name."""
    return _WILDCARD.search(name) is not None


class SnapshotReader:
    """Turns raw values into a family's answer; another JVM on the other side needs a new reader.

    Args:
        where: What is read, for messages.
        version: Kafka version of the other side, if known.
    """

    def __init__(self, where: str, version: str | None = None) -> None:
        self._where = where
        self._readings = Readings(version)
        self._series: dict[tuple[str, str], dict[str, Series | None]] = {}

    def answer(self, family: Family, answers: Answers) -> Answer:
        """The answer for a family, from the answers to ``all_asked``.

        Raises:
            SourceError: A value is not a number, or failed on the other side.
        """
        led = frozenset(
            Partition(series.topic or "", series.partition or 0)
            for series, count in self._values(IN_SYNC, answers).items()
            if count is not None and count > 0
        )
        readings = []
        for metric in family.metrics:
            found = self._values(metric, answers, led if metric.led else None)
            readings.append(self._readings.reading(metric, *split(found)))
        return answer_of(tuple(readings), family.cap)

    def _values(
        self, metric: Metric, answers: Answers, led: frozenset[Partition] | None = None
    ) -> dict[Series, float | None]:
        found: dict[Series, float | None] = {}
        for question in asked_for(metric):
            pattern, values = question.pattern, answers.get(question, {})
            before = self._series.get((metric.name, pattern), {})
            names = self._series[metric.name, pattern] = {
                name: before[name] if name in before else series_of(metric, pattern, _intact(name))
                for name in values
            }
            for name, series in names.items():
                # A bean may stand under two names, of which the first counts.
                if series is None or series in found:
                    continue
                if led is None or (series.topic, series.partition) in led:
                    found[series] = self._number(values[name], name, metric)
        return found

    def _number(self, value: object, name: str, metric: Metric) -> float | None:
        if isinstance(value, Failed):
            raise SourceError(
                f"{self._where}: {name:.200} {metric.attribute_name} failed in the broker: {value}"
            )
        number = None if value is None else number_of(value, self._where, name, metric)
        return 1.0 if metric.filter == "binary" and number is not None and number > 0 else number


def _intact(name: str) -> str:
    """The name; what was lost of it stays what it was: something that the lake cannot hold."""
    # Half a surrogate pair arrives as a question mark, which a registered bean's name never has.
    return _WILDCARD.sub(lambda found: found[0][:-1] + _HALF, name)


class SnapshotSource(MBeanSource):
    """A JVM without a lasting connection: one request asks all questions of a family."""

    @abstractmethod
    def _fetch(self, question: Sequence[Question]) -> Answers:
        """Ask for all of this in one go.

        Raises:
            SourceError: There is no answer, or it cannot be understood.
        """

    def _open(self) -> Session:
        identity = self._expected.identity(self._where, self._fetch(self._expected.questions))
        reader = SnapshotReader(self._where, identity.kafka_version)
        return Session(identity, partial(self._read, identity, reader))

    def _read(self, identity: Identity, reader: SnapshotReader, family: Family) -> Answer:
        answers = self._fetch((*self._expected.questions, *all_asked(family)))
        if self._expected.identity(self._where, answers) != identity:
            raise SourceError(
                f"{self._where}: another JVM answers than before: was it restarted? What it answers"
                " is not used, and the next reading begins anew"
            )
        return reader.answer(family, answers)
