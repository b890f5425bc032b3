"""Incidents over hours and sources, and events with their likely causes, computed from gold."""
