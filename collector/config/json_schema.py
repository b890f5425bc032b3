"""JSON Schema of the agent's configuration file."""

from typing import Final

from collector.config.schema import Config
from collector.settings import Quantity
from collector.sources.registry import TRANSPORTS
from lakehouse.tables.typed_settings import Schema, schema_document, type_schema

AGENT: Final = "agent"
"""Name of the schema."""


def agent_schema() -> Schema:
    """Return the schema of agent.yaml."""
    root, definitions = type_schema(Config, _of_own_type)
    config, source = definitions["Config"], definitions["SourceSettings"]
    # The loader uses the first of ``sources`` as ``source``.
    config["required"].remove("source")
    config["oneOf"] = [{"required": ["source"]}, {"required": ["sources"]}]
    of_cluster = {"properties": {"role": {"const": "cluster"}}, "required": ["role"]}
    source["oneOf"] = [*({"required": [name]} for name in TRANSPORTS), of_cluster]
    return schema_document(AGENT, "Configuration of jmxlake-agent", root, definitions)


def _of_own_type(kind: type) -> Schema:
    """Return the schema of a quantity with a unit, or of a path."""
    if issubclass(kind, Quantity):
        return {"type": "string", "pattern": f"^[0-9]+\\s*({'|'.join(kind.units)})$"}
    return {"type": "string"}
