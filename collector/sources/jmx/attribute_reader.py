"""Reads attributes from an MBean server, as numbers and each once a scrape.

What is not there is absent, and what is no number is refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from collector.catalogue import Metric
from collector.errors import SourceDataError
from collector.model import Series
from collector.sources.base.beans import text_of
from collector.sources.base.error_mapping import NOT_ACCEPTED, refused_class
from collector.sources.base.readings import Values, number_of
from collector.sources.java.jvm import java
from collector.sources.jmx.census import Beans
from collector.sources.jmx.mbean_server import MBeanServer

ABSENT: Final = object()
"""Stands for the value of an attribute, or of a bean, that is not there."""


class AttributeReader:
    """Reads attributes; one is asked once a scrape, however many want it.

    Args:
        server: Who is asked.
        where: What is read, for messages.
    """

    def __init__(self, server: MBeanServer, where: str) -> None:
        self._server, self._where = server, where
        self._known: dict[tuple[str, str], object] = {}

    def forget(self) -> None:
        """A new scrape begins."""
        self._known.clear()

    def read(self, metric: Metric, beans: Beans) -> Values:
        """One metric of these beans; None for NaN.

        Raises:
            SourceError: An attribute is no number, or failed inside the broker.
        """
        return self.read_all([metric], beans)[metric.name]

    def read_all(self, metrics: Sequence[Metric], beans: Beans) -> Mapping[str, Values]:
        """Several metrics of the same beans by name; the series are those of the first metric.

        Raises:
            SourceError: An attribute is no number, or failed inside the broker.
        """
        found: dict[str, dict[Series, float | None]] = {metric.name: {} for metric in metrics}
        for series, name in beans.items():
            values = self._several(name, list({metric.attribute_name: None for metric in metrics}))
            for metric in metrics:
                attribute = metric.attribute_name
                # What was left out is absent or failed: only asked alone does it say which.
                value = values[attribute] if attribute in values else self.value(name, attribute)
                if value is not ABSENT:
                    own = series._replace(metric=metric.name)
                    found[metric.name][own] = number_of(value, self._where, name, metric)
        return found

    def value(self, name: Any, attribute: str) -> object:
        """The value of one bean's attribute; ABSENT if it is not there.

        Raises:
            SourceError: It failed inside the broker.
        """
        key = (text_of(name), attribute)
        if key not in self._known:
            self._known[key] = self._ask(name, attribute)
        return self._known[key]

    def _several(self, name: Any, attributes: list[str]) -> Mapping[str, object]:
        if len(attributes) > 1:
            try:
                return self._server.values(name, attributes)
            except java("javax.management.InstanceNotFoundException"):
                return {}
            except java("java.rmi.UnmarshalException") as error:
                if refused_class(error) is None:
                    raise
        return {}

    def _ask(self, name: Any, attribute: str) -> object:
        try:
            return self._server.value(name, attribute)
        except (
            java("javax.management.InstanceNotFoundException"),
            java("javax.management.AttributeNotFoundException"),
        ):
            return ABSENT
        except (
            java("javax.management.MBeanException"),
            java("javax.management.ReflectionException"),
            java("javax.management.JMRuntimeException"),
        ) as error:
            reason = text_of(error).splitlines()[0]
            raise SourceDataError(
                f"{self._where}: {text_of(name):.200} {attribute} failed in the broker:"
                f" {reason:.200}"
            ) from None
        except java("java.rmi.UnmarshalException") as error:
            refused = refused_class(error)
            if refused is None:
                raise
            raise SourceDataError(
                f"{self._where}: the answer for {text_of(name):.200} {attribute} holds {refused},"
                f" {NOT_ACCEPTED}; does the attribute fail in the broker?"
            ) from None
