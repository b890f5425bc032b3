"""Bronze as the rollup reads it: the rows of the touched hours, judged, and their sets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import judgement, tables
from lakehouse import lake as lakes
from lakehouse import survey as surveys
from lakehouse.metrics import level
from lakehouse.placed import Placed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Bronze(Placed):
    """Rows in place, and what must be known of their hours to judge them.

    Attributes:
        known: The survey, where it was made before.
    """

    known: surveys.Survey | None = None

    _asking: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def survey(self) -> surveys.Survey:
        """What must be known of the hours as a whole; asked once, by the first who needs it."""
        with self._asking:
            return self._surveyed

    @cached_property
    def _surveyed(self) -> surveys.Survey:
        return self.known or surveys.survey(self)

    def as_written(self) -> Bronze:
        """The same, whose runs are read as they were written."""
        return (
            self
            if self.condensed_at is None
            else replace(self, condensed_at=None, known=self.survey)
        )

    def runs(self, *, loose: bool = False, by_hour: bool = False) -> DataFrame:
        """Usable runs with ``window`` and ``level``; what they fold is in ``with_sets``.

        In short (see ``condensed``) where that was prepared.

        Args:
            loose: With those too that are part of another row here.
            by_hour: Rows that stand for several windows are one (see ``standing``).
        """
        rows = self.judged_runs(loose=loose, by_hour=by_hour)
        return rows.where("reason IS NULL").withColumn("level", level())

    def judged_runs(self, *, loose: bool = False, by_hour: bool = False) -> DataFrame:
        """All runs of the touched hours with ``reason``: why one cannot be used, else null."""
        rows = self.placed_runs(loose=loose, by_hour=by_hour)
        of_value = judgement.of_value(self.survey.impossible, self.survey.long_labels)
        if not self.survey.faulty:
            reason = F.coalesce(self.misplaced(), of_value, judgement.of_fold())
            return rows.withColumn("reason", reason)
        at_fault = surveys.faulty(self.spark, self.survey).alias("at_fault")
        same = [
            F.col(f"runs.{name}").eqNullSafe(F.col(f"at_fault.{name}"))
            for name in ("cluster", "topic", "members", "series")
        ]
        joined = rows.alias("runs").join(at_fault, same, "left").select("runs.*", "fault")
        reason = F.coalesce(self.misplaced(), of_value, "fault", judgement.of_fold())
        return joined.withColumn("reason", reason).drop("fault")

    def with_sets(self, rows: DataFrame) -> DataFrame:
        """Usable runs with the ``partitions`` or ``clients`` that they fold, else null."""
        sets = lakes.read(self.spark, self.lake, tables.MEMBERS, self.versions.members)
        one = (
            sets.where(F.col("cluster").isin(*self.units.clusters))
            .groupBy("cluster", F.col("set").alias("members"))
            .agg(F.first("partitions").alias("partitions"), F.first("clients").alias("clients"))
        )
        return rows.join(one, ["cluster", "members"], "left")

    def scrapes(self) -> DataFrame:
        """Usable rows of the agents' own account, with ``window``."""
        return self.judged_scrapes().where("reason IS NULL")

    def judged_scrapes(self) -> DataFrame:
        """All rows of the account in the touched hours, with ``reason`` as of runs."""
        rows = self.placed_scrapes()
        odd = judgement.no_number("seconds_total") | judgement.no_number("seconds_max")
        reason = F.coalesce(self.misplaced(), F.when(odd, "the value is no number"))
        return rows.withColumn("reason", reason)

    def nothing(self, table: tables.Table) -> DataFrame:
        """No row of a table of gold, at the finest grain."""
        columns = [column for column in table.columns if column.name not in ("grain", "period")]
        nulls = ", ".join(f"CAST(NULL AS {c.type}) AS `{c.name}`" for c in columns)
        return self.spark.sql(f"SELECT {nulls} WHERE false")
