"""Committed JSON Schemas in deploy/schemas, and the first lines that name them in shipped files.

``python -m docs.tools.schemas`` writes both. The wheel has the schemas, and a release has them at
the address of its tag.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.config.schema import AGENT, agent_schema
from lakehouse.cli.setup import NAMES, schema_text
from lakehouse.slo.openslo.objective_files import OPTIONAL, SHIPPED
from lakehouse.tables import typed_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "deploy" / "schemas"
_OBJECTIVES: Final = (SHIPPED, OPTIONAL, ROOT / "demo" / "objectives")
_COMMENT: Final = "# yaml-language-server: "


def texts() -> Iterator[tuple[str, str]]:
    """Yield name and text of each schema."""
    yield AGENT, typed_settings.schema_text(agent_schema())
    for name in NAMES:
        yield name, schema_text(name)


def shipped() -> Iterator[tuple[Path, str]]:
    """Yield each shipped file, and the name of its schema."""
    yield ROOT / "deploy" / "agent.yaml", AGENT
    for folder in _OBJECTIVES:
        for file in sorted(folder.glob("*.yaml")):
            yield file, "objectives"


def with_first_line(text: str, name: str) -> str:
    """Return the text of a file with its first line."""
    _, _, rest = text.partition("\n") if text.startswith(_COMMENT) else ("", "", text)
    return typed_settings.schema_comment(name) + rest


def main() -> None:
    """Write the schemas and the first lines."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts():
        (FOLDER / f"{name}.schema.json").write_text(text, "utf-8")
    for file, name in shipped():
        file.write_text(with_first_line(file.read_text("utf-8"), name), "utf-8")


if __name__ == "__main__":
    main()
