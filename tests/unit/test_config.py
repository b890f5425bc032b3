"""Configuration: errors name the key, and a misspelled key gets a suggestion."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from collector.agent import plan
from collector.cli.main import main
from collector.config import loader
from collector.config.schema import Config, Lake
from collector.delivery.store import from_file
from collector.errors import ConfigError, SettingError
from collector.settings import Duration, Section
from collector.sources.java import jvm
from collector.sources.source_settings import TRANSPORTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEPLOY = Path(__file__).parents[2] / "deploy"
REFERENCE = DEPLOY / "agent.yaml"
ALL = ", ".join(TRANSPORTS)

MINIMAL: dict[str, Any] = {
    "source": {"node": 1, "jmx": {"port": 9999}},
    "lake": {"path": "/lake"},
    "spool": {"path": "/spool/spool.db"},
}


def test_minimal_file_has_defaults() -> None:
    parsed = loader.parse(MINIMAL, "agent.yaml")
    assert parsed.source.name == "broker-1"
    assert parsed.window.us == 300_000_000
    assert parsed.spool.max_size == 1 << 30


def test_reference_file_has_the_defaults() -> None:
    reference = loader.load(REFERENCE, {})
    bare = copy.deepcopy(MINIMAL)
    bare["lake"]["path"] = reference.lake.path
    bare["spool"]["path"] = str(reference.spool.path)
    assert reference == loader.parse(bare, "agent.yaml")


def uncommented_text() -> Any:
    """Return the reference file as YAML, including every key in a comment."""
    text = re.sub(r"^( *)# ((?:  )*\w+:( |$))", r"\1\2", REFERENCE.read_text(), flags=re.MULTILINE)
    return yaml.safe_load(text)  # uses the second of two keys: `families` is in the file twice


def uncommented() -> Config:
    """Return the same, as the agent reads it."""
    return msgspec.convert(uncommented_text(), Config, dec_hook=loader._hook)


def sections(value: object, path: str = "") -> Iterator[tuple[str, Section]]:
    """Yield every nested section by its path."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from sections(below, f"{path}.{key}")
    if isinstance(value, Section):
        yield path, value
        for name in value.__struct_fields__:
            yield from sections(getattr(value, name), f"{path}.{name}")


def kinds(section: type[Section]) -> Iterator[type[Section]]:
    """Yield all classes without subclasses."""
    for below in section.__subclasses__():
        yield from kinds(below) if below.__subclasses__() else (below,)


def test_reference_file_has_every_key() -> None:
    found = dict(sections(uncommented()))
    assert {type(section) for section in found.values()} == set(kinds(Section))
    for path, section in found.items():
        written = uncommented_text()
        for name in path.split(".")[1:]:
            written = written[name]
        for name in section.__struct_fields__:
            assert name in written, f"{path}.{name}"
            assert getattr(section, name) is not None, f"{path}.{name}"


def test_reference_file_has_defaults_in_comments() -> None:
    shown = 0
    for path, section in sections(uncommented()):
        for field in msgspec.structs.fields(section):
            default = field.default
            if field.default_factory is not msgspec.NODEFAULT:
                default = field.default_factory()
            if default in (None, msgspec.NODEFAULT) or isinstance(default, (dict, Section)):
                continue  # keys of a section are compared separately
            assert getattr(section, field.name) == default, f"{path}.{field.name}"
            shown += 1
    assert shown > 15


def test_alternatives_of_the_reference_file_are_valid() -> None:
    text = re.sub(r"^( *)# ((?:  )*\w+:( |$))", r"\1\2", REFERENCE.read_text(), flags=re.MULTILINE)
    for way in TRANSPORTS:
        raw = yaml.safe_load(text)
        for other in set(TRANSPORTS) - {way}:
            del raw["source"][other]
        del raw["sources"], raw["source"]["targets_file"]
        raw["source"][way].pop("password_env", None)
        del raw["lake"]["unity_catalog"]["token_file"]
        raw["source"]["role"] = "client" if way == "statistics" else "broker"
        assert [*loader.parse(raw, "agent.yaml").source.transports] == [way]


