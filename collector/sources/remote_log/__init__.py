"""Metadata topic of remote storage: its settings."""

from pathlib import Path
from typing import Annotated

import msgspec

from collector.settings import RESTART
from collector.sources.base.transport import Transport


class RemoteLog(Transport, frozen=True):
    """Upload and deletion lag of each partition, from ``__remote_log_metadata`` (KIP-405).

    Section ``admin`` has the bootstrap addresses, jars and security settings.

    Attributes:
        log_dirs: ``log.dirs`` of the broker on the agent's host.
    """

    opens = "remote_log.source:opened"
    via = "remote_log"
    roles = frozenset({"broker"})
    needs_java = True
    resumes = True
    with_admin = True

    log_dirs: Annotated[tuple[Path, ...], RESTART, msgspec.Meta(min_length=1, max_length=100)]
