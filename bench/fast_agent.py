"""The agent's command without its lower limit for cadences: ``python -m bench.fast_agent``.

Ten thousand scrapes at the shortest cadence that a person may configure would take an hour.
"""

from __future__ import annotations

from collector.cli.main import main
from collector.config import loader

loader._check_limits = lambda config: None  # noqa: ARG005, SLF001

if __name__ == "__main__":
    main()
