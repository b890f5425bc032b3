"""The plugins for brokers, as Maven builds them."""

from __future__ import annotations

import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest

from demo.tier_plugin import AIVEN_SOURCES, SOURCES
from tests.packaging.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

JAVA_11 = 55
AIVEN = [one for one in AIVEN_SOURCES if one.match("java/jmxlake/*/*/*")]
"""Without the declarations of Aiven's interface, which Aiven's own jar has on a broker."""


@pytest.fixture(scope="module")
def dist() -> Path:
    subprocess.run(["make", "plugin"], cwd=ROOT, check=True)
    return ROOT / "dist"


@pytest.mark.parametrize(
    ("name", "sources"),
    [("jmxlake-kafka-[0-9]*.jar", SOURCES), ("jmxlake-kafka-aiven-*.jar", AIVEN)],
)
def test_jar_has_the_classes_of_every_file_for_java_11_only(
    dist: Path, name: str, sources: list[Path]
) -> None:
    (jar,) = dist.glob(name)
    with zipfile.ZipFile(jar) as opened:
        classes = [name for name in opened.namelist() if name.endswith(".class")]
        versions = {opened.read(name)[7] for name in classes}
    files = {name.removesuffix(".class").partition("$")[0] for name in classes}
    assert files == {str(one).partition("/java/")[2].removesuffix(".java") for one in sources}
    assert versions == {JAVA_11}
