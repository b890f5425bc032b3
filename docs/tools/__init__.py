"""Generators of the reference pages, so that the pages always match the code."""
