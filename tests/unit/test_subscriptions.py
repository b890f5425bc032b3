"""Subscriptions of client metrics, and the command's options."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from collector.cli.main import main
from collector.sources.admin.client_metrics_subscriptions import Subscription

PREFIX = "org.apache.kafka."


@pytest.mark.parametrize(
    ("metrics", "kinds"),
    [
        (("*",), ("produce", "fetch")),
        ((PREFIX,), ("produce", "fetch")),
        ((f"{PREFIX}producer.",), ("produce",)),
        ((f"{PREFIX}producer.produce.throttle.time.",), ("produce",)),
        ((f"{PREFIX}producer.produce.throttle.time.max",), ("produce",)),
        ((f"{PREFIX}consumer.share.",), ("fetch",)),
        ((f"{PREFIX}producer.batch.", f"{PREFIX}consumer.fetch.manager."), ("fetch",)),
        ((), ()),
    ],
)
def test_subscription_requests_kinds_by_prefix(
    metrics: tuple[str, ...], kinds: tuple[str, ...]
) -> None:
    assert Subscription("any", metrics, 1000, ()).kinds == kinds


@pytest.mark.parametrize("interval", ["99ms", "61m", "soon", "30"])
def test_invalid_interval_is_wrong_usage(interval: str) -> None:
    ran = CliRunner().invoke(main, ["client-metrics", "subscribe", "--interval", interval])
    assert ran.exit_code == 2
    assert "--interval" in ran.output
