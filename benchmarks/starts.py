"""What the several noise starts cost: ``python benchmarks/starts.py``.

Medians of five interleaved repeats: the default against the paper's schedule alone on near-pure noise, and the default
fit of the 2-D sinc with 1,000 points.
"""

import time

import numpy as np

from sparsebayes import RVR, Sequential, datasets


def near_noise(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((240, 3))
    signal = np.sin(X[:, 0]) + X[:, 1]
    return X, 0.1 * signal / signal.std() + rng.standard_normal(240)


def seconds(model: RVR, X: np.ndarray, y: np.ndarray) -> float:
    begun = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begun


def main() -> None:
    for seed in range(5):
        X, y = near_noise(seed)
        schedule, default = RVR(solver=Sequential(batch=1)), RVR()
        pairs = [(seconds(schedule, X, y), seconds(default, X, y)) for _ in range(5)]
        one, several = np.median(pairs, axis=0)
        print(f"near-pure noise {seed}: {several / one:.2f} x the schedule alone, {len(default.relevance_)} functions")
    X, y = datasets.make_sinc2d(1000, noise=0.1, random_state=0)
    model = RVR(gamma=1 / 2.5**2)
    spent = np.median([seconds(model, X, y) for _ in range(5)])
    print(f"2-D sinc, N = 1000: {spent:.2f} s, certificate {'converged' if model.certificate_.converged else 'open'}")


if __name__ == "__main__":
    main()
