"""``jmxlake send`` against a real mail server and a real HTTP server."""

from __future__ import annotations

import json
import re
import socket
from email import message_from_bytes, policy
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner, Result

from lakehouse.cli.main import main
from tests import sample_facts
from tests.servers import PASSWORD, USER, Authority, Mailbox, Room, chat, mail_server

if TYPE_CHECKING:
    from pathlib import Path

# aiosmtpd takes TLS from the first byte for none at all.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS"),
    pytest.mark.reads,
]


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    """The demo without the drawings of the page, which take seconds to make."""
    file = tmp_path / "report.json"
    file.write_text(json.dumps(sample_facts.demo() | {"timelines": []}))
    return file


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.made(tmp_path_factory.mktemp("ca"))


def settings(folder: Path, **told: Any) -> Path:
    file = folder / "send.yaml"
    file.write_text(yaml.safe_dump(told))
    return file


def mail(folder: Path, port: int, **told: Any) -> dict[str, Any]:
    secret = folder / "password"
    secret.write_text(f"{PASSWORD}\n", encoding="utf-8")
    return {
        "host": "localhost", "port": port, "username": USER, "password_file": str(secret),
        "from": "Kafka reports <reports@example.org>", "to": ["ops@example.org"],
        "timeout_seconds": 60, **told,
    }  # fmt: skip


def open_mail(port: int, **told: Any) -> dict[str, Any]:
    return {
        "host": "127.0.0.1", "port": port, "security": "none", "from": "reports@example.org",
        "to": ["ops@example.org"], "timeout_seconds": 60, "attach": [], **told,
    }  # fmt: skip


def run(facts: Path, file: Path, *arguments: str, **environment: str) -> Result:
    runner = CliRunner(env=environment)
    return runner.invoke(main, ["send", str(facts), "--settings", str(file), *arguments])


def failed(done: Result) -> str:
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert PASSWORD not in line
    assert "SECRET" not in line
    return line


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_mail_arrives_encrypted_and_authenticated(
    facts: Path, tmp_path: Path, trusted: Authority, security: str
):
    with mail_server(Mailbox(), security, trusted) as box:
        told = mail(tmp_path, box.port, security=security, ca_file=str(trusted.file))
        link = "https://reports.example.org/{week}.html"
        told |= {"attach": ["html", "json"]}
        done = run(facts, settings(tmp_path, mail=told, link=link))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("sent mail to ops@example.org through localhost:")
    ((sender, to, content, encrypted),) = box.got
    assert (sender, to, encrypted) == ("reports@example.org", ("ops@example.org",), True)
    message = message_from_bytes(content, policy=policy.default)
    assert message["Subject"].startswith("Kafka SLO: 2 of 5 objectives missed; cluster ")
    assert message["From"] == "Kafka reports <reports@example.org>"
    text = message.get_body(("plain",)).get_content()
    assert "2 of 5 objectives missed" in text
    assert 'href="https://reports.example.org/2026-11-21.html"' in (
        message.get_body(("html",)).get_content()
    )
    page, told_again = message.iter_attachments()
    assert page.get_filename() == "kafka-slo-2026-11-21.html"
    assert page.get_content().startswith("<!doctype html>")
    assert json.loads(told_again.get_content()) == json.loads(facts.read_text())


def test_dry_run_prints_the_sent_mail_except_its_date(
    facts: Path, tmp_path: Path, trusted: Authority
):
    with mail_server(Mailbox(), "starttls", trusted) as box:
        told = mail(tmp_path, box.port, ca_file=str(trusted.file))
        file = settings(tmp_path, mail=told)
        dry = run(facts, file, "--dry-run")
        assert box.got == []
        assert run(facts, file).exit_code == 0
    assert dry.exit_code == 0, dry.stderr
    assert PASSWORD not in dry.output

    def undated(content: bytes) -> list[bytes]:
        lines = content.replace(b"\r\n", b"\n").strip().split(b"\n")
        dates = [line for line in lines if line.startswith(b"Date: ")]
        assert len(dates) == 1
        return [line for line in lines if line not in dates]

    assert undated(dry.stdout_bytes) == undated(box.got[0][2])


