"""MkDocs hooks: add the generated pages and rewrite links for the site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mkdocs.structure.files import File, Files

from docs.tools import commands, configuration, links, metrics, report_csv, report_json, tables
from lakehouse.report.facts.report_json import schema_text

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
GENERATED: Final = {
    "reference/configuration.md": configuration.text,
    "reference/metrics.md": metrics.text,
    "reference/tables.md": tables.text,
    "reference/commands.md": commands.text,
    "reference/report-json.md": report_json.text,
    "reference/report-csv.md": report_csv.text,
    "reference/report.schema.json": schema_text,
}
"""Generated files and their generators."""
OF_ROOT: Final = {"architecture.md": "ARCHITECTURE.md", "changelog.md": "CHANGELOG.md"}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for path, make in GENERATED.items():
        files.append(File.generated(config, path, content=make()))
    for path, name in OF_ROOT.items():
        content = links.rewritten((ROOT / name).read_text("utf-8"), "")
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Rewrite the links of a page of the repository."""
    if page.file.src_uri in (*GENERATED, *OF_ROOT):
        return markdown
    return links.rewritten(markdown, "docs")
