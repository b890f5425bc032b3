"""Faults done to a real agent's delivery, and the exactly-once check of its lake."""
