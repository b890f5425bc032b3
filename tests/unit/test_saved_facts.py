"""Files that claim to be report.json: wrong ones are one line, and accepted ones can be shown."""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse.errors import FactsError, LakehouseError
from lakehouse.report.csv_files import files
from lakehouse.report.facts import report_json
from lakehouse.report.page import page
from lakehouse.report.send import delivery, messages
from lakehouse.report.summary.lines import summary_text
from lakehouse.report.summary.summarize import summarize
from lakehouse.tables.typed_settings import WrongSettingError
from tests import sample_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Path_ = tuple[Any, ...]

GOLDEN: Final = Path(__file__).parents[1] / "golden/report.json"
DELETED: Final = object()
VALUES: Final[dict[str, Any]] = {
    "deleted": DELETED, "null": None, "text": "hunter", "surrogate": "\ud800", "list": [],
    "map": {}, "negative": -1, "greatest": 2**63 - 1, "great": 1e29, "last date": "2199-12-31",
}  # fmt: skip


def short(value: Any) -> Any:
    """The facts with two rows of each list, which has all of their keys."""
    if isinstance(value, dict):
        return {key: short(one) for key, one in value.items()}
    if isinstance(value, list):
        return value[:3] if value and isinstance(value[0], list) else list(map(short, value[:2]))
    return value


def facts_of(name: str) -> dict[str, Any]:
    if name == "golden":
        return short(json.loads(GOLDEN.read_text("utf-8")))
    made = copy.deepcopy(sample_facts.demo())
    sample_facts.with_everything(made)
    return short(json.loads(json.dumps(made)))


def places(value: Any, above: Path_ = ()) -> Iterator[Path_]:
    if above:
        yield above
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from places(value[key], (*above, key))


def changed(facts: Any, place: Path_, value: Any) -> Any:
    """A copy with another value at a place."""
    key, *below = place
    made = copy.copy(facts)
    if below:
        made[key] = changed(made[key], tuple(below), value)
    elif value is DELETED:
        del made[key]
    else:
        made[key] = value
    return made


def is_accepted(facts: Any) -> bool:
    try:
        report_json.check_shape(facts)
    except WrongSettingError:
        return False
    return True


def show(facts: dict[str, Any]) -> None:
    """Make every output."""
    page.render(facts)
    list(files(facts))
    summary = summarize(facts)
    summary_text(summary)
    messages.slack_message(summary, None)
    messages.teams_message(summary, None)
    to = delivery.Mail("mail.example.org", "r@example.org", ("a@example.org",))
    messages.letter(summary, [], to, dt.datetime.now(dt.UTC))
    page.clusters_page(page.clusters([facts]), {})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["golden", "demo"])
@pytest.mark.parametrize("kind", VALUES)
def test_accepted_changes_can_be_shown(name: str, kind: str) -> None:
    """One change each is checked, then all that are accepted are shown at once, by their depth."""
    facts, value = facts_of(name), VALUES[kind]
    by_depth: dict[int, list[Path_]] = {}
    for place in places(facts):
        if place == ("format",):
            continue  # any other is refused before the shape is checked
        if is_accepted(changed(facts, place, value)):
            depth = len(place) if value is DELETED or isinstance(value, list | dict) else 0
            by_depth.setdefault(depth, []).append(place)
    for accepted in by_depth.values():
        made = facts
        # The last of a list first: a deleted item would move those after it.
        for place in sorted(accepted, key=str, reverse=True):
            made = changed(made, place, value) if is_there(made, place) else made
        if is_accepted(made):
            show(made)


