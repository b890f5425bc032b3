-- Once, by a metastore admin, before the first `databricks bundle deploy`. Put in your own names: the
-- storage credential lake_reader should itself be allowed to read only (docs/databricks.md).

CREATE EXTERNAL LOCATION IF NOT EXISTS kafka_lake
  URL 's3://observability/kafka' WITH (STORAGE CREDENTIAL lake_reader)
  COMMENT 'Where jmxlake agents write; nobody writes there from here';

-- Who deploys the bundle, and runs its jobs. A service principal is named by its application id.
GRANT USE CATALOG, CREATE SCHEMA ON CATALOG main TO `00000000-0000-0000-0000-000000000000`;
GRANT READ FILES, CREATE EXTERNAL TABLE ON EXTERNAL LOCATION kafka_lake TO `00000000-0000-0000-0000-000000000000`;

-- Who reads: the bundle grants the schemas, not the catalog.
GRANT USE CATALOG ON CATALOG main TO `kafka-readers`;
GRANT USE CATALOG ON CATALOG main TO `kafka-engineers`;
