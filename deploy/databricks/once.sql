-- Once, by a metastore admin, before the first `databricks bundle deploy`. Put in your own names: the
-- storage credential lake_reader should itself be allowed to read only (docs/databricks.md).

CREATE EXTERNAL LOCATION IF NOT EXISTS kafka_lake
  URL 's3://observability/kafka' WITH (STORAGE CREDENTIAL lake_reader)
  COMMENT 'Where jmxlake agents write; nobody writes there from here';

-- Who deploys the bundle, and runs its jobs.
GRANT USE CATALOG, CREATE SCHEMA ON CATALOG main TO `jmxlake-jobs`;
GRANT READ FILES, CREATE EXTERNAL TABLE ON EXTERNAL LOCATION kafka_lake TO `jmxlake-jobs`;

-- Who reads: the bundle grants the schemas, not the catalog.
GRANT USE CATALOG ON CATALOG main TO `kafka-readers`;
GRANT USE CATALOG ON CATALOG main TO `kafka-engineers`;
