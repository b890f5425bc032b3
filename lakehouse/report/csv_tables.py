"""Every file of the CSV folder."""

from __future__ import annotations

from typing import Final

from lakehouse.report import (
    csv_accounts,
    csv_changed,
    csv_hygiene,
    csv_observed,
    csv_questions,
    csv_trends,
)

TABLES: Final = (
    *csv_accounts.TABLES,
    *csv_changed.TABLES,
    *csv_questions.TABLES,
    *csv_hygiene.TABLES,
    *csv_trends.TABLES,
    *csv_observed.TABLES,
)
