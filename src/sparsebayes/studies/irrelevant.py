"""How many irrelevant functions the conservative rule keeps, beside the number that it expects.

Run ``python -m sparsebayes.studies.irrelevant [--rows N] [--columns M] [--draws D]``.  The targets are pure noise of
variance one and the columns are independent of them, so that every function kept is irrelevant.
"""

from __future__ import annotations

import argparse

import numpy as np

from sparsebayes import SparseBayesRegressor
from sparsebayes.inference.objective import SupportRule


def kept(rows: int, columns: int, seed: int, noise_variance: float | None) -> int:
    """Functions kept in one draw, at the noise given or learned."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((rows, columns)), rng.standard_normal(rows)
    model = SparseBayesRegressor(support="conservative", noise_variance=noise_variance, fit_intercept=False)
    return len(model.fit(X, y).relevance_)


def expected(columns: int) -> float:
    """Of so many irrelevant functions those above the threshold at one given model with the true noise."""
    return SupportRule.named("conservative", columns).expected_false


def main() -> None:
    """Print what is expected and what is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--draws", type=int, default=100)
    arguments = parser.parse_args()
    print(f"expected at one given model with the true noise: {expected(arguments.columns):.3f}")
    for what, noise in (("true", 1.0), ("learned", None)):
        counts = [kept(arguments.rows, arguments.columns, seed, noise) for seed in range(arguments.draws)]
        error = np.std(counts, ddof=1) / np.sqrt(len(counts))
        print(f"kept with the noise {what}: {np.mean(counts):.2f} ± {error:.2f} ({arguments.draws} draws)")


if __name__ == "__main__":
    main()
