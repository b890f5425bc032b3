"""Settings of every transport: a way to read a source, such as a JMX port or the Admin API.

A transport is one class: its settings, their checks, the families and roles that it reads, and the
source that it opens. The agent imports a source only when it opens it, so settings load neither
Java nor HTTP. ``librdkafka.py`` needs neither and has its own settings.
"""

import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from collector.catalogue.entries import Role, Via
from collector.errors import SettingError
from collector.settings import (
    RESTART,
    TIMEOUT,
    Duration,
    Port,
    SecretFile,
    Section,
    check_url,
    is_loopback,
)


class Transport(Section, frozen=True):
    """Settings of a transport. The class declares the families and roles that it reads."""

    opens: ClassVar[str]
    """Source below collector.sources, as ``module:name``. The agent imports it to open it, because
    it loads Java or HTTP, and calls it with the expected identity and these settings."""
    via: ClassVar[Via]
    """Kind of the families that it reads, as in the catalogue."""
    roles: ClassVar[frozenset[Role]]
    """Roles that the source can read."""
    slow: ClassVar[tuple[str, ...]] = ()
    """Families with a separate connection and thread, because they can take long. A group's
    coordinator can be down, remote storage can hang, and a broker can have thousands of logs. They
    must not delay families that are scraped every few seconds."""
    slow_timeout: ClassVar[Duration | None] = None
    """Least timeout of ``slow``. None: the configured timeout."""
    needs_java: ClassVar[bool] = False
    """Whether the source uses the JVM in the agent's own process."""
    resumes: ClassVar[bool] = False
    """Whether the source has a history and continues at the end of the recorded history. ``opens``
    is then also called with a function that returns that end."""
    with_admin: ClassVar[bool] = False
    """Whether it requires section ``admin``. ``opens`` is then also called with that section and
    with the file of the spool."""

    def check(self, key: str, cluster: str | None) -> None:
        """Check values beyond their types.

        Args:
            key: The section's key, for error texts.
            cluster: The configured cluster ID.

        Raises:
            SettingError: A value is out of its range, or two values contradict each other.
        """

    def for_slow(self) -> Self:
        """Return the settings of the source that reads ``slow``."""
        least = self.slow_timeout
        if least is None or getattr(self, "timeout", least) >= least:
            return self
        return replace(self, timeout=least)


class JvmTransport(Transport, frozen=True):
    """A transport to the MBeans of one JVM."""

    via = "jmx"
    roles = frozenset({"broker", "controller", "client"})
    slow = ("log", "log_offsets")
    slow_timeout = Duration("30s")


def _check_password(key: str, file: Path | None, variable: str | None) -> None:
    """Check that a password has one place.

    Raises:
        SettingError: Both a file and an environment variable are set.
    """
    if file and variable:
        both = (f"{key}.password_file", f"{key}.password_env")
        raise SettingError(key, "set password_file or password_env, not both", both)


class Tls(Section, frozen=True):
    """TLS of a JMX port: trusted certificates, and the agent's own certificate.

    Attributes:
        trust_store: Trusted certificates (PEM, PKCS12 or JKS). None: Java's trusted certificates,
            for a port of this host only.
        trust_store_password_file: Password of a PKCS12 or JKS trust store, if it has one.
        key_store: Certificate and key of the agent (PKCS12 or JKS).
        key_store_password_file: Password of the key store.
        registry: Whether the RMI registry also uses TLS (``jmxremote.registry.ssl``).
    """

    trust_store: Path | None = None
    trust_store_password_file: SecretFile = None
    key_store: SecretFile = None
    key_store_password_file: SecretFile = None
    registry: bool = True


class JmxPort(JvmTransport, frozen=True):
    """A JMX port and its login. The password is never in a configuration.

    Attributes:
        port: Port.
        host: Host.
        user: JMX role to log in as; ``readonly`` suffices.
        password_file: File with the password only, or a line ``user password`` for each user.
        password_env: Environment variable with the password, instead of a file.
    """

    port: Port
    host: str = "127.0.0.1"
    user: str | None = None
    password_file: SecretFile = None
    password_env: str | None = None

    def check(self, key: str, cluster: str | None) -> None:  # noqa: ARG002, D102
        _check_password(key, self.password_file, self.password_env)
        if re.search(r"[@/\s]", self.host):  # not shown: it can contain a password
            why = "expected a host name or an address, without user and password"
            raise SettingError(f"{key}.host", why)


class Jmx(JmxPort, frozen=True):
    """A JMX port. The password is never in a configuration.

    Attributes:
        tls: TLS, if the port uses it.
        timeout: Timeout of connecting, and of one read.
    """

    opens = "jmx.rmi_source:JmxSource"
    needs_java = True

    tls: Annotated[Tls | None, RESTART] = None
    timeout: Annotated[Duration, RESTART, TIMEOUT] = Duration("5s")

    def check(self, key: str, cluster: str | None) -> None:  # noqa: D102
        super().check(key, cluster)
        # Java before 2026 does not check host names, so it accepts any certificate of a public CA.
        if self.tls and self.tls.trust_store is None and not is_loopback(self.host):
            why = f"for the other host {self.host} Java would accept any certificate of a public CA"
            text = f"required, because {why}"
            raise SettingError(f"{key}.tls.trust_store", text, (f"{key}.tls", f"{key}.host"))


class Attach(JvmTransport, frozen=True):
    """A JVM on this host: by pid, by systemd unit, or by main class.

    Attributes:
        pid: Process id.
        unit: systemd unit, such as ``kafka.service``.
        main_class: Main class of a JVM of this user, if neither ``pid`` nor ``unit`` is set.
        timeout: Timeout of attaching, and of one read.
    """

    opens = "jmx.attach:AttachSource"
    needs_java = True

    pid: Annotated[int, msgspec.Meta(ge=1, le=4_194_304)] | None = None
    unit: str | None = None
    main_class: str = "kafka.Kafka"
    timeout: Annotated[Duration, RESTART, TIMEOUT] = Duration("5s")


