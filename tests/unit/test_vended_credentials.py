"""Credentials from a fake of Unity Catalog's REST API. The real one: tests/everywhere."""

from __future__ import annotations

import base64
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec
import pytest

from collector.config import loader
from collector.config.schema import Lake, UnityCatalog
from collector.delivery.store import of_lake, secrets
from collector.delivery.vended_credentials import VendedCredentials
from collector.errors import ConfigError, LakeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAKE = "s3://bucket/jmxlake"
AWS = {"access_key_id": "ASIA", "secret_access_key": "hush-hush", "session_token": "for-an-hour"}
TOKEN, VEND = "/oidc/v1/token", "/api/2.1/unity-catalog/temporary-path-credentials"
NOW = 1_800_000_000.0


class FakeUnityCatalog(ThreadingHTTPServer):
    """Returns configured responses and keeps the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.now = NOW
        self.asked: list[tuple[str, str, str]] = []
        self.status = {
            "/oidc/v1/token": 200,
            "/api/2.1/unity-catalog/temporary-path-credentials": 200,
        }
        self.vended: Any = {"aws_temp_credentials": AWS}
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path: str) -> Any:
        if path.startswith("/oidc"):
            return {"access_token": "a-token", "expires_in": 3600}
        if isinstance(self.vended, dict):
            return {**self.vended, "expiration_time": int((self.now + 3600) * 1000)}
        return self.vended


class Handler(BaseHTTPRequestHandler):
    server: FakeUnityCatalog

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.asked.append((self.path, self.headers["authorization"], body))
        self.send_response(self.server.status[self.path])
        self.end_headers()
        self.wfile.write(json.dumps(self.server.answer(self.path)).encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def catalog() -> Iterator[FakeUnityCatalog]:
    server = FakeUnityCatalog()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def section(catalog: FakeUnityCatalog, tmp_path: Path) -> UnityCatalog:
    secret = tmp_path / "secret"
    secret.write_text("the-secret\n")
    secret.chmod(0o600)
    return UnityCatalog(catalog.url, client_id="the-client", client_secret_file=secret)


@pytest.fixture
def vended(catalog: FakeUnityCatalog, section: UnityCatalog) -> VendedCredentials:
    return VendedCredentials(section, LAKE, lambda: catalog.now)


OPTIONS = {
    "aws_access_key_id": "ASIA",
    "aws_secret_access_key": "hush-hush",
    "aws_session_token": "for-an-hour",
}


def test_secret_becomes_token_and_token_credentials(
    catalog: FakeUnityCatalog, vended: VendedCredentials
) -> None:
    assert vended() == OPTIONS
    (token, basic, form), (path, bearer, body) = catalog.asked
    assert token == TOKEN
    assert basic == f"Basic {base64.b64encode(b'the-client:the-secret').decode()}"
    assert parse_qs(form) == {"grant_type": ["client_credentials"], "scope": ["all-apis"]}
    assert path == VEND
    assert bearer == "Bearer a-token"
    assert json.loads(body) == {"url": LAKE, "operation": "PATH_READ_WRITE"}


def test_credentials_are_renewed_after_half_their_lifetime(
    catalog: FakeUnityCatalog, vended: VendedCredentials
) -> None:
    vended()
    catalog.now += 1799
    vended()
    assert len(catalog.asked) == 2
    catalog.now += 1
    catalog.vended = {"aws_temp_credentials": {**AWS, "session_token": "another"}}
    assert vended()["aws_session_token"] == "another"
    assert len(catalog.asked) == 4


def test_current_credentials_are_used_until_they_expire(
    catalog: FakeUnityCatalog, vended: VendedCredentials
) -> None:
    vended()
    catalog.status = dict.fromkeys(catalog.status, 503)
    catalog.now += 3599
    assert vended() == OPTIONS
    catalog.now += 1
    with pytest.raises(LakeError, match=r"/oidc/v1/token returned status 503"):
        vended()
    catalog.status = dict.fromkeys(catalog.status, 200)
    assert vended() == OPTIONS


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        (TOKEN, 401, "check client_id and client_secret_file"),
        (VEND, 401, "check client_id and client_secret_file, or token_file"),
        (VEND, 403, "grant EXTERNAL USE LOCATION"),
        (VEND, 404, "the address of the workspace"),
    ],
)
def test_refusal_names_the_grant_and_no_secret(
    catalog: FakeUnityCatalog, vended: VendedCredentials, path: str, status: int, said: str
) -> None:
    catalog.status[path] = status
    with pytest.raises(LakeError) as refused:
        vended()
    line = str(refused.value)
    assert said in line
    assert catalog.url in line
    assert "\n" not in line
    assert "the-secret" not in line
    assert "a-token" not in line


@pytest.mark.parametrize("answer", [[], {"aws_temp_credentials": {}}, "x" * 100_000])
def test_response_of_another_server_is_refused(
    catalog: FakeUnityCatalog, vended: VendedCredentials, answer: Any
) -> None:
    catalog.vended = answer
    with pytest.raises(LakeError, match="not a response of Unity Catalog"):
        vended()


def test_google_token_is_refused(catalog: FakeUnityCatalog, vended: VendedCredentials) -> None:
    catalog.vended = {"gcp_oauth_token": {"oauth_token": "x"}}
    with pytest.raises(LakeError, match="use a role of the host"):
        vended()


def test_azure_signature_is_used_until_it_expires(
    catalog: FakeUnityCatalog, vended: VendedCredentials
) -> None:
    catalog.vended = {"azure_user_delegation_sas": {"sas_token": "sv=1&sig=x"}}
    assert vended() == {"azure_storage_sas_token": "sv=1&sig=x"}
    catalog.now += 3600
    catalog.shutdown()
    catalog.server_close()
    with pytest.raises(LakeError, match=r"no answer \(ConnectError\)"):
        vended()


def test_token_file_is_read_for_each_request(
    catalog: FakeUnityCatalog, section: UnityCatalog, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    own = msgspec.structs.replace(
        section, client_id=None, client_secret_file=None, token_file=token
    )
    vended = VendedCredentials(own, LAKE, lambda: catalog.now)
    vended()
    token.write_text("second")
    catalog.now += 1800
    vended()
    assert [bearer for _, bearer, _ in catalog.asked] == ["Bearer first", "Bearer second"]
    token.unlink()
    catalog.now += 3600
    with pytest.raises(LakeError, match=f"cannot read the password file {token}"):
        vended()


def lake_of(unity: dict[str, Any], **more: Any) -> Lake:
    """Return the section ``lake`` of a configuration."""
    settings = {
        "source": {"node": 1, "jmx": {"port": 9999}},
        "spool": {"path": "/spool.db"},
        "lake": {"path": LAKE, "unity_catalog": unity, **more},
    }
    return loader.parse(settings, "agent.yaml").lake


def test_credentials_override_the_file_and_are_secret(
    catalog: FakeUnityCatalog, section: UnityCatalog, tmp_path: Path
) -> None:
    file = tmp_path / "options.yaml"
    file.write_text("aws_region: eu-central-1\naws_session_token: old\n")
    unity = {
        "url": catalog.url,
        "client_id": "the-client",
        "client_secret_file": str(section.client_secret_file),
    }
    catalog.now = NOW
    options = of_lake(lake_of(unity, options_file=str(file)))()
    assert options == {"aws_region": "eu-central-1", **OPTIONS}
    assert {"hush-hush", "for-an-hour"} <= set(secrets(options, {}))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"url": "http://workspace.example"}, "lake.unity_catalog.url: must be https://HOST"),
        ({"url": "http://[::1"}, "lake.unity_catalog.url: must be http:// or https://"),
        ({"client_id": None}, "set client_id and client_secret_file, or token_file"),
        ({"token_file": "/token"}, "set client_id and client_secret_file, or token_file"),
    ],
)
def test_invalid_settings_are_refused(changed: dict[str, Any], said: str) -> None:
    unity = {"url": "https://h", "client_id": "x", "client_secret_file": "/s", **changed}
    with pytest.raises(ConfigError, match=said):
        lake_of(unity)