@pytest.mark.parametrize(
    ("variable", "value", "key", "expected"),
    [
        ("SOURCE__JMX__PORT", "1234", "source.jmx.port", 1234),
        ("WINDOW", "1m", "window", Duration("1m")),
        ("SOURCE__CLUSTER", "'123'", "source.cluster", "123"),
        ("HEALTH__PORT", "0", "health.port", 0),
        ("SOURCE__CLUSTER", "", "source.cluster", None),
    ],
)
def test_environment_overrides_the_file(
    variable: str, value: str, key: str, expected: object
) -> None:
    environ = {f"JMXLAKE_AGENT__{variable}": value, "JMXLAKE_SPARK": "large"}
    parsed: Any = loader.parse(MINIMAL, "agent.yaml", environ)
    for name in key.split("."):
        parsed = getattr(parsed, name)
    assert parsed == expected
    assert MINIMAL["source"]["jmx"]["port"] == 9999


def test_environment_adds_sections_and_families() -> None:
    parsed = loader.parse(
        {"lake": {"path": "/lake"}, "spool": {"path": "/spool"}},
        "agent.yaml",
        {
            "JMXLAKE_AGENT__SOURCE__NODE": "7",
            "JMXLAKE_AGENT__SOURCE__ATTACH__UNIT": "kafka.service",
            "JMXLAKE_AGENT__FAMILIES__MIN_ISR__INTERVAL": "2s",
        },
    )
    assert parsed.source.node == 7
    assert [*parsed.source.transports] == ["attach"]
    assert parsed.families["min_isr"].interval == Duration("2s")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("SORCE__NODE", "1", "sorce: unknown key; did you mean 'source'?"),
        ("SOURCE__JMX__PROT", "1",
         "source.jmx.prot: unknown key; did you mean 'port'?"),
        ("FAMILIES__MIN_ISR__INTERVALL", "2s",
         "families.min_isr.intervall: unknown key; did you mean 'interval'?"),
        ("SOURCE__JMX__PORT", "abc", "source.jmx.port: Expected `int`, got `str`"),
        ("FAMILIES__MIN_ISR__INTERVAL", "2x",
         "families.min_isr.interval: expected a duration such as 10s or 5m, got '2x'"),
        ("WINDOW", "7s", "window: must divide 5m or be a multiple of it, "
         "and be longer than 2.5 intervals of every family; 5m is a good choice"),
    ],
)  # fmt: skip
def test_environment_error_names_the_variable(variable: str, value: str, message: str) -> None:
    name = f"JMXLAKE_AGENT__{variable}"
    with pytest.raises(ConfigError) as caught:
        loader.parse(MINIMAL, "agent.yaml", {name: value})
    assert str(caught.value).removeprefix("agent.yaml, ") == f"{name}: {message}"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"SOURCE__ATTACH__UNIT": "kafka", "SOURCE__JMX__HOST": "h", "SOURCE__NODE": "1"},
         "agent.yaml, JMXLAKE_AGENT__SOURCE__ATTACH__UNIT, JMXLAKE_AGENT__SOURCE__JMX__HOST: "
         f"source: set one of {ALL}, not jmx and attach"),
        ({"SOURCE__ROLE": "client", "SOURCE__JMX__PASSWORD_ENV": "P",
          "SOURCE__JMX__PASSWORD_FILE": "/p"},
         "agent.yaml, JMXLAKE_AGENT__SOURCE__JMX__PASSWORD_ENV, "
         "JMXLAKE_AGENT__SOURCE__JMX__PASSWORD_FILE: "
         "source.jmx: set password_file or password_env, not both"),
        ({"ADMIN__BOOTSTRAP": "localhost:9092"},
         "agent.yaml, JMXLAKE_AGENT__ADMIN__BOOTSTRAP: "
         "admin: libs is missing. Add it, or run `jmxlake-agent config` to see all keys"),
    ],
)  # fmt: skip
def test_conflict_with_the_file_names_the_variable(variables: dict[str, str], message: str) -> None:
    environ = {f"JMXLAKE_AGENT__{name}": value for name, value in variables.items()}
    with pytest.raises(ConfigError) as caught:
        loader.parse(MINIMAL, "agent.yaml", environ)
    assert str(caught.value) == message


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_tls_to_this_host_needs_no_trust_store(host: str) -> None:
    source = {"node": 1, "jmx": {"port": 9999, "host": host, "tls": {}}}
    assert loader.parse({**MINIMAL, "source": source}, "agent.yaml").source.jmx is not None


