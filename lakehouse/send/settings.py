"""To whom a report is sent, and how; one YAML file, without a secret in it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import yaml

from lakehouse.errors import SendError

if TYPE_CHECKING:
    from collections.abc import Mapping

Security = Literal["starttls", "tls", "none"]
Attachment = Literal["html", "pdf", "json"]

PORTS: Final[dict[str, int]] = {"starttls": 587, "tls": 465, "none": 25}
TIMEOUT_SECONDS: Final = 30.0
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands; the secret itself is in no attribute and no repr.

    Attributes:
        file: Its first line is the secret.
        variable: Name of an environment variable.
    """

    file: Path | None = None
    variable: str | None = None

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"the file {self.file}" if self.file else f"the variable {self.variable}"

    def read(self, what: str, environment: Mapping[str, str] = os.environ) -> str:
        """The secret as it is now.

        Args:
            what: What it is for; begins the error's line.
            environment: Where the variable is looked up.

        Raises:
            SendError: It is not there, or empty.
        """
        try:
            found = self._found(environment).partition("\n")[0].strip()
        except KeyError:
            raise SendError(f"{what}: {self.place} is not set") from None
        except UnicodeDecodeError:
            raise SendError(f"{what}: {self.place} is no text") from None
        except OSError as error:
            raise SendError(f"{what}: {self.place}: {error.strerror}") from None
        if not found:
            raise SendError(f"{what}: {self.place} is empty")
        return found

    def _found(self, environment: Mapping[str, str]) -> str:
        if self.file is not None:
            return self.file.read_text(encoding="utf-8")
        return environment[str(self.variable)]


@dataclass(frozen=True, slots=True)
class Mail:
    """A server that takes mail.

    Attributes:
        sender: As ``Name <address>`` or an address.
        to: Likewise.
        security: ``none`` only to this very machine.
        password: None: the server asks for none.
        ca_file: Authorities that are trusted; None: those of the machine.
        attach: What is attached.
        timeout_seconds: For each step.
    """

    host: str
    sender: str
    to: tuple[str, ...]
    security: Security = "starttls"
    port: int = 0
    username: str | None = None
    password: Secret | None = None
    ca_file: Path | None = None
    attach: tuple[Attachment, ...] = ("html",)
    timeout_seconds: float = TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that takes a Slack message as JSON; the whole address is a secret."""

    url: Secret
    ca_file: Path | None = None
    timeout_seconds: float = TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class Settings:
    """What the file says; one of both at least."""

    mail: Mail | None = None
    webhook: Webhook | None = None


def load(path: Path) -> Settings:
    """The settings of a file.

    Raises:
        SendError: It cannot be read, or says something that is not understood.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SendError(f"{path}: {error.strerror}; name a file of settings") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SendError(f"{path}: no YAML: {' '.join(str(error).split())}") from error
    try:
        return _settings(document)
    except ValueError as error:
        raise SendError(f"{path}: {error}; see docs/send.md") from error


def is_loopback(host: str) -> bool:
    """Whether what is sent there stays on this machine."""
    return host in _LOOPBACK


def _settings(document: object) -> Settings:
    told = _mapping("the file", document, ("mail", "webhook"))
    if not told:
        raise ValueError("it has neither mail nor webhook")
    mail, webhook = told.get("mail"), told.get("webhook")
    return Settings(
        None if mail is None else _mail(mail), None if webhook is None else _webhook(webhook)
    )


def _mail(given: object) -> Mail:
    told = _mapping(
        "mail", given,
        ("host", "port", "security", "username", "password_file", "password_variable", "ca_file",
         "from", "to", "attach", "timeout_seconds"),
    )  # fmt: skip
    host, security = _text("mail.host", told.get("host")), told.get("security", "starttls")
    if security not in get_args(Security):
        raise ValueError(f"mail.security is one of {', '.join(get_args(Security))}")
    if security == "none" and not is_loopback(host):
        raise ValueError("mail.security none is for a server on this machine alone")
    username, password = told.get("username"), _secret("mail", told, "password")
    if (username is None) != (password is None):
        raise ValueError("mail has a username and a password (file or variable), or neither")
    attach = _texts("mail.attach", told.get("attach", ["html"]))
    if any(one not in get_args(Attachment) for one in attach):
        raise ValueError(f"mail.attach has {', '.join(get_args(Attachment))}")
    return Mail(
        host=host,
        sender=_text("mail.from", told.get("from")),
        to=_texts("mail.to", told.get("to"), least=1),
        security=security,
        port=_port(told.get("port", PORTS[security])),
        username=None if username is None else _text("mail.username", username),
        password=password,
        ca_file=_path("mail.ca_file", told),
        attach=tuple(dict.fromkeys(attach)),  # type: ignore[arg-type] # checked above
        timeout_seconds=_seconds("mail", told),
    )


def _webhook(given: object) -> Webhook:
    told = _mapping("webhook", given, ("url_file", "url_variable", "ca_file", "timeout_seconds"))
    url = _secret("webhook", told, "url")
    if url is None:
        raise ValueError("webhook has url_file or url_variable")
    return Webhook(url, _path("webhook.ca_file", told), _seconds("webhook", told))


def _secret(where: str, told: Mapping[str, Any], name: str) -> Secret | None:
    file, variable = told.get(f"{name}_file"), told.get(f"{name}_variable")
    if file is not None and variable is not None:
        raise ValueError(f"{where} has {name}_file or {name}_variable, not both")
    if file is not None:
        return Secret(file=Path(_text(f"{where}.{name}_file", file)))
    if variable is not None:
        return Secret(variable=_text(f"{where}.{name}_variable", variable))
    return None


def _mapping(what: str, given: object, allowed: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"{what} has keys such as {', '.join(allowed[:3])}")  # noqa: TRY004
    for key in given:
        if key in ("password", "url"):
            raise ValueError(f"{what}.{key}: a secret has no place here; use {key}_file")
        if key not in allowed:
            raise ValueError(f"{what} has no {str(key)!r}, but {', '.join(allowed)}")
    return given


def _text(what: str, value: object) -> str:
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value.strip()
    raise ValueError(f"{what} is a line of text")


def _texts(what: str, value: object, least: int = 0) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or len(listed) < least:
        raise ValueError(f"{what} is a list of text")
    return tuple(_text(what, one) for one in listed)


def _port(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 65_536:
        return value
    raise ValueError("mail.port is a number from 1 to 65535")


def _seconds(where: str, told: Mapping[str, Any]) -> float:
    value = told.get("timeout_seconds", TIMEOUT_SECONDS)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 600:
        return float(value)
    raise ValueError(f"{where}.timeout_seconds is a number of seconds up to 600")


def _path(what: str, told: Mapping[str, Any]) -> Path | None:
    value = told.get("ca_file")
    return None if value is None else Path(_text(what, value))
