"""``jmxlake send``."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lakehouse.errors import LakehouseError, SendError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.send.mail import File
    from lakehouse.send.settings import Mail, Settings


@click.command(short_help="Mail a report, or post it to a chat.")
@click.argument("facts_file", metavar="REPORT.json", type=click.Path(path_type=Path))
@click.option(
    "--settings", "settings_file", required=True, type=click.Path(dir_okay=False, path_type=Path),
    help="To whom, and by which server, as YAML; see docs/send.md.",
)  # fmt: skip
@click.option("--team", help="Send only what this team owns.")
@click.option("--to", multiple=True, metavar="ADDRESS", help="Mail to these instead; repeatable.")
@click.option("--only", type=click.Choice(["mail", "webhook"]), help="By this way alone.")
@click.option("--dry-run", is_flag=True, help="Print what would go, and send nothing.")
def send(
    facts_file: Path, settings_file: Path, team: str | None, to: tuple[str, ...],
    only: str | None, *, dry_run: bool,
) -> None:  # fmt: skip
    """Send a report by mail and webhook, from the facts that `jmxlake report --json` wrote.

    Ends with 1 where one of the two failed; the other one is tried all the same.
    """
    from lakehouse.report import saved
    from lakehouse.report.owned import of_team
    from lakehouse.send import settings

    wanted = settings.load(settings_file)
    facts = saved.load(facts_file)
    facts = facts if team is None else of_team(facts, team)
    if not sent(facts, wanted, to, only, dry_run=dry_run):
        raise SendError(f"{settings_file}: it does not say how to send by {only}")


_DONE: Final = "done"


def sent(
    facts: dict[str, Any], wanted: Settings, to: tuple[str, ...] = (), only: str | None = None, *,
    dry_run: bool = False,
) -> bool:  # fmt: skip
    """Send a report by all ways that the settings know; whether they know any.

    Raises:
        SendError: One of them failed; the others were tried all the same.
    """
    steps = [_mail, _webhook] if only is None else [{"mail": _mail, "webhook": _webhook}[only]]
    tried = [_tried(step, facts, wanted, to, dry_run=dry_run) for step in steps]
    if failed := [one for one in tried if one and one != _DONE]:
        raise SendError("; ".join(failed))
    return any(tried)


def _tried(
    step: Callable[..., bool], facts: dict[str, Any], wanted: Settings, to: tuple[str, ...], *,
    dry_run: bool,
) -> str | None:  # fmt: skip
    """Why it failed; ``done`` where it did not, None where the settings know no such way."""
    try:
        return _DONE if step(facts, wanted, to, dry_run=dry_run) else None
    except LakehouseError as error:
        return str(error)


def _mail(facts: dict[str, Any], wanted: Settings, to: tuple[str, ...], *, dry_run: bool) -> bool:
    from lakehouse.send import mail as mails
    from lakehouse.send.digest import digest
    from lakehouse.send.pictures import pictures
    from lakehouse.send.smtp import deliver

    if wanted.mail is None:
        return False
    mail = replace(wanted.mail, to=to) if to else wanted.mail
    letter = mails.letter(
        facts, digest(facts), pictures(facts), _files(facts, mail), mail, dt.datetime.now(dt.UTC)
    )
    how = f"mail to {', '.join(letter.to)} by {mail.host}:{mail.port} ({mail.security})"
    if dry_run:
        click.echo(f"jmxlake: would send {how}", err=True)
        click.echo(letter.content)
        return True
    deliver(letter, mail)
    click.echo(f"sent {how}")
    return True


def _files(facts: dict[str, Any], mail: Mail) -> list[File]:
    from lakehouse.report import pdf, saved
    from lakehouse.report.page import render
    from lakehouse.send.mail import File, file_name

    # A browser that is missing is told before anything is made.
    browser = pdf.browser() if "pdf" in mail.attach else ""
    html = render(facts) if {"html", "pdf"} & set(mail.attach) else ""
    made: dict[str, Callable[[], tuple[str, bytes]]] = {
        "html": lambda: ("text/html", html.encode()),
        "pdf": lambda: ("application/pdf", pdf.printed(html, browser)),
        "json": lambda: ("application/json", saved.text(facts).encode()),
    }
    return [File(file_name(facts, kind), *made[kind]()) for kind in mail.attach]


def _webhook(
    facts: dict[str, Any], wanted: Settings, _to: tuple[str, ...], *, dry_run: bool
) -> bool:
    from lakehouse.send import webhook
    from lakehouse.send.digest import digest

    if wanted.webhook is None:
        return False
    message = webhook.payload(digest(facts))
    place = wanted.webhook.url.place
    if dry_run:
        click.echo(f"jmxlake: would post to the address in {place}", err=True)
        click.echo(json.dumps(message, indent=1, ensure_ascii=False))
        return True
    webhook.post(message, wanted.webhook)
    click.echo(f"posted to the address in {place}")
    return True