def test_untrusted_mail_server_gets_no_mail(facts: Path, tmp_path: Path, trusted: Authority):
    stranger = Authority.made(tmp_path, "stranger.pem")
    for security in ("starttls", "tls"):
        with mail_server(Mailbox(), security, stranger) as box:
            told = mail(tmp_path, box.port, security=security, ca_file=str(trusted.file))
            line = failed(run(facts, settings(tmp_path, mail=told)))
        assert "certificate verify failed" in line.lower()
        assert box.got == []


def test_certificate_of_other_host_is_refused(facts: Path, tmp_path: Path, trusted: Authority):
    with mail_server(Mailbox(), "starttls", trusted, host="mail.example.org") as box:
        told = mail(tmp_path, box.port, ca_file=str(trusted.file))
        line = failed(run(facts, settings(tmp_path, mail=told)))
    assert "localhost" in line
    assert box.got == []


def test_a_server_that_cannot_encrypt_gets_no_password(facts: Path, tmp_path: Path):
    with mail_server(Mailbox(), "none") as box:
        told = mail(tmp_path, box.port)
        line = failed(run(facts, settings(tmp_path, mail=told)))
    assert "STARTTLS" in line
    assert box.got == []


def test_a_wrong_password_is_one_line_without_it(facts: Path, tmp_path: Path, trusted: Authority):
    with mail_server(Mailbox(), "starttls", trusted) as box:
        told = mail(tmp_path, box.port, ca_file=str(trusted.file))
        del told["password_file"]
        file = settings(tmp_path, mail=told | {"password_variable": "SMTP_PASSWORD"})
        line = failed(run(facts, file, SMTP_PASSWORD="hunter2"))
    assert "answered 535" in line
    assert "hunter2" not in line


def test_a_password_that_smtplib_cannot_send_is_one_line(
    facts: Path, tmp_path: Path, trusted: Authority
):
    with mail_server(Mailbox(), "starttls", trusted) as box:
        told = mail(tmp_path, box.port, ca_file=str(trusted.file))
        (tmp_path / "password").write_text("pässword", encoding="utf-8")
        line = failed(run(facts, settings(tmp_path, mail=told)))
    assert "beyond ASCII" in line
    assert "päss" not in line


def test_refused_recipient_is_named_and_others_get_mail(facts: Path, tmp_path: Path):
    box = Mailbox(refuses=frozenset({"gone@example.org"}))
    with mail_server(box, "none"):
        file = settings(tmp_path, mail=open_mail(box.port))
        done = run(facts, file, "--to", "gone@example.org", "--to", "Ops <o@example.org>")
        assert done.exit_code == 0, "who tries again would send it to the others twice"
        (line,) = done.stderr.splitlines()
        assert "accepted it, but refused gone@example.org (550 no such" in line
        assert box.got[0][1] == ("o@example.org",)
        line = failed(run(facts, file, "--to", "gone@example.org"))
        assert "refused every recipient" in line


