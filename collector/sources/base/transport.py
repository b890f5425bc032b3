"""Base of the settings of a transport: a way to read a source, such as a JMX port or Jolokia."""

from pathlib import Path
from typing import ClassVar, Self

from msgspec.structs import replace

from collector.catalogue.entries import Role, Via
from collector.errors import SettingError
from collector.settings import Duration, Section


class Transport(Section, frozen=True):
    """Settings of a transport. The class declares the families and roles that it reads."""

    opens: ClassVar[str]
    """Source below collector.sources, as ``module:name``. The agent imports it to open it, because
    it loads Java or HTTP, and calls it with the expected identity and these settings."""
    via: ClassVar[Via]
    """Kind of the families that it reads, as in the catalogue."""
    roles: ClassVar[frozenset[Role]]
    """Roles that the source can read."""
    slow: ClassVar[tuple[str, ...]] = ()
    """Families with a separate connection and thread, because they can take long. A group's
    coordinator can be down, remote storage can hang, and a broker can have thousands of logs. They
    must not delay families that are scraped every few seconds."""
    slow_timeout: ClassVar[Duration | None] = None
    """Least timeout of ``slow``. None: the configured timeout."""
    needs_java: ClassVar[bool] = False
    """Whether the source uses the JVM in the agent's own process."""
    resumes: ClassVar[bool] = False
    """Whether the source has a history and continues at the end of the recorded history. ``opens``
    is then also called with a function that returns that end."""
    with_admin: ClassVar[bool] = False
    """Whether it requires section ``admin``. ``opens`` is then also called with that section and
    with the file of the spool."""

    def check(self, key: str, cluster: str | None) -> None:
        """Check values beyond their types.

        Args:
            key: The section's key, for error texts.
            cluster: The configured cluster ID.

        Raises:
            SettingError: A value is out of its range, or two values contradict each other.
        """

    def for_slow(self) -> Self:
        """Return the settings of the source that reads ``slow``."""
        least = self.slow_timeout
        if least is None or getattr(self, "timeout", least) >= least:
            return self
        return replace(self, timeout=least)


class JvmTransport(Transport, frozen=True):
    """A transport to the MBeans of one JVM."""

    via = "jmx"
    roles = frozenset({"broker", "controller", "client"})
    slow = ("log", "log_offsets")
    slow_timeout = Duration("30s")


def check_password(key: str, file: Path | None, variable: str | None) -> None:
    """Check that a password has one place.

    Raises:
        SettingError: Both a file and an environment variable are set.
    """
    if file and variable:
        both = (f"{key}.password_file", f"{key}.password_env")
        raise SettingError(key, "set password_file or password_env, not both", both)
