"""TLS of a JMX port: whom to trust and who we are, as the default SSLContext of our one JVM.

RMI's socket factory for TLS comes with the other side's answer and knows the JVM's default only.
It keeps what it finds at its first use, so the stores are read once: after a certificate was
renewed the agent is started anew. Passwords go from their files into Java's memory; a system
property would show them to whoever attaches.

Whether the certificate names the host that we call is checked by Java itself, from its updates of
January 2026 on (``jdk.rmi.ssl.client.enableEndpointIdentification``). Older ones do not check it:
there, trust a CA that signs nothing but JMX ports.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import jpype

from collector.errors import ConfigError, SourceRefusedError
from collector.secret import Secret
from collector.sources.jvm import java

if TYPE_CHECKING:
    from pathlib import Path

    from collector.sections import Tls

_PEM: Final = re.compile(
    rb"-----BEGIN (?:X509 )?CERTIFICATE-----[^-]*-----END (?:X509 )?CERTIFICATE-----"
)
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
    except java("java.security.GeneralSecurityException") as error:
        raise ConfigError(f"{_WHERE}: {_line(error)}") from None
    java("javax.net.ssl.SSLContext").setDefault(context)


def _trust_managers(tls: Tls) -> Any:
    kind = java("javax.net.ssl.TrustManagerFactory")
    factory = kind.getInstance(kind.getDefaultAlgorithm())
    factory.init(_trust_store(tls))
    return factory.getTrustManagers()


def _trust_store(tls: Tls) -> Any:
    file = tls.trust_store
    if file is None:
        return jpype.JObject(None, java("java.security.KeyStore"))  # those that Java trusts
    where = f"{_WHERE}.trust_store {file}"
    content = _content(file, where)
    store = (
        _of_pem(content, where)
        if b"-----BEGIN " in content
        else _store(file, where, tls.trust_store_password_file)
    )
    if not any(store.isCertificateEntry(alias) for alias in store.aliases()):
        raise ConfigError(
            f"{where}: it holds no certificate to trust: give a PEM file, or a store made by"
            " keytool -importcert, with trust_store_password_file"
        )
    return store


def _of_pem(content: bytes, where: str) -> Any:
    store = java("java.security.KeyStore").getInstance("PKCS12")
    store.load(None, None)
    factory = java("java.security.cert.CertificateFactory").getInstance("X.509")
    for number, found in enumerate(_PEM.findall(content)):
        stream = java("java.io.ByteArrayInputStream")(jpype.JArray(jpype.JByte)(found))
        try:
            certificate = factory.generateCertificate(stream)
        except java("java.security.cert.CertificateException"):
            raise ConfigError(f"{where}: certificate {number + 1} in it is damaged") from None
        store.setCertificateEntry(str(number), certificate)
    return store


def _key_managers(tls: Tls) -> Any:
    file = tls.key_store
    if file is None:
        return None
    where = f"{_WHERE}.key_store {file}"
    if b"-----BEGIN " in _content(file, where):
        raise ConfigError(
            f"{where}: it is PEM: make a PKCS12 of it by openssl pkcs12 -export -in CERT -inkey KEY"
        )
    store = _store(file, where, tls.key_store_password_file)
    if not any(store.isKeyEntry(alias) for alias in store.aliases()):
        raise ConfigError(f"{where}: it holds no private key: is it a trust store?")
    kind = java("javax.net.ssl.KeyManagerFactory")
    factory = kind.getInstance(kind.getDefaultAlgorithm())
    try:
        factory.init(store, _password(tls.key_store_password_file, where))
    except java("java.security.UnrecoverableKeyException"):
        raise ConfigError(
            f"{where}: its key has another password than the store: make them the same by keytool"
            " -keypasswd"
        ) from None
    return factory.getKeyManagers()


def _store(file: Path, where: str, password_file: Path | None) -> Any:
    """A store of whatever type its content has."""
    try:
        return java("java.security.KeyStore").getInstance(
            java("java.io.File")(str(file)), _password(password_file, where)
        )
    except java("java.io.IOException") as error:
        wrong = isinstance(error.getCause(), java("java.security.UnrecoverableKeyException"))
        reason = "its password file holds another password" if wrong else _line(error)
    except java("java.security.KeyStoreException"):
        reason = "it is neither PEM nor PKCS12 nor JKS"
    raise ConfigError(f"{where}: {reason}")


def _password(file: Path | None, where: str) -> Any:
    if file is None:
        return jpype.JObject(None, jpype.JArray(jpype.JChar))
    try:
        return java("java.lang.String")(Secret(file).read(where)).toCharArray()
    except SourceRefusedError as error:
        raise ConfigError(str(error)) from None


def _content(file: Path, where: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{where}: {error.strerror}; give a file that we may read") from None


def _line(error: Any) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
