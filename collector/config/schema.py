"""Sections of the agent's configuration, with the default of every key, and their JSON Schema.

Sources declare their own sections (collector/sources/source_settings.py).
"""

from pathlib import Path
from typing import Annotated, Final, Self

import msgspec

from collector.settings import (
    RESTART,
    TIMEOUT,
    Duration,
    Quantity,
    SecretFile,
    Section,
    Size,
    within,
)
from collector.sources.base.hidden_names import Names
from collector.sources.source_settings import TRANSPORTS, SourceSettings
from collector.sources.transports import Admin, MetadataLog, RemoteLog, Transport
from lakehouse.tables import DEFAULT_WINDOW_SECONDS
from lakehouse.tables.typed_settings import Schema, schema_document, type_schema

AGENT: Final = "agent"
"""Name of the JSON Schema."""


class UnityCatalog(Section, frozen=True):
    """A Unity Catalog that vends credentials for the lake's path. Hosts then need no storage key.

    Attributes:
        url: Address of the catalog; for Databricks, of the workspace.
        client_id: OAuth client of a service principal.
        client_secret_file: Secret of the OAuth client.
        token_file: Bearer token, for a catalog without OAuth. It is read for every request.
        ca_file: CA bundle (PEM) for verifying the server. None: the system CA store.
        timeout: Timeout per request.
    """

    url: str
    client_id: str | None = None
    client_secret_file: SecretFile = None
    token_file: SecretFile = None
    ca_file: Path | None = None
    timeout: Annotated[Duration, TIMEOUT] = Duration("10s")


class Lake(Section, frozen=True):
    """Location of the Delta tables.

    Attributes:
        path: A folder, or ``s3://``, ``abfss://``, ``gs://``.
        options_file: Storage options of delta-rs (YAML), with their secrets.
        unity_catalog: Catalog that vends credentials for the path. They override ``options_file``.
        commit_interval: Shortest time between two deliveries. Each agent has its own offset.
    """

    path: Annotated[str, RESTART, msgspec.Meta(min_length=1)]
    options_file: Annotated[SecretFile, RESTART] = None
    unity_catalog: Annotated[UnityCatalog | None, RESTART] = None
    commit_interval: Annotated[Duration, RESTART, within("1s")] = Duration("30s")


class SpoolSettings(Section, frozen=True):
    """Disk buffer of undelivered batches.

    Attributes:
        path: SQLite file, on a local disk.
        max_size: Size limit. A full spool drops its oldest batch and records the loss.
    """

    path: Annotated[Path, RESTART]
    max_size: Annotated[Size, RESTART, within("1MiB")] = Size("1GiB")


class Health(Section, frozen=True):
    """The agent's own HTTP server: /metrics, /healthz, /readyz.

    Attributes:
        host: Listen address.
        port: Port; each agent of a host needs its own. 0: disabled.
        series: Series limit per Kafka metric in /metrics. 0: no Kafka metrics, so no names.
    """

    host: Annotated[str, RESTART] = "127.0.0.1"
    port: Annotated[int, RESTART, msgspec.Meta(ge=0, le=65_535)] = 9464
    series: Annotated[int, RESTART, msgspec.Meta(ge=0, le=100_000)] = 500


class Java(Section, frozen=True):
    """The JVM in the agent's own process.

    Attributes:
        heap: Heap limit. 128 MiB suffice for a cluster of 100,000 partitions.
        options: Additional options, in shell syntax. The agent ignores JAVA_TOOL_OPTIONS.
    """

    heap: Annotated[Size, RESTART, within("32MiB", "256GiB")] = Size("128MiB")
    options: Annotated[str, RESTART] = ""


class Limits(Section, frozen=True):
    """Limits of the agent. If one is exceeded, it scrapes the largest family less often.

    Attributes:
        window_rows: Rows of bronze/runs per window.
        memory: Anonymous memory of the agent. Set it below the limit of its unit or pod.
    """

    window_rows: Annotated[int, msgspec.Meta(ge=1_000, le=1_000_000_000)] = 200_000
    memory: Annotated[Size, within("256MiB")] = Size("400MiB")  # the agent takes about 150 MiB


