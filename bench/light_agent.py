"""The delivering part of an agent, alone. Prints its anonymous memory as JSON.

``python -m bench.light_agent LAKE BATCHES``: a spool, a delivery, so many batches.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from bench.peak import anonymous_mb, peak_mb
from collector.telemetry import memory

_MIB = 1 << 20


def main(lake: str, batches: int) -> None:
    memory.configure_malloc()  # first of all, as the agent does
    from bench.many_files import rows_of  # noqa: PLC0415
    from collector.delivery.delivery import Delivery  # noqa: PLC0415
    from collector.encoding.bronze_rows import Batch  # noqa: PLC0415
    from collector.spool.spool import Spool  # noqa: PLC0415
    from lakehouse import tables  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, Spool(Path(folder) / "s.db", 64 * _MIB) as spool:
        delivery = Delivery(lake, dict, spool)
        before = anonymous_mb()
        delivery.check()
        loaded = anonymous_mb()
        memory.trim()
        for number in range(batches):
            made = {one.name: [row[:-2] for row in rows_of(one, 20_900, number)]
                    for one in tables.BRONZE if one is not tables.MEMBERS}  # fmt: skip
            spool.seal([Batch({**made, "members": []})], b"")
            delivery.deliver_next()
        appended = anonymous_mb()
        memory.trim()
        at_rest = anonymous_mb()
    found = {"imported": before, "loaded": loaded, "appended": appended, "at_rest": at_rest}
    found["peak"] = peak_mb()  # resident: the kernel keeps no other peak
    print(json.dumps({name: round(value, 1) for name, value in found.items()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
