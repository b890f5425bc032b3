"""Dimensions of gold: small tables that explain names in its figures.

The rollup writes metrics and objectives, and ``jmxlake weekly`` writes owners. A table changes only
if a definition changes.
"""

from typing import Final

from lakehouse.tables.table import CLUSTER, KEPT_PROPERTIES, Column, of_gold, required

METRICS: Final = of_gold(
    "metrics",
    "Meaning, unit and kind of each metric in the shipped catalogue and in the catalogues of the "
    "lake; one row per metric",
    required("metric", "string", "metric name of the catalogue"),
    required("kind", "string", "gauge or counter"),
    required("unit", "string", "UCUM unit of its values; 1: a number or a share"),
    Column("meaning", "string", "meaning of its values; null: an older agent did not write it"),
    Column(
        "level",
        "string",
        "subject type: partition, topic, client, group or source; null: only a catalogue of the "
        "lake has the metric",
    ),
    required("families", "array<string>", "families that read it; empty: it is derived"),
    required("roles", "array<string>", "roles of the sources that report it; empty: it is derived"),
    required(
        "read_from",
        "array<string>",
        "jmx, admin, metadata_log, remote_log or statistics; empty: derived, or only a catalogue "
        "of the lake has the metric",
    ),
    Column("absent", "string", "meaning of a missing MBean: idle, not_applicable or zero"),
    Column(
        "since",
        "string",
        "first Kafka version that has it; null: not known, or every supported version has it",
    ),
    required("is_own", "boolean", "whether only a catalogue of the lake has it"),
)

OBJECTIVES: Final = of_gold(
    "objectives",
    "Objectives of the rollup, one row per version of an objective; a change ends the row and "
    "starts a new row",
    required("objective", "string", "name of the objective, as in gold/sli and gold/sla"),
    required("title", "string", "title for readers"),
    required("meaning", "string", "description for readers"),
    required("level", "string", "subject type: cluster, topic, partition, client, group or source"),
    required("metric", "string", "metric of its values, as in gold/metrics; total of its events"),
    required("comparison", "string", "lte, lt, gte or gt: a good value, compared with threshold"),
    required("threshold", "double", "threshold of good values, in the unit of the metric"),
    required("target", "double", "share of good time, slices or events, 0 to 1"),
    required("time_window", "string", "length of its error budget, such as 1w, 28d or 1M"),
    required("is_rolling", "boolean", "whether the time window ends at any time"),
    required("budgeting", "string", "GoodSeconds, Timeslices, RatioTimeslices or Occurrences"),
    required(
        "unknown_as", "string", "meaning of unknown time in the verdict: interval, exclude, good "
        "or bad",
    ),
    Column("service", "string", "service of the objective; null: none"),
    Column("team", "string", "label team of the objective; null: none"),
    Column(
        "applies_to",
        "string",
        "subjects and series, as name=pattern,pattern; names are joined by semicolons, and ! "
        "excludes; null: all",
    ),
    required("composites", "array<string>", "composites that include it"),
    required("valid_from", "timestamp", "first rollup with this version"),
    Column("valid_until", "timestamp", "first rollup without this version; null: it is current"),
    properties=KEPT_PROPERTIES,
)  # fmt: skip

OWNERS: Final = of_gold(
    "owners",
    "Owner of each topic, client, group and source, by the owners file of the last jmxlake weekly; "
    "subjects without an owner have no row",
    CLUSTER,
    required("kind", "string", "topic, client, group or source"),
    Column("topic", "string", "topic"),
    Column("user_name", "string", "authenticated principal; null: the quota has no user"),
    Column("client_id", "string", "client id; null: the quota has no client id"),
    Column("consumer_group", "string", "consumer group"),
    Column("source", "string", "source"),
    Column("team", "string", "team of the first matching entry; null: not in the entry"),
    Column("owner", "string", "owner of that entry; null: not in the entry"),
    Column("tier", "string", "tier of that entry; null: not in the entry"),
)

DIMENSIONS: Final = (METRICS, OBJECTIVES, OWNERS)
"""Tables without hours, which are replaced as a whole."""
