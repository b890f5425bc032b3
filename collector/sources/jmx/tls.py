"""TLS of a JMX port: trusted certificates and the agent's own, as the JVM's default SSLContext.

RMI's socket factory for TLS arrives in the other side's answer and uses only the JVM's default. It
keeps the context of its first use, so the stores are read once: restart the agent after you renew a
certificate. Passwords go from their files into Java's memory. A system property would show them to
any process that attaches.

Java checks that the certificate has the name of the host since its updates of January 2026
(``jdk.rmi.ssl.client.enableEndpointIdentification``). With an older Java, trust a CA that signs
certificates for JMX ports only.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final

import jpype

from collector.errors import ConfigError, SourceRefusedError
from collector.settings import Secret
from collector.sources.java.jvm import java
from collector.sources.transports import Tls
from lakehouse.tables.strict_files import CERTIFICATE_BYTES, UnreadableFileError, read_bytes

_WHERE: Final = "source.jmx.tls"


@cache
def install(tls: Tls) -> None:
    """Install these settings as TLS of the whole JVM, before its first connection.

    Raises:
        ConfigError: A store cannot be read, or has no usable certificate or key.
    """
    try:
        context = java("javax.net.ssl.SSLContext").getInstance("TLS")
        context.init(_key_managers(tls), _trust_managers(tls), None)
    except SourceRefusedError as error:  # from a password file
        raise ConfigError(str(error)) from None
    except java("java.security.UnrecoverableKeyException"):
        raise ConfigError(
            f"{_WHERE}.key_store: key and store have different passwords; use the same password"
            " (keytool -keypasswd)"
        ) from None
    except java("java.security.GeneralSecurityException") as error:
        raise ConfigError(f"{_WHERE}: {str(error).splitlines()[0]:.200}") from None
    java("javax.net.ssl.SSLContext").setDefault(context)


def _trust_managers(tls: Tls) -> Any:
    store = jpype.JObject(None, java("java.security.KeyStore"))  # null: Java's trusted certificates
    if tls.trust_store is not None:
        where = f"{_WHERE}.trust_store {tls.trust_store}"
        store = _store(tls.trust_store, where, tls.trust_store_password_file)
        if not any(store.isCertificateEntry(alias) for alias in store.aliases()):
            raise ConfigError(
                f"{where}: no trusted certificate found; use a PEM file, or a store of keytool"
                " -importcert with trust_store_password_file"
            )
    return _made("TrustManagerFactory", store).getTrustManagers()


def _key_managers(tls: Tls) -> Any:
    if tls.key_store is None:
        return None
    where = f"{_WHERE}.key_store {tls.key_store}"
    store = _store(tls.key_store, where, tls.key_store_password_file)
    if not any(store.isKeyEntry(alias) for alias in store.aliases()):
        raise ConfigError(
            f"{where}: no private key found; create a PKCS12 file with openssl pkcs12 -export -in"
            " CERT -inkey KEY"
        )
    password = _password(tls.key_store_password_file, where)
    return _made("KeyManagerFactory", store, password).getKeyManagers()


def _made(factory: str, *content: Any) -> Any:
    kind = java(f"javax.net.ssl.{factory}")
    made = kind.getInstance(kind.getDefaultAlgorithm())
    made.init(*content)
    return made


def _store(file: Path, where: str, password_file: Path | None) -> Any:
    """Return a store. The type is detected from its content."""
    try:
        content = read_bytes(file, CERTIFICATE_BYTES)
    except UnreadableFileError as error:
        raise ConfigError(f"{where}: {error.problem}; use a file that the agent can read") from None
    if b"-----BEGIN " in content:
        return _of_pem(content, where)
    try:
        return java("java.security.KeyStore").getInstance(
            java("java.io.File")(str(file)), _password(password_file, where)
        )
    except java("java.io.IOException") as error:
        wrong = isinstance(error.getCause(), java("java.security.UnrecoverableKeyException"))
        reason = "the password file has another password" if wrong else f"damaged store: {error}"
    except java("java.security.KeyStoreException"):
        reason = "the file is neither PEM nor PKCS12 nor JKS"
    raise ConfigError(f"{where}: {reason.splitlines()[0]:.200}")


def _of_pem(content: bytes, where: str) -> Any:
    store = java("java.security.KeyStore").getInstance("PKCS12")
    store.load(None, None)
    stream = java("java.io.ByteArrayInputStream")(jpype.JArray(jpype.JByte)(content))
    factory = java("java.security.cert.CertificateFactory").getInstance("X.509")
    try:
        found = factory.generateCertificates(stream)
    except java("java.security.cert.CertificateException"):
        raise ConfigError(
            f"{where}: a certificate is damaged, or the file contains more than certificates; put a"
            " key into a PKCS12 file with openssl pkcs12 -export -in CERT -inkey KEY"
        ) from None
    for number, certificate in enumerate(found):
        store.setCertificateEntry(str(number), certificate)
    return store


def _password(file: Path | None, where: str) -> Any:
    if file is None:
        return jpype.JObject(None, jpype.JArray(jpype.JChar))
    return java("java.lang.String")(Secret(file).read(where)).toCharArray()
