"""Templates, style and script of the pages, and the policy that keeps everything else out."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from lakehouse.report import figures, words


def page(template: str, **told: Any) -> str:
    """A page of a template, with our style, our script and the policy.

    Args:
        template: File of the template.
        told: What it shows; every text is escaped.
    """
    style, script = _asset("page.css"), _asset("page.js")
    return (
        templates("lakehouse.report")
        .get_template(template)
        .render(
            # Both are files of this package: no fact ever reaches them.
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            policy=_policy(style, script),
            **told,
        )
    )


def sentence(name: str, **told: Any) -> str:
    """A sentence of the report, of its name in sentences.txt.j2 and what it tells of."""
    sentences: Any = templates("lakehouse.report").get_template("sentences.txt.j2").module
    return re.sub("[ \n]+", " ", getattr(sentences, name)(**told)).strip(" \n")


@lru_cache
def templates(package: str) -> Environment:
    """The templates of a package; every text in them is escaped, but for those of plain text."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=select_autoescape(disabled_extensions=["txt.j2"], default=True),
        undefined=StrictUndefined,
    )
    made.globals |= {"figures": figures, "words": words, "said": words.VERDICTS}
    return made


def _asset(file: str) -> str:
    return resources.files("lakehouse.report").joinpath("templates", file).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing may be loaded, and only our own style and script may run."""
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
