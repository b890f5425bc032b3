"""Run by the Python of deploy/tools.txt: lets Databricks' own classes look at resources.

They refuse fields, values and types that the platform does not know. Resources come as JSON on
standard input; a line is printed for each that is wrong.
"""

import json
import sys

from databricks.bundles.alerts import Alert
from databricks.bundles.dashboards import Dashboard
from databricks.bundles.jobs import Job
from databricks.bundles.schemas import Schema
from databricks.bundles.volumes import Volume

KINDS = {
    "alerts": Alert, "dashboards": Dashboard, "jobs": Job, "schemas": Schema, "volumes": Volume,
}  # fmt: skip

for kind, resources in json.load(sys.stdin).items():
    for name, told in resources.items():
        try:
            KINDS[kind].from_dict(told)
        except (KeyError, TypeError, ValueError) as error:
            sys.stdout.write(f"{kind}.{name}: {error}\n")
