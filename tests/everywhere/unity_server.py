"""A real Unity Catalog server on loopback, with rights switched on, and Spark that knows it."""

from __future__ import annotations

import base64
import json
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_der_private_key

from demo.jars import unity_jars
from demo.java import java_command
from demo.ports import free_ports
from tests.rig.connect_server import ConnectServer
from tests.rig.spark_processes import LOOPBACK, SparkProcesses, conf_folder, settings

_MAIN = Path(__file__).with_name("UnityOnLoopback.java")
_PROPERTIES = """server.authorization=enable
server.allowed-issuers=internal
server.audiences=*
storage-root.tables={managed}
"""


class UnityServer(SparkProcesses):
    """A Unity Catalog server whose catalogs live in its memory.

    Args:
        folder: Where it works.
        properties: Further lines of its ``server.properties``.

    Attributes:
        url: Where it answers.
        admin: The token of its admin, who owns the metastore.
    """

    def __init__(self, folder: Path, properties: str = "") -> None:
        super().__init__(folder)
        (port,) = free_ports(1)
        self.url = f"http://{LOOPBACK}:{port}"
        self._conf = folder / "etc" / "conf"
        self._conf.mkdir(parents=True)
        (self._conf / "server.properties").write_text(
            _PROPERTIES.format(managed=(folder / "managed").as_uri()) + properties
        )
        # The server reads and writes files below the folder that it works in.
        there = ("env", "-C", str(folder))
        java = java_command("-Xmx512m", "-cp", f"{unity_jars('server')}/*", str(_MAIN), str(port))
        self.start("unity-catalog", port, (*there, *java))
        self.admin = (self._conf / "token.txt").read_text()

    def asked(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        """What it answers to its admin; ``path`` is below ``/api/``."""
        headers = {"Authorization": f"Bearer {self.admin}"}
        told = httpx.request(method, f"{self.url}/api/{path}", headers=headers, json=body or None)
        assert told.is_success, told.text
        answer: dict[str, Any] = told.json()
        return answer

    def create(self, kind: str, **named: str) -> None:
        """Create a catalog or a schema."""
        self.asked("POST", f"2.1/unity-catalog/{kind}", **named)

    def user(self, mail: str) -> None:
        """Make a user known, who has no rights."""
        emails = [{"value": mail, "primary": True}]
        user = {"displayName": mail, "userName": mail, "emails": emails}
        self.asked("POST", "1.0/unity-control/scim2/Users", **user)

    def grant(self, kind: str, name: str, mail: str, *rights: str) -> None:
        """Grant rights on a securable."""
        changes = [{"principal": mail, "add": list(rights)}]
        self.asked("PATCH", f"2.1/unity-catalog/permissions/{kind}/{name}", changes=changes)

    def token(self, mail: str, seconds: int = 3600) -> str:
        """A token of a user as the server itself signs them; one of less than 0 s has expired."""
        key = load_der_private_key((self._conf / "private_key.der").read_bytes(), None)
        assert isinstance(key, RSAPrivateKey)
        now = int(time.time())
        head = {"alg": "RS512", "typ": "JWT", "kid": (self._conf / "key_id.txt").read_text()}
        claims = {
            "iss": "internal", "sub": mail, "type": "ACCESS", "jti": str(uuid.uuid4()),
            "iat": now - 7200, "exp": now + seconds,
        }  # fmt: skip
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in (head, claims))
        return f"{signed}.{_encoded(key.sign(signed.encode(), PKCS1v15(), hashes.SHA512()))}"

    def settings(self, token: str) -> dict[str, str]:
        """Settings of a Spark that has the catalog ``main``, by a token."""
        return {
            "spark.sql.catalog.main": "io.unitycatalog.spark.UCSingleCatalog",
            "spark.sql.catalog.main.uri": self.url,
            "spark.sql.catalog.main.token": token,
        }

    def spark(self, folder: Path, token: str) -> dict[str, str]:
        """The environment of a command whose own Spark has the catalog."""
        conf = conf_folder(folder, settings(folder, spark_jars(), **self.settings(token)))
        return {"SPARK_CONF_DIR": str(conf), "PYSPARK_PYTHON": sys.executable}

    def connect(self, folder: Path) -> ConnectServer:
        """A Connect server for millions of rows, whose Spark has the catalog as its admin."""
        return ConnectServer(folder, spark_jars(), **self.settings(self.admin))


def spark_jars() -> list[Path]:
    """The jars of Spark's connector."""
    return sorted(unity_jars("spark").glob("*.jar"))


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()
