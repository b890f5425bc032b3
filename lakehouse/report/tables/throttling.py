"""Client throttling: clients that brokers delayed because of a quota."""

from typing import Final

from lakehouse.core import display
from lakehouse.report.facts.kafka.throttling import QUESTION
from lakehouse.report.figures import Row, length
from lakehouse.report.tables.contents import longest, name, number, of, peak, time, word
from lakehouse.report.tables.section import Claim, counted, section
from lakehouse.report.tables.table_spec import Cell, Column, Content, TableSpec


def quantity(key: str, *, is_peak: bool = False) -> Content:
    """Return a value in the unit of its row."""

    def cell(row: Row) -> Cell:
        unit = str(row.get("rate_unit") or "")
        return Cell((display.quantity(row.get(key), unit),), order=row.get(key))

    return of(cell, key, "rate_unit")._replace(is_peak=is_peak)


CLIENTS: Final = TableSpec(
    rows=QUESTION.bad[0],
    caption="Clients throttled",
    noun="client",
    columns=(
        Column("Client", name("user", "client_id")),
        Column("Quota for", word("kind", "kind")),
        Column("Throttled", time("throttled")),
        Column("Wait, mean", number("throttle_ms_mean", display.milliseconds)),
        Column("Wait, max", peak("throttle_ms_max", display.milliseconds)),
        Column("Rate, max", quantity("rate_max", is_peak=True)),
        Column("Quota", quantity("quota")),
    ),
    worst=longest("throttled"),
    quiet="had no throttled time",
)

SECTION: Final = section(
    "throttling",
    "Client throttling",
    counted(QUESTION, Claim(CLIENTS, lambda row: length(row.get("throttled_us")))),
)
