"""What a person should read of a rollup, among its steps."""


class Remark(str):
    """A step that is unusual, as a sentence; every other step is one word or a few."""

    __slots__ = ()
