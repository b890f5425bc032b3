"""All errors of the agent, as one tree.

JmxlakeError
├── ConfigError             the configuration or a catalogue file is wrong; a person must change it
│   └── SettingError            one of its keys does not fit; the loader adds the file's name
├── SourceError             a source could not be read
│   ├── SourceDataError         it answered with what cannot be used
│   ├── SourceTimeoutError      it did not answer in time
│   ├── SourceRefusedError      it refused the connection or what we asked
│   │   └── CredentialsError        it refused the credentials; asked on, it may lock the account
│   └── IdentityError           it is another broker than the one we were sent to
├── HealthError             the health server cannot listen
├── SpoolError              the spool on this host cannot be read or written
│   └── SpoolInUseError         another agent has it open
└── LakeError               the lake cannot be read or written
    ├── LakeSchemaError         the table has another schema or protocol: a person must fix it
    └── CommitError             the commit did not land, or may have; the next delivery looks
"""

import traceback
from pathlib import Path
from typing import ClassVar, Literal

Failure = Literal["error", "timeout", "refused"]


def extra(name: str) -> str:
    """How to install an extra whose package is missing: jmxlake is on no package index."""
    return f"jmxlake[{name}] (in a checkout pip install '.[{name}]', else the wheel with [{name}])"


def places(error: BaseException) -> str:
    """Where an error passed, from the outermost call to the innermost, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames)


class JmxlakeError(Exception):
    """Base of all errors; its text is one line: what, where and what to do."""


class ConfigError(JmxlakeError):
    """The configuration or a catalogue file is wrong."""


class SettingError(ConfigError):
    """The value of a key does not fit.

    Args:
        key: The key, as ``source.jmx.port``.
        text: What is wrong with it, and what to do.
        involved: The keys that make it, if not just this one.
    """

    def __init__(self, key: str, text: str, involved: tuple[str, ...] = ()) -> None:
        super().__init__(f"{key}: {text}")
        self.key = key
        self.involved = involved or (key,)


class SourceError(JmxlakeError):
    """A source could not be read; ``outcome`` is what bronze/scrapes records."""

    outcome: ClassVar[Failure] = "error"


class SourceDataError(SourceError):
    """The source answered, and what it said cannot be used; its connection works."""


class SourceTimeoutError(SourceError):
    """The source did not answer in time."""

    outcome: ClassVar[Failure] = "timeout"


class SourceRefusedError(SourceError):
    """The source refused the connection or what we asked."""

    outcome: ClassVar[Failure] = "refused"


class CredentialsError(SourceRefusedError):
    """The source refused the credentials."""


class IdentityError(SourceError):
    """The source is another broker, or of another cluster, than configured."""


class HealthError(JmxlakeError):
    """The health server cannot listen at its address."""


class SpoolError(JmxlakeError):
    """The spool cannot be read or written."""


class SpoolInUseError(SpoolError):
    """Another agent has the spool open."""


class LakeError(JmxlakeError):
    """The lake cannot be read or written."""


class LakeReplacedError(LakeError):
    """A table that this agent has delivered to is not there, or another is in its place.

    Args:
        text: What it is, and what to do.
        known: The table's name and the id that it had.
        found: The table's name and the id that it has, or that it is gone.
    """

    def __init__(self, text: str, known: str, found: str) -> None:
        super().__init__(text)
        self.known, self.found = known, found


class LakeSchemaError(LakeError):
    """The table in the lake has another schema or protocol than this version writes."""


class CommitError(LakeError):
    """The commit did not land, or whether it landed is not known yet."""
