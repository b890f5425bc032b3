"""What an agent takes over from the one before it, out of the spool, and what of that still holds.

Most of the time all of it does: the journal is replayed, and it goes on. Not so where the end of
the journal got lost, or where the spool was restored from an old copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector import non_consumed
from collector.batches import Since
from collector.non_consumed import NonConsumed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.families import FamilyTrack
    from collector.runs import Encoder
    from collector.sealed import Sealed

_NEVER_US: Final = 1 << 62


def since(encoder: Encoder, sealed: Sealed) -> Since:
    """What of it the agent that seals it has seen for itself.

    Only of the first windows after a start there is more to say than when that was.
    """
    starts = [*(run.start for run in sealed.runs), *(one.start for one in sealed.accounts)]
    first_us = min(starts, default=_NEVER_US + 1)
    metrics: dict[str, int] = {}
    families: dict[str, int] = {}
    for name, family in _clocked(encoder):
        resumed_us = _NEVER_US if family.resumed_us is None else family.resumed_us
        if resumed_us >= first_us:
            families[name] = resumed_us
            metrics |= dict.fromkeys((*family.gauges, *family.counters), resumed_us)
    return Since(encoder.started_us, metrics, families)


def lose_tail(encoder: Encoder) -> None:
    """What was recorded last has got lost: nothing vouches for the time since.

    Exact families are told it again.
    """
    for _, family in _clocked(encoder):
        family.break_off(encoder.ledger)


def forsake(encoder: Encoder) -> None:
    """Forget what the next answers would go on from, where another agent went on from it.

    Families that have answered since the start go on from there.
    """
    encoder.floor_us = encoder.started_us
    for _, family in _clocked(encoder):
        if family.resumed_us is None:
            if non_consumed.LOW in family.counters:
                encoder.non_consumed = NonConsumed()
            family.counters.clear()


def _clocked(encoder: Encoder) -> Iterator[tuple[str, FamilyTrack]]:
    """The families that go by our own clock."""
    return ((name, one) for name, one in encoder.families.items() if not one.exact)
