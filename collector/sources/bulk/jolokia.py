"""A JVM with a Jolokia agent, read over HTTP: one POST brings a whole family. No JVM starts here.

Facts about Jolokia (2.5.1): NaN, infinity and null all arrive as null, and count as NaN;
a server-side limit on collections cuts an answer short without a word, so it is refused.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from collector.config.schema import Jolokia
from collector.sources.bulk.http import HttpEndpoint
from collector.sources.bulk.jolokia_response import parse_answers
from collector.sources.bulk.source import BulkSource
from collector.sources.identity import Answers, Expected, Question

_OPTIONS: Final = {
    "ignoreErrors": "true",  # an attribute that fails has an error in its place
    "includeRequest": "false",
    "maxDepth": "3",  # bean, attribute, what failed: no attribute that we read is a tree
}


class JolokiaSource(BulkSource):
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
        if not self._endpoint.is_open:
            requests.append({"type": "version"})
        _, body = self._endpoint.ask("POST", json=requests)
        return parse_answers(body, requests, self._where)


def _requests(questions: Iterable[Question]) -> list[dict[str, Any]]:
    attributes: dict[str, list[str]] = {}
    for pattern, attribute in questions:
        attributes.setdefault(pattern, []).append(attribute)
    return [
        {"type": "read", "mbean": pattern, "attribute": names}
        for pattern, names in attributes.items()
    ]
