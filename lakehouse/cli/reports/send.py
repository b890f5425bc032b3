"""``jmxlake send``, and the delivery that ``jmxlake weekly`` shares."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import replace

from lakehouse.cli.options import FILE, TEAM, kept_in, log, named
from lakehouse.errors import SendError
from lakehouse.report.facts import report_json
from lakehouse.report.facts.by_owner import of_team
from lakehouse.report.page import pdf
from lakehouse.report.page.page import render
from lakehouse.report.send import chats
from lakehouse.report.send.mail import File, deliver, file_name, letter
from lakehouse.report.send.settings import Mail, Settings, Webhook, link_of, load
from lakehouse.report.summary.model import Summary
from lakehouse.report.summary.summarize import summarize

LINK: Final = click.option(
    "--link", metavar="URL",
    help="URL of the HTML report (https) for a button in messages, with {week} and {cluster} as "
    "placeholders. Default: link of the settings.",
)  # fmt: skip
_MESSAGES: Final = {"slack": chats.slack_message, "teams": chats.teams_message}


@click.command
@click.argument("facts_file", metavar="REPORT.json", type=click.Path(path_type=Path))
@click.option(
    "--settings", "settings_file", required=True, type=FILE,
    help="File with recipients and servers (YAML). See docs/send.md.",
)  # fmt: skip
@TEAM
@LINK
@click.option(
    "--to", multiple=True, metavar="ADDRESS",
    help="Recipient. Overrides the recipients in the settings. Repeatable.",
)  # fmt: skip
@click.option(
    "--only", type=click.Choice(["mail", "webhook"]), help="Send through this channel only."
)
@click.option("--dry-run", is_flag=True, help="Print the messages without sending them.")
def send(
    facts_file: Path, settings_file: Path, team: str | None, link: str | None,
    to: tuple[str, ...], only: str | None, *, dry_run: bool,
) -> None:  # fmt: skip
    """Send a saved report by mail or to a chat.

    REPORT.json is the output of jmxlake report --json. It exits with 1 if a channel failed; it
    still tries the other channel.
    """
    loaded = with_link(load(settings_file), link)
    facts = report_json.load(facts_file)
    facts = facts if team is None else of_team(facts, team)
    if to and loaded.mail is not None:
        loaded = replace(loaded, mail=replace(loaded.mail, to=to))
    if not send_report(facts, loaded, only, dry_run=dry_run):
        raise SendError(f"{settings_file}: settings for {only} are missing. Add them")


def with_link(settings: Settings, link: str | None) -> Settings:
    """Return the settings with another link. None: keep their link.

    Raises:
        SendError: The link is not an https URL.
    """
    return settings if link is None else replace(settings, link=link_of(link))


def send_report(
    facts: dict[str, Any], settings: Settings, only: str | None = None, *, dry_run: bool = False
) -> bool:
    """Send a report by mail and webhook; return True if the settings have one of them.

    Raises:
        SendError: A channel failed. The other channel was still tried.
    """
    mail = settings.mail if only != "webhook" else None
    webhook = settings.webhook if only != "mail" else None
    link = None if settings.link is None else named(settings.link, facts)
    summary = summarize(facts)
    errors: list[str] = []
    if mail is not None:
        with kept_in(errors):
            _mail(facts, summary, mail, link, dry_run=dry_run)
    if webhook is not None:
        with kept_in(errors):
            _post(summary, webhook, link, dry_run=dry_run)
    if errors:
        raise SendError("; ".join(errors))
    return mail is not None or webhook is not None


def _mail(
    facts: dict[str, Any], summary: Summary, mail: Mail, link: str | None, *, dry_run: bool
) -> None:
    version = str(facts.get("jmxlake") or "")
    now = dt.datetime.now(dt.UTC)
    message = letter(summary, _files(facts, mail), mail, now, link=link, version=version)
    how = f"mail to {', '.join(message.to)} through {mail.host}:{mail.port} ({mail.security})"
    if dry_run:
        log(f"would send {how}")
        click.echo(message.content)
        return
    refused = deliver(message, mail)
    if refused:
        # Not an error, because another call would send it to the other recipients twice.
        log(f"mail: {mail.host}:{mail.port} accepted it, but refused {refused}")
    click.echo(f"sent {how}")


def _files(facts: dict[str, Any], mail: Mail) -> list[File]:
    # A missing browser must fail before the HTML report is rendered.
    browser = pdf.browser() if "pdf" in mail.attach else ""
    html = render(facts) if {"html", "pdf"} & set(mail.attach) else ""
    contents: dict[str, Callable[[], tuple[str, bytes]]] = {
        "html": lambda: ("text/html", html.encode()),
        "pdf": lambda: ("application/pdf", pdf.printed(html, browser)),
        "json": lambda: ("application/json", report_json.text(facts).encode()),
    }
    return [File(file_name(facts, kind), *contents[kind]()) for kind in mail.attach]


def _post(summary: Summary, webhook: Webhook, link: str | None, *, dry_run: bool) -> None:
    message, place = _MESSAGES[webhook.format](summary, link), webhook.url.place
    if dry_run:
        log(f"would post to the address in {place}")
        click.echo(json.dumps(message, indent=1, ensure_ascii=False))
        return
    chats.post(message, webhook)
    click.echo(f"posted to the address in {place}")
