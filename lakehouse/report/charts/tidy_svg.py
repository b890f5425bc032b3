"""Vega's SVG reduced for the page: colours by class, no styles and no ids."""

import re
from itertools import groupby
from typing import Final
from xml.etree import ElementTree as ET

from markupsafe import Markup

from lakehouse.report.resources import declared

COLOURS: Final[dict[str, str]] = declared("charts.yaml")["colours"]
"""Stand-in colours of charts; the page's style has the real ones, light and dark."""

_CLASSES: Final = {colour: name for name, colour in COLOURS.items()}
_KEPT: Final = frozenset(
    {"d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "transform"}
    | {"text-anchor", "stroke-width", "stroke-dasharray", "fill-opacity", "font-size"}
)
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_LETTER: Final = re.compile(r"[A-Za-z]")
_POINT: Final = re.compile(r"([MLZ])(?:(-?[\d.]+),(-?[\d.]+))?")
_PLACE: Final = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")
_STEP: Final = re.compile(r"([MLHVZ])(-?[\d.]+)?(?:,(-?[\d.]+))?")
_NAMESPACE: Final = "{http://www.w3.org/2000/svg}"


def tidy(svg: str, kind: str, width: int) -> Markup:
    """A chart as an inline ``svg`` element, hidden from screen readers: a caption describes it.

    Args:
        svg: The chart as vl-convert made it, in ``COLOURS``.
        kind: Class of the element: ``wide`` or ``narrow``.
        width: Width of the plot, in units of the drawing.
    """
    root = ET.fromstring(svg)  # noqa: S314  made by our own process; it declares no entity
    box = root.get("viewBox", "")
    _clean(root)
    root.attrib = {
        "class": f"chart {kind}",
        "viewBox": box,
        "data-plot": str(width),
        "aria-hidden": "true",
        "focusable": "false",
    }
    # ElementTree escapes every text and attribute.
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704


def _clean(element: ET.Element) -> None:
    element.tag = element.tag.removeprefix(_NAMESPACE)
    for child in list(element):
        if _is_invisible(child):
            element.remove(child)
            continue
        _clean(child)
        if child.tag in {_NAMESPACE + "g", "g"} and not len(child):
            element.remove(child)
    element.attrib = _attributes(element.attrib)
    _merge(element)


def _merge(element: ET.Element) -> None:
    """Join shapes that differ only in their place into one path: a week has hundreds of marks."""
    for shape, alike in groupby(list(element), _shape):
        first, *rest = alike
        if shape is None or not rest:
            continue
        places = [_PLACE.findall(path.get("transform", ""))[0] for path in (first, *rest)]
        shape_ = first.get("d", "")
        first.set("d", "".join(_placed(shape_, float(x), float(y)) for x, y in places))
        del first.attrib["transform"]
        for path in rest:
            element.remove(path)


def _shape(element: ET.Element) -> dict[str, str] | None:
    """All attributes of a closed path but its place; None for any other element."""
    path, at = element.get("d", ""), element.get("transform", "")
    if element.tag != "path" or not path.endswith("Z") or not _PLACE.match(at):
        return None
    if not set(_LETTER.findall(path)) <= set("MLHVZ"):
        return None
    return {key: value for key, value in element.attrib.items() if key != "transform"}


def _placed(path: str, x: float, y: float) -> str:
    """The path at a place, with relative steps after its start, which are shorter."""
    out = []
    at = (0.0, 0.0)
    for command, first, second in _STEP.findall(path):
        if command == "Z":
            out.append("z")
            continue
        to = _target(at, command, first, second)
        across, down = (_number(new - old) for new, old in zip(to, at, strict=True))
        if command == "M":
            out.append(f"M{round(to[0] + x)},{round(to[1] + y)}")
        else:
            out.append({"L": f"l{across},{down}", "H": f"h{across}", "V": f"v{down}"}[command])
        at = to
    return "".join(out)


def _target(at: tuple[float, float], command: str, first: str, second: str) -> tuple[float, float]:
    if command == "V":
        return at[0], float(first)
    return float(first), at[1] if command == "H" else float(second)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _is_invisible(element: ET.Element) -> bool:
    if element.get("opacity") == "0" or element.get("display") == "none":
        return True
    if element.tag == _NAMESPACE + "path":
        return not element.get("d") or element.get("class") in {"background", "foreground"}
    return element.tag == _NAMESPACE + "rect" and element.get("fill") == "white"


def _attributes(attributes: dict[str, str]) -> dict[str, str]:
    kept = {key: _round(value) for key, value in attributes.items() if key in _KEPT}
    if set(_LETTER.findall(kept.get("d", ""))) <= {"M", "L", "Z"} and "d" in kept:
        kept["d"] = _shorter(kept["d"])
    if kept.get("transform") == "translate(0,0)":
        del kept["transform"]
    paint = [
        f"{name}-{_CLASSES[attributes[name]]}"
        for name in ("fill", "stroke")
        if attributes.get(name) in _CLASSES
    ]
    # Without a fill a shape would be black in both schemes.
    if attributes.get("fill") in {"none", "transparent"}:
        kept["fill"] = "none"
    return kept | ({"class": " ".join(paint)} if paint else {})


def _shorter(path: str) -> str:
    """The path with horizontal and vertical steps as ``H`` and ``V``, which are shorter."""
    out: list[str] = []
    at = ("", "")
    for command, x, y in _POINT.findall(path):
        if command == "Z":
            out.append("Z")
        elif command == "L" and (x, y) == at:
            continue
        elif command == "L" and y == at[1]:
            out.append(f"H{x}")
        elif command == "L" and x == at[0]:
            out.append(f"V{y}")
        else:
            out.append(f"{command}{x},{y}")
        at = (x, y)
    return "".join(out)


def _round(value: str) -> str:
    return _NUMBER.sub(lambda match: _number(float(match.group())), value)
