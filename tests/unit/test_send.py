"""What a mail and a message say, and settings; over the wire: tests/integration/test_send.py."""

from __future__ import annotations

import datetime as dt
import json
import re
from email import message_from_bytes, policy
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from lakehouse.errors import SendError
from lakehouse.report.facts import saved
from lakehouse.report.facts.one_team import of_team
from lakehouse.report.facts.owner_accounts import add_owners
from lakehouse.report.send import mail, settings, webhook
from lakehouse.report.send.digest import digest
from lakehouse.report.send.pictures import MOST, Picture, pictures
from lakehouse.report.send.settings import Secret
from tests import sample_facts
from tests.page_reader import read
from tests.unit.test_owners import loaded

if TYPE_CHECKING:
    from pathlib import Path

MAIL = settings.Mail("mail.example.org", "Reports <r@example.org>", ("a@example.org",))
NOW = dt.datetime(2026, 11, 23, 7, tzinfo=dt.UTC)
DOT = Picture("dot", "A dot.", b"\x89PNG")
FILE = mail.File("report.html", "text/html", "<p>é".encode())


def letter(
    facts: sample_facts.Facts, to: settings.Mail = MAIL, now: dt.datetime = NOW
) -> mail.Letter:
    return mail.letter(facts, digest(facts), [DOT], [FILE], to, now)


def test_a_letter_is_text_and_html_with_pictures_and_files():
    made = letter(sample_facts.demo())
    made.content.decode("ascii")
    assert not re.search(rb"[^\r]\n", made.content)
    assert max(map(len, made.content.split(b"\r\n"))) <= 998, "what every server takes"
    message = message_from_bytes(made.content, policy=policy.default)
    assert message.get_content_type() == "multipart/mixed"
    body, attached = message.iter_parts()
    assert [one.get_content_type() for one in body.iter_parts()] == [
        "text/plain", "multipart/related",
    ]  # fmt: skip
    assert (attached.get_filename(), attached.get_content()) == ("report.html", "<p>é")
    text = message.get_body(("plain",)).get_content()
    assert "✗ MISSED     Topics can be written to safely" in text
    assert "Lowest: topic orders 79 % (73.91 % to 80.53 %), 20 s unknown" in text
    page = read(message.get_body(("html",)).get_content())
    assert page.one("h1").text == "5 objectives: 2 missed, 1 uncertain, 1 without data and 1 met."
    assert "Attached, with every figure and its bounds: report.html." in page.raw
    assert {one.attributes["src"] for one in page.all("img")} == {"cid:dot@jmxlake"}


def test_a_mail_needs_no_style_sheet_no_script_and_no_network():
    made = letter(sample_facts.hostile())
    html = message_from_bytes(made.content, policy=policy.default).get_body(("html",)).get_content()
    page = read(html)
    for tag in ("script", "style", "link", "svg", "form", "iframe"):
        assert not list(page.all(tag)), tag
    for node in page.all():
        assert not [key for key in node.attributes if key.startswith("on")]
        assert node.attributes.get("src", "cid:").startswith("cid:")
        assert "href" not in node.attributes
    assert sample_facts.EVIL[0] in page.raw


def test_the_same_report_is_the_same_letter_but_for_the_date():
    first, again = (letter(sample_facts.demo()) for _ in range(2))
    assert first == again
    later = letter(sample_facts.demo(), now=NOW + dt.timedelta(hours=1))
    changed = [
        one for one in zip(first.content.splitlines(), later.content.splitlines(), strict=True)
        if len(set(one)) > 1
    ]  # fmt: skip
    assert [one[0][:5] for one in changed] == [b"Date:"]
    other = letter(sample_facts.quiet_week())
    ids = {message_from_bytes(one.content)["Message-ID"] for one in (first, other)}
    assert len(ids) == 2


def test_no_name_becomes_a_header():
    facts = sample_facts.demo() | {"cluster": "x\r\nBcc: all@example.org", "team": "a\nb"}
    message = message_from_bytes(letter(facts).content, policy=policy.default)
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
        letter(sample_facts.demo(), replace(MAIL, to=(address,)))
    assert "\n" not in str(caught.value)


