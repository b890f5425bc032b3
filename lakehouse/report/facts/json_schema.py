"""``python -m lakehouse.report.facts.json_schema`` prints the JSON Schema of report.json."""

import json
import sys

from lakehouse.report.facts import shape


def text() -> str:
    """Return the schema as JSON."""
    return json.dumps(shape.schema(), indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
