"""Faults done to a real agent's delivery, and an oracle that says what they cost."""
