"""Count phrases that CONTRIBUTING.md asks not to use: ``python -m tests.plain_english``.

``plain_english.yaml`` has the phrases. ``plain_english.json`` has the number of hits that each file
may have. ``make lint`` fails if a file has more; ``--write`` records fewer.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml
from jinja2 import Environment
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_HERE: Final = Path(__file__)
_ROOT: Final = _HERE.parents[1]
BASELINE: Final = _HERE.with_suffix(".json")
_FILES: Final = (
    *("*.md", "docs/*.md", "Makefile", "databricks.yml"),
    *(f"{folder}/**/*.{kind}" for folder in ("collector", "lakehouse") for kind in ("py", "md")),
    *("collector/**/*.yaml", "lakehouse/**/*.yaml", "lakehouse/**/*.sql", "lakehouse/**/*.j2"),
    *("dashboards/**/*.py", "deploy/**/*.yaml", "deploy/**/*.md", "tests/**/*.py", "bench/**/*.py"),
    *("demo/**/*.py",),
)
_NOT_YAML: Final = re.compile(r"deploy/.*/templates/")
_START: Final = r"(?:^|(?<=[.;:!?] ))"
_CODE: Final = re.compile(r"``[^`]*``|`[^`]*`|https?://\S+")
_SQL: Final = re.compile(r"\b(SELECT|FROM|WHERE|CREATE|INSERT|JOIN|GROUP BY|ORDER BY|COALESCE)\b")
_TOOL_COMMENT: Final = re.compile(r"#\s*(type:|noqa|fmt:|!)")
_FEWEST_WORDS: Final = 3
_OF_FOLDERS: Final = ("What is here", "What goes in and out", "Rules", "Where to start")
"""Headings of the README of every folder."""

_SHARE_OF_LETTERS: Final = 0.72


class Text(NamedTuple):
    """A piece of prose, the line on which it starts, and its kind.

    Kinds are text, heading, cell, docstring, function (a function's docstring), comment, help,
    error and string.
    """

    line: int
    kind: str
    text: str


class Phrase(NamedTuple):
    """A pattern of ``plain_english.yaml``."""

    name: str
    find: re.Pattern[str]
    write: str
    kinds: frozenset[str]
    example: str


class Hit(NamedTuple):
    """A phrase in a text."""

    path: str
    line: int
    phrase: Phrase
    context: str


def phrases() -> list[Phrase]:
    """Return the phrases of ``plain_english.yaml``."""
    rows = yaml.safe_load(_HERE.with_suffix(".yaml").read_text("utf-8"))
    return [
        Phrase(
            name,
            re.compile(
                row["find"].replace("{start}", _START), 0 if row.get("exact") else re.IGNORECASE
            ),
            row["write"],
            frozenset(row.get("kinds", ())),
            row["example"],
        )
        for name, row in rows.items()
    ]


def found(path: str, texts: Iterator[Text], wanted: Sequence[Phrase]) -> Iterator[Hit]:
    """Yield the phrases in texts of a file."""
    for one in texts:
        flat = _CODE.sub("x", " ".join(one.text.split()))
        kinds = {one.kind, "docstring"} if one.kind == "function" else {one.kind}
        for phrase in wanted:
            if phrase.kinds and not phrase.kinds & kinds:
                continue
            for match in phrase.find.finditer(flat):
                context = flat[max(0, match.start() - 40) : match.end() + 40]
                yield Hit(path, one.line, phrase, context)


def texts(name: str, content: str) -> Iterator[Text]:
    """Yield the prose of a file.

    Raises:
        ValueError: Files with this name have no known prose.
    """
    match Path(name).suffix or name:
        case ".md":
            yield from _markdown(content)
        case ".py":
            yield from _python(content)
        case ".yaml" | ".yml":
            yield from _yaml(content)
        case ".sql":
            yield from _lines(content, "--", "comment")
        case ".j2":
            yield from _jinja(content)
        case "Makefile":
            yield from _lines(content, "## ", "help")
        case _:
            raise ValueError(name)


def _markdown(content: str) -> Iterator[Text]:
    tokens = MarkdownIt("commonmark").enable("table").parse(content)
    kinds = {"heading_open": "heading", "td_open": "cell", "th_open": "cell"}
    line = 1
    for opened, token in pairwise(tokens):
        line = opened.map[0] + 1 if opened.map else line
        if token.type == "inline":
            prose = "".join(
                " "
                if one.type == "softbreak"
                else "x"
                if one.type == "code_inline"
                else one.content
                for one in token.children or ()
            )
            if len(prose.split()) > 1 and prose not in _OF_FOLDERS:
                yield Text(line, kinds.get(opened.type, "text"), prose)


def _python(content: str) -> Iterator[Text]:
    tree = ast.parse(content)
    done: set[int] = set()
    for node in ast.walk(tree):
        for kind, value in _named_texts(node):
            if id(value) not in done:
                done.update(map(id, ast.walk(value)))
                if (text := _literal(value)) is not None:
                    yield Text(value.lineno, kind, text)
    for node in ast.walk(tree):
        if id(node) not in done and isinstance(node, ast.Constant | ast.JoinedStr):
            done.update(map(id, ast.walk(node)))
            if (text := _literal(node)) is not None and _is_prose(text):
                yield Text(node.lineno, "string", text)
    yield from _comments(content)


def _named_texts(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield expressions whose place says what they are, with their kinds."""
    body = getattr(node, "body", None)
    if isinstance(body, list):
        decorators = ast.dump(ast.Tuple(getattr(node, "decorator_list", [])))
        for number, one in enumerate(body):
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant | ast.JoinedStr):
                is_function = isinstance(node, ast.FunctionDef) and number == 0
                kind = "function" if is_function and "property" not in decorators else "docstring"
                yield kind, one.value
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        yield from (("error", one) for one in node.exc.args)
    if isinstance(node, ast.keyword) and node.arg in ("help", "short_help"):
        yield "help", node.value


