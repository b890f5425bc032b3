"""All errors of the agent, as one tree.

JmxlakeError
├── ConfigError             invalid configuration or catalogue file
│   └── SettingError            invalid value of a key
├── SourceError             a source could not be read
│   ├── SourceDataError         unusable response
│   ├── SourceTimeoutError      no response in time
│   ├── SourceRefusedError      refused connection or request
│   │   └── CredentialsError        refused credentials (retries can lock the account)
│   └── IdentityError           another broker than configured
├── HealthError             the health server cannot listen
├── SpoolError              the spool on this host cannot be read or written
│   └── SpoolInUseError         another agent has it open
└── LakeError               the lake cannot be read or written
    ├── LakeReplacedError       a table is missing or was replaced
    ├── LakeSchemaError         the table has another schema or protocol
    └── CommitError             the commit failed, or its result is unknown until the next delivery
"""

from typing import ClassVar, Literal

Failure = Literal["error", "timeout", "refused"]


def extra(name: str) -> str:
    """Return how to install a missing extra. jmxlake is not on a package index."""
    checkout = f"pip install '.[{name}]'"
    return f"jmxlake[{name}] (in a checkout: {checkout}; otherwise: the wheel with [{name}])"


class JmxlakeError(Exception):
    """Base of all errors. The text is one line: problem, place and fix."""


class ConfigError(JmxlakeError):
    """The configuration or a catalogue file is invalid."""


class SettingError(ConfigError):
    """The value of a key is invalid.

    Args:
        key: The key, such as ``source.jmx.port``.
        text: Problem and fix.
        involved: All keys that cause the problem. Default: the key.
    """

    def __init__(self, key: str, text: str, involved: tuple[str, ...] = ()) -> None:
        super().__init__(f"{key}: {text}")
        self.key = key
        self.involved = involved or (key,)


class SourceError(JmxlakeError):
    """A source could not be read. ``outcome`` is its outcome in bronze/scrapes."""

    outcome: ClassVar[Failure] = "error"


class SourceDataError(SourceError):
    """The response of the source is unusable. Its connection works."""


class SourceTimeoutError(SourceError):
    """The source did not answer in time."""

    outcome: ClassVar[Failure] = "timeout"


class SourceRefusedError(SourceError):
    """The source refused the connection or the request."""

    outcome: ClassVar[Failure] = "refused"


class CredentialsError(SourceRefusedError):
    """The source refused the credentials."""


class IdentityError(SourceError):
    """The source is not the configured broker or belongs to another cluster."""


class HealthError(JmxlakeError):
    """The health server cannot listen on its address."""


class SpoolError(JmxlakeError):
    """The spool cannot be read or written."""


class SpoolInUseError(SpoolError):
    """Another agent has the spool open."""


class LakeError(JmxlakeError):
    """The lake cannot be read or written."""


class LakeReplacedError(LakeError):
    """A table of this agent is missing, or another table replaced it.

    Args:
        text: Problem and fix.
        known: The table's name and previous ID.
        found: The table's name and current ID, or that it is missing.
    """

    def __init__(self, text: str, known: str, found: str) -> None:
        super().__init__(text)
        self.known, self.found = known, found


class LakeSchemaError(LakeError):
    """The table has a schema or protocol that this version does not write."""


class CommitError(LakeError):
    """The commit failed, or its result is not known yet."""
