from __future__ import annotations

import re
from importlib import resources

import pytest

from lakehouse.report.charts import charts, incident_lanes
from lakehouse.report.charts.series import series_of
from lakehouse.report.charts.tidy_svg import COLOURS
from lakehouse.report.figures import span_of
from tests import sample_facts
from tests.page_reader import read

CSS = resources.files("lakehouse.report").joinpath("templates", "page.css").read_text("utf-8")


def within(facts):
    return span_of(facts, "from", "to")


def chart(facts, name):
    line = next(one for one in facts["timelines"] if one["name"] == name)
    return charts.timeline(series_of(line["points"], within(facts), line["unit"]), "Figure")


def test_a_timeline_says_in_words_what_it_draws():
    said = chart(sample_facts.demo(), "under_min_isr").caption.replace("\u00a0", " ")
    assert said == (
        "Figure: 3 partitions at most, on Sat 21 Nov 06:02:30 UTC."
        " Not known for 30 s of 6 m 0 s, hatched."
    )


def test_what_is_not_known_is_hatched_and_nothing_is_drawn_over_it():
    for drawing in chart(sample_facts.demo(), "under_min_isr").drawings:
        svg = read(drawing)
        hatched = svg.one("path", class_="fill-unknown").attributes["d"]
        start, width = re.match(r"M([\d.]+),.*?h([\d.]+)", hatched).groups()
        middle = float(start) + float(width) / 2
        for area in svg.all("path", class_="fill-accent"):
            xs = [float(x) for x in re.findall(r"[MLH]([\d.]+)", area.attributes["d"])]
            assert not min(xs) < middle < max(xs)


def test_nothing_is_drawn_where_words_say_all():
    assert chart(sample_facts.quiet_week(), "under_min_isr").drawings == ()
    silent = chart(sample_facts.silent_week(), "under_min_isr")
    assert (silent.caption, silent.drawings) == ("Figure: not known.", ())


@pytest.mark.parametrize("sample", ["demo", "hostile"])
def test_a_drawing_has_only_colours_that_the_style_knows(sample):
    facts = getattr(sample_facts, sample)()
    drawings = [*charts.incidents(incident_lanes.bars(facts, within(facts)), within(facts))]
    drawings += chart(sample_facts.demo(), "throttled").drawings
    assert len(drawings) == 4
    for drawing in drawings:
        assert not re.search(r"#[0-9a-f]{3,6}|rgb|black|white|style=|id=", drawing.lower())
        for node in read(drawing).all():
            for one in node.attributes.get("class", "").split():
                assert one in {"chart", "wide", "narrow"} or f".{one} " in CSS, one
            painted = {"fill", "class"} & node.attributes.keys()
            assert painted or node.tag in {"svg", "g"}, node


def test_every_stand_in_colour_is_another():
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_an_incident_is_drawn_within_what_its_edges_allow():
    facts = sample_facts.demo()
    bars = incident_lanes.bars(facts, within(facts))
    lanes = list(dict.fromkeys(bar.lane.strip("\u2068\u2069") for bar in bars))
    assert [lane.replace("\u2069", "") for lane in lanes] == [
        "orders",
        "single",
        "broker-2 not seen",
    ]
    certain = next(bar for bar in bars if bar.paint == "under")
    perhaps = next(bar for bar in bars if bar.paint == "edge")
    assert perhaps.start < certain.start <= certain.end < perhaps.end
    single = next(bar for bar in bars if bar.paint == "leaderless")
    assert single.end - single.start == 62 * sample_facts.SECOND


def test_many_lanes_are_cut_to_the_worst_and_keep_their_own_names():
    facts = sample_facts.fleet(topics=400, clients=0)
    lanes = {bar.lane for bar in incident_lanes.bars(facts, within(facts))}
    assert len(lanes) == incident_lanes.LANES


def _palettes() -> list[dict[str, str]]:
    light = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", CSS.split("@media")[0]))
    dark = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", CSS.split("@media")[1]))
    return [light, dark]


def _luminance(colour: str) -> float:
    channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("palette", _palettes(), ids=["light", "dark"])
def test_text_can_be_read_in_both_schemes(palette):
    for name in ("ink", "muted", "accent", "met", "missed", "uncertain", "no-data"):
        bright, dim = sorted(
            (_luminance(palette[name]), _luminance(palette["paper"])), reverse=True
        )
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, name


def test_a_reader_can_ask_a_drawing_what_it_is_made_of():
    facts = sample_facts.demo()
    told = chart(facts, "under_min_isr")
    start = within(facts)[0] // sample_facts.SECOND
    assert told.within == f"{start} {start + 360}"
    assert told.spans == "0,90,0;90,30,2,2,3;150,30,3,2,3;180,180,0", "and from 120 s it is unknown"
    assert told.unit == "partitions"
    assert chart(facts, "copy_lag_bytes").unit == "MiB"


def test_of_a_drawing_that_is_not_there_nothing_can_be_asked():
    silent = chart(sample_facts.quiet_week(), "under_min_isr")
    assert (silent.drawings, silent.within, silent.spans, silent.unit) == ((), "", "", "")


@pytest.mark.parametrize("name", ["\U0001f600" * 60, "a" + "\U0001f600" * 60])
def test_long_names_beyond_one_unit_are_drawn(name: str) -> None:
    """Vega cuts names in units of UTF-16."""
    drawn = charts.incidents(
        [incident_lanes.Bar(name, 0, 3_600_000_000, "edge")], (0, 7_200_000_000)
    )
    assert len(drawn) == 2
    for one in drawn:
        assert name[:2] in one
        assert not any("\ue000" <= letter <= "\uf8ff" for letter in one)
