"""TLS of a JMX port: whom to trust and who we are, as the default SSLContext of our one JVM.

RMI's socket factory for TLS comes with the other side's answer and knows the JVM's default only.
It keeps what it finds at its first use, so the stores are read once: after a certificate was
renewed the agent is restarted. Passwords go from their files into Java's memory; a system
property would show them to any process that attaches.

Whether the certificate names the host that we call is checked by Java itself, from its updates of
January 2026 on (``jdk.rmi.ssl.client.enableEndpointIdentification``). Older ones do not check it:
there, trust a CA that signs nothing but JMX ports.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final

import jpype

from collector.errors import ConfigError, SourceRefusedError
from collector.settings import Secret
from collector.sources.java.jvm import java
from collector.sources.jmx import Tls
from lakehouse.tables.strict_files import CERTIFICATE_BYTES, UnreadableFileError, read_bytes

_WHERE: Final = "source.jmx.tls"


@cache
def install(tls: Tls) -> None:
    """Make this the TLS of the whole JVM, which must run; before its first connection.

    Raises:
        ConfigError: A store cannot be read, or holds nothing of use.
    """
    try:
        context = java("javax.net.ssl.SSLContext").getInstance("TLS")
        context.init(_key_managers(tls), _trust_managers(tls), None)
    except SourceRefusedError as error:  # of a password file
        raise ConfigError(str(error)) from None
    except java("java.security.UnrecoverableKeyException"):
        raise ConfigError(
            f"{_WHERE}.key_store: its key has another password than the store: make them the same"
            " by keytool -keypasswd"
        ) from None
    except java("java.security.GeneralSecurityException") as error:
        raise ConfigError(f"{_WHERE}: {str(error).splitlines()[0]:.200}") from None
    java("javax.net.ssl.SSLContext").setDefault(context)


def _trust_managers(tls: Tls) -> Any:
    store = jpype.JObject(None, java("java.security.KeyStore"))  # of those that Java trusts
    if tls.trust_store is not None:
        where = f"{_WHERE}.trust_store {tls.trust_store}"
        store = _store(tls.trust_store, where, tls.trust_store_password_file)
        if not any(store.isCertificateEntry(alias) for alias in store.aliases()):
            raise ConfigError(
                f"{where}: it holds no certificate to trust: give a PEM file, or a store made by"
                " keytool -importcert, with trust_store_password_file"
            )
    return _made("TrustManagerFactory", store).getTrustManagers()


def _key_managers(tls: Tls) -> Any:
    if tls.key_store is None:
        return None
    where = f"{_WHERE}.key_store {tls.key_store}"
    store = _store(tls.key_store, where, tls.key_store_password_file)
    if not any(store.isKeyEntry(alias) for alias in store.aliases()):
        raise ConfigError(
            f"{where}: it holds no private key: make a PKCS12 of certificate and key by openssl"
            " pkcs12 -export -in CERT -inkey KEY"
        )
    password = _password(tls.key_store_password_file, where)
    return _made("KeyManagerFactory", store, password).getKeyManagers()


def _made(factory: str, *content: Any) -> Any:
    kind = java(f"javax.net.ssl.{factory}")
    made = kind.getInstance(kind.getDefaultAlgorithm())
    made.init(*content)
    return made


def _store(file: Path, where: str, password_file: Path | None) -> Any:
    """A store of whatever type its content has."""
    try:
        content = read_bytes(file, CERTIFICATE_BYTES)
    except UnreadableFileError as error:
        raise ConfigError(f"{where}: {error.problem}; give a file that we may read") from None
    if b"-----BEGIN " in content:
        return _of_pem(content, where)
    try:
        return java("java.security.KeyStore").getInstance(
            java("java.io.File")(str(file)), _password(password_file, where)
        )
    except java("java.io.IOException") as error:
        wrong = isinstance(error.getCause(), java("java.security.UnrecoverableKeyException"))
        reason = "its password file holds another password" if wrong else f"it is damaged: {error}"
    except java("java.security.KeyStoreException"):
        reason = "it is neither PEM nor PKCS12 nor JKS"
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
            f"{where}: a certificate in it is damaged, or it holds more than certificates: of a"
            " key make a PKCS12 by openssl pkcs12 -export -in CERT -inkey KEY"
        ) from None
    for number, certificate in enumerate(found):
        store.setCertificateEntry(str(number), certificate)
    return store


def _password(file: Path | None, where: str) -> Any:
    if file is None:
        return jpype.JObject(None, jpype.JArray(jpype.JChar))
    return java("java.lang.String")(Secret(file).read(where)).toCharArray()
