"""The mail and the settings; messages: test_chat_messages.py; over the wire: test_send.py."""

from __future__ import annotations

import datetime as dt
import re
from email import message_from_bytes, policy
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from lakehouse.errors import SendError
from lakehouse.report.facts import report_json
from lakehouse.report.figures import name
from lakehouse.report.send import delivery, messages
from lakehouse.report.send.delivery import Secret
from lakehouse.report.summary import lines
from lakehouse.report.summary.lines import summary_text
from tests import sample_facts, summaries
from tests.page_reader import read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse.report.summary.summarize import Summary
    from tests.page_reader import Node

MAIL = delivery.Mail("mail.example.org", "Reports <r@example.org>", ("a@example.org",))
NOW = dt.datetime(2026, 11, 23, 7, tzinfo=dt.UTC)
FILE = messages.File("report.html", "text/html", "<p>é".encode())
LINK = "https://reports.example.org/kafka/2026-W47.html"
WEEK = summaries.bad_week()
WEEKS = {
    "bad": WEEK,
    "running": summaries.running_week(),
    "quiet": summaries.quiet_week(),
    "blind": summaries.blind_week(),
}
ODD = {
    f"odd-{number}": summaries.hostile_week(odd) for number, odd in enumerate(summaries.ODD_NAMES)
}


def letter(
    week: Summary = WEEK, to: delivery.Mail = MAIL, now: dt.datetime = NOW, link: str | None = LINK
) -> delivery.Letter:
    return messages.letter(week, [FILE], to, now, link=link, version="1.0")


def body(made: delivery.Letter, kind: str) -> str:
    found = message_from_bytes(made.content, policy=policy.default).get_body((kind,))
    assert found is not None
    content: str = found.get_content()
    return content.replace("\r\n", "\n")


def test_letter_is_text_and_html_with_files() -> None:
    made = letter()
    made.content.decode("ascii")
    assert not re.search(rb"[^\r]\n", made.content)
    assert max(map(len, made.content.split(b"\r\n"))) <= 998, "what every server takes"
    message = message_from_bytes(made.content, policy=policy.default)
    assert message["Subject"] == (
        "Kafka SLO: 4 of 9 objectives missed, the same 4 as last week; cluster sample, Week 47"
    )
    assert message.get_content_type() == "multipart/mixed"
    alternatives, attached = message.iter_parts()
    kinds = [one.get_content_type() for one in alternatives.iter_parts()]
    assert kinds == ["text/plain", "text/html"]
    assert (attached.get_filename(), attached.get_content()) == ("report.html", "<p>é")
    page = read(body(made, "html"))
    assert page.one("h1").text == "4 of 9 objectives missed, the same 4 as last week"
    assert "Attached: report.html. jmxlake 1.0" in page.raw


def test_text_is_that_of_the_terminal() -> None:
    text = body(letter(), "plain")
    assert text.startswith(summary_text(WEEK, terminal=False, has_page=True))
    assert "jmxlake report LAKE" not in text
    assert text.endswith(f"Report: {LINK}\nAttached: report.html\n")
    assert max(map(cell_len, text.splitlines())) <= 80


def texts(node: Node) -> Iterator[str]:
    """The texts of cells and lines, each with a space around it; those of a line are one."""
    for child in node.children:
        if isinstance(child, str):
            yield child
        elif child.tag in {"bdi", "b", "span"}:
            yield "".join(texts(child))
        else:
            yield f" {''.join(texts(child))} "


@pytest.mark.parametrize("week", WEEKS.values(), ids=WEEKS)
def test_html_states_the_words_and_numbers_of_the_report(week: Summary) -> None:
    html = body(letter(week), "html")
    assert len(html.encode()) < 10_000
    shown = " ".join("".join(texts(read(html))).split())
    said = [lines.headline(week), *map(lines.plain, (lines.about(week), *lines.notes(week)))]
    said += map(lines.plain, week.lead)
    for tile in week.tiles:
        said += [tile.label, lines.plain(tile.note), tile.value, tile.delta]
    for event in week.events[: messages.MOST_EVENTS]:
        said += [lines.plain(lines.event_title(event)), lines.event_time(event), event.used]
        said += [lines.plain(event.cause), lines.plain(lines.event_action(event))]
    for one in lines.not_met(week):
        said += [one.title, one.word, one.attained, one.used]
    for words in said:
        assert words in shown


