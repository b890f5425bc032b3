"""Benchmark of issue 47, on real brokers."""
