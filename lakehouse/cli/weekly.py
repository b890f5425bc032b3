"""``jmxlake weekly``: rollup, slo publish, report and send in one command. ``jmxlake send``.

``--config`` reads every option of weekly from one YAML file. Keys and types come from the options
of the command, which declare them once. The command line overrides the file.
"""

import datetime as dt
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import click
import msgspec
from msgspec import Meta
from msgspec.structs import replace

from lakehouse.cli import options
from lakehouse.cli.options import FILE, TEAM, LakeOptions, kept_in, log, named
from lakehouse.cli.phases import phase
from lakehouse.cli.report import OPTIONS, ReportOutputs, facts_of
from lakehouse.cli.rollup import TIDY, WINDOW, outcome_lines, roll_up
from lakehouse.cli.statement_options import StatementOptions, count_line
from lakehouse.errors import ConfigFileError, LakehouseError, SendError
from lakehouse.report.facts import report_json
from lakehouse.report.facts.by_owner import of_team
from lakehouse.report.page import page
from lakehouse.report.send import delivery, messages
from lakehouse.report.send.messages import File, file_name, letter
from lakehouse.report.summary.summarize import Summary, summarize
from lakehouse.rollup.dimensions import update_owners
from lakehouse.rollup.plan import Wanted
from lakehouse.tables.strict_files import UnreadableFileError
from lakehouse.tables.strict_yaml import load_file
from lakehouse.tables.typed_settings import WrongSettingError, convert, schema_comment, wording

LINK: Final = click.option(
    "--link", metavar="URL",
    help="URL of the HTML report (https) for a button in messages, with {week} and {cluster} as "
    "placeholders. Default: link of the settings.",
)  # fmt: skip
_MESSAGES: Final = {"slack": messages.slack_message, "teams": messages.teams_message}


@click.command
@click.argument("facts_file", metavar="REPORT.json", type=click.Path(path_type=Path))
@click.option(
    "--settings", "settings_file", required=True, type=FILE,
    help="File with recipients and servers (YAML). See docs/weekly.md.",
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
    loaded = with_link(delivery.load(settings_file), link)
    facts = report_json.load(facts_file)
    facts = facts if team is None else of_team(facts, team)
    if to and loaded.mail is not None:
        loaded = replace(loaded, mail=replace(loaded.mail, to=to))
    if not send_report(facts, loaded, only, dry_run=dry_run):
        raise SendError(f"{settings_file}: settings for {only} are missing. Add them")


def with_link(settings: delivery.Settings, link: str | None) -> delivery.Settings:
    """Return the settings with another link. None: keep their link.

    Raises:
        SendError: The link is not an https URL.
    """
    return settings if link is None else replace(settings, link=delivery.link_of(link))


def send_report(
    facts: dict[str, Any], settings: delivery.Settings, only: str | None = None,
    *, dry_run: bool = False,
) -> bool:  # fmt: skip
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
    facts: dict[str, Any], summary: Summary, mail: delivery.Mail, link: str | None, *, dry_run: bool
) -> None:
    version = str(facts.get("jmxlake") or "")
    now = dt.datetime.now(dt.UTC)
    message = letter(summary, _files(facts, mail), mail, now, link=link, version=version)
    how = f"mail to {', '.join(message.to)} through {mail.host}:{mail.port} ({mail.security})"
    if dry_run:
        log(f"would send {how}")
        click.echo(message.content)
        return
    refused = delivery.deliver(message, mail)
    if refused:
        # Not an error, because another call would send it to the other recipients twice.
        log(f"mail: {mail.host}:{mail.port} accepted it, but refused {refused}")
    click.echo(f"sent {how}")


def _files(facts: dict[str, Any], mail: delivery.Mail) -> list[File]:
    # A missing browser must fail before the HTML report is rendered.
    browser = page.browser() if "pdf" in mail.attach else ""
    html = page.render(facts) if {"html", "pdf"} & set(mail.attach) else ""
    contents: dict[str, Callable[[], tuple[str, bytes]]] = {
        "html": lambda: ("text/html", html.encode()),
        "pdf": lambda: ("application/pdf", page.printed(html, browser)),
        "json": lambda: ("application/json", report_json.text(facts).encode()),
    }
    return [File(file_name(facts, kind), *contents[kind]()) for kind in mail.attach]


def _post(summary: Summary, webhook: delivery.Webhook, link: str | None, *, dry_run: bool) -> None:
    message, place = _MESSAGES[webhook.format](summary, link), webhook.url.place
    if dry_run:
        log(f"would post to the address in {place}")
        click.echo(json.dumps(message, indent=1, ensure_ascii=False))
        return
    delivery.post(message, webhook)
    click.echo(f"posted to the address in {place}")


SEND: Final = "send"
"""Key of the settings of docs/weekly.md, or of the name of a file with them."""

