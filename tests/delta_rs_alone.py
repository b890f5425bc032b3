"""``jmxlake`` where Spark, pandas and pyarrow are not installed."""

import sys

for name in ("pyspark", "pandas", "pyarrow"):
    sys.modules[name] = None  # type: ignore[assignment]

from lakehouse.cli.main import main  # noqa: E402 - after what is not there

if __name__ == "__main__":
    main(sys.argv[1:])
