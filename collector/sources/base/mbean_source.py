"""Base classes of sources of MBeans: identity, time limit and errors.

A snapshot source has no lasting connection. It gets all values of a family at once, over HTTP or
from a process. Its readings are the same as over RMI (see jmx/reader), although the other side
does not filter: only led partitions if the metric requires it, zeros separate from values, NaN as
observed and idle, and the same set object while the series do not change.

A JVM can restart between two requests without an error of either. So a snapshot source requests
the start time with every family, and does not use the answer of another JVM.
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
from collector.sources.base import beans
from collector.sources.base.beans import Answers, Question, series_of
from collector.sources.base.calls import Backoff, Worker
from collector.sources.base.error_mapping import source_error
from collector.sources.base.identity import Expected
from collector.sources.base.readings import Readings, answer_of, number_of, split

_Result = TypeVar("_Result")


class Session(NamedTuple):
    """An open JVM: its identity, and the function that reads a family."""

    identity: Identity
    read: Callable[[Family], Answer]
    connection: Any = None


class MBeanSource(ABC):
    """A JVM that is read through its MBeans. Subclasses open the connection.

    Args:
        where: The source, for error texts, without credentials.
        expected: Expected identity.
        seconds: Time limit of connecting, and of one read.
        credentials: File with the credentials, if any.
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
        """Connect. It can raise exceptions of Java, or a SourceError."""

    def identify(self) -> Identity:
        """Return the identity of the JVM; connect if necessary.

        Raises:
            SourceError: The JVM cannot be reached, refused the agent, or is another JVM.
        """
        return self._opened().identity

    def read(self, family: Family) -> Answer:
        """Read one family.

        Raises:
            SourceError: The read failed or took too long. The connection is closed.
        """
        session = self._opened()
        return self._guarded(lambda: session.read(family))

    def close(self) -> None:
        """Close the connection. The source can be used again."""
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
            raise  # the connection works, and its MBean cache was expensive
        except Exception as error:  # noqa: BLE001 - source_error maps all of them
            self.close()
            raise source_error(self._where, error) from None


_WILDCARD: Final = re.compile(r"(?<!\\)(?:\\\\)*[*?]")
"""Wildcard that is not escaped."""
_HALF: Final = "\ud800"


def is_pattern(name: str) -> bool:
    """Return True if an object name is a pattern. No registered MBean has such a name."""
    return _WILDCARD.search(name) is not None


class SnapshotReader:
    """Converts raw values of one JVM to a family's answer. Another JVM needs a new reader.

    Args:
        where: The source, for error texts.
        version: Kafka version of the JVM, if known.
    """

    def __init__(self, where: str, version: str | None = None) -> None:
        self._where = where
        self._readings = Readings(version)
        self._series: dict[tuple[str, str], dict[str, Series | None]] = {}

    def answer(self, family: Family, answers: Answers) -> Answer:
        """Return the answer for a family, from the answers to ``all_asked``.

        Raises:
            SourceError: A value is not a number, or the other side could not read it.
        """
        led = frozenset(
            Partition(series.topic or "", series.partition or 0)
            for series, count in self._values(beans.IN_SYNC, answers).items()
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
        for question in beans.asked_for(metric):
            pattern, values = question.pattern, answers.get(question, {})
            before = self._series.get((metric.name, pattern), {})
            names = self._series[metric.name, pattern] = {
                name: before[name] if name in before else series_of(metric, pattern, _intact(name))
                for name in values
            }
            for name, series in names.items():
                # An MBean can have two names. The first name counts.
                if series is None or series in found:
                    continue
                if led is None or (series.topic, series.partition) in led:
                    found[series] = self._number(values[name], name, metric)
        return found

    def _number(self, value: object, name: str, metric: Metric) -> float | None:
        if isinstance(value, beans.Failed):
            raise SourceError(
                f"{self._where}: {name:.200} {metric.attribute_name} failed in the broker: {value}"
            )
        number = None if value is None else number_of(value, self._where, name, metric)
        return 1.0 if metric.filter == "binary" and number is not None and number > 0 else number


def _intact(name: str) -> str:
    """Return the name with half a surrogate pair instead of each wildcard.

    Half a surrogate pair arrives as a question mark, which the name of a registered MBean never
    has. The restored name gets a placeholder.
    """
    return _WILDCARD.sub(lambda found: found[0][:-1] + _HALF, name)


class SnapshotSource(MBeanSource):
    """A JVM without a lasting connection. One request has all questions of a family."""

    @abstractmethod
    def _fetch(self, questions: Sequence[Question]) -> Answers:
        """Return the answers to all questions, with one request.

        Raises:
            SourceError: The request failed, or the response is invalid.
        """

    def _open(self) -> Session:
        identity = self._expected.identity(self._where, self._fetch(self._expected.questions))
        reader = SnapshotReader(self._where, identity.kafka_version)
        return Session(identity, partial(self._read, identity, reader))

    def _read(self, identity: Identity, reader: SnapshotReader, family: Family) -> Answer:
        answers = self._fetch((*self._expected.questions, *beans.all_asked(family)))
        if self._expected.identity(self._where, answers) != identity:
            raise SourceError(
                f"{self._where}: another JVM responds than before, such as after a restart; the"
                " agent does not use the answer, and the next scrape connects again"
            )
        return reader.answer(family, answers)
