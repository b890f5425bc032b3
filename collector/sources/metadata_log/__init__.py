"""Metadata log of a broker: its settings."""

from pathlib import Path
from typing import Annotated

import msgspec

from collector.settings import RESTART
from collector.sources.base.transport import Transport


class MetadataLog(Transport, frozen=True):
    """The broker's own copy of ``__cluster_metadata``, for exact min ISR.

    Attributes:
        folder: ``metadata.log.dir`` of the broker, or the first of its ``log.dirs``.
        libs: Folder of the broker's jars.
        min_insync_replicas: ``min.insync.replicas`` of the broker's server.properties, which the
            log does not contain.
    """

    opens = "metadata_log.source:opened"
    via = "metadata_log"
    roles = frozenset({"broker"})
    needs_java = True
    resumes = True

    folder: Path
    libs: Annotated[Path, RESTART]
    min_insync_replicas: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1
