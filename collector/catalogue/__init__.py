"""Everything that is read, as data: one YAML file per family beside this module."""

from collector.catalogue.entries import Catalogue, Family, Kind, KnownWrong, Metric
from collector.catalogue.loader import load

__all__ = ["Catalogue", "Family", "Kind", "KnownWrong", "Metric", "load"]
