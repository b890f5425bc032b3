"""HTTP API of Prometheus, Thanos or Mimir: stored series, in responses that fit into memory."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Final, TypeVar

import httpx
import msgspec
from msgspec.structs import replace

from collector.errors import SourceDataError, SourceError
from collector.sources.base.error_mapping import source_error
from collector.sources.base.http_endpoint import HttpEndpoint, TooMuchError
from collector.sources.transports import HttpTransport

_Result = TypeVar("_Result")
Labels = dict[str, str]

_LONGEST_US: Final = 6 * 3_600_000_000
_MOST_POINTS: Final = 10_000  # per series; Prometheus refuses more than 11,000
_JSON: Final = "application/json"
_EXPLAINED: Final = (400, 422, 500, 503)
"""Status codes with an error in JSON."""
_TOO_MUCH: Final = (422, 503)
"""Status codes of queries above a limit. A query for fewer samples can succeed."""
_OF_ALL: Final = {  # Prometheus ignores the parameters of other servers
    "max_source_resolution": "0s",  # a mean of five minutes is not a sample
    "partial_response": "false",
    "dedup": "true",
    "deny_partial_response": "1",  # VictoriaMetrics
}


class Kept(msgspec.Struct, frozen=True):
    """A series: labels, and values by the query's instant in milliseconds."""

    labels: Labels
    values: dict[int, float]


class _Series(msgspec.Struct):
    metric: Labels
    values: list[tuple[float, str]] = msgspec.field(default_factory=list)


class _Matrix(msgspec.Struct):
    result: list[_Series]
    kind: Annotated[str, msgspec.Meta(pattern="^matrix$")] = msgspec.field(name="resultType")


class _Answer(msgspec.Struct):
    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)
    is_partial: bool = msgspec.field(name="isPartial", default=False)


class PrometheusApi(HttpEndpoint):
    """One server's API.

    Args:
        section: Server, with the path before ``/api/v1`` as its URL.
        tenant: Tenant of Mimir, if any.

    Raises:
        ConfigError: The URL or the CA file is invalid.
    """

    max_bytes: ClassVar[int] = 8 << 20  # half a million values, some 130 bytes each

    def __init__(self, section: HttpTransport, tenant: str | None = None) -> None:
        url = f"{section.url.rstrip('/')}/api/v1/"
        super().__init__("Prometheus", replace(section, url=url), "URL")
        self._headers = {} if tenant is None else {"X-Scope-OrgID": tenant}
        self._span_us, self._status = _LONGEST_US, 200

    def series(self, selector: str, start_us: int, end_us: int) -> list[Labels]:
        """Return the labels of all series with a value in an interval.

        Raises:
            SourceError: The request failed, or the response is invalid.
        """
        return self._asked("series", {"match[]": selector}, (start_us, end_us), list[Labels])

    def spans(self, start_us: int, end_us: int, step_us: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of an interval, as short as the last responses required."""
        while start_us < end_us:
            steps = max(min(self._span_us // step_us, _MOST_POINTS), 1)
            yield start_us, (until_us := min(start_us + steps * step_us, end_us))
            start_us = until_us

    def values(
        self, query: str, start_us: int, end_us: int, step_us: int
    ) -> Iterator[tuple[int, list[Kept]]]:
        """Yield the values of a query at each step of an interval, in parts, with each part's end.

        If a response is too long, or the server refuses the query, the parts become shorter.

        Raises:
            SourceError: The request failed, even for one step, or the response is invalid.
        """
        while start_us < end_us:
            _, until_us = next(self.spans(start_us, end_us, step_us))
            try:
                found = self._values(query, start_us, until_us - 1, step_us)
            except TooMuchError:
                if until_us - start_us <= step_us:
                    raise
                self._span_us = (until_us - start_us) // 2
                continue
            yield until_us, found
            start_us = until_us

    def _values(self, query: str, start_us: int, last_us: int, step_us: int) -> list[Kept]:
        asked = {"query": query, "step": _seconds(step_us)}
        matrix = self._asked("query_range", asked, (start_us, last_us), _Matrix)
        try:
            return [
                Kept(one.metric, {round(at * 1000): float(value) for at, value in one.values})
                for one in matrix.result
            ]
        except (ValueError, OverflowError):
            raise SourceDataError(f"{self.where}: the answer has invalid values") from None

    def _check_status(self, response: httpx.Response) -> None:
        self._status = response.status_code
        is_explained = response.headers.get("content-type", "").startswith(_JSON)
        if self._status not in _EXPLAINED or not is_explained:  # a proxy returns an HTML page
            super()._check_status(response)

    def _asked(
        self, path: str, asked: Mapping[str, str], span: tuple[int, int], kind: type[_Result]
    ) -> _Result:
        start, end = map(_seconds, span)
        data = {**asked, "start": start, "end": end, **_OF_ALL}
        try:
            found, body, _ = self.ask("POST", path, data=data, headers=self._headers)
        except (httpx.HTTPError, OSError) as error:
            raise source_error(self.where, error) from None
        if not found.startswith(_JSON):
            raise SourceError(
                f"{self.where}: the answer is {found or 'without content type'!a:.80}, not from"
                " Prometheus's API; check that the URL is of its start page"
            )
        try:
            answer = msgspec.json.decode(body, type=_Answer)
            whole = not answer.warnings and not answer.is_partial
            if answer.status == "success" and self._status == 200 and whole:
                return msgspec.json.decode(answer.data, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise SourceError(f"{self.where}: not from Prometheus's API: {error}") from None
        partial = ["isPartial is true"] if answer.is_partial else []
        why = json.dumps(" ".join([answer.error, *partial, *answer.warnings])[:300])
        failed = TooMuchError if self._status in _TOO_MUCH else SourceError
        raise failed(f"{self.where}: the answer is incomplete (status {self._status}): {why}")


def _seconds(at_us: int) -> str:
    return f"{at_us // 1_000_000}.{at_us % 1_000_000:06}"
