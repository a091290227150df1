"""Fit the text weights of `tokenizer_priors`: `python -m tests.tokens.fitting FOLDER`.

FOLDER has a folder of text files for each kind of text; every kind weighs the same. Prints a row of weights a family:
those with the least absolute relative error over pieces of some 3,000 characters, found by iteratively reweighted least
squares. Counts of kinds have no negative weight; pairs may, which is what a run of digits saves.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gateway.core.estimators.text_counts import FEATURES, count_text
from tests.tokens.tokenizers import FAMILIES, Family, tokens_of

__all__ = ["fit", "main"]

PIECES = 120
"""Of each kind."""
_PAIRS = FEATURES.index("camel")
_LEAST = {"common": 0.04, "middle_east": 0.3, "latin_extended": 0.5, "symbol": 0.5}
"""Weights that no fit goes below: what is nearly free in prose is not where there is nothing else."""
_SLACK = 0.04
"""Relative errors below this count the same."""


def pieces(folder: Path, rng: random.Random) -> list[tuple[str, str]]:
    """(kind, text) pairs."""
    found = []
    for kind in sorted(path for path in folder.iterdir() if path.is_dir()):
        texts = [
            text for path in sorted(kind.rglob("*")) if path.is_file() if (text := path.read_text(errors="replace"))
        ]
        for _ in range(PIECES if texts else 0):
            text, size = rng.choice(texts), int(rng.lognormvariate(8.0, 0.8)) + 200
            start = rng.randrange(max(1, len(text) - size))
            found.append((kind.name, text[start : start + size]))
    return found


def fit(features: Any, tokens: Any, share: Any) -> Any:
    """Weights of the features; `share` is what each text counts for."""
    least = np.array([_LEAST.get(name, 0.0) for name in FEATURES])
    rows, wanted = features / tokens[:, None], 1.0 - features @ least / tokens
    active = np.ones(len(FEATURES), dtype=bool)
    while True:
        weight, found = share, np.zeros(len(FEATURES))
        for _ in range(30):
            scaled = rows[:, active] * weight[:, None]
            normal = scaled.T @ rows[:, active]
            normal += 1e-6 * np.diag(np.diag(normal) + 1e-12)
            found[active] = np.linalg.solve(normal, scaled.T @ wanted)
            weight = share / np.maximum(np.abs(rows @ found - wanted), _SLACK)
        negative = (found < 0.0) & (np.arange(len(FEATURES)) < _PAIRS)
        if not negative.any():
            return found + least
        active &= ~negative


def _row(family: Family, texts: list[tuple[str, str]], features: Any) -> str:
    tokens = np.array([max(1, tokens_of(family, text)) for _, text in texts], dtype=float)
    kinds = [kind for kind, _ in texts]
    weights = fit(features, tokens, np.array([1.0 / kinds.count(kind) for kind in kinds]))
    errors = np.abs(features @ weights / tokens - 1.0)
    middle, most = np.quantile(errors, [0.5, 0.95]) * 100
    return f"{family.name}: ({', '.join(f'{w:.3f}' for w in weights)})  # {middle:.1f} % median, {most:.1f} % at 95 %"


def main() -> int:
    """Print the weights."""
    texts = pieces(Path(sys.argv[1]), random.Random(1))
    features = np.array([count_text([text.encode()]).features for _, text in texts])
    for family in FAMILIES:
        print(_row(family, texts, features))
    return 0


if __name__ == "__main__":
    sys.exit(main())
