"""The README's first command, as it is run where nobody looks on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gateway.local.steps import STEPS


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_tour_holds_and_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli", "demo", "--once"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=580,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(STEPS)} of {len(STEPS)} steps held" in done.stdout
    assert done.stderr == ""
    assert re.search(r"by its own count \d+ of \d+ prompt tokens", " ".join(done.stdout.split()))
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(p.info["cmdline"] or ())]