class Jmxquery(JmxPort, frozen=True):
    """The package jmxquery: a Java process per scrape, with its password visible in ``ps``.

    Attributes:
        port: JMX port.
        user: JMX role to log in as.
        allow_password_in_argv: Whether every user of this host may read the password with ``ps``.
        timeout: Timeout of one scrape, including the start of Java.
    """

    opens = "jmx.jmxquery:JmxquerySource"

    allow_password_in_argv: bool = False
    timeout: Annotated[Duration, TIMEOUT] = Duration("30s")


class HttpTransport(JvmTransport, frozen=True):
    """An HTTP endpoint.

    Attributes:
        url: URL, http or https, without user and password.
        user: User name for the login.
        password_file: File with the password only, or a line ``user password`` for each user.
        password_env: Environment variable with the password, instead of a file.
        ca_file: CA bundle (PEM) for verifying the server. None: the system CA store.
        timeout: Timeout per request.
    """

    url: str
    user: str | None = None
    password_file: SecretFile = None
    password_env: str | None = None
    ca_file: Path | None = None
    timeout: Annotated[Duration, TIMEOUT] = Duration("5s")

    def check(self, key: str, cluster: str | None) -> None:  # noqa: ARG002, D102
        _check_password(key, self.password_file, self.password_env)
        check_url(f"{key}.url", self.url)


class Jolokia(HttpTransport, frozen=True):
    """A Jolokia agent inside the JVM."""

    opens = "jolokia:JolokiaSource"


class Prometheus(HttpTransport, frozen=True):
    """Prometheus's jmx_exporter (Java agent or process), or Strimzi's metrics reporter.

    Attributes:
        exporter: Kind of exporter.
        allowlist: ``prometheus.metrics.reporter.allowlist`` of the reporter: regular expressions.
        rules_file: Configuration of the exporter, whose rules name its samples. None: no rules, so
            that every MBean has its default name.
        staleness: Maximum age of a response, if a proxy caches responses.
        kafka_version: Kafka version, such as 4.4.0. The exporter does not report it.
    """

    opens = "prometheus.exporter:PrometheusSource"

    exporter: Annotated[Literal["jmx_exporter", "strimzi"], RESTART] = "jmx_exporter"
    allowlist: Annotated[tuple[str, ...], RESTART] = ()
    rules_file: Annotated[Path | None, RESTART] = None
    staleness: Annotated[Duration, RESTART] = Duration("0s")
    kafka_version: Annotated[str | None, RESTART] = None
    timeout: Annotated[Duration, TIMEOUT] = Duration("10s")

    def check(self, key: str, cluster: str | None) -> None:  # noqa: D102
        super().check(key, cluster)
        if cluster is None:
            command = "`kafka-cluster.sh cluster-id --bootstrap-server HOST:PORT`"
            why = "required, because an exporter does not report the cluster ID"
            raise SettingError("source.cluster", f"{why}; {command} prints it")
        if self.allowlist and self.exporter != "strimzi":
            raise SettingError(f"{key}.allowlist", "applies only to exporter: strimzi; remove it")
        if self.rules_file is not None and self.exporter != "jmx_exporter":
            text = "applies only to exporter: jmx_exporter; remove it"
            raise SettingError(f"{key}.rules_file", text)
        try:
            for pattern in self.allowlist:
                re.compile(pattern)
        except re.error as error:
            raise SettingError(f"{key}.allowlist", f"{error}; correct it") from None


class Admin(Transport, frozen=True):
    """Kafka's Admin API.

    Attributes:
        bootstrap: ``HOST:PORT`` of one or more brokers, separated by commas.
        libs: Folder of the broker's jars, such as ``/opt/kafka/libs``.
        iam_jar: JAR of AWS's aws-msk-iam-auth with its dependencies, for the login AWS_MSK_IAM.
            None: disabled.
        properties_file: Security settings, in the format of a Kafka client's properties file.
        timeout: Timeout per request.
        groups: Groups whose lag and lost records are counted (KIP-490): patterns of their names, by
            pattern of a topic's name. ``!`` excludes. The first pattern that fits a topic applies.
            Rules of the topics' owners in the lake have priority.
        groups_default: Groups that count in topics without a rule: ``all`` or ``none``.
    """

    opens = "admin.source:opened"
    via = "admin"
    roles = frozenset({"broker", "cluster"})
    slow = ("offsets", "tiered_offsets")
    needs_java = True

    bootstrap: str
    libs: Annotated[Path, RESTART]
    iam_jar: Annotated[Path | None, RESTART] = None
    properties_file: Path | None = None
    timeout: Annotated[Duration, TIMEOUT] = Duration("5s")
    groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    groups_default: Literal["all", "none"] = "all"

    def check(self, key: str, cluster: str | None) -> None:  # noqa: ARG002, D102
        if "@" in self.bootstrap:
            why = "expected HOST:PORT without user and password"
            raise SettingError(f"{key}.bootstrap", f"{why}. Set them in {key}.properties_file")
        for address in map(str.strip, self.bootstrap.split(",")):
            # Kafka accepts and ignores a listener's protocol before the address.
            place = urlsplit(f"//{address.rpartition('//')[2]}")
            try:
                fits = bool(place.hostname and place.port)
            except ValueError:
                fits = False
            if not fits:
                why = f"expected HOST:PORT, or several separated by commas, got {address!r}"
                ipv6 = "(write an IPv6 address in brackets: [::1]:9092)"
                raise SettingError(f"{key}.bootstrap", f"{why} {ipv6}")


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
