"""A real S3 server with conditional put, and a proxy before it that does what networks do."""
