"""A JVM with a Jolokia agent, read over HTTP: one POST brings a whole family. No JVM starts here.

Facts about Jolokia (2.5.1): NaN, infinity and null all arrive as null, and count as NaN;
a server-side limit on collections cuts an answer short without a word, so it is refused. An answer
is untrusted text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from collector.errors import SourceError, SourceRefusedError
from collector.sources.base.beans import Answers, Failed, Question
from collector.sources.base.identity import Expected
from collector.sources.base.mbean_source import SnapshotSource, is_pattern
from collector.sources.http.endpoint import HttpEndpoint
from collector.sources.http import Jolokia

_OPTIONS: Final = {
    "ignoreErrors": "true",  # an attribute that fails has an error in its place
    "includeRequest": "false",
    "maxDepth": "3",  # bean, attribute, what failed: no attribute that we read is a tree
}


class JolokiaSource(SnapshotSource):
    """A broker, controller or client JVM that is read by its Jolokia agent.

    Args:
        expected: Who should answer.
        jolokia: How to reach it. The password is read again whenever we ask who answers.

    Raises:
        ConfigError: The URL is none of http or https, or there are no certificates in the file.
    """

    def __init__(self, expected: Expected, jolokia: Jolokia) -> None:
        self._endpoint = HttpEndpoint("Jolokia", jolokia, "source.jolokia", _OPTIONS)
        where = self._endpoint.where
        super().__init__(where, expected, jolokia.timeout.seconds, jolokia.password_file)

    def close(self) -> None:
        """Give up the connection; the source may be used again."""
        super().close()
        self._endpoint.close()

    def _fetch(self, questions: Sequence[Question]) -> Answers:
        requests = _requests(questions)
        if self._session is None:
            requests.append({"type": "version"})
        reply = self._endpoint.ask("POST", json=requests)  # JSON itself shows its end
        return parse_answers(reply.body, requests, self._where)


def _requests(questions: Iterable[Question]) -> list[dict[str, Any]]:
    attributes: dict[str, list[str]] = {}
    for pattern, attribute in questions:
        attributes.setdefault(pattern, []).append(attribute)
    return [
        {"type": "read", "mbean": pattern, "attribute": names}
        for pattern, names in attributes.items()
    ]


_MAX_BEANS: Final = 300_000
_MAX_MARKS: Final = {b"{": 2 * _MAX_BEANS, b'"': 8 * _MAX_BEANS}
"""Limits by that number of beans: from 64 MiB of tiny objects Python would make gigabytes."""

_GONE: Final = tuple(
    f"javax.management.{one}NotFoundException" for one in ("Instance", "Attribute")
)
_LIMITS: Final = ("maxCollectionSize", "maxObjects")


class _Response(msgspec.Struct):
    status: int = 0
    value: msgspec.Raw = msgspec.Raw(b"null")
    error_type: str | None = None
    error: str | None = None


class _Version(msgspec.Struct):
    config: dict[str, str] = msgspec.field(default_factory=dict)


_Scalar = int | float | str | bool | None
_Value = _Scalar | dict[str, msgspec.Raw]


def parse_answers(body: bytes, requests: Sequence[Mapping[str, Any]], where: str) -> Answers:
    """The answers, by pattern and attribute, then by bean name.

    Args:
        body: What came.
        requests: What was asked, in this order; where it is the version, its limits are checked.
        where: Who answered, for messages.

    Raises:
        SourceError: That is no answer to these requests, an existing value could not be read, or
            the agent is configured to truncate answers, or does not report whether it is.
    """
    if any(body.count(mark) > most for mark, most in _MAX_MARKS.items()):
        raise SourceError(
            f"{where}: the answer holds more than {_MAX_BEANS:,} beans; is that a broker?"
        )
    responses: list[_Response] = _decoded(where, list[_Response], body)
    if len(responses) != len(requests):
        raise SourceError(
            f"{where}: it gave {len(responses)} answers to {len(requests)} requests; is that"
            " Jolokia?"
        )
    answers: dict[Question, dict[str, object]] = {}
    for request, response in zip(requests, responses, strict=True):
        if request["type"] == "version":
            _check_limits(where, _decoded(where, _Version, _value(where, "version", response)))
            continue
        pattern = request["mbean"]
        for name, values in _beans(where, pattern, response):
            for attribute, value in values.items():
                items = _items(value) if isinstance(value, dict) else {}
                error = items.get("error_type")
                if error in _GONE:
                    continue
                if error is not None:
                    found: object = Failed(_line(str(items.get("error") or error)))
                else:
                    found = items or value
                answers.setdefault(Question(pattern, attribute), {})[name] = found
    return answers


def _items(value: Mapping[str, msgspec.Raw]) -> dict[str, _Scalar]:
    """The items of a composite, or what is said of a failure; trees in it are left out."""
    items: dict[str, _Scalar] = {}
    for name, text in value.items():
        with suppress(msgspec.ValidationError):
            items[name] = msgspec.json.decode(text, type=_Scalar)
    return items


def _check_limits(where: str, version: _Version) -> None:
    for name in _LIMITS:
        limit = version.config.get(name, "not reported")  # a small one cuts off itself
        if limit != "0":
            raise SourceError(
                f"{where}: its {name} is {limit:.20}, so it may leave out beans without a word:"
                f" set {name} to 0 in the agent's configuration"
            )


def _beans(
    where: str, pattern: str, response: _Response
) -> Iterator[tuple[str, dict[str, _Value]]]:
    if response.status == 404 and response.error_type in _GONE:
        return
    value = _value(where, pattern, response)
    if is_pattern(pattern):
        yield from _decoded(where, dict[str, dict[str, _Value]], value).items()
    else:
        yield pattern, _decoded(where, dict[str, _Value], value)


def _value(where: str, what: str, response: _Response) -> msgspec.Raw:
    if response.status == 200:
        return response.value
    reason = _line(response.error or response.error_type)
    if response.status == 403:
        raise SourceRefusedError(f"{where}: its policy forbids {what}: allow it ({reason})")
    raise SourceError(f"{where}: {what}: status {response.status}: {reason}")


def _decoded(where: str, kind: Any, text: bytes | msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"{where}: the answer is not Jolokia's: {_line(str(error))}") from None


def _line(text: str | None) -> str:
    return " ".join((text or "no reason given").split())[:200]
