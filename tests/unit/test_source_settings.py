"""Each transport declares families of the catalogue and a source that exists."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING

import pytest

from collector import catalogue
from collector.sources.source_settings import TRANSPORTS
from collector.sources.transports import Admin, MetadataLog, RemoteLog

if TYPE_CHECKING:
    from collector.sources.transports import Transport

ALL = (*TRANSPORTS.values(), Admin, MetadataLog, RemoteLog)


@pytest.mark.parametrize("transport", ALL)
def test_transport_opens_a_source(transport: type[Transport]) -> None:
    assert callable(resolve_name(f"collector.sources.{transport.opens}"))


@pytest.mark.parametrize("transport", ALL)
def test_transport_reads_families_of_its_roles(transport: type[Transport]) -> None:
    families = {one.name: one for one in catalogue.load().families if one.via == transport.via}
    assert any(transport.roles & {*one.roles} for one in families.values())
    assert families.keys() >= {*transport.slow}


def test_families_have_a_transport_for_each_role() -> None:
    for family in catalogue.load().families:
        read = {role for one in ALL if one.via == family.via for role in one.roles}
        assert read >= {*family.roles}, family.name
