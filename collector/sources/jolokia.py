"""A JVM with a Jolokia agent, read over HTTP with one POST per family. It needs no local JVM.

Jolokia (2.5.1) returns NaN, infinity and null as null, which counts as NaN. Its limits on
collections truncate a response without an error, so a configured limit is refused. A response is
untrusted text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from collector.errors import SourceError, SourceRefusedError
from collector.sources.base.beans import Answers, Failed, Question
from collector.sources.base.http_endpoint import HttpEndpoint
from collector.sources.base.identity import Expected
from collector.sources.base.mbean_source import SnapshotSource, is_pattern
from collector.sources.transports import Jolokia

_OPTIONS: Final = {
    "ignoreErrors": "true",  # a failed attribute has an error as its value
    "includeRequest": "false",
    "maxDepth": "3",  # MBean, attribute, error: the catalogue has no attribute that is a tree
}


class JolokiaSource(SnapshotSource):
    """A broker, controller or client JVM that is read through its Jolokia agent.

    Args:
        expected: Expected identity.
        jolokia: Settings. The password is read again at each connect.

    Raises:
        ConfigError: The URL is not http or https, or the CA file has no certificates.
    """

    def __init__(self, expected: Expected, jolokia: Jolokia) -> None:
        self._endpoint = HttpEndpoint("Jolokia", jolokia, "source.jolokia", _OPTIONS)
        where = self._endpoint.where
        super().__init__(where, expected, jolokia.timeout.seconds, jolokia.password_file)

    def close(self) -> None:
        """Close the connection. The source can be used again."""
        super().close()
        self._endpoint.close()

    def _fetch(self, questions: Sequence[Question]) -> Answers:
        requests = _requests(questions)
        if self._session is None:
            requests.append({"type": "version"})
        reply = self._endpoint.ask("POST", json=requests)  # truncated JSON is invalid
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
"""Limits for that number of MBeans, because 64 MiB of small objects become gigabytes in Python."""

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
    """Return the answers, by pattern and attribute, then by MBean name.

    Args:
        body: Body of the response.
        requests: Requests, in this order. The response to a version request has Jolokia's limits,
            which are checked.
        where: The source, for error texts.

    Raises:
        SourceError: The response does not fit the requests, or an existing value could not be read.
            Or the Jolokia agent limits collections, or does not report its limits.
    """
    if any(body.count(mark) > most for mark, most in _MAX_MARKS.items()):
        raise SourceError(f"{where}: the answer has more than {_MAX_BEANS:,} MBeans; check the URL")
    responses: list[_Response] = _decoded(where, list[_Response], body)
    if len(responses) != len(requests):
        raise SourceError(
            f"{where}: {len(responses)} responses to {len(requests)} requests; check that the URL"
            " is Jolokia's"
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
    """Return the items of a composite, or the fields of an error, without nested objects."""
    items: dict[str, _Scalar] = {}
    for name, text in value.items():
        with suppress(msgspec.ValidationError):
            items[name] = msgspec.json.decode(text, type=_Scalar)
    return items


def _check_limits(where: str, version: _Version) -> None:
    for name in _LIMITS:
        limit = version.config.get(name, "not reported")  # a small limit truncates its own report
        if limit != "0":
            raise SourceError(
                f"{where}: {name} is {limit:.20}, so Jolokia can omit MBeans without an error; set"
                f" {name} to 0 in the configuration of Jolokia"
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
        raise SourceRefusedError(f"{where}: the policy forbids {what}; allow it ({reason})")
    raise SourceError(f"{where}: {what}: status {response.status}: {reason}")


def _decoded(where: str, kind: Any, text: bytes | msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        why = _line(str(error))
        raise SourceError(f"{where}: the answer is not from Jolokia: {why}") from None


def _line(text: str | None) -> str:
    return " ".join((text or "no reason").split())[:200]
