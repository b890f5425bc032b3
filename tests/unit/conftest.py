"""What unit tests share: examples take as long as they take, and a chart is drawn once."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# An example that takes more than 200 ms fails by default: on a busy machine any may, once.
settings.register_profile("unhurried", settings.default, deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session", autouse=True)
def _drawn_once() -> Iterator[None]:
    """Let each chart be drawn by the code itself once.

    Some fifty tests read a page of the same few weeks with one thing changed, and its charts take
    most of the second that it takes. A drawing depends on what is asked for and on the zone alone.
    """
    charts = sys.modules.get(
        "lakehouse.report.charts.charts"
    )  # without a page nobody waits for Vega
    with pytest.MonkeyPatch.context() as patch:
        for name in ("timeline_svg", "incidents_svg") if charts else ():
            patch.setattr(charts, name, _remembered(getattr(charts, name)))
        yield


def _remembered(draw: Callable[..., str]) -> Callable[..., str]:
    from lakehouse.core import display  # noqa: PLC0415

    @cache
    def once(_zone: str, *asked: Any) -> str:
        return draw(*asked)

    def remembered(*asked: Any) -> str:
        keys = (tuple(one) if isinstance(one, list) else one for one in asked)
        return once(str(display.zone()), *keys)

    return remembered
