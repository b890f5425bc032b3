"""The details of a report: one module a fold, with its tables and its line in short."""
