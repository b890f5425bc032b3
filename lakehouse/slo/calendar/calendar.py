"""The calendar of a report: its time zone, and which of its time counts apart."""

import datetime as dt
from typing import Final, NamedTuple

from lakehouse.core import periods
from lakehouse.slo.calendar.business_hours import BusinessHours
from lakehouse.slo.calendar.corrections import Correction
from lakehouse.slo.calendar.maintenance import Maintenance


class Calendar(NamedTuple):
    """The time zone of a report, its business hours, planned maintenance and corrections.

    Attributes:
        time_zone: IANA name; it determines the limits of a week, and how instants are shown.
        business: Business hours in that zone; None: the report has no section on them.
        maintenance: Planned maintenance; objectives are reported without it, too.
        corrections: Time that was agreed not to count; objectives are reported without it, too.
    """

    time_zone: str = periods.UTC_NAME
    business: BusinessHours | None = None
    maintenance: tuple[Maintenance, ...] = ()
    corrections: tuple[Correction, ...] = ()

    @property
    def zone(self) -> dt.tzinfo:
        """The time zone."""
        return periods.time_zone(self.time_zone)


OF_UTC: Final = Calendar()