def test_tls_to_another_host_needs_a_trust_store() -> None:
    jmx = {"port": 9999, "host": "kafka-1.example", "tls": {}}
    why = r"source\.jmx\.tls\.trust_store: required, because for the other host kafka-1"
    with pytest.raises(ConfigError, match=why):
        loader.parse({**MINIMAL, "source": {"node": 1, "jmx": jmx}}, "agent.yaml")
    jmx["tls"] = {"trust_store": "/ca.pem"}
    assert loader.parse({**MINIMAL, "source": {"node": 1, "jmx": jmx}}, "agent.yaml").source.jmx


@pytest.mark.parametrize(
    ("source", "host"),
    [
        ({"jmx": {"port": 1, "host": "k.example", "user": "m"}}, "k.example"),
        ({"jmx": {"port": 1, "host": "k.example"}}, None),
        ({"jmx": {"port": 1, "user": "m"}}, None),
        ({"jmx": {"port": 1, "host": "k", "user": "m", "tls": {"trust_store": "/t"}}}, None),
        ({"jmxquery": {"port": 1, "host": "10.0.0.7", "user": "m"}}, "10.0.0.7"),
        ({"jolokia": {"url": "http://k.example:8778/jolokia/", "user": "m"}}, "k.example"),
        ({"jolokia": {"url": "https://k.example:8778/jolokia/", "user": "m"}}, None),
        ({"jolokia": {"url": "http://[::1]:8778/jolokia/", "user": "m"}}, None),
    ],
)
def test_clear_text_password_has_a_warning(source: dict[str, Any], host: str | None) -> None:
    parsed = loader.parse({**MINIMAL, "source": {"node": 1, **source}}, "agent.yaml")
    told = f"the agent sends the password to {host} in clear text; use TLS or a loopback address"
    assert loader.warnings(parsed) == ([told] if host else [])


@pytest.mark.parametrize(
    "addresses", ["localhost:9092", "a.example:1, b-2:65535", "[::1]:9092", "SASL_SSL://k:9093"]
)
def test_addresses_that_kafka_accepts_are_valid(addresses: str) -> None:
    admin = {"bootstrap": addresses, "libs": "/libs"}
    parsed = loader.parse({**MINIMAL, "admin": admin}, "agent.yaml")
    assert parsed.admin is not None
    assert parsed.admin.bootstrap == addresses


@pytest.mark.parametrize(
    "addresses", ["", "localhost", "::1:9092", "a:0", "a:65536", "a:1,", "a:1 b:2"]
)
def test_addresses_that_kafka_refuses_are_invalid(addresses: str) -> None:
    admin = {"bootstrap": addresses, "libs": "/libs"}
    with pytest.raises(ConfigError, match=r"^agent.yaml: admin.bootstrap: expected HOST:PORT"):
        loader.parse({**MINIMAL, "admin": admin}, "agent.yaml")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:999999/",
        "http://127.0.0.1:65536/metrics",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:-1/",
        "http://127.0.0.1:abc/",
        "http:///metrics",
        "http://[::1/",
        "ftp://host/",
        "http://user:pass@host/",
    ],
)
@pytest.mark.parametrize("way", ["jolokia", "prometheus", "unity_catalog"])
def test_impossible_url_is_refused(way: str, url: str) -> None:
    raw = copy.deepcopy(MINIMAL)
    if way == "unity_catalog":
        raw["lake"]["unity_catalog"] = {"url": url, "token_file": "/t"}
    else:
        raw["source"] = {"node": 1, "cluster": "c", way: {"url": url}}
    key = f"lake.{way}" if way == "unity_catalog" else f"source.{way}"
    with pytest.raises(ConfigError, match=f"^agent.yaml: {key}.url: ") as caught:
        loader.parse(raw, "agent.yaml")
    assert "pass" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize(
    "url", ["http://{host}:{port}/metrics", "https://k{node}.example/x", "http://[::1]:65535/"]
)
def test_url_with_placeholders_is_accepted(url: str) -> None:
    raw = {**MINIMAL, "source": {"node": 1, "cluster": "c", "prometheus": {"url": url}}}
    assert loader.parse(raw, "agent.yaml").source.address == url


def test_short_window_error_has_a_fix_and_the_file(tmp_path: Path) -> None:
    parsed = loader.parse({**MINIMAL, "window": "1m"}, "agent.yaml")
    scraper: Any = object()  # passed on, and not called
    with pytest.raises(SettingError) as caught:
        plan.tasks(
            parsed,
            plan.catalogue(parsed),
            {("broker-1", "jmx"): scraper, ("broker-1", "log"): scraper},
        )
    rules = (
        "window: must divide 5m or be a multiple of it, and be longer than 2.5 intervals of every"
        " family (log has 60 s): make it longer than 150 s, or lower families.log.interval"
    )
    where = str(tmp_path / "agent.yaml")
    assert str(loader.located(caught.value, where, {})) == f"{where}: {rules}"
    lowered = {"JMXLAKE_AGENT__FAMILIES__LOG__INTERVAL": "60s"}
    assert str(loader.located(caught.value, where, lowered)).startswith(
        f"{where}, JMXLAKE_AGENT__F"
    )


