"""What unit tests share: examples take as long as they take."""

from __future__ import annotations

from hypothesis import settings

# An example that takes more than 200 ms fails by default: on a busy machine any may, once.
settings.register_profile("unhurried", settings.default, deadline=None)
settings.load_profile("unhurried")
