"""Elements of inline SVG: every text and attribute is escaped, nothing needs a style attribute.

A drawing with text has no view box. Its places along the x axis are percentages of its width, and
its heights are pixels, so its text has the size of the page's text at every width.
"""

from markupsafe import Markup, escape


def element(tag: str, *content: str | Markup, **attributes: object) -> Markup:
    """Return one element.

    Args:
        tag: Its name.
        content: Text or elements.
        attributes: ``class_`` means ``class``, other underscores are hyphens. A value of None
            is left out.
    """
    given = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(map(escape, content))
    # Both parts are escaped above; tags and keys are constants of the callers.
    return Markup(f"<{tag}{given}>{inner}</{tag}>" if inner else f"<{tag}{given}/>")  # noqa: S704


def drawing(
    kind: str, label: str, *content: Markup, box: str | None = None, height: int | None = None
) -> Markup:
    """Return a drawing.

    Args:
        kind: Its class.
        label: Its content for screen readers; empty: it is hidden from them, because the page has
            the same in words.
        content: Its elements.
        box: Width and height of its coordinates; such a drawing is stretched and has no text.
        height: Its height, pixels; None: as its class has it.
    """
    hidden = {} if label else {"aria_hidden": "true"}
    named = {"role": "img", "aria_label": label} if label else {}
    boxed = {} if box is None else {"viewBox": f"0 0 {box}", "preserveAspectRatio": "none"}
    given = {"class_": kind, "focusable": "false", "height": height}
    return element("svg", *content, **given, **hidden, **named, **boxed)


def percent(share: float) -> str:
    """Return a place along the x axis."""
    return f"{number(100 * share)}%"


def number(value: float) -> str:
    """Return a coordinate, to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
