from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.shell.fixtures", "tests.shell.running")

from tests.shell.fixtures import start, unblocked  # noqa: E402

__all__ = ["start", "unblocked"]
