"""The notebook that mails the report, as it is, to a real mail server with TLS."""

from __future__ import annotations

import email
import email.policy
import runpy
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.deploy.bundle_file import ROOT
from tests.servers import PASSWORD, USER, Authority, Mailbox, mail_server

if TYPE_CHECKING:
    from pathlib import Path

NOTEBOOK = str(ROOT / "deploy/databricks/mail_report.py")
PAGE = "<!doctype html><title>Woche 47 \N{SNOWMAN}</title>\n.\n" * 50


class FakeDbutils:
    """Widgets with values, and a secret scope."""

    def __init__(self, values: dict[str, str], secrets: dict[tuple[str, str], str]) -> None:
        self._values, self._secrets = values, secrets
        self.widgets = self.secrets = self

    def text(self, name: str, _default: str) -> None:
        assert name in self._values

    def get(self, *name: str) -> str:
        return self._values[name[0]] if len(name) == 1 else self._secrets[name[0], name[1]]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "2026-11-23.html"
    file.write_text(PAGE, "utf-8")
    return file


def dbutils(page: Path, recipients: str, server: str) -> FakeDbutils:
    asked = {"page": str(page), "recipients": recipients, "sender": "kafka@example.com",
             "server": server, "scope": "jmxlake"}  # fmt: skip
    secrets = {("jmxlake", "user"): USER, ("jmxlake", "password"): PASSWORD}
    return FakeDbutils(asked, secrets)


def run(told: FakeDbutils) -> None:
    runpy.run_path(NOTEBOOK, init_globals={"dbutils": told})


def test_the_page_arrives_as_it_is_at_all_who_were_named(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    authority = Authority.made(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with mail_server(Mailbox(), "starttls", authority) as box:
        run(dbutils(page, "a@example.com, b@example.com,", f"localhost:{box.port}"))
    ((sender, recipients, content, encrypted),) = (
        box.got
    )  # it takes nothing from who has no password
    assert (sender, recipients) == ("kafka@example.com", ("a@example.com", "b@example.com"))
    assert encrypted
    message = email.message_from_bytes(content, policy=email.policy.default)
    assert message["Subject"] == "Kafka, the week before 2026-11-23"
    (attached,) = message.iter_attachments()
    assert attached.get_filename() == page.name
    assert attached.get_payload(decode=True) == PAGE.encode()
    assert PASSWORD not in capsys.readouterr().out


def test_a_server_that_nobody_vouches_for_gets_nothing(page: Path, tmp_path: Path) -> None:
    with (
        mail_server(Mailbox(), "starttls", Authority.made(tmp_path)) as box,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        run(dbutils(page, "a@example.com", f"localhost:{box.port}"))
    assert box.got == []


def test_without_recipients_nothing_is_sent(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(dbutils(page, " ", ""))
    assert "nobody" in capsys.readouterr().out