@pytest.mark.parametrize("value", ["{hunter2: 1}", "[hunter2]", "hunter2: 1: 2", "'hunter2"])
def test_variable_with_a_list_is_refused_and_hidden(value: str) -> None:
    with pytest.raises(ConfigError, match="environment: JMXLAKE_AGENT__WINDOW") as caught:
        loader.parse(MINIMAL, "agent.yaml", {"JMXLAKE_AGENT__WINDOW": value})
    assert "hunter2" not in str(caught.value)


def test_two_variables_for_one_key_are_refused() -> None:
    environ = {"JMXLAKE_AGENT__WINDOW": "1m", "JMXLAKE_AGENT__window": "5m"}
    with pytest.raises(ConfigError, match="set the same key"):
        loader.parse(MINIMAL, "agent.yaml", environ)


def test_duplicate_key_is_refused(tmp_path: Path) -> None:
    doubled = tmp_path / "agent.yaml"
    doubled.write_text("window: 5m\nhealth: {port: 1, host: a, port: 2}\n")
    with pytest.raises(ConfigError, match=r"agent.yaml:2:28: duplicate key 'port'"):
        loader.load(doubled)


def test_configuration_for_msk_is_valid() -> None:
    page = (Path(__file__).parents[2] / "docs/platforms.md").read_text("utf-8")
    text = page.split("cat > msk.yaml <<'END'\n")[1].split("\nEND\n")[0]
    (source,) = loader.parse(yaml.safe_load(text), "agent.yaml", {}).sources
    assert source.node == "every"
    assert source.prometheus


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(sourc=1), "sourc: unknown key; did you mean 'source'?"),
        (lambda c: c.update(qqqq=1),
         "qqqq: unknown key in this version. Remove it, or run `jmxlake-agent config` to see all"
         " keys"),
        (lambda c: c.update(targets_file="a.json"),
         "targets_file: unknown key; did you mean 'source.targets_file'?"),
        (lambda c: c["source"]["jmx"].update(libs="/libs"),
         "source.jmx.libs: unknown key; did you mean 'admin.libs'?"),
        (lambda c: c.update(names={"hash": True}),
         "names.hash: unknown key; did you mean 'names.topics.hash'?"),
        (lambda c: c.update(cap=5), "cap: unknown key; did you mean 'families.*.cap'?"),
        (lambda c: c["lake"].update(uri="a"),
         "lake.uri: unknown key in this version. Remove it, or run `jmxlake-agent config` to see"
         " all keys"),
        (lambda c: c["source"]["jmx"].update(prot=1),
         "source.jmx.prot: unknown key; did you mean 'port'?"),
        (lambda c: c.update(window="7s"), "window: must divide 5m or be a multiple of it, "
         "and be longer than 2.5 intervals of every family; 5m is a good choice"),
        (lambda c: c.update(window=300), "window: expected a duration such as 10s or 5m, got 300"),
        (lambda c: c["source"].update(node="one"),
         "source.node: expected a node id, auto or every, got 'one'"),
        (lambda c: c["source"].pop("jmx"),
         f"source: set one of {ALL}"),
        (lambda c: c.update(source={"node": 1, "statistics": {"file": "/s"}}),
         "source.statistics: reads role client only; correct source.role"),
        (lambda c: c["source"].update(attach={}),
         f"source: set one of {ALL}, not jmx and attach"),
        (lambda c: c["source"]["jmx"].update(port=0),
         "source.jmx.port: Expected `int` >= 1"),
        (lambda c: c.update(health={"port": 65536}),
         "health.port: Expected `int` <= 65535"),
        (lambda c: c.update(admin={"bootstrap": "a:1,b", "libs": "/libs"}),
         "admin.bootstrap: expected HOST:PORT, or several separated by commas, got 'b' "
         "(write an IPv6 address in brackets: [::1]:9092)"),
        (lambda c: c["source"]["jmx"].update(timeout="0s"),
         "source.jmx.timeout: must be at least 100ms"),
        (lambda c: c.update(admin={"bootstrap": "a:1,u:s3cret@b:2", "libs": "/libs"}),
         "admin.bootstrap: expected HOST:PORT without user and password. "
         "Set them in admin.properties_file"),
        (lambda c: c["source"]["jmx"].update(host="u:s3cret@h"),
         "source.jmx.host: expected a host name or an address, without user and password"),
        (lambda c: c["source"]["jmx"].update(host="http://h/jmx"),
         "source.jmx.host: expected a host name or an address, without user and password"),
        (lambda c: c["lake"].update(path="s3://u:s3cret@bucket/lake"),
         "lake.path: 's3://***@bucket/lake' contains a password. Remove it, and set the "
         "credentials of the store separately"),
        (lambda c: c["lake"].update(path="abfss://c@a.dfs.core.windows.net/p?sig=s3cret"),
         "lake.path: 'abfss://c@a.dfs.core.windows.net/p?***' contains '?'. "
         "Percent-encode it, or remove the query"),
        (lambda c: c.update(admin={"bootstrap": "a:1", "libs": "/libs", "timeout": "99ms"}),
         "admin.timeout: must be at least 100ms"),
        (lambda c: c.update(java={"heap": "31MiB"}), "java.heap: must be at least 32MiB"),
        (lambda c: c.update(java={"heap": "999GiB"}), "java.heap: must be at most 256GiB"),
        (lambda c: c.update(window="10000h"), "window: must be at most 24h"),
        (lambda c: c.update(window="0s"), "window: must be at least 1s"),
        (lambda c: c.update(window="-5m"),
         "window: expected a duration such as 10s or 5m, got '-5m'"),
        (lambda c: c.update(window="9" * 5000 + "s"),
         f"window: expected a duration such as 10s or 5m, got '{'9' * 40}...'"),
        (lambda c: c["source"]["jmx"].update(timeout="99999999999999999h"),
         "source.jmx.timeout: must be at most 24h"),
        (lambda c: c["source"]["jmx"].update(timeout="1h"),
         "source.jmx.timeout: must be at most 10m"),
        (lambda c: c["lake"].update(commit_interval="0s"),
         "lake.commit_interval: must be at least 1s"),
        (lambda c: c.update(families={"min_isr": {"interval": "0s"}}),
         "families.min_isr.interval: must be at least 1s"),
        (lambda c: c.update(families={"min_isr": {"memory": "9999h"}}),
         "families.min_isr.memory: must be at most 24h"),
        (lambda c: c.update(families={"min_isr": {"cap": 10**30}}),
         "families.min_isr.cap: Expected `int` <= 10000000"),
        (lambda c: c.update(limits={"memory": "1MiB"}), "limits.memory: must be at least 256MiB"),
        (lambda c: c.update(limits={"memory": "999999999GiB"}),
         "limits.memory: must be at most 16384GiB"),
        (lambda c: c.update(limits={"window_rows": 10**18}),
         "limits.window_rows: Expected `int` <= 1000000000"),
        (lambda c: c.update(spool={"path": "/s", "max_size": "99999999999999999GiB"}),
         "spool.max_size: must be at most 16384GiB"),
        (lambda c: c["source"].update(node=2**31), "source.node: must be at most 2147483647"),
        (lambda c: c.update(source={"node": 1, "attach": {"pid": 0}}),
         "source.attach.pid: Expected `int` >= 1"),
        (lambda c: c.update(spool={"path": "/s", "max_size": "0B"}),
         "spool.max_size: must be at least 1MiB"),
        (lambda c: c.update(catalogue=1), "catalogue: expected a path, got 1"),
        (lambda c: c.pop("lake"),
         "top level: lake is missing. Add it, or run `jmxlake-agent config` to see all keys"),
        (lambda c: c["lake"].update(commit_interval="soon"),
         "lake.commit_interval: "
         "expected a duration such as 10s or 5m, got 'soon'"),
    ],
)  # fmt: skip
def test_error_is_one_line_with_the_key(
    change: Callable[[dict[str, Any]], object], message: str
) -> None:
    broken = copy.deepcopy(MINIMAL)
    change(broken)
    with pytest.raises(ConfigError) as caught:
        loader.parse(broken, "agent.yaml")
    assert str(caught.value) == f"agent.yaml: {message}"


