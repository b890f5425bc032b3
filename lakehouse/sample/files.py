"""The files of owners and of planned maintenance that belong to a sample."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from lakehouse.core.periods import DAY_US, iso
from lakehouse.errors import LakehouseError
from lakehouse.sample import cluster
from lakehouse.sample.cluster import MINUTE_US, Incident
from lakehouse.tables.typed_settings import schema_comment

_OWNERS: Final[dict[str, Any]] = {
    "owners": [
        {
            "team": "Commerce", "owner": "Mia Lindgren", "tier": "gold",
            "topics": ["orders", "inventory", "clicks"], "groups": ["warehouse"],
            "users": ["shop", "web", "warehouse", "search", "mobile"],
        },
        {
            "team": "Finance", "owner": "Tomas Rey", "tier": "gold",
            "topics": ["payments", "invoices", "audit"], "groups": ["audit-archive"],
            "users": ["billing", "audit", "reporting", "fraud"],
        },
        {"team": "Kafka platform", "owner": "Noor Haddad", "sources": ["*"]},
    ],
    "prices": {
        "currency": "EUR", "stored_gib_month": 0.021, "uploaded_gib": 0, "read_gib": 0.09,
        "disk_gib_month": 0.08,
    },
}  # fmt: skip
_MARK: Final = "# By jmxlake sample, which writes over it; delete this line to keep it.\n"
_BEFORE_US: Final = 30 * MINUTE_US
_PLANNED_US: Final = 90 * MINUTE_US


class Beside(NamedTuple):
    """The files of a lake, which have its name."""

    owners: Path
    maintenance: Path


def beside(root: Path) -> Beside:
    """Return the paths of a lake's files."""
    return Beside(*(root.with_name(f"{root.name}-{one}.yaml") for one in Beside._fields))


def check_free(files: Beside) -> None:
    """Refuse to write over a file that no sample wrote.

    Raises:
        LakehouseError: There is one.
    """
    for file in files:
        if file.exists() and _MARK.encode() not in file.read_bytes():
            raise LakehouseError(
                f"{file}: the file is not a sample's, and is kept; choose another folder"
            )


def write(files: Beside, happened: Sequence[Incident]) -> None:
    """Write the files of a sample.

    Raises:
        LakehouseError: One cannot be written.
    """
    contents = _OWNERS, {"maintenance": _planned(happened)}
    for file, name, content in zip(files, Beside._fields, contents, strict=True):
        text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=100)
        text = schema_comment(name) + _MARK + text
        try:
            file.write_text(text, "utf-8")
        except OSError as error:
            raise LakehouseError(f"{file}: {error.strerror}") from error


def _planned(happened: Sequence[Incident]) -> list[dict[str, Any]]:
    """Return an hour and a half of each day on which all brokers are restarted."""
    days = sorted({one.from_us // DAY_US * DAY_US for one in happened if one.kind == "restarted"})
    starts = [day + cluster.RESTART_MINUTE * MINUTE_US - _BEFORE_US for day in days]
    return [
        {
            "start": iso(start), "end": iso(start + _PLANNED_US), "clusters": [cluster.NAME],
            "reason": "monthly updates of the brokers' hosts",
        }
        for start in starts
    ]  # fmt: skip
