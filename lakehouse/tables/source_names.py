"""Names of sources: ``broker-1`` is the broker with node id 1, ``cluster-prod`` a whole cluster.

The agent makes these names (``SourceSettings.name``), so the role is their first word. The macro
``role_of`` of the kernel is the same in SQL.
"""


def source_name(role: str, node: int | str) -> str:
    """Return the name of a source in the lake."""
    return f"{role}-{node}"


def role_of(source: object) -> str:
    """Return the role in a source's name; empty for None."""
    return str(source).partition("-")[0] if source is not None else ""


def has_role(column: str, role: str) -> str:
    """Return the same as a condition of SQL that Spark and DuckDB read."""
    return f"{column} LIKE '{role}-%'"
