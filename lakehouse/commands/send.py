"""``jmxlake send``."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.errors import LakehouseError, SendError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.send.mail import File
    from lakehouse.send.settings import Mail, Settings, Webhook


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
    if to and wanted.mail is not None:
        wanted = replace(wanted, mail=replace(wanted.mail, to=to))
    if not sent(facts, wanted, only, dry_run=dry_run):
        raise SendError(f"{settings_file}: it does not say how to send by {only}")


def sent(
    facts: dict[str, Any], wanted: Settings, only: str | None = None, *, dry_run: bool = False
) -> bool:
    """Send a report by all ways that the settings know; whether they know any.

    Raises:
        SendError: One of them failed; the others were tried all the same.
    """
    steps: list[Callable[[], None]] = []
    if (mail := wanted.mail) is not None and only != "webhook":
        steps.append(lambda: _mail(facts, mail, dry_run=dry_run))
    if (webhook := wanted.webhook) is not None and only != "mail":
        steps.append(lambda: _post(facts, webhook, dry_run=dry_run))
    failed = []
    for step in steps:
        try:
            step()
        except LakehouseError as error:
            failed.append(str(error))
    if failed:
        raise SendError("; ".join(failed))
    return bool(steps)


def _mail(facts: dict[str, Any], mail: Mail, *, dry_run: bool) -> None:
    from lakehouse.send import mail as mails
    from lakehouse.send.digest import digest
    from lakehouse.send.pictures import pictures

    letter = mails.letter(
        facts, digest(facts), pictures(facts), _files(facts, mail), mail, dt.datetime.now(dt.UTC)
    )
    how = f"mail to {', '.join(letter.to)} by {mail.host}:{mail.port} ({mail.security})"
    if dry_run:
        click.echo(f"jmxlake: would send {how}", err=True)
        click.echo(letter.content)
        return
    mails.deliver(letter, mail)
    click.echo(f"sent {how}")


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


def _post(facts: dict[str, Any], webhook: Webhook, *, dry_run: bool) -> None:
    from lakehouse.send.digest import digest
    from lakehouse.send.webhook import payload, post

    message, place = payload(digest(facts)), webhook.url.place
    if dry_run:
        click.echo(f"jmxlake: would post to the address in {place}", err=True)
        click.echo(json.dumps(message, indent=1, ensure_ascii=False))
        return
    post(message, webhook)
    click.echo(f"posted to the address in {place}")