def _literal(node: ast.AST) -> str | None:
    """Return the text of a literal; values in it are an X."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) and " " in node.value else None
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(getattr(one, "value", "")) if isinstance(one, ast.Constant) else "X"
            for one in node.values
        )
    return None


def _is_prose(text: str) -> bool:
    letters = sum(one.isalpha() or one == " " for one in text)
    is_long = len(text.split()) >= _FEWEST_WORDS and letters > _SHARE_OF_LETTERS * len(text)
    return is_long and not _SQL.search(text)


def _comments(content: str) -> Iterator[Text]:
    """Yield comments; comments on successive lines are one text."""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type != tokenize.COMMENT or _TOOL_COMMENT.match(token.string):
            continue
        if block and token.start[0] != last + 1:
            yield Text(last - len(block) + 1, "comment", " ".join(block))
            block = []
        block.append(token.string.lstrip("#: "))
        last = token.start[0]
    if block:
        yield Text(last - len(block) + 1, "comment", " ".join(block))


def _yaml(content: str) -> Iterator[Text]:
    for document in yaml.compose_all(content, yaml.SafeLoader):
        nodes = [document]
        while nodes:
            node = nodes.pop()
            if isinstance(node, yaml.ScalarNode):
                if len(node.value.split()) > 1 and not _SQL.search(node.value):
                    yield Text(
                        node.start_mark.line + 1, "string", re.sub(r"{.*?}", "X", node.value)
                    )
            elif isinstance(node, yaml.MappingNode):
                nodes += [value for _, value in node.value]
            elif isinstance(node, yaml.SequenceNode):
                nodes += node.value
    yield from _lines(content, "# ", "comment")


def _jinja(content: str) -> Iterator[Text]:
    for line, kind, value in Environment(autoescape=True).lex(content):
        text = re.sub(r"<[^>]*>", " ", value) if kind == "data" else value.strip("\"'")
        if kind in ("data", "string") and _is_prose(text):
            yield Text(line, "string", text)


def _lines(content: str, mark: str, kind: str) -> Iterator[Text]:
    for number, line in enumerate(content.splitlines(), 1):
        text = line.partition(mark)[2].strip(" -#")
        if len(text.split()) >= _FEWEST_WORDS:
            yield Text(number, kind, text)


def hits(only: Sequence[str], wanted: Sequence[Phrase]) -> list[Hit]:
    """Return the hits of the repository's files, or of those whose paths start as asked."""
    result: list[Hit] = []
    for path in sorted({one for pattern in _FILES for one in _ROOT.glob(pattern)}):
        name = path.relative_to(_ROOT).as_posix()
        if name.startswith(tuple(only) or "") and not _NOT_YAML.match(name):
            result += found(name, texts(path.name, path.read_text("utf-8")), wanted)
    return result


def worse(before: Mapping[str, int], now: Mapping[str, int]) -> list[str]:
    """Return a line for each file that has more hits than before."""
    return [
        f"{path}: {number} phrases that are not plain English, {before.get(path, 0)} are allowed."
        f" Run: python -m tests.plain_english {path}"
        for path, number in sorted(now.items())
        if number > before.get(path, 0)
    ]


def main() -> int:
    """Print the hits of files, or compare their numbers with the baseline."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", help="files or folders whose hits are printed")
    parser.add_argument("--write", action="store_true", help="record the numbers of hits")
    options = parser.parse_args()
    every = hits(options.paths, phrases())
    for one in every if options.paths else ():
        print(f"{one.path}:{one.line}: {one.context} [{one.phrase.name}: {one.phrase.write}]")
    if options.paths:
        return 0
    now = Counter(one.path for one in every)
    if options.write:
        BASELINE.write_text(json.dumps(dict(sorted(now.items())), indent=0) + "\n", "utf-8")
    complaints = worse(json.loads(BASELINE.read_text("utf-8")), now)
    print("\n".join([*complaints, f"{now.total()} phrases in {len(now)} files"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
