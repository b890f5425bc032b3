"""The documentation's size and calls of jmxlake; and the runner of its commands."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.hands import command_line, doc_pages
from tests.hands.__main__ import AT_MOST
from tests.hands.page_script import bash, is_stale, outputs, steps

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """\
# Page

```sh
# a comment
cat > file <<'END'
not a command
END
echo one \\
  two
```

```sh title="As root"
reboot
```

- item

    ```console
    $ echo 12:30 Mon
    09:15 Tue
    $ false
    ```
"""


@pytest.mark.parametrize("page", [doc_pages.ROOT / "README.md", *doc_pages.pages()])
def test_calls_of_jmxlake_exist(page: Path) -> None:
    assert list(command_line.problems(page.read_text("utf-8"))) == []


def test_documentation_keeps_its_size() -> None:
    pages = doc_pages.pages()
    assert len(pages) <= AT_MOST["docs_pages"]
    words = sum(len(page.read_text("utf-8").split()) for page in pages)
    assert words <= AT_MOST["docs_words"]


def test_steps_of_a_page() -> None:
    first, root, date, last = steps(PAGE)
    assert (first.line, first.count, first.expected, first.title) == (4, 2, None, "")
    assert (root.title, root.count) == ("As root", 1)
    assert (date.line, date.script, date.expected) == (19, "echo 12:30 Mon\n", ("09:15 Tue",))
    assert last.script == "false\n"


def test_script_stops_at_a_failed_command(tmp_path: Path) -> None:
    here = [step for step in steps(PAGE) if not step.title]
    ran = subprocess.run(
        ["bash", "-c", bash(here)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    printed = outputs(ran.stdout)
    assert printed == {0: ["one two"], 1: ["12:30 Mon"], 2: []}
    result = doc_pages._result(here, printed)
    assert result.run == 3
    assert [one.split()[:2] for one in result.failed] == [["21:", "false"]]
    assert result.stale == ()


@pytest.mark.parametrize(
    ("expected", "actual", "stale"),
    [
        (["a 12.5 s"], ["a 3 min 10 s"], False),
        (["under 1 s"], ["2 ms"], False),
        (["week 48, Mon 23 Nov"], ["week 9,  Sun 1 Feb"], False),
        (["a", "...", "z"], ["a", "b", "c", "z"], False),
        (["a", "...", "z"], ["a", "z"], False),
        (["worst ... end"], ["worst x y end"], False),
        (["...", "z"], ["a", "y"], True),
        (["a"], ["a", "b"], True),
        (["a"], ["jmxlake: rollup: 12 hours, 31 s", "a"], False),
        (["a"], ["jmxlake: topics compared", "a"], False),
        (["jmxlake: lake: no such folder"], ["jmxlake: lake: denied"], True),
        (["a"], ["b"], True),
        ([], ["a"], True),
    ],
)
def test_output_is_compared_without_numbers_and_dates(
    expected: list[str], actual: list[str], *, stale: bool
) -> None:
    assert is_stale(expected, actual) == stale


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("jmxlake weekly lake --html x | tail -1", ""),
        ("sudo -u jmxlake /opt/jmxlake/bin/jmxlake-agent check --offline", ""),
        ("X=1 jmxlake-agent run --config agent.yaml &", ""),
        ("install -d -o root -g jmxlake /etc/jmxlake", ""),
        ("jmxlake weekly ... --nothing", ""),
        ("jmxlake weekly lake --htlm x", "No such option '--htlm'"),
        ("cd x && jmxlake weakly lake", "no command weakly"),
        ("kubectl exec pod -- jmxlake-agent tpo", "no command tpo"),
        ("jmxlake rollup lake --engine duckdb", "--engine has no choice duckdb"),
    ],
)
def test_wrong_call_is_found(line: str, problem: str) -> None:
    found = list(command_line.wrong(line))
    assert bool(found) == bool(problem)
    assert all(problem in one for one in found)
