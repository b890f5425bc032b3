"""Values of attributes as numbers: what is not there is absent, what is no number is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.errors import SourceDataError
from collector.sources.jvm import java
from collector.sources.names import text_of
from collector.sources.values import number_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.catalogue import Metric
    from collector.samples import Series
    from collector.sources.mbean_server import MBeanServer

_ABSENT: Final = object()


class Attributes:
    """Reads attributes; a bean that stands alone is asked once a scrape, however many want it.

    Args:
        server: Who is asked.
        where: What is read, for messages.
    """

    def __init__(self, server: MBeanServer, where: str) -> None:
        self._server = server
        self._where = where
        self._known: dict[tuple[str, str], object] = {}

    def forget(self) -> None:
        """A new scrape begins."""
        self._known.clear()

    def single(self, name: str, attribute: str) -> object:
        """What one bean says, None if it is not there."""
        value = self._once(name, attribute)
        return None if value is _ABSENT else value

    def read(self, metric: Metric, beans: Mapping[Series, Any]) -> dict[Series, float | None]:
        """One metric of these beans; None for NaN.

        Raises:
            SourceError: An attribute is no number, or failed inside the broker.
        """
        return self.read_all([metric], beans)[metric.name]

    def read_all(
        self, metrics: Sequence[Metric], beans: Mapping[Series, Any]
    ) -> dict[str, dict[Series, float | None]]:
        """Several metrics of the same beans by name; the series are those of the first metric.

        Raises:
            SourceError: An attribute is no number, or failed inside the broker.
        """
        found: dict[str, dict[Series, float | None]] = {metric.name: {} for metric in metrics}
        for series, name in beans.items():
            told = self._told(metrics, name, alone=len(beans) == 1)
            for metric, value in zip(metrics, told, strict=True):
                if value is not _ABSENT:
                    own = series._replace(metric=metric.name)
                    found[metric.name][own] = number_of(value, self._where, name, metric)
        return found

    def _told(self, metrics: Sequence[Metric], name: Any, *, alone: bool) -> list[object]:
        if len(metrics) == 1:
            attribute = metrics[0].attribute_name
            return [self._once(name, attribute) if alone else self._ask(name, attribute)]
        try:
            told = self._server.values(name, [metric.attribute_name for metric in metrics])
        except java("javax.management.InstanceNotFoundException"):
            return [_ABSENT] * len(metrics)
        # What was left out is absent or failed: only asked alone does it say which.
        return [
            told[metric.attribute_name]
            if metric.attribute_name in told
            else self._ask(name, metric.attribute_name)
            for metric in metrics
        ]

    def _once(self, name: Any, attribute: str) -> object:
        key = (text_of(name), attribute)
        if key not in self._known:
            self._known[key] = self._ask(name, attribute)
        return self._known[key]

    def _ask(self, name: Any, attribute: str) -> object:
        try:
            return self._server.value(name, attribute)
        except _gone():
            return _ABSENT
        except _failed() as error:
            reason = str(error).splitlines()[0]
            raise SourceDataError(
                f"{self._where}: {text_of(name):.200} {attribute} failed in the broker: {reason}"
            ) from None


def _gone() -> tuple[type[Exception], ...]:
    return (
        java("javax.management.InstanceNotFoundException"),
        java("javax.management.AttributeNotFoundException"),
    )


def _failed() -> tuple[type[Exception], ...]:
    return (
        java("javax.management.MBeanException"),
        java("javax.management.ReflectionException"),
        java("javax.management.JMRuntimeException"),
    )
