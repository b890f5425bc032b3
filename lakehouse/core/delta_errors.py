"""What delta-rs raises, as errors of one line; apart from the rest, as a Spark cluster lacks it."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakehouse.errors import EngineError, LakehouseError, one_line


@contextmanager
def explained(
    where: str,
    kind: type[LakehouseError] = EngineError,
    advice: str = "place and credentials, or use Spark (for a rollup --engine spark)",
) -> Iterator[None]:
    """Turn what delta-rs and DuckDB raise into one line.

    Args:
        where: The table or the lake.
        kind: The error that is raised.
        advice: What to check of the lake, for errors of tables and storage.

    Raises:
        LakehouseError: Anything that is wrong with a table or its storage.
    """
    try:
        yield
    except (DeltaError, OSError) as error:
        raise kind(f"{where}: {one_line(error)}; check the lake's {advice}") from error
    except Exception as error:
        # delta-rs has no class of its own for errors of its query engine and kernel.
        if type(error) is not Exception:
            raise
        raise kind(f"{where}: {one_line(error)}") from error


def url_of(delta: DeltaTable) -> str:
    """Path or URL of an open table, as its files are listed."""
    uri = delta.table_uri.rstrip("/")
    return unquote(uri.removeprefix("file://")) if uri.startswith("file:") else uri
