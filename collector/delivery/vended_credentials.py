"""Temporary credentials of a store, vended by Unity Catalog for the lake's path.

The agent exchanges a service principal's ID and secret for a token (OAuth 2.0, RFC 6749, section
4.4), and the token for credentials of one path (POST ``temporary-path-credentials`` of Unity
Catalog's REST API 2.1). A broker's host then needs no key of a bucket.
"""

import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import httpx
import msgspec

from collector.config.schema import UnityCatalog
from collector.errors import LakeError, SourceRefusedError
from collector.settings import Secret
from collector.sources.base.http_endpoint import first_bytes
from lakehouse.tables.strict_files import UnreadableFileError, read_certificates

_KEY: Final = "lake.unity_catalog"
_TOKEN_PATH: Final = "/oidc/v1/token"  # noqa: S105 - not a secret
_VEND_PATH: Final = "/api/2.1/unity-catalog/temporary-path-credentials"
_MOST_BYTES: Final = 64 * 1024
_DEFAULT_SECONDS: Final = 1800.0  # lifetime, if the response does not contain it
_CLIENT: Final = (
    "the client or its token was refused; check client_id and client_secret_file, or token_file"
)
_PATH: Final = (
    "credentials for the lake's path were refused; grant EXTERNAL USE LOCATION on its external"
    " location and EXTERNAL USE SCHEMA on the schema of its tables, and enable external data access"
    " on the metastore"
)
_ADVICE: Final = {
    (_TOKEN_PATH, 400): _CLIENT, (_TOKEN_PATH, 401): _CLIENT, (_TOKEN_PATH, 403): _CLIENT,
    (_VEND_PATH, 401): _CLIENT, (_VEND_PATH, 400): _PATH, (_VEND_PATH, 403): _PATH,
}  # fmt: skip


class _Token(msgspec.Struct):
    access_token: str


class _Aws(msgspec.Struct):
    access_key_id: str
    secret_access_key: str
    session_token: str


class _Azure(msgspec.Struct):
    sas_token: str


class _Vended(msgspec.Struct):
    """Credentials of one cloud; ``expiration_time`` in milliseconds since the epoch."""

    expiration_time: int | None = None
    aws_temp_credentials: _Aws | None = None
    azure_user_delegation_sas: _Azure | None = None

    def options(self) -> dict[str, str]:
        """Return storage options of delta-rs; empty if it does not support the credentials."""
        if aws := self.aws_temp_credentials:  # the options have the same names
            return {f"aws_{name}": value for name, value in msgspec.structs.asdict(aws).items()}
        if azure := self.azure_user_delegation_sas:
            return {"azure_storage_sas_token": azure.sas_token}
        return {}


_Answer = TypeVar("_Answer", _Token, _Vended)


class VendedCredentials:
    """Storage options with credentials that are renewed before they expire.

    They are renewed after half of their lifetime, so that they stay valid during a delivery. If
    Unity Catalog does not respond, the current credentials are used until they expire.

    Args:
        section: Catalog and login.
        lake: Root of the lake, which is the path of the credentials.
        now: Wall clock, in seconds since the epoch.
    """

    def __init__(
        self, section: UnityCatalog, lake: str, now: Callable[[], float] = time.time
    ) -> None:
        self._section, self._lake, self._now = section, lake, now
        self._where = f"Unity Catalog at {section.url}"
        self._options: Mapping[str, str] = {}
        self._renew_at = self._expires_at = 0.0

    def __call__(self) -> Mapping[str, str]:
        """Return the current storage options.

        Raises:
            LakeError: The catalog did not vend credentials, and the current ones have expired.
        """
        if self._now() >= self._renew_at:
            try:
                self._renew()
            except LakeError:
                if self._now() >= self._expires_at:
                    raise
        return self._options

    def _renew(self) -> None:
        try:
            options, expires_at = self._vend()
        except (httpx.HTTPError, OSError) as error:
            raise LakeError(f"{self._where}: no answer ({type(error).__name__})") from None
        except SourceRefusedError as error:
            raise LakeError(str(error)) from None
        except UnreadableFileError as error:
            raise LakeError(f"{self._where}: ca_file {error}") from None
        now = self._now()
        self._options = options
        self._expires_at = expires_at if expires_at > now else now + _DEFAULT_SECONDS
        self._renew_at = (now + self._expires_at) / 2

    def _vend(self) -> tuple[dict[str, str], float]:
        section = self._section
        trust = ssl.create_default_context(cadata=read_certificates(section.ca_file))
        secret = Secret(section.token_file or section.client_secret_file).read(_KEY)
        with httpx.Client(verify=trust, timeout=section.timeout.seconds) as client:
            if section.token_file is None:
                secret = self._ask(
                    client, _TOKEN_PATH, _Token, auth=(section.client_id or "", secret),
                    data={"grant_type": "client_credentials", "scope": "all-apis"},
                ).access_token  # fmt: skip
            vended = self._ask(
                client, _VEND_PATH, _Vended, headers={"Authorization": f"Bearer {secret}"},
                json={"url": self._lake, "operation": "PATH_READ_WRITE"},
            )  # fmt: skip
        if not (options := vended.options()):
            raise LakeError(
                f"{self._where}: the credentials for {self._lake} are for neither S3 nor Azure; on"
                " Google Cloud use a role of the host"
            )
        return options, (vended.expiration_time or 0) / 1000

    def _ask(
        self, client: httpx.Client, path: str, answer: type[_Answer], **request: Any
    ) -> _Answer:
        until = time.monotonic() + self._section.timeout.seconds  # httpx limits single reads only
        with client.stream("POST", f"{self._section.url.rstrip('/')}{path}", **request) as response:
            body = first_bytes(response.iter_bytes(), _MOST_BYTES, until)
        if advice := _ADVICE.get((path, response.status_code)):
            raise LakeError(f"{self._where}: {advice}")
        with suppress(msgspec.MsgspecError):
            if response.is_success:
                return msgspec.json.decode(body, type=answer)
        raise LakeError(
            f"{self._where}: {path} returned status {response.status_code}, and not a response of"
            " Unity Catalog; check that url is the address of the workspace"
        )