def test_everybody_gets_it_once():
    twice = ("a@example.org", "A <a@example.org>", '"B, the boss" <b@example.org>')
    assert letter(sample_facts.demo(), replace(MAIL, to=twice)).to == (
        "a@example.org",
        "b@example.org",
    )


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({}, "kafka-sla-2026-11-21.pdf"),
        ({"week": {"iso": "2026-W47"}}, "kafka-sla-2026-W47.pdf"),
        ({"team": "../../etc/pass wd"}, "kafka-sla-etc-pass-wd-2026-11-21.pdf"),
        ({"team": "支払い"}, "kafka-sla-2026-11-21.pdf"),
    ],
)
def test_a_file_has_a_name_every_system_takes(more: dict, name: str):
    assert mail.file_name(sample_facts.demo() | more, "pdf") == name


def test_silence_is_told_as_such():
    told = digest(sample_facts.silent_week())
    assert told.headline == "No source was read: there is no data for any objective."
    assert all(answer.startswith("Not known: no ") for _, answer in told.findings)
    assert [one.word for one in told.verdicts] == ["no data"]


def test_a_digest_is_in_the_time_zone_and_of_the_team(tmp_path: Path):
    facts = add_owners(sample_facts.demo(), loaded(tmp_path)) | {"time_zone": "Europe/Berlin"}
    told = digest(of_team(facts, "storage"))
    assert "07:00 to 07:06 Europe/Berlin" in told.period
    assert told.about.startswith("team storage, cluster ")
    assert "storage" in told.subject


def test_pictures_of_a_time_with_something_to_show_and_no_more_than_are_looked_at():
    found = pictures(sample_facts.demo())
    assert found[0].name == "incidents"
    assert len(found) == MOST
    assert all(one.png.startswith(b"\x89PNG") and one.caption for one in found)
    lag = next(one for one in found if one.name == "copy_lag_bytes")
    assert lag.caption.startswith("Tiered storage: waiting for upload, \u2068archive\u2069: 45.0")
    assert "hatched" not in "".join(one.caption for one in found)


def test_a_chat_interprets_nothing_that_a_client_named():
    facts = sample_facts.demo()
    facts["throttling"]["clients"][0]["client_id"] = "<!channel> ```x``` @all <http://x|y> &amp;"
    made = webhook.payload(digest(facts))
    assert "<" not in made["text"]
    assert made["text"].count("```") == 2
    assert "&lt;!channel&gt; '''x'''" in made["text"]
    kinds = {part["type"] for block in made["blocks"] for part in
             [block.get("text"), *block.get("elements", ())] if part}  # fmt: skip
    assert kinds == {"plain_text"}


def test_a_message_is_within_what_the_chat_takes():
    made = webhook.payload(digest(sample_facts.hostile()))
    json.dumps(made).encode()
    assert len(made["blocks"]) <= 50
    for block in made["blocks"]:
        limit = 150 if block["type"] == "header" else 3000
        for part in [block.get("text"), *block.get("elements", ())]:
            assert part is None or 0 < len(part["text"]) <= limit


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


def settings_of(folder: Path, text: str) -> settings.Settings:
    file = folder / "send.yaml"
    file.write_text(text)
    return settings.load(file)


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
        ("", "expected the keys mail and webhook"),
        ("{}", "it has neither mail nor webhook"),
        ("mail: {host: h, from: a, to: []}", "mail.to: expected an address or a list"),
        ("mail: {from: a, to: [b]}", "mail: host is missing"),
        ("mail: {host: h, from: a, to: [b], password: x}", "no place here; use password_file"),
        ("webhook: {url: 'https://x'}", "a secret has no place here; use url_file"),
        ("webhook: {}", "webhook: it has url_file, url_variable or url_databricks"),
        ("webhook: {url_file: a, url_variable: B}", "not both"),
        ("mail: {host: h, from: a, to: [b], security: none}", "on this machine alone"),
        ("mail: {host: h, from: a, to: [b], security: ssl}", "one of none, starttls, tls"),
        ("mail: {host: h, from: a, to: [b], username: u}", "a username and a password"),
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


def test_facts_are_written_as_they_are_read(tmp_path: Path):
    file = tmp_path / "report.json"
    file.write_text(saved.text(sample_facts.hostile()), encoding="utf-8")
    assert saved.load(file) == sample_facts.hostile()
