"""Reports: facts, words, tables, pages, CSV files and messages."""
