"""One module per thing that happens; each has ``prepare(stage)`` and ``run(stage)``."""
