"""The part of an agent that delivers, alone: it tells its resident set as JSON.

``python -m bench.light_agent LAKE BATCHES``: a spool, a delivery, so many batches.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from bench.peak import peak_mb
from collector.telemetry import memory

_MIB = 1 << 20


def main(lake: str, batches: int) -> None:
    memory.configure_malloc()  # first of all, as the agent does
    import psutil  # noqa: PLC0415

    from bench.many_files import rows_of  # noqa: PLC0415
    from collector.delivery.delivery import Delivery  # noqa: PLC0415
    from collector.encoding.bronze_rows import Batch  # noqa: PLC0415
    from collector.spool.spool import Spool  # noqa: PLC0415
    from lakehouse import tables  # noqa: PLC0415

    process = psutil.Process()
    with tempfile.TemporaryDirectory() as folder, Spool(Path(folder) / "s.db", 64 * _MIB) as spool:
        delivery = Delivery(lake, dict, spool)
        before = process.memory_info().rss
        delivery.check()
        loaded = process.memory_info().rss
        memory.trim()
        for number in range(batches):
            made = {one.name: [row[:-2] for row in rows_of(one, 20_900, number)]
                    for one in tables.BRONZE if one is not tables.MEMBERS}  # fmt: skip
            spool.seal([Batch({**made, "members": []})], b"")
            delivery.deliver_next()
        appended = process.memory_info().rss
        time.sleep(memory.SETTLED_SECONDS)
        memory.trim()
        at_rest = process.memory_info().rss
    told = {"imported": before, "loaded": loaded, "appended": appended, "at_rest": at_rest}
    in_mb = {name: round(value / 1e6, 1) for name, value in told.items()}
    print(json.dumps({**in_mb, "peak": round(peak_mb(), 1)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
