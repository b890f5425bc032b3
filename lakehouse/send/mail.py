"""The mail: text, the same as HTML with pictures, and files attached.

The same report to the same people is the same message to the byte, but for its date: whoever sends
it twice can be told by the Message-ID. It is handed to a server encrypted and to whom its
certificate says, or to this very machine.
"""

from __future__ import annotations

import hashlib
import re
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, Final

from lakehouse.errors import SendError
from lakehouse.report import words
from lakehouse.report.assets import templates
from lakehouse.send.pictures import WIDTH

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from lakehouse.send.digest import Digest
    from lakehouse.send.pictures import Picture
    from lakehouse.send.settings import Mail

_COLOURS: Final = {
    "met": "#00695c",
    "missed": "#b3370b",
    "uncertain": "#7d5a00",
    "no_data": "#57606a",
}
_LINE: Final = 76


@dataclass(frozen=True, slots=True)
class File:
    """A file to attach: its name, such as ``report.pdf``, its kind and its content."""

    name: str
    kind: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Letter:
    """What goes to the server.

    Attributes:
        sender: The address it comes from.
        to: The addresses it goes to.
        content: The message, with CR LF and in ASCII.
    """

    sender: str
    to: tuple[str, ...]
    content: bytes


def letter(
    facts: Mapping[str, Any],
    told: Digest,
    drawn: Sequence[Picture],
    files: Sequence[File],
    mail: Mail,
    now: dt.datetime,
) -> Letter:
    """The message.

    Args:
        facts: The report.
        told: What the mail says of it.
        drawn: Its pictures.
        files: What is attached.
        mail: From whom and to whom.
        now: Its date.

    Raises:
        SendError: An address is none, or not in ASCII.
    """
    message = EmailMessage(policy=SMTP)
    sender, to = _addressed(message, mail)
    message["Subject"] = told.subject
    message["Date"] = format_datetime(now)
    message["Auto-Submitted"] = "auto-generated"  # nobody's holiday answer comes back
    message.set_content(text(told, [one.name for one in files]))
    html = _html(told, drawn, [one.name for one in files], str(facts.get("jmxlake") or ""))
    message.add_alternative(html, subtype="html")
    shown = list(message.iter_parts())[1]
    for one in drawn:
        shown.add_related(
            one.png, "image", "png", cid=f"<{_cid(one)}>", disposition="inline",
            filename=f"{one.name}.png",
        )  # fmt: skip
    for file in files:
        main, _, sub = file.kind.partition("/")
        charset = {"charset": "utf-8"} if main == "text" else {}
        message.add_attachment(file.content, main, sub, filename=file.name, params=charset)
    _sign(message, [told.subject, html, *sender.split("@"), *to, *_digests(drawn, files)])
    return Letter(sender, to, message.as_bytes())


def text(told: Digest, attached: Sequence[str]) -> str:
    """The mail without pictures, for those who read text."""
    lines = [told.headline, told.period, told.about[:1].upper() + told.about[1:], ""]
    for one in told.lines:
        lines.append(f"{one.mark} {one.word.upper():<10} {one.title}")
        lines += [f"{'':13}{part}" for part in (one.detail, one.worst) if part]
    if told.changed:
        lines += ["", "What changed", "", *(f"{short}: {answer}" for short, answer in told.changed)]
    lines += ["", "What happened", ""]
    lines += [f"{short}: {answer}" for short, answer in told.findings]
    lines += ["", told.coverage, "Not known is never counted as good or as zero."]
    if attached:
        lines += ["", f"Attached, with every figure and its bounds: {', '.join(attached)}"]
    return "\n".join(lines) + "\n"


def file_name(facts: Mapping[str, Any], ending: str) -> str:
    """A name for a file of this report that every system takes."""
    week = facts.get("week")
    parts = ("kafka-sla", facts.get("team"), week["iso"] if week else str(facts["from"])[:10])
    safe = (re.sub(r"[^A-Za-z0-9]+", "-", str(part)).strip("-")[:40] for part in parts if part)
    return f"{'-'.join(filter(None, safe))}.{ending}"


