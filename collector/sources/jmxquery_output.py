"""What jmxquery prints, read exactly or not at all: it is not quite JSON.

Of a bean's name only the quotes are escaped, and not the backslashes; texts are not escaped at
all. So the lines are taken apart by their fixed parts, which neither can contain.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from collector.errors import CredentialsError, SourceError, SourceRefusedError, SourceTimeoutError
from collector.sources.bulk import Asked, Failed
from collector.sources.bulk_source import STARTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.sources.bounded_process import Ended
    from collector.sources.bulk import Told

_LINE: Final = re.compile(
    r'\{"mBeanName" : "(?P<name>.*)", "attribute" : "(?P<attribute>[^"]*)", '
    r'"attributeType" : "(?P<kind>[^"]*)"'
    r'(?:, "value" : (?:"(?P<text>[^"\\]*)"|(?P<bare>[-\w.]+)))?\}'
)
_WHOLE: Final = frozenset({"Integer", "Long", "Short", "Byte"})
_BROKEN: Final = frozenset({"Double", "Float"})

_REFUSED: Final = (
    ("Connection refused", "nobody listens there; is it up, and is its port right?"),
    ("UnknownHostException", "the host name cannot be resolved; is it spelt right?"),
    ("NameNotFoundException", "that RMI registry holds no JMX; is it the JMX port?"),
    ("ConnectIOException", "it does not speak RMI as we do; jmxquery knows no TLS"),
)
_TIMEOUTS: Final = ("SocketTimeoutException", "timed out")


def told_by(ended: Ended, asked: Sequence[Asked], where: str, password: str) -> Told:
    """What was told, to all that was asked; after each answer stands the JVM's start time.

    Args:
        ended: How jmxquery ended.
        asked: What was asked, in this order.
        where: Who was asked, for messages.
        password: Is kept out of messages.

    Raises:
        SourceError: jmxquery failed, or printed something else than it does.
    """
    if ended.code != 0:
        raise _failure(ended, where, password)
    told: dict[Asked, dict[str, object]] = {}
    left = list(asked or [STARTED])
    for name, attribute, value in _values(ended.output, where):
        if not left:
            raise SourceError(f"{where}: jmxquery answered more than it was asked")
        if Asked(name, attribute) == STARTED:
            told[STARTED] = {name: value}
            del left[0]
        elif attribute != left[0].attribute:
            raise SourceError(f"{where}: jmxquery answered {name:.200} {attribute:.80} unasked")
        else:
            told.setdefault(left[0], {})[name] = value
    if left:
        raise SourceError(f"{where}: jmxquery left out the answer to {left[0].pattern}")
    return told


def _values(output: bytes, where: str) -> Iterator[tuple[str, str, object]]:
    try:
        text = output.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not (text.startswith("[\n") and text.endswith("]\n")):
        raise SourceError(f"{where}: jmxquery printed something else than a list")
    lines = text[2:-2]
    for line in lines.split(", \n") if lines else ():
        found = _LINE.fullmatch(line)
        if found is None:
            shown = " ".join(line.split())[:200]
            raise SourceError(f"{where}: jmxquery printed what cannot be told apart: {shown}")
        name = found["name"].replace('\\"', '"')
        yield name, found["attribute"], _value(found["kind"], found["text"], found["bare"])


def _value(kind: str, text: str | None, bare: str | None) -> object:
    said = text if bare is None else bare
    if said is None:
        return Failed("jmxquery does not say why")
    try:
        if kind in _WHOLE:
            return int(said)
        if kind in _BROKEN:
            return float(said)
        if kind == "Boolean":
            return said == "true"
    except ValueError:
        return said
    return said


def _failure(ended: Ended, where: str, password: str) -> SourceError:
    text = b"\n".join((ended.output[:100_000], ended.errors[:100_000])).decode("utf-8", "replace")
    if password:
        text = text.replace(password, "***")
    if any(sign in text for sign in _TIMEOUTS):
        return SourceTimeoutError(f"{where}: no answer in time")
    if "SecurityException" in text:
        return CredentialsError(
            f"{where}: it refused the user or the password; mend user and password_file"
        )
    for sign, meaning in _REFUSED:
        if sign in text:
            return SourceRefusedError(f"{where}: {meaning}")
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    reason = lines[0][:200] if lines else f"it ended with {ended.code} and said nothing"
    return SourceError(f"{where}: jmxquery failed: {reason}")
