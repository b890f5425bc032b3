"""The mail: text, the same as HTML, and files attached.

The same report to the same recipients is the same message, with the same Message-ID and bytes,
except for its date. It is sent over TLS to a server with a valid certificate, or to this machine.
"""

import datetime as dt
import hashlib
import re
import smtplib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Final

from lakehouse.core import display
from lakehouse.errors import SendError
from lakehouse.report.figures import Facts, Name, templates
from lakehouse.report.send.settings import Mail, trust
from lakehouse.report.summary import lines
from lakehouse.report.summary.lines import summary_text
from lakehouse.report.summary.summarize import Summary

MOST_EVENTS: Final = 5

_QUIT_SECONDS: Final = 5.0
_LINK_MARKS: Final = re.compile(r"://|@|(?i:www)(?=\.)")


@dataclass(frozen=True, slots=True)
class File:
    """A file to attach: its name, such as ``report.pdf``, its media type and its content."""

    name: str
    kind: str
    content: bytes


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


def letter(
    summary: Summary,
    files: Sequence[File],
    mail: Mail,
    now: dt.datetime,
    *,
    link: str | None = None,
    version: str = "",
) -> Letter:
    """Return the message.

    Args:
        summary: The report in short.
        files: The attachments.
        mail: Sender and recipients.
        now: The date of the message.
        link: Address of the report; None: no button.
        version: Version of jmxlake that made the report.

    Raises:
        SendError: An address is invalid, or not in ASCII.
    """
    message = EmailMessage(policy=SMTP)
    sender, to = _addressed(message, mail)
    subject = display.shorten(f"Kafka SLO: {lines.headline(summary)}; {_of(summary)}", 200)
    message["Subject"] = subject
    message["Date"] = now
    message["Auto-Submitted"] = "auto-generated"  # so that no auto-reply comes back
    attached = [file.name for file in files]
    shown = without_links(summary)
    message.set_content(text(shown, attached, link))
    html = _html(shown, attached, link, display.line(version))
    message.add_alternative(html, subtype="html")
    for file in files:
        main, _, sub = file.kind.partition("/")
        charset = {"charset": "utf-8"} if main == "text" else {}
        message.add_attachment(file.content, main, sub, filename=file.name, params=charset)
    digests = (hashlib.sha256(file.content).hexdigest() for file in files)
    _sign(message, [subject, html, *sender.split("@"), *to, *digests])
    return Letter(sender, to, message.as_bytes())


def text(summary: Summary, attached: Sequence[str], link: str | None) -> str:
    """Return the mail as plain text: the lines of the terminal."""
    made = summary_text(summary, terminal=False)
    if link is not None:
        made += f"Report: {link}\n"
    return made + (f"Attached: {', '.join(attached)}\n" if attached else "")


def without_links(content: Any) -> Any:
    """Return the summary with names that mail programs do not show as links.

    A zero-width character after ``://``, ``@`` and ``www`` breaks the patterns of links.
    """
    if isinstance(content, str):
        return _LINK_MARKS.sub("\\g<0>\u200c", content)
    if isinstance(content, Name):
        return replace(content, text=without_links(content.text))
    if isinstance(content, tuple):
        changed = map(without_links, content)
        return content._make(changed) if hasattr(content, "_make") else tuple(changed)
    return content


def _of(summary: Summary) -> str:
    team = "" if summary.team is None else f"team {summary.team.text}, "
    return f"{team}cluster {summary.cluster.text}, {summary.week or summary.period}"


def file_name(facts: Facts, ending: str) -> str:
    """Return a name for a file of this report that is valid on every system."""
    week = facts.get("week")
    parts = ("kafka-slo", facts.get("team"), week["iso"] if week else str(facts["from"])[:10])
    safe = (re.sub(r"[^A-Za-z0-9]+", "-", str(part)).strip("-")[:40] for part in parts if part)
    return f"{'-'.join(filter(None, safe))}.{ending}"


def _addressed(message: EmailMessage, mail: Mail) -> tuple[str, tuple[str, ...]]:
    try:
        message["From"] = mail.sender
        message["To"] = ", ".join(mail.to)
        (sender,) = message["From"].addresses
        to = message["To"].addresses
    except (ValueError, IndexError) as error:
        raise SendError(f"mail: an address is invalid: {display.line(error)}") from error
    if not to:
        raise SendError("mail: no recipient. List at least one address in mail.to.")
    for address in (sender, *to):
        if not (address.username and address.domain and address.addr_spec.isascii()):
            raise SendError(
                f"mail: {display.line(str(address))!r} is not an address that every server "
                "accepts; write it as name@example.org"
            )
    return sender.addr_spec, tuple(dict.fromkeys(address.addr_spec for address in to))


def _html(summary: Summary, attached: Sequence[str], link: str | None, version: str) -> str:
    template = templates("lakehouse.report.send").get_template("mail.html.j2")
    page = template.render(
        summary=summary,
        headline=lines.headline(summary),
        about=lines.about(summary),
        events=summary.events[:MOST_EVENTS],
        others=lines.other_events(summary, MOST_EVENTS),
        not_met=lines.not_met(summary),
        notes=lines.notes(summary),
        lines=lines,
        attached=attached,
        link=link,
        version=version,
    )
    return "\n".join(line for line in page.splitlines() if line.strip())


def _sign(message: EmailMessage, parts: Sequence[str]) -> None:
    """Derive the Message-ID and the boundaries from the content, not from chance."""
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    message["Message-ID"] = f"<{digest}@jmxlake>"
    for number, part in enumerate(message.walk()):
        if part.is_multipart():
            part.set_boundary(f"=_{digest}_{number}")


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
        raise SendError(f"{where}: {display.line(error)}; see mail.security") from None
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
