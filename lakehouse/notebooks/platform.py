"""Session, widgets and display of a notebook: from Databricks, or replacements elsewhere."""

import html
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, Self

from pyspark.sql import SparkSession

from lakehouse.core.spark_session import session

PREFIX: Final = "JMXLAKE_"
"""Prefix of the environment variables that replace widgets: ``JMXLAKE_WEEK``."""

_HEIGHT: Final = 900


class Widgets(Protocol):
    """``dbutils.widgets``."""

    def text(self, name: str, default: str, label: str) -> None: ...  # noqa: D102
    def get(self, name: str) -> str: ...  # noqa: D102


class Environment:
    """Widgets whose texts are environment variables, otherwise the defaults.

    Args:
        variables: The environment.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._texts: dict[str, str] = {}

    def text(self, name: str, default: str, _label: str) -> None:
        """Create a widget."""
        self._texts[name] = self._variables.get(f"{PREFIX}{name.upper()}", default)

    def get(self, name: str) -> str:
        """Return the text of a widget."""
        return self._texts[name]


@dataclass(frozen=True, slots=True)
class Platform:
    """Parts of the program that runs a notebook.

    Attributes:
        spark: A session with Delta.
        widgets: Widgets with the user's choices.
        show: Shows an HTML page.
    """

    spark: SparkSession
    widgets: Widgets
    show: Callable[[str], None]

    @classmethod
    def of(cls, names: Mapping[str, Any]) -> Self:
        """Return the platform of a notebook.

        Databricks defines the names ``spark``, ``dbutils`` and ``displayHTML``. Elsewhere
        ``jmxlake`` selects the session. Widgets are environment variables. Jupyter shows a page in
        the output of its cell. In any other program a page becomes a file.

        Args:
            names: ``globals()`` of the notebook.
        """
        dbutils = names.get("dbutils")
        file = Path(str(names.get("__file__", "notebook"))).stem
        return cls(
            names.get("spark") or session(),
            dbutils.widgets if dbutils else Environment(os.environ),
            names.get("displayHTML") or (lambda page: _show(page, Path(f"{file}.html"))),
        )


def _show(page: str, file: Path) -> None:
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        # The page has styles of its own, so it needs a frame, as on Databricks.
        frame = f'<iframe srcdoc="{html.escape(page)}" width="100%" height="{_HEIGHT}"></iframe>'
        ipython.display.display(ipython.display.HTML(f"<div>{frame}</div>"))
        return
    file.write_text(page, encoding="utf-8")
    sys.stdout.write(f"{file.absolute()}\n")
