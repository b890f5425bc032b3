-- Once, by a metastore admin, before the first `databricks bundle deploy`, and after the external
-- location was made: docs/databricks.md has that line. Put in your own names.

-- Who deploys the bundle, and runs its jobs. A service principal is named by its application id.
GRANT USE CATALOG, CREATE SCHEMA ON CATALOG main TO `00000000-0000-0000-0000-000000000000`;
GRANT READ FILES, CREATE EXTERNAL TABLE ON EXTERNAL LOCATION kafka_lake TO `00000000-0000-0000-0000-000000000000`;

-- Who reads: the bundle grants the schemas, not the catalog.
GRANT USE CATALOG ON CATALOG main TO `kafka-readers`;
GRANT USE CATALOG ON CATALOG main TO `kafka-engineers`;
