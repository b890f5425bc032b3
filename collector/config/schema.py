"""The sections of the agent's configuration: every key there is, with its default.

Sources declare their own sections (collector/sources/registry.py).
"""

from pathlib import Path
from typing import Annotated, Self

import msgspec

from collector.settings import RESTART, TIMEOUT, Duration, SecretFile, Section, Size, within
from collector.sources.admin.settings import Admin
from collector.sources.base.hidden_names import Names
from collector.sources.base.transport import Transport
from collector.sources.metadata_log.settings import MetadataLog
from collector.sources.registry import SourceSettings
from lakehouse.tables import DEFAULT_WINDOW_SECONDS


class UnityCatalog(Section, frozen=True):
    """A Unity Catalog that vends credentials for the lake's path, so that no host has a key.

    Attributes:
        url: Its address, for Databricks that of the workspace.
        client_id: A service principal's OAuth client.
        client_secret_file: The client's secret.
        token_file: A bearer token instead, read anew each time, for a catalog without OAuth.
        ca_file: A PEM bundle of whom to trust; None: the usual authorities.
        timeout: For one request.
    """

    url: str
    client_id: str | None = None
    client_secret_file: SecretFile = None
    token_file: SecretFile = None
    ca_file: Path | None = None
    timeout: Annotated[Duration, TIMEOUT] = Duration("10s")


class Lake(Section, frozen=True):
    """Where the Delta tables lie.

    Attributes:
        path: A folder, or ``s3://``, ``abfss://``, ``gs://``.
        options_file: Storage options of delta-rs as YAML; secrets stand there and not here.
        unity_catalog: Who vends credentials for the path; they win over those of ``options_file``.
        commit_interval: How often to deliver at most; each agent at its own moment of it.
    """

    path: Annotated[str, RESTART, msgspec.Meta(min_length=1)]
    options_file: Annotated[SecretFile, RESTART] = None
    unity_catalog: Annotated[UnityCatalog | None, RESTART] = None
    commit_interval: Annotated[Duration, RESTART, within("1s")] = Duration("30s")


class SpoolSettings(Section, frozen=True):
    """Where the agent keeps what is not in the lake yet.

    Attributes:
        path: Its SQLite file, on a local disk.
        max_size: Beyond it the oldest batch is dropped, and that is recorded.
    """

    path: Annotated[Path, RESTART]
    max_size: Annotated[Size, RESTART, within("1MiB")] = Size("1GiB")


class Health(Section, frozen=True):
    """The agent's own HTTP server: /metrics, /healthz, /readyz.

    Attributes:
        host: The address to listen at.
        port: The port, another one for each agent of a host; 0 turns it off.
        series: Most series of a metric of Kafka in /metrics; 0: none, so that it has no names.
    """

    host: Annotated[str, RESTART] = "127.0.0.1"
    port: Annotated[int, RESTART, msgspec.Meta(ge=0, le=65_535)] = 9464
    series: Annotated[int, RESTART, msgspec.Meta(ge=0, le=100_000)] = 500


class Java(Section, frozen=True):
    """The Java in the agent's own process.

    Attributes:
        heap: Its heap at most; 128 MiB do for a cluster of 100,000 partitions.
        options: Further options, written as for a shell; JAVA_TOOL_OPTIONS is not looked at.
    """

    heap: Annotated[Size, RESTART, within("32MiB", "256GiB")] = Size("128MiB")
    options: Annotated[str, RESTART] = ""


class Limits(Section, frozen=True):
    """Beyond one of these the largest family is read at a coarser cadence.

    Attributes:
        window_rows: Rows of bronze/runs a window.
        memory: Resident memory of the agent, below what its unit or pod allows.
    """

    window_rows: Annotated[int, msgspec.Meta(ge=1_000, le=1_000_000_000)] = 200_000
    memory: Annotated[Size, within("256MiB")] = Size("400MiB")  # the agent takes some 150 MiB


class FamilySettings(Section, frozen=True):
    """Overrides for one family of the catalogue.

    Attributes:
        interval: Its cadence.
        memory: How long its beans go on showing a value after the cause has ended.
        refresh: How old the values of its beans may be when they are read.
        cap: Most series a scrape; the excess becomes one ``__other__``.
        enabled: Whether it is read at all; by default as the catalogue says.
    """

    interval: Annotated[Duration | None, within("1s")] = None
    memory: Duration | None = None
    refresh: Duration | None = None
    cap: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    enabled: bool | None = None


class Config(Section, frozen=True):
    """The whole file.

    Attributes:
        source: What is read; of several ``sources`` one, first of all the first.
        lake: Where it goes.
        spool: Where it waits.
        admin: Kafka's Admin API; without it there are no leaders, offsets, quotas and topology.
        metadata_log: The broker's own metadata log; with it min ISR has no edges.
        health: The agent's own HTTP server.
        java: The Java in its own process.
        limits: From where on it reads less often.
        names: Names that must not leave the host.
        window: Length of the wall-clock windows at which runs are cut; it divides five minutes or
            is a multiple of it.
        families: Overrides by family name.
        catalogue: Folder with further catalogue files.
        sources: Several brokers, controllers and clients of one cluster, instead of ``source``.
    """

    source: SourceSettings
    lake: Lake
    spool: SpoolSettings
    admin: Admin | None = None
    metadata_log: MetadataLog | None = None
    health: Health = msgspec.field(default_factory=Health)
    java: Java = msgspec.field(default_factory=Java)
    limits: Limits = msgspec.field(default_factory=Limits)
    names: Names = msgspec.field(default_factory=Names)
    window: Annotated[Duration, RESTART, within("1s")] = Duration(f"{DEFAULT_WINDOW_SECONDS}s")
    families: dict[str, FamilySettings] = msgspec.field(default_factory=dict)
    catalogue: Path | None = None
    sources: tuple[SourceSettings, ...] | None = None

    def each(self) -> list[Self]:
        """The same for each of its sources, which is ``source`` there."""
        if self.sources is None:
            return [self]
        return [msgspec.structs.replace(self, source=one) for one in self.sources]

    def transports(self) -> dict[str, Transport]:
        """Return the settings of what is read for the source, by their keys."""
        sections = {
            "source": self.source.section,
            "admin": self.admin,
            "metadata_log": self.metadata_log,
        }
        roles = self.source.roles
        return {
            key: section
            for key, section in sections.items()
            if section is not None and not section.roles.isdisjoint(roles)
        }
