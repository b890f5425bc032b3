"""The base of sources that read MBeans, over RMI or HTTP: who answers, in time, or an error."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from collector.catalogue import Family
from collector.errors import SourceDataError
from collector.model import Answer, Identity
from collector.sources.base.backoff import Backoff
from collector.sources.base.call_timeout import Worker
from collector.sources.base.error_mapping import source_error
from collector.sources.base.identity import Expected

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
