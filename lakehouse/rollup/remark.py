"""Steps that a rollup reports while it runs."""

from collections.abc import Callable

from lakehouse.engines.costs import PartDone


class Remark(str):
    """A step that is unusual, as a sentence; every other step is one word or a few."""

    __slots__ = ()


Step = Callable[[str | PartDone], None]
"""Called with each step that is done, in a few words, and with the parts that are computed."""