def _addressed(message: EmailMessage, mail: Mail) -> tuple[str, tuple[str, ...]]:
    try:
        message["From"] = mail.sender
        message["To"] = ", ".join(mail.to)
        (sender,) = message["From"].addresses
        to = message["To"].addresses
    except (ValueError, IndexError) as error:
        raise SendError(f"mail: an address is none: {words.line(error)}") from error
    if not to:
        raise SendError("mail: there is nobody it goes to; name them in mail.to")
    for one in (sender, *to):
        if not (one.username and one.domain and one.addr_spec.isascii()):
            raise SendError(
                f"mail: {words.line(str(one))!r} is no address that every server takes; write it "
                "as name@example.org"
            )
    return sender.addr_spec, tuple(dict.fromkeys(one.addr_spec for one in to))


def _html(told: Digest, drawn: Sequence[Picture], attached: Sequence[str], version: str) -> str:
    return (
        templates("lakehouse.send")
        .get_template("mail.html.j2")
        .render(
            told=told,
            pictures=[{"caption": one.caption, "cid": _cid(one)} for one in drawn],
            attached=attached,
            colours=_COLOURS,
            width=WIDTH,
            version=words.line(version),
        )
    )


def _cid(one: Picture) -> str:
    return f"{one.name}@jmxlake"


def _digests(drawn: Sequence[Picture], files: Sequence[File]) -> list[str]:
    contents = (*(one.png for one in drawn), *(file.content for file in files))
    return [hashlib.sha256(content).hexdigest() for content in contents]


def _sign(message: EmailMessage, parts: Sequence[str]) -> None:
    """A Message-ID and boundaries that depend on what is said, not on chance."""
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    message["Message-ID"] = f"<{digest}@jmxlake>"
    for number, part in enumerate(message.walk()):
        if part.is_multipart():
            part.set_boundary(f"=_{digest}_{number}")


def deliver(letter: Letter, mail: Mail) -> None:
    """Hand a message to the server.

    Raises:
        SendError: It was not taken, or not for everybody.
    """
    where = f"mail: {mail.host}:{mail.port}"
    password = None if mail.password is None else mail.password.read("mail")
    try:
        with _connected(mail) as server:
            if mail.username is not None and password is not None:
                server.login(mail.username, password)
            refused = server.sendmail(letter.sender, letter.to, letter.content)
    except UnicodeEncodeError:
        # smtplib sends ASCII alone; the error's own text would show the secret.
        raise SendError(f"{where}: user name or password have letters beyond ASCII") from None
    except smtplib.SMTPRecipientsRefused as error:
        raise SendError(f"{where} takes mail for none of them: {_why(error.recipients)}") from None
    except smtplib.SMTPNotSupportedError as error:
        raise SendError(f"{where}: {words.line(error)}; see mail.security") from None
    except smtplib.SMTPResponseException as error:
        told = error.smtp_error
        said = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        raise SendError(f"{where} answered {error.smtp_code} {words.line(said)}") from None
    except (smtplib.SMTPException, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SendError(f"{where}: {words.line(reason)}") from None
    if refused:
        raise SendError(f"{where} took it, but not for {_why(refused)}")


def _connected(mail: Mail) -> smtplib.SMTP:
    if mail.security == "tls":
        return smtplib.SMTP_SSL(
            mail.host, mail.port, timeout=mail.timeout_seconds, context=_context(mail)
        )
    server = smtplib.SMTP(mail.host, mail.port, timeout=mail.timeout_seconds)
    if mail.security == "starttls":
        try:
            server.starttls(context=_context(mail))
        except BaseException:
            server.close()
            raise
    return server


def _context(mail: Mail) -> ssl.SSLContext:
    """Certificates are verified, and so is that they are the host's."""
    return ssl.create_default_context(cafile=None if mail.ca_file is None else str(mail.ca_file))


def _why(refused: dict[str, tuple[int, bytes]]) -> str:
    return "; ".join(
        f"{words.line(who)} ({code} {words.line(said.decode(errors='replace'))})"
        for who, (code, said) in sorted(refused.items())
    )
