from __future__ import annotations

import pytest

from deploy import tools


@pytest.fixture(scope="session")
def tool_python() -> str:
    """The Python that has what deploy/tools.txt names."""
    return str(tools.program("python"))
