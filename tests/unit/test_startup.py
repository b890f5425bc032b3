"""Help is there at once: nothing heavy is imported before a command needs it (bench/startup.py)."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "apscheduler", "arro3", "deltalake", "httpx", "jinja2", "jpype", "msgspec", "pandas",
    "prometheus_client", "pyarrow", "pyspark", "rich", "sqlite3", "yaml",
)  # fmt: skip


@pytest.mark.parametrize("module", ["collector.cli.main", "lakehouse.cli.main"])
def test_help_imports_nothing_that_takes_long(module: str) -> None:
    code = (
        f"import sys, {module}\n"
        f"try: {module}.main(['--help'])\n"
        f"except SystemExit: print('loaded:', *({set(HEAVY)!r} & sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1].split() == ["loaded:"]
