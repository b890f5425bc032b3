"""The notebook that mails the report, as it is, to a real mail server with TLS."""

from __future__ import annotations

import email
import email.policy
import runpy
import shutil
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.deploy.bundle_file import ROOT
from tests.deploy.smtp_server import SmtpServer

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
def certificate(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing: install the package openssl")
    file = tmp_path / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", str(file), "-out", str(tmp_path / "ca.pem"), "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    file.write_bytes(file.read_bytes() + (tmp_path / "ca.pem").read_bytes())
    return file


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "2026-11-23.html"
    file.write_text(PAGE, "utf-8")
    return file


def dbutils(page: Path, recipients: str, server: str) -> FakeDbutils:
    asked = {"page": str(page), "recipients": recipients, "sender": "kafka@example.com",
             "server": server, "scope": "jmxlake"}  # fmt: skip
    secrets = {("jmxlake", "user"): "robot", ("jmxlake", "password"): "hunter2"}
    return FakeDbutils(asked, secrets)


def run(told: FakeDbutils) -> None:
    runpy.run_path(NOTEBOOK, init_globals={"dbutils": told})


def test_the_page_arrives_as_it_is_at_all_who_were_named(
    certificate: Path,
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("ca.pem")))
    server = SmtpServer(certificate)
    run(dbutils(page, "a@example.com, b@example.com,", f"localhost:{server.port}"))
    server.close()
    assert server.heard.login == "robot hunter2"
    assert server.heard.recipients == ["a@example.com", "b@example.com"]
    message = email.message_from_bytes(server.heard.message, policy=email.policy.default)
    assert message["Subject"] == "Kafka, the week before 2026-11-23"
    (attached,) = message.iter_attachments()
    assert attached.get_filename() == page.name
    assert attached.get_payload(decode=True) == PAGE.encode()
    assert "hunter2" not in capsys.readouterr().out


def test_a_server_that_nobody_vouches_for_gets_no_password(certificate: Path, page: Path) -> None:
    server = SmtpServer(certificate)
    with pytest.raises(ssl.SSLCertVerificationError):
        run(dbutils(page, "a@example.com", f"localhost:{server.port}"))
    server.close()
    assert server.heard.login == ""


def test_without_recipients_nothing_is_sent(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(dbutils(page, " ", ""))
    assert "nobody" in capsys.readouterr().out