_META: Final = "jmxlake.send"
_NOT_OPTIONS: Final = frozenset({"config", "print_config", "help"})
_SHARE: Final = Annotated[float, Meta(ge=0, le=100, extra=wording("a number from 0 to 100"))]
_WIDTH: Final = 100

_EXAMPLES: Final = {
    "lake": "s3://bucket/kafka",
    "gold": "main.kafka_gold",
    "gold_root": "s3://bucket/kafka/gold",
    "objectives": "/etc/jmxlake/objectives",
    "options_file": "/etc/jmxlake/storage.yaml",
    "week": "2026-W47",
    "from": '"2026-11-16T00:00:00Z"',
    "to": '"2026-11-23T00:00:00Z"',
    "maintenance": "/etc/jmxlake/maintenance.yaml",
    "corrections": "/etc/jmxlake/corrections.yaml",
    "cluster": "MkU3OEVBNTcwNTJENDM2Qg",
    "time_zone": "Europe/Berlin",
    "business_hours": "Mon-Fri 08:00-18:00",
    "html": "/var/lib/jmxlake/reports/{week}.html",
    "pdf": "/var/lib/jmxlake/reports/{week}.pdf",
    "json": "/var/lib/jmxlake/reports/{week}.json",
    "csv": "/var/lib/jmxlake/reports/{week}",
    "owners": "/etc/jmxlake/owners.yaml",
    "team": "payments",
    "min_coverage": "50",
    "every_cluster": "/var/lib/jmxlake/reports/{week}",
    "link": "https://reports.example.org/kafka/{week}.html",
    "engine": "local",
    "window": "5m",
    "tidy": "daily",
}
"""A valid value for each key."""

_SEND_EXAMPLE: Final = """\
# Mail and chat messages. Do not write secrets here; name a file or an environment variable.
# send:
#   mail:
#     host: smtp.example.org
#     from: Kafka reports <reports@example.org>
#     to: [platform@example.org]
#     username: reports
#     password_file: /etc/jmxlake/smtp-password  # or password_variable: SMTP_PASSWORD
#     attach: [html, pdf]
#   webhook:
#     format: slack  # or teams
#     url_file: /etc/jmxlake/webhook-url  # or url_variable: WEBHOOK_URL
"""


def _load(context: click.Context, _: click.Parameter, file: Path | None) -> None:
    if file is None:
        return
    options = _options(context.command)
    try:
        given = _typed(load_file(file), options)
    except UnreadableFileError as error:
        raise ConfigFileError(error.advised("Specify a file with options")) from None
    except WrongSettingError as error:
        raise ConfigFileError(f"{file}: {error}. See jmxlake weekly --print-config") from None
    sent = given.pop(SEND, None)
    if isinstance(sent, delivery.Settings):
        context.meta[_META] = sent
    elif sent is not None:
        given[SEND] = sent
    for key, value in given.items():
        try:
            options[key].type_cast_value(context, str(value))
        except (click.BadParameter, LakehouseError) as error:
            reason = getattr(error, "message", error)
            raise ConfigFileError(f"{file}: {key}: {reason}") from None
    context.default_map = {f"{options[key].name}": str(value) for key, value in given.items()}


