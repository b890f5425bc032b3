"""The demo's report against its truth, question by question: ``make test-demo-truth``."""
