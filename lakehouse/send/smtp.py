"""Mail handed to a server: encrypted and to whom its certificate says, or to this very machine."""

from __future__ import annotations

import smtplib
import ssl
from typing import TYPE_CHECKING

from lakehouse.errors import SendError
from lakehouse.report import words

if TYPE_CHECKING:
    from lakehouse.send.mail import Letter
    from lakehouse.send.settings import Mail


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
