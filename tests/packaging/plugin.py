"""The plugin for brokers, as Maven builds it."""

from __future__ import annotations

import subprocess
import zipfile

from demo.tier_plugin import SOURCES
from tests.packaging.conftest import ROOT

JAVA_11 = 55


def test_the_jar_has_the_classes_of_every_file_for_java_11_and_nothing_else() -> None:
    subprocess.run(["make", "plugin"], cwd=ROOT, check=True)
    (jar,) = (ROOT / "dist").glob("jmxlake-kafka-*.jar")
    with zipfile.ZipFile(jar) as opened:
        classes = [name for name in opened.namelist() if name.endswith(".class")]
        versions = {opened.read(name)[7] for name in classes}
    files = {name.removesuffix(".class").partition("$")[0] for name in classes}
    assert files == {f"jmxlake/kafka/{source.stem}" for source in SOURCES}
    assert versions == {JAVA_11}
