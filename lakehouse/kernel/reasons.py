"""Reasons of gold/rejected that code asks for; most others stand in ``sql/runs.sql`` alone."""

from __future__ import annotations

import datetime as dt
from typing import Final

SET_NOT_KNOWN: Final = "its member set is not known"
"""Passes away: the rows are used as soon as bronze/members holds the set."""

IN_THE_FUTURE: Final = "it lies in the future"
"""Passes away as well, when its time has come."""

BEYOND: Final = "no calendar has its start"
"""Of rows whose start lies before 1970 or after 9998."""

CLOCK_SLACK: Final = dt.timedelta(hours=1)
"""So much later than the newest commit of bronze may something have been seen."""
