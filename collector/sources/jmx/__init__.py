"""Settings of the transports to a JVM over RMI: a JMX port, local attach, the package jmxquery."""

from pathlib import Path
from typing import Annotated

import msgspec

from collector.errors import SettingError
from collector.settings import RESTART, TIMEOUT, Duration, Port, SecretFile, Section, is_loopback
from collector.sources.base.transport import JvmTransport, check_password


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
        check_password(key, self.password_file, self.password_env)


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