@pytest.mark.parametrize("week", [WEEK, *ODD.values()], ids=["bad", *ODD])
def test_mail_needs_no_style_sheet_no_script_and_no_network(week: Summary) -> None:
    html = body(letter(week), "html")
    page = read(html)
    for tag in ("script", "style", "link", "svg", "form", "iframe", "img"):
        assert not list(page.all(tag)), tag
    for node in page.all():
        assert not [key for key in node.attributes if key.startswith("on")]
        assert not {"src", "background", "srcset"} & set(node.attributes)
        assert "url(" not in (node.attributes.get("style") or "")
    assert [one.attributes["href"] for one in page.all("a")] == [LINK]


@pytest.mark.parametrize("week", ODD.values(), ids=ODD)
def test_no_name_looks_like_a_link_to_a_mail_program(week: Summary) -> None:
    made = letter(week, link=None)
    for kind in ("plain", "html"):
        assert not re.search(
            r"://|(?i:www)\.|@(?!\u200c)", body(made, kind).replace("://\u200c", "")
        )


def test_same_report_is_the_same_letter_but_for_the_date() -> None:
    first, again = letter(), letter()
    assert first == again
    later = letter(now=NOW + dt.timedelta(hours=1))
    changed = [
        one for one in zip(first.content.splitlines(), later.content.splitlines(), strict=True)
        if len(set(one)) > 1
    ]  # fmt: skip
    assert [one[0][:5] for one in changed] == [b"Date:"]
    other = letter(WEEKS["quiet"])
    ids = {message_from_bytes(one.content)["Message-ID"] for one in (first, other)}
    assert len(ids) == 2


def test_no_name_becomes_a_header():
    odd = name("x\r\nBcc: all@example.org")
    week = WEEK._replace(cluster=odd, team=name("a\nb"))
    message = message_from_bytes(letter(week).content, policy=policy.default)
    assert "Bcc" not in message
    assert r"x\u000d\u000aBcc" in message["Subject"]
    assert set(message.keys()) == {
        "From", "To", "Subject", "Date", "Auto-Submitted", "MIME-Version", "Content-Type",
        "Message-ID",
    }  # fmt: skip


@pytest.mark.parametrize(
    "address",
    ["nobody", "", "a@b\r\nBcc: c@d", "Ops <>", "ops@exämple.org", "öps@example.org", "a@b, ,c"],
)
def test_an_address_that_is_none_is_one_line(address: str):
    with pytest.raises(SendError, match="mail: ") as caught:
        letter(to=replace(MAIL, to=(address,)))
    assert "\n" not in str(caught.value)


def test_everybody_gets_it_once():
    twice = ("a@example.org", "A <a@example.org>", '"B, the boss" <b@example.org>')
    assert letter(to=replace(MAIL, to=twice)).to == ("a@example.org", "b@example.org")


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({}, "kafka-slo-2026-11-21.pdf"),
        ({"week": {"iso": "2026-W47"}}, "kafka-slo-2026-W47.pdf"),
        ({"team": "../../etc/pass wd"}, "kafka-slo-etc-pass-wd-2026-11-21.pdf"),
        ({"team": "支払い"}, "kafka-slo-2026-11-21.pdf"),
    ],
)
def test_a_file_has_a_name_every_system_takes(more: dict, name: str):
    assert messages.file_name(sample_facts.demo() | more, "pdf") == name


def test_a_secret_is_in_no_repr(tmp_path: Path):
    file = tmp_path / "secret"
    file.write_text("hunter2\nnot this\n")
    secret = Secret("file", str(file))
    assert secret.read("mail") == "hunter2"
    assert "hunter2" not in repr(secret)
    assert Secret("variable", "X").read("mail", {"X": " hunter2 "}) == "hunter2"
    for bad, told in ((b"\n", "is empty"), (b"\xff", "not UTF-8 text")):
        file.write_bytes(bad)
        with pytest.raises(SendError, match=told):
            secret.read("mail")


