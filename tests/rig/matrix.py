"""Every fault by name, as bench/README.md lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.rig import clock_steps, damage, disks, kills, lakes, maintenance

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rig.stage import Outcome, Stage

MATRIX: Final[dict[str, Callable[[Stage], Outcome]]] = {
    "killed-at-every-step": kills.every_step,
    "killed-at-every-put": kills.every_put,
    "torn-tail": damage.torn_tail,
    "flipped-byte-in-log": damage.flipped_log,
    "flipped-byte-in-file": damage.flipped_file,
    "short-file": damage.short_file,
    "restored-spool": damage.restored,
    "restored-spool-lake-away": damage.restored_while_away,
    "spool-over-its-limit": damage.full_spool,
    "two-agents-one-spool": damage.two_agents,
    "journal-entry-that-raises": damage.unreadable_journal,
    "batch-that-cannot-be-converted": damage.refused_batch,
    "crashed-by-sigsegv": kills.crashed,
    "spool-disk-full": disks.full_spool_disk,
    "spool-disk-full-and-killed": disks.killed_on_a_full_disk,
    "spool-disk-read-only": disks.read_only_spool_disk,
    "lake-disk-full": disks.full_lake_disk,
    "s3-409": lakes.conflict,
    "s3-412": lakes.precondition,
    "s3-500": lakes.server_error,
    "s3-503": lakes.slow_down,
    "s3-500-after-success": lakes.error_after_success,
    "s3-dropped-after-success": lakes.dropped_after_success,
    "s3-timeout-after-success": lakes.timeout_after_success,
    "s3-down-for-a-day": lakes.down_for_a_day,
    "200,000-rows-in-a-window": lakes.wide_window,
    "s3-without-conditional-puts": lakes.without_conditional_puts,
    "tables-made-at-once": lakes.tables_made_at_once,
    "clock-steps": clock_steps.clock_steps,
    "maintained-and-killed": maintenance.maintained_and_killed,
}
"""What is done; random kills are apart, since it is for the caller to say how many."""
