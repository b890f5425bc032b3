"""Objectives on events that counters count, and the time in which counts were lost."""