def settings_of(folder: Path, text: str) -> delivery.Settings:
    file = folder / "send.yaml"
    file.write_text(text)
    return delivery.load(file)


def test_what_is_not_said_is_safe(tmp_path: Path):
    told = settings_of(tmp_path, "mail: {host: mail.example.org, from: a@b.org, to: c@d.org}").mail
    assert told is not None
    assert (told.security, told.port, told.attach) == ("starttls", 587, ("html",))
    assert told.timeout_seconds == 30
    told = settings_of(
        tmp_path, "mail: {host: h, from: a@b.org, to: [c@d.org], security: tls, attach: [pdf, pdf]}"
    ).mail
    assert told is not None
    assert (told.port, told.attach) == (465, ("pdf",))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected the keys mail, webhook and link"),
        ("{}", "set mail, webhook or both"),
        ("mail: {host: h, from: a, to: []}", "mail.to: expected an address or a list"),
        ("mail: {from: a, to: [b]}", "mail: host is missing"),
        ("mail: {host: h, from: a, to: [b], password: x}", "not allowed here. Use password_file"),
        ("webhook: {url: 'https://x'}", "a secret is not allowed here. Use url_file"),
        ("webhook: {}", "webhook: set url_file, url_variable or url_databricks"),
        ("webhook: {url_file: a, url_variable: B}", "not both"),
        ("webhook: {url_file: a, format: discord}", "expected one of slack, teams"),
        ("{webhook: {url_file: a}, link: 'http://x/y'}", "link: expected an address with https"),
        ("mail: {host: h, from: a, to: [b], security: none}", "only for a server on this machine"),
        ("mail: {host: h, from: a, to: [b], security: ssl}", "one of none, starttls, tls"),
        ("mail: {host: h, from: a, to: [b], username: u}", "use username with a password"),
        ("mail: {host: h, from: a, to: [b], attach: [exe]}", "expected one of html, json, pdf"),
        ("mail: {host: h, from: a, to: [b], port: 99999}", "from 1 to 65535"),
        ("mail: {host: h, from: a, to: [b], timeout_seconds: 0}", "up to 600"),
        ("mail: {hots: h}", "mail.hots: unknown key; did you mean 'host'?"),
        ('mail: {host: "h\\nx", from: a, to: [b]}', "mail.host: expected a line of text"),
        ("mail: [", "not YAML"),
    ],
)  # fmt: skip
def test_settings_that_are_wrong_are_one_line(tmp_path: Path, text: str, told: str):
    with pytest.raises(SendError) as caught:
        settings_of(tmp_path, text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "link",
    ["https://reports.example.org", "https://r.example:8443/a/{cluster}/{week}.html?a=b#c"],
)
def test_link_is_an_address_with_https(tmp_path: Path, link: str) -> None:
    assert delivery.link_of(link) == link
    assert settings_of(tmp_path, f"{{webhook: {{url_file: a}}, link: '{link}'}}").link == link


@pytest.mark.parametrize(
    "link",
    [
        "http://x/y", "javascript:alert(1)", "https://", "https://u:p@x/y", "https://x/a b",
        'https://x/"y', "https://x/<y>", "https://x/y|z", "https://x/{day}", "https://x/y\n",
        "https://x/é", "https://x/\u202e", " https://x", "https://x/" + "y" * 2_000, "//x/y",
        "https://x\\y", "https://x/(y)", "https://x/[y]",
    ],
)  # fmt: skip
def test_link_that_a_message_would_have_to_escape_is_refused(link: str) -> None:
    with pytest.raises(SendError, match="expected an address with https") as caught:
        delivery.link_of(link)
    assert "\n" not in str(caught.value)


def test_facts_are_written_as_they_are_read(tmp_path: Path):
    file = tmp_path / "report.json"
    file.write_text(report_json.text(sample_facts.hostile()), encoding="utf-8")
    assert report_json.load(file) == sample_facts.hostile()
