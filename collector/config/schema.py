"""The sections of the agent's configuration: every key there is, with its default."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import msgspec

from collector.config.units import Duration, Quantity, Size
from lakehouse.tables import DEFAULT_WINDOW_SECONDS

_RESTART = msgspec.Meta(extra={"restart": True})
_SECRET = msgspec.Meta(extra={"secret": True})


def _least(least: str, most: str | None = None) -> msgspec.Meta:
    """Limits of a quantity; None: that of its class."""
    return msgspec.Meta(extra={"least": least, "most": most})


_TIMEOUT = _least("100ms", "10m")
_Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Role = Literal["broker", "controller", "combined", "client", "cluster"]
"""What runs in the JVM that is read; ``combined``: broker and controller, read as two sources;
``cluster``: all brokers together, by Admin alone."""
AUTO: Final = "auto"
EVERY: Final = "every"
SecretFile = Annotated[Path | None, _SECRET]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all sections: unknown keys are refused."""


class Tls(Section, frozen=True):
    """TLS of a JMX port: whom to trust, and who we are where it asks for a certificate.

    Attributes:
        trust_store: Certificates to trust, as PEM, PKCS12 or JKS; None: those that Java trusts,
            on this host alone.
        trust_store_password_file: The password of a PKCS12 or JKS trust store, if it has one.
        key_store: Our own certificate and key, as PKCS12 or JKS.
        key_store_password_file: Its password.
        registry: Whether the RMI registry speaks TLS too (``jmxremote.registry.ssl``).
    """

    trust_store: Path | None = None
    trust_store_password_file: SecretFile = None
    key_store: SecretFile = None
    key_store_password_file: SecretFile = None
    registry: bool = True


class JmxPort(Section, frozen=True):
    """A JMX port, and who asks there; the password is never kept in a configuration.

    Attributes:
        port: The port.
        host: Its host.
        user: The role to log in as; one that is ``readonly`` is enough.
        password_file: A file with the password alone, or a line ``user password`` for each user.
        password_env: The environment variable that holds it, instead of a file.
    """

    port: _Port
    host: str = "127.0.0.1"
    user: str | None = None
    password_file: SecretFile = None
    password_env: str | None = None


class Jmx(JmxPort, frozen=True):
    """How to reach the JMX port; the password is never kept in a configuration.

    Attributes:
        tls: Where the port speaks TLS.
        timeout: For connecting, and for one read.
    """

    tls: Annotated[Tls | None, _RESTART] = None
    timeout: Annotated[Duration, _RESTART, _TIMEOUT] = Duration("5s")


class Attach(Section, frozen=True):
    """Which JVM on this host to attach to: by pid, by systemd unit, or by what it runs.

    Attributes:
        pid: Its process.
        unit: Its systemd unit, such as ``kafka.service``.
        main_class: Without ``pid`` and ``unit``: what the JVM of this user runs.
        timeout: For attaching, and for one read.
    """

    pid: Annotated[int, msgspec.Meta(ge=1, le=4_194_304)] | None = None
    unit: str | None = None
    main_class: str = "kafka.Kafka"
    timeout: Annotated[Duration, _RESTART, _TIMEOUT] = Duration("5s")


class Endpoint(Section, frozen=True):
    """An HTTP endpoint.

    Attributes:
        url: Its address, http or https, without user and password.
        user: Whom to log in as.
        password_file: A file with the password alone, or a line ``user password`` for each user.
        password_env: The environment variable that holds it, instead of a file.
        ca_file: A PEM bundle of whom to trust for https; None: the usual authorities.
        timeout: For one request.
    """

    url: str
    user: str | None = None
    password_file: SecretFile = None
    password_env: str | None = None
    ca_file: Path | None = None
    timeout: Annotated[Duration, _TIMEOUT] = Duration("5s")


class Jolokia(Endpoint, frozen=True):
    """A Jolokia agent inside the JVM."""


class Prometheus(Endpoint, frozen=True):
    """Prometheus's jmx_exporter, in the JVM or beside it; or Strimzi's metrics reporter.

    Attributes:
        exporter: Which of them it is.
        allowlist: The reporter's ``prometheus.metrics.reporter.allowlist``: regular expressions.
        rules_file: The exporter's own configuration, by which it names what it shows; None: it has
            none, and every bean has its default name.
        staleness: How old an answer may be, where something between keeps answers for a while.
        kafka_version: What runs there, such as 4.3.1: the exporter does not say.
    """

    exporter: Annotated[Literal["jmx_exporter", "strimzi"], _RESTART] = "jmx_exporter"
    allowlist: Annotated[tuple[str, ...], _RESTART] = ()
    rules_file: Annotated[Path | None, _RESTART] = None
    staleness: Annotated[Duration, _RESTART] = Duration("0s")
    kafka_version: Annotated[str | None, _RESTART] = None
    timeout: Annotated[Duration, _TIMEOUT] = Duration("10s")


