"""Reasons of gold/rejected that the rollup acts on; all of them stand in ``sql/runs.sql``."""

from __future__ import annotations

import datetime as dt
from typing import Final

SET_NOT_KNOWN: Final = "its member set is not known"
"""Passes away: the rows are used as soon as bronze/members holds the set."""

IN_THE_FUTURE: Final = "it lies in the future"
"""Passes away as well, when its time has come."""

CLOCK_SLACK: Final = dt.timedelta(hours=1)
"""So much later than the newest commit of bronze may something have been seen."""