def _print(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:  # noqa: FBT001
    if is_wanted and not context.resilient_parsing:
        click.echo("\n".join(_example(context.command)))
        context.exit()


CONFIG: Final = click.option(
    "--config", "-c", type=FILE, is_eager=True, expose_value=False, callback=_load, metavar="FILE",
    envvar="JMXLAKE_WEEKLY_CONFIG", show_envvar=True,
    help="File with options of this command (YAML). The command line overrides it.",
)  # fmt: skip
PRINT_CONFIG: Final = click.option(
    "--print-config", is_flag=True, is_eager=True, expose_value=False, callback=_print,
    help="Print a file for --config with all options and exit.",
)  # fmt: skip


def settings_in(context: click.Context) -> delivery.Settings | None:
    """Return the ``send`` settings in the file of ``--config``; None if they are missing."""
    found: delivery.Settings | None = context.meta.get(_META)
    return found


def _example(command: click.Command) -> Iterator[str]:
    """Yield a valid file with every option of a command, commented out except LAKE, in lines."""
    yield schema_comment("weekly").rstrip("\n")
    yield "# Options of jmxlake weekly: jmxlake weekly --config FILE"
    for key, option in _options(command).items():
        yield ""
        if key == SEND:
            yield _SEND_EXAMPLE.rstrip("\n")
            continue
        yield from textwrap.wrap(_help(option), _WIDTH, initial_indent="# ", subsequent_indent="# ")
        yield f"{'' if key == 'lake' else '# '}{key}: {_EXAMPLES[key]}"


def _help(option: click.Parameter) -> str:
    if isinstance(option, click.Option):
        default = f" Default: {option.default}." if option.show_default else ""
        return f"{option.help}{default}"
    return "The lake: a folder, a URL, or a schema of a Spark catalog. Required."


def _options(command: click.Command) -> dict[str, click.Parameter]:
    """Return the options by their keys, in the order of the command's help."""
    found = {_key(option): option for option in command.params}
    return {key: one for key, one in found.items() if key not in _NOT_OPTIONS}


def _key(option: click.Parameter) -> str:
    name = option.opts[0].removeprefix("--").replace("-", "_")
    return name if isinstance(option, click.Option) else "lake"


def _typed(document: Any, options: Mapping[str, click.Parameter]) -> dict[str, Any]:
    """Return the options in a file, converted to their types.

    Raises:
        WrongSettingError: A key is unknown, or a value has the wrong type.
    """
    if not isinstance(document, dict):
        raise WrongSettingError("", "expected options, such as lake: /srv/lake")
    given = {key: value for key, value in document.items() if value is not None}
    if isinstance(given.get(SEND), dict):
        try:
            given[SEND] = delivery.sections(given[SEND])
        except WrongSettingError as error:
            raise WrongSettingError(f"{SEND}.{error.key}".rstrip("."), error.problem) from None
    found = convert(given, _struct(options))
    return {
        key: value
        for key, option in options.items()
        if (value := getattr(found, option.name or key)) is not None
    }


def _struct(options: Mapping[str, click.Parameter]) -> type[msgspec.Struct]:
    """Return the type of a file with options."""
    return msgspec.defstruct(
        "Weekly",
        [
            (
                option.name or key,
                _type(key, option),
                None,
            )
            for key, option in options.items()
        ],
        rename={option.name or key: key for key, option in options.items()},
        namespace={"__doc__": "Options of jmxlake weekly."},
        forbid_unknown_fields=True,
    )


def file_type() -> type[msgspec.Struct]:
    """Return the type of the file of ``weekly --config``."""
    return _struct(_options(weekly))


def _type(key: str, option: click.Parameter) -> Any:
    """Return the type of an option, with its meaning."""
    kind: Any = _SHARE if key == "min_coverage" else delivery.Line
    if key == SEND:
        kind = delivery.Settings | delivery.Line
    elif isinstance(option.type, click.Choice):
        kind = Literal[tuple(option.type.choices)]
    return Annotated[kind | None, Meta(description=_help(option))]


@click.command
@options.lake_options()
@OPTIONS
@click.option(
    "--every-cluster", type=options.FOLDER, metavar="FOLDER",
    help="Output folder for the HTML and JSON report of each cluster.",
)  # fmt: skip
@click.option(
    "--send", "settings_file", type=options.FILE, metavar="SETTINGS.yaml",
    help="Send each report with these settings (see jmxlake send).",
)  # fmt: skip
@LINK
@options.ENGINE
@WINDOW
@TIDY
@CONFIG
@PRINT_CONFIG
def weekly(
    lake: LakeOptions, *, every_cluster: Path | None, settings_file: Path | None, link: str | None,
    engine: str | None, window: int | None, tidy: str, **given: Any,
) -> None:  # fmt: skip
    """Roll up, publish SLO results, report and send a week.

    It runs jmxlake rollup, slo publish, report and send for the last complete week, or for the
    current week if it is the first one of the lake. If it fails, run it again: it keeps completed
    steps, but it repeats messages. {week} and {cluster} in file names and in the link are
    placeholders.

    It exits with 1 if it failed, and with 3 if another rollup of LAKE is running.
    """
    loaded = delivery.load(settings_file) if settings_file else None
    loaded = loaded or settings_in(click.get_current_context())
    outputs, asked = ReportOutputs(given, lake.root), StatementOptions(lake, given)
    if every_cluster is not None and any((*outputs.places, asked.cluster)):
        raise click.UsageError("--every-cluster cannot be combined with other outputs or --cluster")
    if loaded is not None and str(given["json_file"]) == "-":
        raise click.UsageError("--json - cannot be combined with --send, which prints to stdout")
    if link is not None and loaded is None:
        raise click.UsageError("--link requires --send")
    loaded = None if loaded is None else with_link(loaded, link)

    used = lake.rollup_engine(engine)
    wanted = Wanted(tidy=tidy, check_files=True)
    _, *others = outcome_lines(roll_up(used, asked.objectives, wanted, window))
    for line in others:
        log(line)
    if outputs.owners is not None:
        update_owners(used, outputs.owners.labels)
    period = asked.period(used)
    with phase("objectives") as shown:
        shown.result = count_line(*asked.publish(used, asked.objectives, period, burns=False))
    errors: list[str] = []
    with kept_in(errors):
        for facts in facts_of(asked, used, period, every=every_cluster is not None):
            with kept_in(errors):
                written = outputs.write(facts, every_cluster, with_page=True)
                if loaded is not None:
                    with phase("send"):
                        send_report(written, loaded)
    if errors:
        raise LakehouseError("; ".join(errors))
