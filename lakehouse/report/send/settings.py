"""How a report is sent, and to whom: one YAML file, without a secret in it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, get_args

import yaml

from lakehouse.errors import SendError, one_line

_Parser = Callable[[str, object], Any]

Security = Literal["starttls", "tls", "none"]
Attachment = Literal["html", "pdf", "json"]

PORTS: Final[dict[str, int]] = {"starttls": 587, "tls": 465, "none": 25}
TIMEOUT_SECONDS: Final = 30.0
PLACES: Final = {"file": "file", "variable": "variable", "databricks": "Databricks secret"}
"""The places of secrets by the end of their settings' names, such as ``password_file``."""


@dataclass(frozen=True, slots=True)
class Secret:
    """The place of a secret; the secret itself is in no attribute and no repr.

    Attributes:
        kind: One of ``PLACES``.
        name: A file, whose first line is the secret; a variable of the environment; or scope and
            key of a secret of Databricks, ``SCOPE/KEY``.
    """

    kind: str
    name: str

    @property
    def place(self) -> str:
        """The place in words."""
        return f"the {PLACES[self.kind]} {self.name}"

    def read(self, what: str, environment: Mapping[str, str] = os.environ) -> str:
        """The secret as it is now.

        Args:
            what: The setting it is for, as the error's line begins.
            environment: Has the variable.

        Raises:
            SendError: It does not exist, or is empty.
        """
        try:
            match self.kind:
                case "file":
                    content = Path(self.name).read_text("utf-8")
                case "variable":
                    content = environment[self.name]
                case _:
                    content = _of_databricks(what, self)
        except KeyError:
            raise SendError(f"{what}: {self.place} is not set") from None
        except UnicodeDecodeError:
            raise SendError(f"{what}: {self.place} is not UTF-8 text") from None
        except OSError as error:
            raise SendError(f"{what}: {self.place}: {error.strerror}") from None
        secret = content.partition("\n")[0].strip()
        if not secret:
            raise SendError(f"{what}: {self.place} is empty")
        return secret


@dataclass(frozen=True, slots=True)
class Mail:
    """An SMTP server, and the mail's addresses.

    Attributes:
        sender: ``Name <address>`` or an address.
        to: The same of each recipient.
        security: ``none`` is only for a server on this machine.
        password: None: the server needs none.
        ca_file: Trusted certificate authorities; None: those of the machine.
        attach: The attachments.
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
    """The content of the file: a mail, a webhook or both."""

    mail: Mail | None = None
    webhook: Webhook | None = None


def load(path: Path) -> Settings:
    """The settings of a file.

    Raises:
        SendError: It cannot be read, or a setting is wrong.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SendError(f"{path}: {error.strerror}; name a file of settings") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SendError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    try:
        return _settings(document)
    except ValueError as error:
        raise SendError(f"{path}: {error}; see docs/send.md") from error


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    return host in {"localhost", "127.0.0.1", "::1"}


def _settings(document: object) -> Settings:
    sections = _values("the file", document, {"mail": _mail, "webhook": _webhook})
    if not sections:
        raise ValueError("it has neither mail nor webhook")
    return Settings(**sections)


def _mail(_: str, section: object) -> Mail:
    given = _values("mail", section, _MAIL)
    for key in ("host", "from", "to"):
        if key not in given:
            raise ValueError(f"mail.{key} is missing")
    sender, password = given.pop("from"), _secret("mail", given, "password")
    security = given.get("security", "starttls")
    if security == "none" and not is_loopback(given["host"]):
        raise ValueError("mail.security none is for a server on this machine alone")
    if ("username" in given) != (password is not None):
        raise ValueError(
            "mail has a username and a password (file, variable or databricks), or neither"
        )
    return Mail(sender=sender, password=password, **{"port": PORTS[security], **given})


def _webhook(_: str, section: object) -> Webhook:
    given = _values("webhook", section, _WEBHOOK)
    url = _secret("webhook", given, "url")
    if url is None:
        raise ValueError("webhook has url_file, url_variable or url_databricks")
    return Webhook(url, **given)


def _secret(section: str, given: dict[str, Any], key: str) -> Secret | None:
    """Remove the settings of a secret's place from a section, and return the secret."""
    found = {kind: given.pop(f"{key}_{kind}", None) for kind in PLACES}
    secrets = [Secret(kind, str(name)) for kind, name in found.items() if name is not None]
    if len(secrets) > 1:
        names = " or ".join(f"{key}_{secret.kind}" for secret in secrets)
        raise ValueError(f"{section} has {names}, not both")
    return secrets[0] if secrets else None


def _of_databricks(what: str, secret: Secret) -> str:
    scope, _, key = secret.name.partition("/")
    try:
        # Where it runs there is the SDK; no extra brings it.
        found = import_module("databricks.sdk.runtime").dbutils.secrets.get(scope, key)
    except Exception as error:  # noqa: BLE001 - the SDK's own kinds are not known here
        raise SendError(f"{what}: {secret.place}: {one_line(error)}") from None
    return str(found)


def _values(section: str, given: object, parsers: Mapping[str, _Parser]) -> dict[str, Any]:
    """The settings of a section; one without a value is left out."""
    if not isinstance(given, dict):
        raise ValueError(f"{section} has keys such as {', '.join([*parsers][:3])}")  # noqa: TRY004
    values = {}
    for key, value in given.items():
        if key in ("password", "url"):
            raise ValueError(f"{section}.{key}: a secret has no place here; use {key}_file")
        if key not in parsers:
            raise ValueError(f"{section} has no {str(key)!r}, but {', '.join(parsers)}")
        if value is not None:
            values[key] = parsers[key](f"{section}.{key}", value)
    return values


def _text(name: str, value: object) -> str:
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value.strip()
    raise ValueError(f"{name} is a line of text")


def _path(name: str, value: object) -> Path:
    return Path(_text(name, value))


def _texts(name: str, value: object, least: int = 1) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if isinstance(listed, list) and len(listed) >= least:
        return tuple(dict.fromkeys(_text(name, item) for item in listed))
    raise ValueError(f"{name} is a list of text")


def _security(name: str, value: object) -> str:
    if value in get_args(Security):
        return str(value)
    raise ValueError(f"{name} is one of {', '.join(get_args(Security))}")


def _attachments(name: str, value: object) -> tuple[str, ...]:
    kinds = _texts(name, value, least=0)
    if set(kinds) <= set(get_args(Attachment)):
        return kinds
    raise ValueError(f"{name} has {', '.join(get_args(Attachment))}")


def _port(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 65_536:
        return value
    raise ValueError(f"{name} is a number from 1 to 65535")


def _seconds(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 600:
        return float(value)
    raise ValueError(f"{name} is a number of seconds up to 600")


def _places(key: str) -> dict[str, _Parser]:
    return {f"{key}_{kind}": _text for kind in PLACES}


_BOTH: Final[dict[str, _Parser]] = {"ca_file": _path, "timeout_seconds": _seconds}
_WEBHOOK: Final = {**_places("url"), **_BOTH}
_MAIL: Final[dict[str, _Parser]] = {
    "host": _text, "port": _port, "security": _security, "username": _text, **_places("password"),
    "from": _text, "to": _texts, "attach": _attachments, **_BOTH,
}  # fmt: skip
