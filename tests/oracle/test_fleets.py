"""Gold of some fleets against the oracle: rows of the kernel and of its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oracle import gold

if TYPE_CHECKING:
    from pathlib import Path

    from tests.oracle.plain import Rows

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", gold.KEYS)
def test_gold_equals_plain_python(rolled: Path, right: dict[str, Rows], name: str):
    assert right[name], "an empty table proves nothing"
    differences = gold.differences(name, gold.told(rolled, name), right[name])
    assert not differences, "\n".join((f"{len(differences)} differences", *differences[:10]))


def test_rows_in_another_dates_partition_are_set_aside(right: dict[str, Rows]):
    """The driver rejects these rows before the kernel."""
    assert "its date is not that of its start" in {key[2] for key in right["rejected"]}
