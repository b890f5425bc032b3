"""Settings of the transports to a JVM over RMI: a JMX port, local attach, the package jmxquery."""

from pathlib import Path
from typing import Annotated

import msgspec

from collector.errors import SettingError
from collector.settings import RESTART, TIMEOUT, Duration, Port, SecretFile, Section, is_loopback
from collector.sources.base.transport import JvmTransport, check_password


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


class JmxPort(JvmTransport, frozen=True):
    """A JMX port, and who asks there; the password is never kept in a configuration.

    Attributes:
        port: The port.
        host: Its host.
        user: The role to log in as; one that is ``readonly`` is enough.
        password_file: A file with the password alone, or a line ``user password`` for each user.
        password_env: The environment variable that holds it, instead of a file.
    """

    port: Port
    host: str = "127.0.0.1"
    user: str | None = None
    password_file: SecretFile = None
    password_env: str | None = None

    def check(self, key: str, cluster: str | None) -> None:  # noqa: ARG002, D102
        check_password(key, self.password_file, self.password_env)


class Jmx(JmxPort, frozen=True):
    """How to reach the JMX port; the password is never kept in a configuration.

    Attributes:
        tls: Where the port speaks TLS.
        timeout: For connecting, and for one read.
    """

    opens = "jmx.rmi_source:JmxSource"
    needs_java = True

    tls: Annotated[Tls | None, RESTART] = None
    timeout: Annotated[Duration, RESTART, TIMEOUT] = Duration("5s")

    def check(self, key: str, cluster: str | None) -> None:  # noqa: D102
        super().check(key, cluster)
        # Java before 2026 checks no host name: with its own authorities anybody's certificate does.
        if self.tls and self.tls.trust_store is None and not is_loopback(self.host):
            why = "anybody with a certificate of a public authority may read the password"
            text = f"needed, as {self.host} is another host: else {why}"
            raise SettingError(f"{key}.tls.trust_store", text, (f"{key}.tls", f"{key}.host"))


class Attach(JvmTransport, frozen=True):
    """Which JVM on this host to attach to: by pid, by systemd unit, or by what it runs.

    Attributes:
        pid: Its process.
        unit: Its systemd unit, such as ``kafka.service``.
        main_class: Without ``pid`` and ``unit``: what the JVM of this user runs.
        timeout: For attaching, and for one read.
    """

    opens = "jmx.attach:AttachSource"
    needs_java = True

    pid: Annotated[int, msgspec.Meta(ge=1, le=4_194_304)] | None = None
    unit: str | None = None
    main_class: str = "kafka.Kafka"
    timeout: Annotated[Duration, RESTART, TIMEOUT] = Duration("5s")


class Jmxquery(JmxPort, frozen=True):
    """The package jmxquery: a Java process for every scrape, its password seen by ``ps``.

    Attributes:
        port: The JMX port.
        user: The role to log in as.
        allow_password_in_argv: You know that everybody who may run ``ps`` reads the password.
        timeout: For one scrape, the start of Java included.
    """

    opens = "jmx.jmxquery:JmxquerySource"

    allow_password_in_argv: bool = False
    timeout: Annotated[Duration, TIMEOUT] = Duration("30s")
