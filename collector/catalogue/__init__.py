"""The metric catalogue as data: one YAML file per family in this folder."""

from collector.catalogue.entries import Catalogue, Family, Kind, KnownWrong, Metric
from collector.catalogue.loader import load

__all__ = ["Catalogue", "Family", "Kind", "KnownWrong", "Metric", "load"]
