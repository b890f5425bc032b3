"""Every Java name of Kafka that the sources use exists in every supported release.

The names come from the sources. ``NOT_EVERYWHERE`` lists the exceptions.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from collector.sources.metadata_log import records
from demo.jars import KAFKA, kafka_libs
from demo.tier_plugin import plugins_jar
from tests.java_names import PythonNames, Release, classes_of, python_names
from tests.versions import VERSIONS

ROOT: Final = Path(__file__).parents[2]
ADMIN: Final = "org.apache.kafka.clients.admin"
PYTHON: Final = {
    file.relative_to(ROOT).as_posix(): python_names(file)
    for folder in ("collector", "demo")
    for file in sorted((ROOT / folder).rglob("*.py"))
}
READ: Final = re.compile(
    "org/apache/kafka/(clients/admin|common(?!/message)|metadata|server/common|server/log)/"
)
"""Packages whose methods the Python sources call."""

COMPUTED: Final = {
    "f'{_ADMIN}.{options}'": "_patient",
    "f'{package}.{name}'": "record_class",
    "f'{resource}$Type'": "its parts are constants of a function",
    "resource": "a constant of a function",
    "name": "the function java itself",
    "f'javax.net.ssl.{factory}'": "a class of Java",
}
"""Arguments of ``java`` that the sources compute, and the functions that complete them."""

NOT_EVERYWHERE: Final = {
    "org.apache.kafka.clients.admin.ListConfigResourcesOptions": ("4.1.1", KAFKA),
    "org.apache.kafka.clients.admin.ListGroupsOptions": ("4.0.1", KAFKA),
    "org.apache.kafka.clients.admin.ListShareGroupOffsetsOptions": ("4.1.1", KAFKA),
    "org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec": ("4.1.1", KAFKA),
    "org.apache.kafka.tools.DumpLogSegments": ("4.3.1", KAFKA),
    "forStreamsGroups": ("4.1.1", KAFKA),
    "listClientMetricsResources": ("3.7.2", KAFKA),
    "listGroups": ("4.0.1", KAFKA),
    "searchForOffsetWithSize": ("3.6.2", "4.0.1"),
}
"""First and last of ``VERSIONS`` with a name. The sources use another way before or after."""

REQUIRES: Final = re.compile(r"[Rr]equires Kafka (\d+\.\d+)")
"""In a comment of a Java file: its first release."""

OTHERS: Final = [pytest.param(one, marks=pytest.mark.versions) for one in VERSIONS if one != KAFKA]


def expected(names: set[str], version: str) -> set[str]:
    """Return the names without the exceptions of this release."""
    order = VERSIONS.index

    def has(first: str, last: str) -> bool:
        return order(first) <= order(version) <= order(last)

    return {one for one in names if one not in NOT_EVERYWHERE or has(*NOT_EVERYWHERE[one])}


def arguments(function: str) -> set[str]:
    return {one for names in PYTHON.values() for one in names.arguments.get(function, ())}


def calls_kafka(names: PythonNames) -> bool:
    return bool(names.classes or "record_class" in names.arguments)


@pytest.fixture(scope="module")
def newest() -> Release:
    return Release(kafka_libs())


def test_every_argument_of_java_is_looked_up() -> None:
    computed = {one for names in PYTHON.values() for one in names.computed}
    assert computed == COMPUTED.keys()
    assert len(arguments("_patient")) >= 3
    assert len(arguments("record_class")) >= 3


@pytest.mark.parametrize("version", [KAFKA, *OTHERS])
def test_classes_of_the_python_sources_exist(version: str) -> None:
    release = Release(kafka_libs(version))
    names = {one for found in PYTHON.values() for one in found.classes}
    names |= {f"{ADMIN}.{options}" for options in arguments("_patient")}
    assert len(names) > 25
    assert {one for one in names if release.has(one)} == expected(names, version)
    for name in arguments("record_class"):
        places = [package for package in records._PACKAGES if release.has(f"{package}.{name}")]
        assert len(places) == 1, (name, places)


@pytest.mark.parametrize("version", OTHERS)
def test_members_exist_as_in_the_newest_release(version: str, newest: Release) -> None:
    theirs = Release(kafka_libs(version)).member_names(READ)
    ours = newest.member_names(READ)
    used = {
        member
        for names in PYTHON.values()
        if calls_kafka(names)
        for member in names.members - names.optional
    }
    assert len(used & ours) > 40
    known = used & (theirs | ours)
    assert known & theirs == expected(known, version)
    assert known & ours == expected(known, KAFKA)


@pytest.mark.parametrize("version", [KAFKA, *OTHERS])
def test_java_sources_link(version: str) -> None:
    release = Release(kafka_libs(version))
    firsts = {
        file.stem: found[1]
        for folder in ("demo/plugins", "deploy/kafka/src")
        for file in (ROOT / folder).rglob("*.java")
        if (found := REQUIRES.search(file.read_text("utf-8")))
    }
    classes = classes_of(plugins_jar())
    assert len(classes) > 5
    missing = []
    for name, one in classes.items():
        first = firsts.get(re.sub(r"\$.*", "", name).rpartition(".")[2], "3.6")
        if [*map(int, first.split("."))] > [*map(int, version.split("."))]:
            continue
        kafka = (owner for owner in one.classes if owner.startswith("org.apache.kafka."))
        missing += [f"{name}: {owner}" for owner in kafka if not release.has(owner)]
        missing += [
            f"{name}: {owner}.{member.name}{member.descriptor}"
            for owner, member in one.uses
            if owner.startswith("org.apache.kafka.") and not release.has_member(owner, member)
        ]
    assert missing == []