class FamilySettings(Section, frozen=True):
    """Overrides for one family of the catalogue.

    Attributes:
        interval: Scrape interval.
        memory: Time for which its MBeans show a value after the cause has ended.
        refresh: Maximum age of its MBeans' values at a scrape.
        cap: Series limit per scrape. The excess becomes one series ``__other__``.
        enabled: Whether the agent scrapes it. None: as in the catalogue.
    """

    interval: Annotated[Duration | None, within("1s")] = None
    memory: Duration | None = None
    refresh: Duration | None = None
    cap: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    enabled: bool | None = None


class Config(Section, frozen=True):
    """The whole file.

    Attributes:
        source: Source. With ``sources``: one of them, initially the first.
        lake: Destination.
        spool: Disk buffer.
        admin: Kafka's Admin API. Without it leaders, offsets, quotas and topology are unknown.
        metadata_log: Metadata log of the broker. With it min ISR is exact.
        remote_log: Metadata topic of remote storage. With it tiered-storage lag is exact.
        health: HTTP server of the agent.
        java: JVM in the agent's own process.
        limits: Limits. If one is exceeded, the agent scrapes less often.
        names: Names that must not leave the host.
        window: Length of a window of runs. It divides five minutes or is a multiple of five
            minutes.
        families: Overrides by family name.
        catalogue: Folder with additional catalogue files.
        sources: Several brokers, controllers and clients of one cluster, instead of ``source``.
    """

    source: SourceSettings
    lake: Lake
    spool: SpoolSettings
    admin: Admin | None = None
    metadata_log: MetadataLog | None = None
    remote_log: RemoteLog | None = None
    health: Health = msgspec.field(default_factory=Health)
    java: Java = msgspec.field(default_factory=Java)
    limits: Limits = msgspec.field(default_factory=Limits)
    names: Names = msgspec.field(default_factory=Names)
    window: Annotated[Duration, RESTART, within("1s")] = Duration(f"{DEFAULT_WINDOW_SECONDS}s")
    families: dict[str, FamilySettings] = msgspec.field(default_factory=dict)
    catalogue: Path | None = None
    sources: tuple[SourceSettings, ...] | None = None

    def each(self) -> list[Self]:
        """Return one configuration per source, with that source as ``source``."""
        if self.sources is None:
            return [self]
        return [msgspec.structs.replace(self, source=one) for one in self.sources]

    def transports(self) -> dict[str, Transport]:
        """Return the settings of the transports that read the source, by key."""
        sections = {
            "source": self.source.transport,
            "admin": self.admin,
            "metadata_log": self.metadata_log,
            "remote_log": self.remote_log,
        }
        roles = self.source.roles
        return {
            key: section
            for key, section in sections.items()
            if section is not None and not section.roles.isdisjoint(roles)
        }


def agent_schema() -> Schema:
    """Return the JSON Schema of agent.yaml."""
    root, definitions = type_schema(Config, _of_own_type)
    config, source = definitions["Config"], definitions["SourceSettings"]
    # The loader uses the first of ``sources`` as ``source``.
    config["required"].remove("source")
    config["oneOf"] = [{"required": ["source"]}, {"required": ["sources"]}]
    of_cluster = {"properties": {"role": {"const": "cluster"}}, "required": ["role"]}
    source["oneOf"] = [*({"required": [name]} for name in TRANSPORTS), of_cluster]
    return schema_document(AGENT, "Configuration of jmxlake-agent", root, definitions)


def _of_own_type(kind: type) -> Schema:
    """Return the schema of a quantity with a unit, or of a path."""
    if issubclass(kind, Quantity):
        return {"type": "string", "pattern": f"^[0-9]+\\s*({'|'.join(kind.units)})$"}
    return {"type": "string"}