class Jmxquery(JmxPort, frozen=True):
    """The package jmxquery: a Java process for every scrape, its password seen by ``ps``.

    Attributes:
        port: The JMX port.
        user: The role to log in as.
        allow_password_in_argv: You know that everybody who may run ``ps`` reads the password.
        timeout: For one scrape, the start of Java included.
    """

    allow_password_in_argv: bool = False
    timeout: Annotated[Duration, _TIMEOUT] = Duration("30s")


class Statistics(Section, frozen=True):
    """A file to which a client of librdkafka appends its statistics, one JSON object a line.

    Attributes:
        file: The file.
    """

    file: Path


class SourceSettings(Section, frozen=True):
    """What is read: one broker, controller or client, in just one of the ways below.

    A cluster is read as a whole by its Admin API alone: it has none of these ways.

    Attributes:
        node: Node id of the broker or controller; the name to give to a client JVM or a cluster.
            ``auto``: the process is asked for its id. ``every``: each broker that Admin knows, at
            an address with ``{host}`` or ``{node}`` in it.
        role: What runs in the JVM; ``cluster``: no JVM is read.
        cluster: Cluster id that must answer; needed only where the JVM does not report its own.
        jmx: Its JMX port: the usual way.
        attach: Java's local attach API, without a port; it gives full power over the JVM.
        jolokia: A Jolokia agent in the JVM, over HTTP; no Java on our side.
        prometheus: Prometheus's jmx_exporter, where JMX itself is closed; ``cluster`` is needed.
        jmxquery: The package of that name, for who has it already.
        statistics: Of a client that uses librdkafka: a file of its statistics.
        targets_file: Prometheus's ``file_sd``: each of its targets is a source, at an address with
            ``{host}`` and ``{port}`` in it.
    """

    node: Annotated[int | str, _RESTART]
    role: Annotated[Role, _RESTART] = "broker"
    cluster: Annotated[str | None, _RESTART] = None
    jmx: Jmx | None = None
    attach: Attach | None = None
    jolokia: Jolokia | None = None
    prometheus: Prometheus | None = None
    jmxquery: Jmxquery | None = None
    statistics: Statistics | None = None
    targets_file: Annotated[Path | None, _RESTART] = None

    @property
    def name(self) -> str:
        """The source's name in the lake."""
        return f"{self.role}-{self.node}"

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles that are read, each as a source of its own."""
        return ("broker", "controller") if self.role == "combined" else (self.role,)

    @property
    def ways(self) -> list[str]:
        """The names of the ways that are configured."""
        return [way for way in WAYS if getattr(self, way) is not None]

    @property
    def section(self) -> Any:
        """The section of the way that is configured, if there is one."""
        return next((getattr(self, way) for way in self.ways), None)

    @property
    def address(self) -> str:
        """The host or the URL at which it is read; empty: it is read on this host."""
        return str(getattr(self.section, "url", getattr(self.section, "host", "")))


WAYS = ("jmx", "attach", "jolokia", "prometheus", "jmxquery", "statistics")
"""How a source can be reached; just one of them is given."""


class Admin(Section, frozen=True):
    """How Kafka's Admin client reaches the cluster.

    Attributes:
        bootstrap: A broker's ``HOST:PORT``, or several with commas between.
        libs: Folder of the broker's jars, such as ``/opt/kafka/libs``.
        iam_jar: AWS's aws-msk-iam-auth with all it needs, for the login AWS_MSK_IAM; None: off.
        properties_file: Security settings, as a Kafka client's properties file has them.
        timeout: For one request.
        groups: By pattern of a topic's name, patterns of the groups whose lag and lost records are
            counted in it (KIP-490); ``!`` before one excludes. The first that fits a topic counts.
    """

    bootstrap: str
    libs: Annotated[Path, _RESTART]
    iam_jar: Annotated[Path | None, _RESTART] = None
    properties_file: Path | None = None
    timeout: Annotated[Duration, _TIMEOUT] = Duration("5s")
    groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class MetadataLog(Section, frozen=True):
    """The broker's own copy of ``__cluster_metadata``, for min ISR without edges.

    Attributes:
        folder: ``metadata.log.dir`` of the broker, or the first of its ``log.dirs``.
        libs: Where the broker's jars are.
        min_insync_replicas: What the broker's own server.properties says of it: the log doesn't.
    """

    folder: Path
    libs: Annotated[Path, _RESTART]
    min_insync_replicas: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1


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
    timeout: Annotated[Duration, _TIMEOUT] = Duration("10s")


class Lake(Section, frozen=True):
    """Where the Delta tables lie.

    Attributes:
        path: A folder, or ``s3://``, ``abfss://``, ``gs://``.
        options_file: Storage options of delta-rs as YAML; secrets stand there and not here.
        unity_catalog: Who vends credentials for the path; they win over those of ``options_file``.
        commit_interval: How often to deliver at most; each agent at its own moment of it.
    """

    path: Annotated[str, _RESTART, msgspec.Meta(min_length=1)]
    options_file: Annotated[SecretFile, _RESTART] = None
    unity_catalog: Annotated[UnityCatalog | None, _RESTART] = None
    commit_interval: Annotated[Duration, _RESTART, _least("1s")] = Duration("30s")


class SpoolSettings(Section, frozen=True):
    """Where the agent keeps what is not in the lake yet.

    Attributes:
        path: Its SQLite file, on a local disk.
        max_size: Beyond it the oldest batch is dropped, and that is recorded.
    """

    path: Annotated[Path, _RESTART]
    max_size: Annotated[Size, _RESTART, _least("1MiB")] = Size("1GiB")


class Health(Section, frozen=True):
    """The agent's own HTTP server: /metrics, /healthz, /readyz.

    Attributes:
        host: The address to listen at.
        port: The port, another one for each agent of a host; 0 turns it off.
        series: Most series of a metric of Kafka in /metrics; 0: none, so that it has no names.
    """

    host: Annotated[str, _RESTART] = "127.0.0.1"
    port: Annotated[int, _RESTART, msgspec.Meta(ge=0, le=65_535)] = 9464
    series: Annotated[int, _RESTART, msgspec.Meta(ge=0, le=100_000)] = 500


class Java(Section, frozen=True):
    """The Java in the agent's own process.

    Attributes:
        heap: Its heap at most; 128 MiB do for a cluster of 100,000 partitions.
        options: Further options, written as for a shell; JAVA_TOOL_OPTIONS is not looked at.
    """

    heap: Annotated[Size, _RESTART, _least("32MiB", "256GiB")] = Size("128MiB")
    options: Annotated[str, _RESTART] = ""


class Limits(Section, frozen=True):
    """Beyond one of these the largest family is read at a coarser cadence.

    Attributes:
        window_rows: Rows of bronze/runs a window.
        memory: Resident memory of the agent, below what its unit or pod allows.
    """

    window_rows: Annotated[int, msgspec.Meta(ge=1_000, le=1_000_000_000)] = 200_000
    memory: Annotated[Size, _least("256MiB")] = Size("400MiB")  # the agent takes some 150 MiB


class NameRule(Section, frozen=True):
    """What may leave the host of one kind of name; patterns have ``*``, ``?`` and ``[abc]``.

    Attributes:
        hash: Whether a keyed hash is recorded instead of the name.
        include: Names of which series are recorded.
        exclude: Those among them of which none is.
    """

    hash: bool = False
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()


class Names(Section, frozen=True):
    """Names that must not leave the host; all agents of a cluster need the same rules and key.

    Attributes:
        topics: Of topics.
        groups: Of consumer groups.
        users: Of users.
        client_ids: Of client ids.
        key_file: Where ``hash`` is used: the key, at least 16 characters on the first line.
    """

    topics: NameRule = msgspec.field(default_factory=NameRule)
    groups: NameRule = msgspec.field(default_factory=NameRule)
    users: NameRule = msgspec.field(default_factory=NameRule)
    client_ids: NameRule = msgspec.field(default_factory=NameRule)
    key_file: Path | None = None


class FamilySettings(Section, frozen=True):
    """Overrides for one family of the catalogue.

    Attributes:
        interval: Its cadence.
        memory: How long its beans go on showing a value after the cause has ended.
        refresh: How old the values of its beans may be when they are read.
        cap: Most series a scrape; the excess becomes one ``__other__``.
        enabled: Whether it is read at all; by default as the catalogue says.
    """

    interval: Annotated[Duration | None, _least("1s")] = None
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
    window: Annotated[Duration, _RESTART, _least("1s")] = Duration(f"{DEFAULT_WINDOW_SECONDS}s")
    families: dict[str, FamilySettings] = msgspec.field(default_factory=dict)
    catalogue: Path | None = None
    sources: tuple[SourceSettings, ...] | None = None

    def each(self) -> list[Self]:
        """The same for each of its sources, which is ``source`` there."""
        if self.sources is None:
            return [self]
        return [msgspec.structs.replace(self, source=one) for one in self.sources]


def marked(section: Section, mark: str, above: str = "") -> Iterator[tuple[str, object]]:
    """Keys and values of what bears a mark, in a section and in those below it.

    Args:
        section: Where to look.
        mark: ``restart``: a change takes one; ``secret``: a file that may hold one.
        above: What goes before each key.
    """
    return ((key, value) for key, value, extra in _keys(section, above) if mark in extra)


def limited(section: Section) -> Iterator[tuple[str, Quantity, str, str | None]]:
    """Key, value, least and most of each quantity with limits of its own."""
    for key, value, extra in _keys(section, ""):
        if isinstance(value, Quantity) and "least" in extra:
            yield key, value, extra["least"], extra["most"]


def _keys(section: Section, above: str) -> Iterator[tuple[str, object, dict[str, Any]]]:
    """Keys, values and marks of a section and of those below it, families included."""
    for field in msgspec.structs.fields(section):
        key, value = f"{above}{field.name}", getattr(section, field.name)
        metas = getattr(field.type, "__metadata__", ())
        marks = {name: what for meta in metas for name, what in (meta.extra or {}).items()}
        yield key, value, marks
        for name, below in value.items() if isinstance(value, dict) else [("", value)]:
            if isinstance(below, Section):
                yield from _keys(below, f"{key}.{name}." if name else f"{key}.")
