"""Values of one metric by series: what the other side said, as numbers that can be told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from collector.errors import SourceDataError
from collector.samples import Series
from collector.sources.names import text_of

if TYPE_CHECKING:
    from collector.catalogue import Metric

Values = Mapping[Series, float | None]
"""None where the bean says NaN (observed, idle)."""


def number_of(value: object, where: str, name: Any, metric: Metric) -> float | None:
    """A value as a number; true and false count as 1 and 0, and NaN is None.

    Args:
        value: What was said.
        where: What is read, for messages.
        name: The object name of the bean, for messages; as text or as Java has it.
        metric: What it is read for.

    Raises:
        SourceDataError: It is no number, or infinite.
    """
    number = _float(value)
    if math.isinf(number):
        shown = " ".join(text_of(value)[:80].split())
        raise SourceDataError(
            f"{where}: {text_of(name):.200} {metric.attribute_name} is {shown}, not a number:"
            f" mend or remove {metric.name} in the catalogue"
        )
    return None if math.isnan(number) else number


def split(values: Values) -> tuple[frozenset[Series], dict[Series, float | None]]:
    """The series that are zero, and the values of the others."""
    zeros = frozenset(series for series, value in values.items() if value == 0)
    return zeros, {series: value for series, value in values.items() if value != 0}


def _float(value: object) -> float:
    """The value as a number; infinite where it is none."""
    if not isinstance(value, (int, float)):
        return math.inf
    try:
        return float(value)
    except OverflowError:
        return math.inf
