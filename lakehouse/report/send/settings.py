"""Settings of sending a report: one YAML file, without a secret in it."""

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr

from lakehouse.errors import SendError, one_line
from lakehouse.tables import strict_yaml, typed_settings
from lakehouse.tables.strict_files import UnreadableFileError, read_certificates, read_text
from lakehouse.tables.typed_settings import OR_ONE, WrongSettingError, wording

Security = Literal["starttls", "tls", "none"]
Attachment = Literal["html", "pdf", "json"]
Format = Literal["slack", "teams"]
_LINE: Final = r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029]+\Z"
Line = Annotated[str, Meta(pattern=_LINE, extra=wording("a line of text"))]
# Only printable ASCII without user name, quotes and brackets, so no message has to escape it.
_LINK: Final = (
    r"^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?"
    r"(/([A-Za-z0-9._~!$&*+,;=:@%/?#-]|\{week\}|\{cluster\}){0,1900})?\Z"
)
_LINK_WORDS: Final = "an address with https, without a user name, quotes or spaces"
Link = Annotated[str, Meta(pattern=_LINK, extra=wording(_LINK_WORDS))]
Port = Annotated[int, Meta(ge=1, le=65_535, extra=wording("a number from 1 to 65535"))]
Seconds = Annotated[float, Meta(gt=0, le=600, extra=wording("a number of seconds up to 600"))]

PORTS: Final[dict[str, int]] = {"starttls": 587, "tls": 465, "none": 25}
TIMEOUT_SECONDS: Final = 30.0
PLACES: Final = {"file": "file", "variable": "variable", "databricks": "Databricks secret"}
"""The places of secrets by the end of their settings' names, such as ``password_file``."""


@dataclass(frozen=True, slots=True)
class Secret:
    """The place of a secret; the secret itself is in no attribute and no repr.

    Attributes:
        kind: One of ``PLACES``.
        name: A file with the secret in its first line, an environment variable, or ``SCOPE/KEY`` of
            a Databricks secret.
    """

    kind: str
    name: str

    @property
    def place(self) -> str:
        """The place in words."""
        return f"the {PLACES[self.kind]} {self.name}"

    def read(self, what: str, environment: Mapping[str, str] = os.environ) -> str:
        """Return the present value of the secret.

        Args:
            what: The setting it is for, as the start of the error.
            environment: Has the variable.

        Raises:
            SendError: It does not exist, or is empty.
        """
        try:
            match self.kind:
                case "file":
                    content = read_text(Path(self.name))
                case "variable":
                    content = environment[self.name]
                case _:
                    content = _of_databricks(what, self)
        except KeyError:
            raise SendError(f"{what}: {self.place} is not set") from None
        except UnreadableFileError as error:
            raise SendError(f"{what}: {self.place}: {error.problem}") from None
        secret = content.partition("\n")[0].strip()
        if not secret:
            raise SendError(f"{what}: {self.place} is empty")
        return secret


