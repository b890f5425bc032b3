from __future__ import annotations


class DemoError(Exception):
    """The demo cannot go on; its text is one line: what, where and what to do."""
