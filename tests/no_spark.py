"""``jmxlake`` where Spark and what only Spark needs are not installed."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any

for name in ("pyspark", "py4j", "delta"):
    sys.modules[name] = None  # type: ignore[assignment]


class _NoPandas(MetaPathFinder):
    """pyarrow looks for pandas; to it None is one that is there."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name=fullname)


sys.meta_path.insert(0, _NoPandas())

from lakehouse.cli.main import main  # noqa: E402 - after what is not there

if __name__ == "__main__":
    main(sys.argv[1:])
