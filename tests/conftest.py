"""Generated examples are the same in every run: whoever changes a line sees what that line broke.

New ones are looked for by `pytest --hypothesis-profile=explore`, which also takes `--hypothesis-seed=N`.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("gate", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile("gate")
