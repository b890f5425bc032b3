"""The beans of a comparison: what our families read, as patterns that any tool understands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import catalogue

if TYPE_CHECKING:
    from collector.catalogue import Family

FAMILIES = ("min_isr", "quotas", "tiered")
"""Under min ISR, quotas and tier lags: what is compared, everywhere."""

Beans = dict[str, list[str]]
"""Attributes by object name pattern."""


def families() -> list[Family]:
    """The families that are compared."""
    loaded = catalogue.load()
    return [loaded.family(name) for name in FAMILIES]


def beans() -> Beans:
    """What they read.

    Left out are the beans of drafts, which no broker here has, and InSyncReplicasCount, by which we
    tell which partitions a broker leads: peers take what followers say as well.
    """
    found: Beans = {}
    for family in families():
        for metric in family.metrics:
            for pattern in metric.patterns if metric.needs != "draft" else ():
                attributes = found.setdefault(pattern, [])
                if metric.attribute_name not in attributes:
                    attributes.append(metric.attribute_name)
    return found
