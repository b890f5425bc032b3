"""JSON Schemas of settings files: the committed copies, shipped examples and wrong files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import pytest
import yaml
from click.testing import CliRunner

from collector.cli.main import main as agent
from collector.config import loader
from collector.errors import ConfigError
from collector.sources.source_settings import TRANSPORTS
from docs.tools import schemas
from lakehouse.cli.main import main
from lakehouse.cli.weekly import weekly
from lakehouse.core.yaml_nodes import worst
from lakehouse.errors import LakehouseError
from lakehouse.report import owners
from lakehouse.report.send import delivery
from lakehouse.sample import writer
from lakehouse.slo import report_calendar
from lakehouse.slo.openslo import objective_files
from tests import json_schema_check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).parents[2]
SCHEMAS: Final = dict(schemas.texts())


class Yaml12(yaml.SafeLoader):
    """YAML as editors read it: an instant is a text."""


Yaml12.yaml_implicit_resolvers = {
    first: [one for one in resolvers if not one[0].endswith("timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def wrong(name: str, text: str) -> list[str]:
    """Return the violations of all documents of a text."""
    schema = json.loads(SCHEMAS[name])
    documents = yaml.load_all(text, Yaml12)
    return [fault for one in documents for fault in json_schema_check.wrong(one, schema)]


def load_objectives(file: Path) -> None:
    findings = [one for item in objective_files.read([file]) for one in item.findings]
    if worst(findings) in {"invalid", "unsupported"}:
        raise LakehouseError(str(findings))


def load_weekly(file: Path) -> None:
    weekly.make_context("weekly", ["--config", str(file)])


LOADERS: Final[dict[str, Callable[[Path], object]]] = {
    "agent": lambda file: loader.load(file, {}),
    "objectives": load_objectives,
    "weekly": load_weekly,
    "owners": owners.load,
    "maintenance": report_calendar.load_maintenance,
    "corrections": report_calendar.load_corrections,
    "send": delivery.load,
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_committed_schema_is_the_generated_one(name: str) -> None:
    """If this fails: make definitions."""
    assert (schemas.FOLDER / f"{name}.schema.json").read_text("utf-8") == SCHEMAS[name]


def test_every_committed_schema_is_of_a_loader() -> None:
    committed = {file.name.partition(".")[0] for file in schemas.FOLDER.iterdir()}
    assert committed == SCHEMAS.keys() == LOADERS.keys()


@pytest.mark.parametrize("name", SCHEMAS)
def test_command_prints_the_schema(name: str) -> None:
    ran = CliRunner().invoke(
        *((agent, ["schema"]) if name == "agent" else (main, ["schema", name]))
    )
    assert (ran.exit_code, ran.stdout) == (0, SCHEMAS[name])
    assert json.loads(ran.stdout)["$id"].endswith(f"/deploy/schemas/{name}.schema.json")


@pytest.mark.parametrize(("file", "name"), [*schemas.shipped()], ids=lambda one: Path(one).stem)
def test_shipped_file_is_valid_and_names_its_schema(file: Path, name: str) -> None:
    """If the first line is wrong: make definitions."""
    text = file.read_text("utf-8")
    assert text == schemas.with_first_line(text, name)
    assert wrong(name, text) == []


def test_written_files_are_valid_and_name_their_schemas(tmp_path: Path) -> None:
    beside = writer.beside(tmp_path / "lake")
    writer.write_files(beside, [])
    config = CliRunner().invoke(main, ["weekly", "--print-config"]).stdout
    texts = {name: getattr(beside, name).read_text("utf-8") for name in beside._fields}
    for name, text in {**texts, "weekly": config}.items():
        assert text.startswith("# yaml-language-server: $schema=https://")
        assert text.partition("\n")[0].endswith(f"/{name}.schema.json")
        assert wrong(name, text) == []
    writer.check_free(tmp_path / "lake")
    beside.owners.write_text(texts["owners"].replace(writer._MARK, ""), "utf-8")
    with pytest.raises(LakehouseError, match="not overwritten"):
        writer.check_free(tmp_path / "lake")


def commented(text: str) -> str:
    return re.sub(r"^( *)# ((?:  )*\w+:( |$))", r"\1\2", text, flags=re.MULTILINE)


@pytest.mark.parametrize("way", TRANSPORTS)
def test_every_key_of_the_reference_file_is_valid(way: str) -> None:
    raw = yaml.load(commented((ROOT / "deploy/agent.yaml").read_text("utf-8")), Yaml12)  # noqa: S506
    for other in set(TRANSPORTS) - {way}:
        del raw["source"][other]
    several = {**raw, "sources": [raw["source"]]}
    del raw["sources"], several["source"]
    assert wrong("agent", yaml.safe_dump(raw)) == []
    assert wrong("agent", yaml.safe_dump(several)) == []
    assert wrong("agent", yaml.safe_dump({**several, "source": raw["source"]})) == [": oneOf"]


def test_every_option_of_weekly_is_valid() -> None:
    text = CliRunner().invoke(main, ["weekly", "--print-config"]).stdout
    raw = yaml.safe_load(commented(re.sub(r"(?m)^# (  +\w)", r"\1", text)))
    assert set(json.loads(SCHEMAS["weekly"])["$defs"]["Weekly"]["properties"]) == set(raw)
    assert raw["send"]["mail"]["host"]
    assert wrong("weekly", yaml.safe_dump(raw)) == []


def openslo_examples() -> Iterator[Path]:
    yield from sorted((ROOT / "tests" / "openslo_examples").glob("*.yaml"))


@pytest.mark.parametrize("file", [*openslo_examples()], ids=lambda file: file.stem)
def test_schema_and_check_agree_on_published_examples(file: Path) -> None:
    findings = [one for item in objective_files.read([file]) for one in item.findings]
    faults = [one for one in findings if one.kind == "invalid" or "mistyped" in one.message]
    assert bool(wrong("objectives", file.read_text("utf-8"))) == bool(faults), faults


AGENT: Final = "source: {node: 1, jmx: {port: 9999}}\nlake: {path: /l}\nspool: {path: /s}\n"
SLO: Final = (ROOT / "lakehouse/slo/objectives/min-isr.yaml").read_text("utf-8")
OWNER: Final = "owners:\n- {team: a, topics: ['x']}\n"
PLANNED: Final = (
    "maintenance:\n- {start: 2026-11-17T22:00:00Z, end: 2026-11-17T23:00:00Z, reason: r}\n"
)
AGREED: Final = PLANNED.replace("maintenance", "corrections").replace(
    "reason: r", "reason: r, approved_by: a, ticket: t"
)
MAIL: Final = "mail: {host: localhost, from: a@b.c, to: d@e.f, security: none}\n"
VALID: Final = {
    "agent": AGENT, "objectives": SLO, "weekly": "lake: x\n", "owners": OWNER,
    "maintenance": PLANNED, "corrections": AGREED, "send": MAIL,
}  # fmt: skip
WRONG: Final = {
    "agent": [
        ("port: 9999", "prot: 9999"), ("port: 9999", "port: x"), ("port: 9999", "port: 65536"),
        ("jmx: {port: 9999}", "role: broker"), ("node: 1, ", ""), ("{path: /s}", "{}"),
        ("path: /s", "path: /s, max_size: 5"), ("path: /s", "path: /s, max_size: 5GB"),
        ("path: /l", "path: ''"), ("lake:", "window: 5\nlake:"), ("lake:", "window: 5 min\nlake:"),
        ("lake:", "families: {min_isr: {cap: 0}}\nlake:"),
        ("lake:", "sources: [{node: 2, jmx: {port: 1}}]\nlake:"),
        ("lake:", "admin: {bootstrap: 'a:1'}\nlake:"), ("port: 9999}", "port: 9999}, role: any"),
        ("port: 9999}", "port: 9999}, attach: {}"), ("port: 9999}", "port: 9999}, role: cluster"),
    ],
    "objectives": [
        ("openslo/v1", "openslo/v2"), ("kind: SLO", "kind: SLOs"),
        ("name: min-isr", "name: Min_ISR"),
        ("level: topic", "level: topics"), ("metric: kafka.partition.unavailable", ""),
        ("duration: 1w", "duration: 1 week"), ("isRolling: false", "isRolling: 'no'"),
        ("target: 0.999", "target: 99.9"), ("target: 0.999", "targetPercent: 100"),
        ("target: 0.999", "target: 0.9\n      targetPercent: 90"), ("op: lte", "op: le"),
        ("GoodSeconds", "Seconds"), ("  service: kafka\n", ""), ("  service:", "  servcie:"),
        ("level: topic", "level: topic\n            match: {topic: orders}"),
    ],
    "weekly": [
        ("lake: x", "[lake]"), ("lake: x", "lake: [x]"), ("lake: x", "lake: x\nhtlm: y"),
        ("lake: x", "lake: x\nengine: duckdb"), ("lake: x", "lake: x\nmin_coverage: 101"),
        ("lake: x", "lake: x\nsend: {mail: {host: h}}"), ("lake: x", "lake: ''"),
        ("lake: x", "lake: x\nsend: {webhook: {url: 'https://SECRET'}}"),
        ("lake: x", "lake: x\nsend: {webhook: {url_file: a}, link: 'http://x'}"),
    ],
    "owners": [
        ("owners:", "owner:"), ("topics:", "topcs:"), ("team: a, ", ""), (", topics: ['x']", ""),
        ("['x']", "[1]"), ("team: a", "team: [a]"), ("- {", "- nobody\n- {"),
        ("owners:", "prices: {}\nowners:"),
        ("owners:", "prices: {currency: EUR, read_gib: -1}\nowners:"),
    ],
    "maintenance": [
        ("2026-11-17T22:00:00Z", "yesterday"), ("22:00:00Z", "22:00:00"), ("reason:", "raison:"),
        (", reason: r", ""), ("maintenance", "maintenances"), ("reason: r", "reason: r, topics: x"),
        ("reason: r", "reason: r, topics: []"), ("reason: r", "reason: r, ticket: t"),
    ],
    "corrections": [
        ("corrections", "maintenance"),
    ],
    "send": [
        ("mail:", "mial:"), ("host: localhost, ", ""), ("security: none", "security: ssl"),
        ("to: d@e.f", "to: []"), ("to: d@e.f", "to: [1]"), ("security: none", "port: 70000"),
        ("security: none", "security: none, attach: [doc]"),
        ("security: none", "security: none, timeout_seconds: 0"),
    ],
}  # fmt: skip
CASES: Final = [(name, *change) for name, changes in WRONG.items() for change in changes]


@pytest.mark.parametrize("name", VALID)
def test_valid_file_has_no_violation(name: str, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(VALID[name], "utf-8")
    LOADERS[name](file)
    assert wrong(name, VALID[name]) == []


@pytest.mark.parametrize(("name", "old", "new"), CASES)
def test_file_that_the_loader_refuses_has_a_violation(
    name: str, old: str, new: str, tmp_path: Path
) -> None:
    assert old in VALID[name]
    text = VALID[name].replace(old, new, 1)
    file = tmp_path / "file.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises((LakehouseError, ConfigError, click.BadParameter)):
        LOADERS[name](file)
    assert wrong(name, text)
