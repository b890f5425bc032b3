"""What a failed TLS handshake means, and which side has to mend what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_MEANING: Final = (
    (("CertificateExpiredException",), "its certificate has expired; renew it there"),
    (
        ("CertificateNotYetValidException",),
        "its certificate is not valid yet; are both clocks right?",
    ),
    (
        ("No subject alternative", "No name matching"),
        "its certificate is for another name; call it by that name, or mend the certificate",
    ),
    (
        ("CertPathBuilderException", "CertPathValidatorException", "trustAnchors"),
        "its certificate is of nobody whom we trust; put its CA into tls.trust_store",
    ),
    (
        ("alert: bad_certificate", "alert: certificate_", "alert: unknown_ca", "alert: access_"),
        "it wants a client's certificate, of a CA that it trusts; mend tls.key_store",
    ),
    (
        ("terminated the handshake", "unrecognized SSL message"),
        "it does not speak TLS there; take tls out of the configuration, or set tls.registry to"
        " false if only its registry does not",
    ),
    (
        ("protocol_version", "handshake_failure", "No appropriate protocol"),
        "it speaks another version of TLS, or other ciphers; bring both sides' Java up to date",
    ),
)


def tls_fault(causes: Sequence[BaseException]) -> str:
    """The fault of a handshake that failed, from its exception and what caused it."""
    text = "\n".join(f"{type(cause).__name__}: {cause}" for cause in causes)
    for signs, meaning in _MEANING:
        if any(sign in text for sign in signs):
            return meaning
    return "the TLS handshake failed; do tls.trust_store and tls.key_store fit?"
