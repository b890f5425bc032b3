"""Agents write to a real S3 server with what a real Unity Catalog server vends for the lake's path.

The server vends keys that its own settings have, with a session token, instead of asking AWS for
temporary ones; the store has the same keys, and no sessions. Not collected by itself, because of
the jars it needs: ``make test-databricks``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from collector.config.schema import Lake, UnityCatalog
from collector.delivery.store import of_lake
from collector.errors import LakeError
from lakehouse import tables
from tests.everywhere import small_fleet
from tests.everywhere.s3_by_spark import deliver
from tests.everywhere.unity_server import UnityServer
from tests.rig.s3.server import REGION, S3Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAKE = "s3://lake/jmxlake"
READER = "reader@example.com"
_BUCKET = """s3.bucketPath.0=s3://lake
s3.region.0={region}
s3.accessKey.0={key}
s3.secretKey.0={secret}
s3.sessionToken.0=of-a-session
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server.start(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(scope="module")
def catalog(store: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityServer]:
    bucket = _BUCKET.format(
        region=REGION,
        key=store.options["aws_access_key_id"],
        secret=store.options["aws_secret_access_key"],
    )
    with UnityServer(tmp_path_factory.mktemp("unity"), bucket) as running:
        running.user(READER)
        yield running


def lake_by(catalog: UnityServer, token: str, store: S3Server, folder: Path) -> Lake:
    """A lake whose options have no key: the store's address, and a token of the catalog."""
    (folder / "token").write_text(token)
    shown = {key: value for key, value in store.options.items() if "key" not in key}
    lines = [f'{key}: "{value}"\n' for key, value in shown.items()]
    (folder / "options.yaml").write_text("".join(lines))
    unity = UnityCatalog(catalog.url, token_file=folder / "token")
    return Lake(LAKE, options_file=folder / "options.yaml", unity_catalog=unity)


def test_an_agent_without_a_key_delivers(store: S3Server, catalog: UnityServer, tmp_path: Path):
    vended = of_lake(lake_by(catalog, catalog.admin, store, tmp_path))
    assert vended()["aws_session_token"] == "of-a-session"

    def options() -> dict[str, str]:
        """Without the session, which this store does not know."""
        return {key: value for key, value in vended().items() if key != "aws_session_token"}

    for batch in small_fleet.batches():
        deliver(batch, tmp_path, LAKE, options)
    runs = DeltaTable(f"{LAKE}/{tables.RUNS.path}", storage_options=store.options)
    wanted = sum(len(batch.runs) for batch in small_fleet.batches())
    assert runs.to_pyarrow_table().num_rows == wanted


def test_a_token_that_has_expired_is_one_line(
    store: S3Server, catalog: UnityServer, tmp_path: Path
):
    with pytest.raises(LakeError, match="the client or its token was refused"):
        of_lake(lake_by(catalog, catalog.token("admin", -60), store, tmp_path))()


def test_a_client_without_rights_is_one_line_that_says_what_to_grant(
    store: S3Server, catalog: UnityServer, tmp_path: Path
):
    with pytest.raises(LakeError, match="grant EXTERNAL USE LOCATION"):
        of_lake(lake_by(catalog, catalog.token(READER), store, tmp_path))()