def test_unreachable_and_silent_servers_are_one_line(facts: Path, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        told = open_mail(port, timeout_seconds=0.3)
        assert "timed out" in failed(run(facts, settings(tmp_path, mail=told)))
    assert "refused" in failed(run(facts, settings(tmp_path, mail=told)))


def test_a_message_is_posted(facts: Path, tmp_path: Path, trusted: Authority):
    secret = tmp_path / "url"
    with chat(Room(), trusted) as room:
        secret.write_text(f"{room.url}\n")
        told = {"url_file": str(secret), "ca_file": str(trusted.file)}
        file = settings(tmp_path, webhook=told)
        dry = run(facts, file, "--dry-run")
        assert room.got == []
        done = run(facts, file)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f"posted to the address in the file {secret}\n"
    ((path, message),) = room.got
    assert path == "/services/SECRET/PATH"
    assert message == json.loads(dry.stdout)
    assert "SECRET" not in dry.output
    assert message["blocks"][0]["text"]["text"] == "2 of 5 objectives missed"


def test_card_is_posted_with_the_link_of_the_command(facts: Path, tmp_path: Path):
    with chat(Room()) as room:
        file = settings(
            tmp_path, webhook={"url_variable": "CHAT", "format": "teams"}, link="https://a.example"
        )
        done = run(facts, file, "--link", "https://b.example/{cluster}/{week}", CHAT=room.url)
        assert done.exit_code == 0, done.stderr
        wrong = run(facts, file, "--link", "http://b.example", CHAT=room.url)
        assert "--link: expected an address with https" in failed(wrong)
    ((_, message),) = room.got
    card = message["attachments"][0]["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert re.fullmatch(
        r"https://b\.example/[A-Za-z0-9-]+-[0-9a-f]{8}/2026-11-21", card["actions"][0]["url"]
    )


def test_untrusted_chat_server_gets_no_message(facts: Path, tmp_path: Path):
    with chat(Room(), Authority.made(tmp_path)) as room:
        file = settings(tmp_path, webhook={"url_variable": "CHAT"})
        line = failed(run(facts, file, CHAT=room.url))
    assert "certificate verify failed" in line.lower()
    assert room.got == []


@pytest.mark.parametrize(
    ("room", "told"),
    [
        (Room(404, b"no_team\n<b>"), "webhook: it answered 404 no_team"),
        (Room(302, location="http://127.0.0.1:9/elsewhere"), "webhook: it answered 302"),
        (Room(500, b"x" * 10_000_000), "webhook: it answered 500 xxx"),
    ],
)
def test_a_chat_that_does_not_take_it_is_one_line(
    facts: Path, tmp_path: Path, room: Room, told: str
):
    with chat(room):
        file = settings(tmp_path, webhook={"url_variable": "CHAT"})
        line = failed(run(facts, file, CHAT=room.url))
    assert told in line
    assert len(line) < 300
    assert len(room.got) == 1, "it is not sent after a redirection"


def test_a_chat_that_echoes_the_address_does_not_tell_it(facts: Path, tmp_path: Path):
    with chat(Room(403)) as room:
        room.answer = f"no {room.url} here".encode()
        line = failed(
            run(facts, settings(tmp_path, webhook={"url_variable": "CHAT"}), CHAT=room.url)
        )
    assert "no its address here" in line


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://hooks.example.org/SECRET", "neither https nor on this machine"),
        ("ftp://localhost/SECRET", "neither https"),
        ("https://[SECRET", "the address is not a URL"),
        ("https:///SECRET", "neither https"),
        ("http://localhost:1/SECRET", "refused"),
        ("", "the variable CHAT is empty"),
    ],
)
def test_invalid_address_is_one_line(facts: Path, tmp_path: Path, address: str, told: str):
    file = settings(tmp_path, webhook={"url_variable": "CHAT"})
    assert told in failed(run(facts, file, CHAT=address))


def test_failed_mail_still_posts_to_the_chat(facts: Path, tmp_path: Path):
    with chat(Room()) as room:
        file = settings(tmp_path, mail=open_mail(1), webhook={"url_variable": "CHAT"})
        done = run(facts, file, CHAT=room.url)
        assert failed(done).startswith("jmxlake: mail: 127.0.0.1:1:")
        assert "posted" in done.stdout
        assert len(room.got) == 1
        assert run(facts, file, "--only", "webhook", CHAT=room.url).exit_code == 0
    assert len(room.got) == 2


def test_missing_secret_is_one_line_before_any_request(facts: Path, tmp_path: Path):
    told = mail(tmp_path, 1)
    (tmp_path / "password").unlink()
    assert "No such file" in failed(run(facts, settings(tmp_path, mail=told)))
    file = settings(tmp_path, webhook={"url_variable": "NOT_SET_ANYWHERE"})
    assert "NOT_SET_ANYWHERE is not set" in failed(run(facts, file))