def test_unreadable_file_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"No such file or directory\. Set --config"):
        loader.load(tmp_path / "missing.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    with pytest.raises(ConfigError, match="not YAML") as caught:
        loader.load(broken)
    assert "\n" not in str(caught.value)
    broken.write_text("a: 2026-13-45")  # YAML reads a date, which is a ValueError in Python
    with pytest.raises(ConfigError, match=r"broken.yaml:1:4: not a valid timestamp"):
        loader.load(broken)


@pytest.mark.parametrize(
    ("content", "problem"),
    [("", "source is missing. Add it, or"), ("- a", "Expected `object`, got `array`;")],
)
def test_file_without_keys_gets_advice(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        loader.load(path)
    advice = "run `jmxlake-agent config` to see all keys"
    assert str(caught.value) == f"{path}: top level: {problem} {advice}"


def test_storage_options_never_show_in_an_error(tmp_path: Path) -> None:
    secrets = tmp_path / "options.yaml"
    secrets.write_text("AWS_SECRET_ACCESS_KEY: {nested: hunter2}\n")
    with pytest.raises(ConfigError) as caught:
        from_file(Lake("/lake", options_file=secrets))
    assert "hunter2" not in str(caught.value)
    secrets.write_text("AWS_SECRET_ACCESS_KEY: hunter2\n")
    assert from_file(Lake("/lake", options_file=secrets)) == {"AWS_SECRET_ACCESS_KEY": "hunter2"}


@pytest.mark.parametrize("key", ["admin.libs", "metadata_log.libs"])
def test_folder_without_jars_is_refused_with_its_key(key: str, tmp_path: Path) -> None:
    folders = (tmp_path, None) if key == "admin.libs" else (None, tmp_path)
    missing = rf"^{key}: kafka-clients-\*.jar is missing in {tmp_path}\. Set the libs folder"
    with pytest.raises(SettingError, match=missing):
        jvm._jars(*folders)


def test_remote_log_needs_the_jars_of_remote_storage(tmp_path: Path) -> None:
    for stem in ("kafka-clients", "slf4j-api", "kafka-server-common", "kafka-storage"):
        (tmp_path / f"{stem}-4.4.0.jar").touch()
    assert len(jvm._jars(tmp_path, None)) == 2
    with pytest.raises(SettingError, match=r"^admin.libs: kafka-storage-api-\*.jar is missing"):
        jvm._jars(tmp_path, None, remote_log=True)
    for stem in ("kafka-storage-api", "zstd-jni"):
        (tmp_path / f"{stem}-4.4.0.jar").touch()
    assert len(jvm._jars(tmp_path, None, remote_log=True)) == 6


def test_oauth_gets_the_available_jars_of_the_broker(tmp_path: Path) -> None:
    for name in ("kafka-clients-4.3.1", "slf4j-api-1.7.36", "jackson-core-2.21.2", "jose4j-0.9.6"):
        (tmp_path / f"{name}.jar").touch()
    (tmp_path / "jackson-dataformat-csv-2.21.2.jar").touch()
    stems = [jar.name.rpartition("-")[0] for jar in jvm._jars(tmp_path, None)]
    assert stems == ["kafka-clients", "slf4j-api", "jackson-core", "jose4j"]


@pytest.mark.parametrize(
    ("command", "name"),
    [("config", "agent.yaml"), ("systemd-unit", "systemd/jmxlake-agent.service")],
)
def test_first_files_are_printed_unchanged(command: str, name: str) -> None:
    ran = CliRunner().invoke(main, [command])
    assert (ran.exit_code, ran.output) == (0, (DEPLOY / name).read_text("utf-8"))


def test_template_unit_has_configuration_and_spool_per_agent() -> None:
    one, several = (
        CliRunner().invoke(main, ["systemd-unit", *more]).output for more in ([], ["--template"])
    )
    changed = set(several.splitlines()) - set(one.splitlines())
    settings = {line for line in changed if not line.startswith("#")}
    assert settings == {
        "ExecStart=/opt/jmxlake/bin/jmxlake-agent run --config /etc/jmxlake/%i.yaml --json",
        "EnvironmentFile=-/etc/jmxlake/%i.env",
        "Environment=JMXLAKE_AGENT__SPOOL__PATH=/var/lib/jmxlake/%i.db",
    }
    assert "agent.yaml" not in several
    assert "# /etc/jmxlake/%i.yaml" in several
    # The file of variables overrides the settings of the unit.
    assert several.index("Environment=") < several.index("EnvironmentFile=")
