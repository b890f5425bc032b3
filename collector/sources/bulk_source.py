"""What sources without a connection of their own have in common: who answers is asked every time.

A JVM may be restarted between two questions without either of them failing. So its start time is
asked along with every family, and an answer of another JVM than the last one is not used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from collector.errors import IdentityError, SourceError
from collector.samples import Identity
from collector.sources.backoff import Backoff
from collector.sources.bulk import Asked, BulkReader, asked_for
from collector.sources.expected import BROKER_INFO, CLIENT_INFO, CLUSTER_ID, LATEST_MS, RUNTIME
from collector.sources.names import keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from collector.catalogue import Family
    from collector.samples import Answer
    from collector.sources.bulk import Told
    from collector.sources.expected import Expected

_Result = TypeVar("_Result")

STARTED: Final = Asked(RUNTIME, "StartTime")
_CLUSTERS: Final = tuple(Asked(pattern, "Value") for pattern in CLUSTER_ID)


@dataclass(frozen=True, slots=True)
class _Session:
    identity: Identity
    reader: BulkReader


class BulkSource(ABC):
    """A JVM of which everything is asked in one go; how is the subclass's part.

    Args:
        where: What is read, for messages; never holds a credential.
        expected: Who should answer.
        credentials: The file that holds them, if any does.
    """

    def __init__(self, where: str, expected: Expected, credentials: Path | None = None) -> None:
        self._where = where
        self._expected = expected
        info = CLIENT_INFO if expected.role == "client" else BROKER_INFO
        self._info = Asked(info, "Version")
        self._backoff = Backoff(credentials)
        self._session: _Session | None = None

    @abstractmethod
    def _fetch(self, asked: Sequence[Asked]) -> Told:
        """Ask for all of this in one go.

        Raises:
            SourceError: There is no answer, or it cannot be understood.
        """

    def identify(self) -> Identity:
        """Ask who answers, if that is not known yet.

        Raises:
            SourceError: It cannot be reached, refused us, or is another than expected.
        """
        return self._guarded(self._opened).identity

    def read(self, family: Family) -> Answer:
        """Read one family.

        Raises:
            SourceError: The answer did not come, or not in time, or another JVM gave it.
        """
        return self._guarded(lambda: self._read(family))

    def close(self) -> None:
        """Forget who answered; the source may be used again."""
        self._session = None

    def _guarded(self, call: Callable[[], _Result]) -> _Result:
        try:
            return call()
        except SourceError:
            self.close()
            raise

    def _opened(self) -> _Session:
        if self._session is None:
            self._session = self._backoff.attempt(self._open)
        return self._session

    def _open(self) -> _Session:
        identity = self._identity(self._told(()))
        self._expected.check(self._where, identity)
        return _Session(identity, BulkReader(self._where, identity.kafka_version))

    def _read(self, family: Family) -> Answer:
        session = self._opened()
        told = self._told(asked_for(family))
        if self._identity(told) != session.identity:
            raise SourceError(
                f"{self._where}: another JVM answers than before: was it restarted? What it told"
                " is not used, and the next reading begins anew"
            )
        return session.reader.answer(family, told)

    def _told(self, asked: Sequence[Asked]) -> Told:
        return self._fetch((STARTED, self._info, *_CLUSTERS, *asked))

    def _identity(self, told: Told) -> Identity:
        expected = self._expected
        versions = told.get(self._info, {})
        node = expected.node or self._where
        if expected.role != "client":
            if len(versions) != 1:
                raise IdentityError(f"{self._where}: this JVM is no Kafka broker or controller")
            node = keys_of(next(iter(versions))).get("id", "")
        cluster = next((_only(told[one]) for one in _CLUSTERS if told.get(one)), expected.cluster)
        if not isinstance(cluster, str):
            raise IdentityError(f"{self._where}: it does not tell its cluster id: configure it")
        version = versions[min(versions)] if versions else None
        told_version = None if version is None else str(version)
        return Identity(cluster, node, told_version, self._started(told))

    def _started(self, told: Told) -> int:
        started_ms = _only(told.get(STARTED, {}))
        if not isinstance(started_ms, int) or not 0 <= started_ms < LATEST_MS:
            raise SourceError(f"{self._where}: it does not tell when its JVM started")
        return started_ms * 1000


def _only(values: Mapping[str, object]) -> object:
    return next(iter(values.values()), None)
