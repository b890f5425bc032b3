"""What Jolokia answers to a bulk request, checked as untrusted text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from collector.errors import SourceError, SourceRefusedError
from collector.sources.bulk import Asked, Failed, is_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collector.sources.bulk import Told

_MAX_BEANS: Final = 300_000
_MAX_MARKS: Final = {b"{": 2 * _MAX_BEANS, b'"': 8 * _MAX_BEANS}
"""What so many beans take. Of 64 MiB of tiny objects Python would make gigabytes."""

_GONE: Final = (
    "javax.management.InstanceNotFoundException",
    "javax.management.AttributeNotFoundException",
)
_LIMITS: Final = ("maxCollectionSize", "maxObjects")


class _Failure(msgspec.Struct):
    error_type: str | None = None
    error: str | None = None


class _Response(_Failure):
    status: int = 0
    value: msgspec.Raw = msgspec.Raw(b"null")


class _Version(msgspec.Struct):
    config: dict[str, str] = msgspec.field(default_factory=dict)


_Value = int | float | str | bool | None | _Failure
_RESPONSES: Final = msgspec.json.Decoder(list[_Response])
_OF_ONE: Final = msgspec.json.Decoder(dict[str, _Value])
_OF_MANY: Final = msgspec.json.Decoder(dict[str, dict[str, _Value]])
_OF_VERSION: Final = msgspec.json.Decoder(_Version)


class Answers:
    """The answers to a bulk request, in the order of the requests.

    Args:
        where: Who answered, for messages.
        body: What came.
        count: How many requests there were.

    Raises:
        SourceError: That is no answer to so many requests.
    """

    def __init__(self, where: str, body: bytes | bytearray, count: int) -> None:
        self._where = where
        if any(body.count(mark) > most for mark, most in _MAX_MARKS.items()):
            raise SourceError(
                f"{where}: the answer holds more than {_MAX_BEANS:,} beans; is that a broker?"
            )
        self._responses: list[_Response] = self._decoded(_RESPONSES, body)
        if len(self._responses) != count:
            raise SourceError(
                f"{where}: it gave {len(self._responses)} answers to {count} requests; is that"
                " Jolokia?"
            )

    def check_limits(self) -> None:
        """Make sure of the last answer, to a request for the version, that nothing is cut short.

        Raises:
            SourceError: The agent is set up to cut answers short, or does not tell.
        """
        limits = self._decoded(_OF_VERSION, self._value("version", self._responses[-1])).config
        for name in _LIMITS:
            limit = limits.get(name, "not told")  # a small one cuts off itself
            if limit != "0":
                raise SourceError(
                    f"{self._where}: its {name} is {limit:.20}, so it may leave out beans without"
                    f" a word: set {name} to 0 in the agent's configuration"
                )

    def told(self, requests: Sequence[Mapping[str, Any]]) -> Told:
        """The values, by pattern and attribute, then by bean name.

        Raises:
            SourceError: Something that is there could not be read.
        """
        told: dict[Asked, dict[str, object]] = {}
        for request, response in zip(requests, self._responses, strict=False):
            pattern = request["mbean"]
            for name, values in self._beans(pattern, response):
                for attribute, value in values.items():
                    if not isinstance(value, _Failure):
                        told.setdefault(Asked(pattern, attribute), {})[name] = value
                    elif value.error_type not in _GONE:
                        reason = Failed(_line(value.error or value.error_type))
                        told.setdefault(Asked(pattern, attribute), {})[name] = reason
        return told

    def _beans(self, pattern: str, response: _Response) -> Iterator[tuple[str, dict[str, _Value]]]:
        if response.status == 404 and response.error_type in _GONE:
            return
        value = self._value(pattern, response)
        if is_pattern(pattern):
            yield from self._decoded(_OF_MANY, value).items()
        else:
            yield pattern, self._decoded(_OF_ONE, value)

    def _value(self, what: str, response: _Response) -> msgspec.Raw:
        if response.status == 200:
            return response.value
        reason = _line(response.error or response.error_type)
        if response.status == 403:
            raise SourceRefusedError(
                f"{self._where}: its policy forbids {what}: allow it ({reason})"
            )
        raise SourceError(f"{self._where}: {what}: status {response.status}: {reason}")

    def _decoded(
        self, decoder: msgspec.json.Decoder[Any], text: bytes | bytearray | msgspec.Raw
    ) -> Any:
        try:
            return decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise SourceError(
                f"{self._where}: the answer is not Jolokia's: {_line(str(error))}"
            ) from None


def _line(text: str | None) -> str:
    return " ".join((text or "no reason given").split())[:200]
