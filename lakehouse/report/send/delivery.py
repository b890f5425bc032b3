"""Delivery of messages to a mail server and to a chat, and its settings: one YAML file.

The file has no secret in it, only its place. A mail is sent over TLS to a server with a valid
certificate, or to this machine. A chat has a secret address.
"""

import os
import re
import smtplib
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr

from lakehouse.core import display
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
        raise SendError(error.advised("Specify a settings file")) from None
    except WrongSettingError as error:
        raise SendError(f"{path}: {error}. See docs/weekly.md") from None


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
        raise WrongSettingError(f"{section}.{key}", f"a secret is not allowed here. Use {key}_file")
    for key in found.keys() & {"to", "attach"}:
        listed = [found[key]] if isinstance(found[key], str) else found[key]
        if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
            listed = list(dict.fromkeys(listed))
        found[key] = listed
    return found


def _secret(section: Mail | Webhook, key: str) -> Secret | None:
    """Return the place of a secret; None: no place is set.

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


_QUIT_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Letter:
    """A message for the server.

    Attributes:
        sender: Address of the sender.
        to: Addresses of the recipients.
        content: The message, with CR LF and in ASCII.
    """

    sender: str
    to: tuple[str, ...]
    content: bytes


def deliver(letter: Letter, mail: Mail) -> str:
    """Hand a message to the server. After the server accepted it, no error is raised.

    Returns:
        The refused recipients with the server's reasons; empty: it accepted all.

    Raises:
        SendError: The server accepted it for no recipient.
    """
    where = f"mail: {mail.host}:{mail.port}"
    password = None if mail.password is None else mail.password.read("mail")
    try:
        server = _connected(mail)
        try:
            if mail.username is not None and password is not None:
                server.login(mail.username, password)
            refused = server.sendmail(letter.sender, letter.to, letter.content)
        finally:
            _leave(server)
    except UnicodeEncodeError:
        # smtplib sends ASCII only, and the text of this error has the secret.
        raise SendError(f"{where}: user name or password have letters beyond ASCII") from None
    except smtplib.SMTPRecipientsRefused as error:
        raise SendError(f"{where} refused every recipient: {_reasons(error.recipients)}") from None
    except smtplib.SMTPNotSupportedError as error:
        raise SendError(f"{where}: {display.line(error)}. Check mail.security") from None
    except smtplib.SMTPResponseException as error:
        response = error.smtp_error
        said = response.decode(errors="replace") if isinstance(response, bytes) else str(response)
        raise SendError(f"{where} answered {error.smtp_code} {display.line(said)}") from None
    except (smtplib.SMTPException, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SendError(f"{where}: {display.line(reason)}") from None
    return _reasons(refused)


def _leave(server: smtplib.SMTP) -> None:
    """End the session, whatever the response to QUIT: 250, 421, a closed connection or none.

    With an error here a scheduler would send an accepted message again.
    """
    with suppress(smtplib.SMTPException, OSError):
        server.putcmd("quit")
        if server.sock is not None:
            server.sock.settimeout(_QUIT_SECONDS)
            server.sock.recv(1)  # any response proves that QUIT arrived
    with suppress(OSError):
        server.close()


def _connected(mail: Mail) -> smtplib.SMTP:
    # It verifies certificates and their host names.
    context = trust(mail.ca_file, "mail")
    if mail.security == "tls":
        return smtplib.SMTP_SSL(mail.host, mail.port, timeout=mail.timeout_seconds, context=context)
    server = smtplib.SMTP(mail.host, mail.port, timeout=mail.timeout_seconds)
    if mail.security == "starttls":
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server


def _reasons(refused: dict[str, tuple[int, bytes]]) -> str:
    return "; ".join(
        f"{display.line(address)} ({code} {display.line(reason.decode(errors='replace'))})"
        for address, (code, reason) in sorted(refused.items())
    )


_RESPONSE_BYTES: Final = 300


def post(message: dict[str, Any], webhook: Webhook) -> None:
    """Post a message: only to this address, directly, and within the timeout as a whole.

    Raises:
        SendError: It was not accepted. The address is not in the error, because it is a secret.
    """
    url = webhook.url.read("webhook")
    _check_address(url)
    client = httpx.Client(
        verify=trust(webhook.ca_file, "webhook"),
        timeout=webhook.timeout_seconds,
        proxy=_proxy(url) if webhook.proxy else None,
        trust_env=False,  # the address is a secret, and ~/.netrc has others
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},  # unpacked, an answer could be endless
    )
    call: Future[str] = Future()
    threading.Thread(
        target=_post_once, args=(call, client, url, message), daemon=True, name="webhook"
    ).start()
    try:
        # httpx bounds each read and not their sum, and nothing bounds the look-up of the host.
        refusal = call.result(webhook.timeout_seconds)
    except TimeoutError:
        why = f"no answer within {webhook.timeout_seconds:g} s; it might have been posted"
        raise SendError(f"webhook: {why}") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        reason = display.line(str(error).replace(url, "its address") or type(error).__name__)
        raise SendError(f"webhook: {reason}") from None
    if refusal:
        raise SendError(f"webhook: {display.line(refusal.replace(url, 'its address'))}")


def _post_once(call: Future[str], client: httpx.Client, url: str, message: dict[str, Any]) -> None:
    """Post in a thread of its own; a call that is given up ends with the process."""
    try:
        with client:
            call.set_result(_refusal(client, url, message))
    except Exception as error:  # noqa: BLE001 - it is raised where the result is taken
        call.set_exception(error)


def _refusal(client: httpx.Client, url: str, message: dict[str, Any]) -> str:
    """Return why a message was not accepted; empty: it was accepted."""
    with client.stream("POST", url, json=message) as response:
        if response.is_success:
            return ""
        content = b""
        with suppress(httpx.HTTPError):
            content = next(response.iter_raw(_RESPONSE_BYTES), b"")
    return f"it answered {response.status_code} {content.decode(errors='replace')}".rstrip()


def _proxy(url: str) -> str | None:
    """Return the environment's proxy for an address. None: there is none for it."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise SendError("webhook: the address is not a URL") from None
    is_safe = bool(host) if parts.scheme == "https" else is_loopback(host)
    if parts.scheme not in {"http", "https"} or not is_safe:
        raise SendError("webhook: the address is neither https nor on this machine")