class Mail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An SMTP server, and the mail's addresses.

    Attributes:
        sender: ``Name <address>`` or an address; ``from`` in the file.
        to: Addresses of the recipients, in the same form.
        security: ``none`` is only for a server on this machine.
        port: 0: the usual port of the security.
        username: None: the server needs no password.
        password_file: The place of the password, or one of the two below.
        ca_file: Trusted certificate authorities; None: the system's CA store.
        attach: The attachments.
        timeout_seconds: Timeout for each step (seconds).
    """

    host: Line
    sender: Line = msgspec.field(name="from")
    to: Annotated[
        tuple[Line, ...],
        Meta(
            min_length=1,
            extra=wording("an address or a list of them"),
            extra_json_schema=OR_ONE,
        ),
    ]
    security: Security = "starttls"
    port: Port = 0
    username: Line | None = None
    password_file: Line | None = None
    password_variable: Line | None = None
    password_databricks: Line | None = None
    ca_file: Line | None = None
    attach: Annotated[tuple[Attachment, ...], Meta(extra_json_schema=OR_ONE)] = ("html",)
    timeout_seconds: Seconds = TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        """Check settings against each other.

        Raises:
            ValueError: They contradict each other.
        """
        if self.security == "none" and not is_loopback(self.host):
            raise ValueError("security none is only for a server on this machine")
        if (self.username is None) != (self.password is None):
            raise ValueError(
                "use username with a password (file, variable or databricks), or neither"
            )
        force_setattr(self, "port", self.port or PORTS[self.security])

    @property
    def password(self) -> Secret | None:
        """Place of the password. None: the server needs none."""
        return _secret(self, "password")


class Webhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address that accepts a message as JSON; the whole address is a secret.

    Attributes:
        format: ``slack`` is also for Mattermost and Rocket.Chat. ``teams`` is an adaptive card for
            a workflow of Microsoft Teams.
        url_file: The place of the address, or one of the two below.
        ca_file: Trusted certificate authorities; None: the system's CA store.
        proxy: Whether HTTPS_PROXY and NO_PROXY of the environment apply. The proxy then receives
            the host. False: the connection is direct.
        timeout_seconds: Timeout for the whole call (seconds).
    """

    format: Format = "slack"
    url_file: Line | None = None
    url_variable: Line | None = None
    url_databricks: Line | None = None
    ca_file: Line | None = None
    proxy: bool = False
    timeout_seconds: Seconds = TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        """Check that the address has one place.

        Raises:
            ValueError: It does not have exactly one.
        """
        _ = self.url

    @property
    def url(self) -> Secret:
        """Place of the address."""
        if (found := _secret(self, "url")) is None:
            raise ValueError("set url_file, url_variable or url_databricks")
        return found


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file: a mail, a webhook or both.

    Attributes:
        mail: None: no mail is sent.
        webhook: None: no chat gets a message.
        link: Address of the page, for a button; ``{week}`` becomes 2026-W47, ``{cluster}`` the
            name of the cluster's file. None: no button.
    """

    mail: Mail | None = None
    webhook: Webhook | None = None
    link: Link | None = None

    def __post_init__(self) -> None:
        """Check that there is a way to send.

        Raises:
            ValueError: There is none.
        """
        if self.mail is None and self.webhook is None:
            raise ValueError("set mail, webhook or both")


def sections(document: Any) -> Any:
    """Return the content of a file for conversion to ``Settings``.

    A single value of a list setting becomes a list, and empty settings are left out.

    Raises:
        WrongSettingError: A secret is in it.
    """
    if not isinstance(document, dict):
        raise WrongSettingError("", "expected the keys mail, webhook and link")
    return {key: _section(key, value) for key, value in document.items()}


def load(path: Path) -> Settings:
    """Return the settings of a file.

    Raises:
        SendError: It cannot be read, or a setting is wrong.
    """
    try:
        return typed_settings.convert(sections(strict_yaml.load_file(path)), Settings)
    except UnreadableFileError as error:
        raise SendError(error.advised("name a file of settings")) from None
    except WrongSettingError as error:
        raise SendError(f"{path}: {error}; see docs/weekly.md") from None


def link_of(text: str) -> str:
    """Return an address of the report's page.

    Raises:
        SendError: It is not valid in every message.
    """
    if re.match(_LINK, text) is None:
        raise SendError(f"--link: expected {_LINK_WORDS}")
    return text


def trust(ca_file: str | None, what: str) -> ssl.SSLContext:
    """Return a context that verifies certificates and their host names.

    Args:
        ca_file: Trusted certificate authorities; None: the system's CA store.
        what: The setting it is for, as the start of the error.

    Raises:
        SendError: The file cannot be read, or has no certificate.
    """
    try:
        certificates = read_certificates(None if ca_file is None else Path(ca_file))
        return ssl.create_default_context(cadata=certificates)
    except UnreadableFileError as error:
        raise SendError(f"{what}.ca_file: {error}") from None
    except ssl.SSLError as error:
        raise SendError(f"{what}.ca_file: {ca_file}: {one_line(error)}") from None


def is_loopback(host: str) -> bool:
    """Return True if a host is this machine."""
    return host in {"localhost", "127.0.0.1", "::1"}


def _section(section: str, given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    found = {key: value for key, value in given.items() if value is not None}
    for key in found.keys() & {"password", "url"}:
        raise WrongSettingError(f"{section}.{key}", f"a secret has no place here; use {key}_file")
    for key in found.keys() & {"to", "attach"}:
        listed = [found[key]] if isinstance(found[key], str) else found[key]
        if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
            listed = list(dict.fromkeys(listed))
        found[key] = listed
    return found


def _secret(section: Mail | Webhook, key: str) -> Secret | None:
    """Return the place of a secret; None: it has none.

    Raises:
        ValueError: It has several.
    """
    named = {kind: getattr(section, f"{key}_{kind}") for kind in PLACES}
    found = [Secret(kind, name) for kind, name in named.items() if name is not None]
    if len(found) > 1:
        names = " or ".join(f"{key}_{secret.kind}" for secret in found)
        raise ValueError(f"use {names}, not both")
    return found[0] if found else None


def _of_databricks(what: str, secret: Secret) -> str:
    scope, _, key = secret.name.partition("/")
    try:
        # The SDK exists only on Databricks; no extra installs it.
        found = import_module("databricks.sdk.runtime").dbutils.secrets.get(scope, key)
    except Exception as error:  # noqa: BLE001 - the SDK's own kinds are not known here
        raise SendError(f"{what}: {secret.place}: {one_line(error)}") from None
    return str(found)
