"""Settings of the transports over HTTP."""

from pathlib import Path
from typing import Annotated

from collector.settings import TIMEOUT, Duration, SecretFile, check_url
from collector.sources.base.transport import JvmTransport, check_password


class Endpoint(JvmTransport, frozen=True):
    """An HTTP endpoint.

    Attributes:
        url: URL, http or https, without user and password.
        user: User name for the login.
        password_file: File with the password only, or a line ``user password`` for each user.
        password_env: Environment variable with the password, instead of a file.
        ca_file: CA bundle (PEM) for verifying the server. None: the system CA store.
        timeout: Timeout per request.
    """

    url: str
    user: str | None = None
    password_file: SecretFile = None
    password_env: str | None = None
    ca_file: Path | None = None
    timeout: Annotated[Duration, TIMEOUT] = Duration("5s")

    def check(self, key: str, cluster: str | None) -> None:  # noqa: ARG002, D102
        check_password(key, self.password_file, self.password_env)
        check_url(f"{key}.url", self.url)


class Jolokia(Endpoint, frozen=True):
    """A Jolokia agent inside the JVM."""

    opens = "http.jolokia:JolokiaSource"