def is_there(facts: Any, place: Path_) -> bool:
    for key in place:
        known = facts.keys() if isinstance(facts, dict) else range(len(facts or ()))
        if isinstance(facts, str) or key not in known:
            return False
        facts = facts[key]
    return True


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"objectives": "x"}, "objectives: Expected `array`, got `str`"),
        ({"objectives": [None]}, "objectives[0]: Expected `object`, got `null`"),
        ({"objectives": [{"title": "x"}]}, "objectives[0]: name is missing"),
        ({"throttling": None}, "throttling: Expected `object`, got `null`"),
        ({"cluster": 5}, "cluster: Expected `str`, got `int`"),
        ({"from": "2026-13-99"}, "from: "),
        ({"from": "9999-12-31T23:59:59Z"}, "from: not an instant of the years"),
        ({"to": "1999-01-01T00:00:00Z"}, "to: not after from"),
        ({"time_zone": "../../etc/passwd"}, "time_zone: "),
        ({"week": {"iso": "x", "time_zone": "UTC"}}, "week.iso: "),
        ({"min_coverage_percent": True}, "min_coverage_percent: Expected `float`, got `bool`"),
        ({"detection_floor_us": 1e31}, "detection_floor_us: "),
        ({"detection_floor_us": -1}, "detection_floor_us: Expected `float` >= 0"),
        ({"window_seconds": -300}, "window_seconds: Expected `float` >= 0"),
        ({"format": 3}, "format 3, and this version reads 2"),
        ({"format": [[[]]]}, "format [[[]]], and"),
    ],
)
def test_tampered_facts_are_one_line(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(sample_facts.demo() | change))
    with pytest.raises(FactsError) as caught:
        report_json.load(file)
    assert f"{file}: " in str(caught.value)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_a_budget_that_is_left_may_be_negative() -> None:
    facts = facts_of("golden")
    # Of each key one place: its record is the same elsewhere.
    times = {
        (len(place), *place[-2:]): place
        for place in places(facts)
        if str(place[-1]).endswith("_us") and None is not facts_at(facts, place)
    }
    assert len(times) > 30
    negative = {one[-1] for one in times.values() if is_accepted(changed(facts, one, -1))}
    assert negative == {
        f"budget_{one}_us" for one in ("left", "left_low", "left_high", "of_window_left")
    }


def facts_at(facts: Any, place: Path_) -> Any:
    for key in place:
        facts = facts[key]
    return facts


def sparse(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(report_json.MOST_BYTES + 1)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (os.mkfifo, "not a regular file"),
        (Path.mkdir, "a folder"),
        (sparse, "larger than 200,000,000 bytes"),
        (lambda file: file.write_bytes(b'{"a": NaN}'), "NaN"),
        (lambda file: file.write_bytes(b'{"a": 1' + b"0" * 400 + b"}"), "beyond 64 bits"),
        (lambda file: file.write_bytes(b'{"a": 1, "a": 2}'), "duplicate key 'a'"),
        (lambda file: file.write_bytes(b'{"a":' * 500 + b"1" + b"}" * 500), "nested too deeply"),
        (lambda file: file.write_bytes("{}".encode("utf-16")), "UTF-16"),
        (lambda file: file.write_bytes(b"[1]"), "not a report"),
    ],
)
def test_file_that_is_no_report_is_one_line(
    tmp_path: Path, make: Callable[[Path], object], told: str
) -> None:
    file = tmp_path / "report.json"
    make(file)
    with pytest.raises(FactsError, match=told) as caught:
        report_json.load(file)
    assert "\n" not in str(caught.value)


def test_every_key_of_the_golden_facts_is_checked() -> None:
    """A text in place of any number, list or record of them is refused."""
    facts = short(json.loads(GOLDEN.read_text("utf-8")))
    for place in places(facts):
        value = facts
        for key in place:
            value = value[key]
        if place[0] != "format":
            wrong = {"a": 1} if isinstance(value, str | None) else "hunter"
            assert not is_accepted(changed(facts, place, wrong)), place


def test_facts_with_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(b"\xef\xbb\xbf" + GOLDEN.read_bytes())
    assert report_json.load(file)["cluster"]
    assert issubclass(FactsError, LakehouseError)
