"""Fits on one GPU: times, memory and errors as JSON.

    PYTHONPATH=src python benchmarks/device.py [--device cuda] [--scale 1.0] [--only NAME ...]

Needs PyTorch and array-api-compat. Every time is the median of three fits after one that warms up, with the data
already on the device. ``--scale 0.01`` makes every problem that many times smaller, to try the program on a CPU.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=list(MEASURES))
    parser.add_argument("--profile", action="store_true", help="print where the host spends its time to stderr")
    arguments = parser.parse_args()
    try:
        import array_api_compat  # noqa: F401
        import torch
    except ImportError as error:
        sys.exit(f"this benchmark needs PyTorch and array-api-compat: {error}")
    if arguments.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit(f"device {arguments.device!r} is not there: PyTorch {torch.__version__} sees no CUDA GPU")
    bench = Bench(torch, arguments.device, arguments.scale, arguments.profile)
    results: dict[str, Any] = {"machine": bench.machine()}
    for name in arguments.only:
        results[name] = MEASURES[name](bench)
        print(f"{name}: {json.dumps(results[name])}", file=sys.stderr, flush=True)
    print(json.dumps(results, indent=1))


class Bench:
    """The device, and how things are measured on it."""

    def __init__(self, torch: Any, device: str, scale: float, profile: bool = False) -> None:
        self.torch, self.device, self.scale, self.profile = torch, device, scale, profile
        self.cuda = device.startswith("cuda")

    def machine(self) -> dict[str, Any]:
        import scipy
        import sklearn

        name = self.torch.cuda.get_device_name(self.device) if self.cuda else platform.processor()
        versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
        versions |= {"scikit-learn": sklearn.__version__, "torch": self.torch.__version__}
        return {"device": name, "scale": self.scale, "versions": versions}

    def size(self, n: int) -> int:
        return max(500, int(n * self.scale))

    def put(self, array: np.ndarray) -> Any:
        return self.torch.asarray(array, device=self.device)

    def wait(self) -> None:
        if self.cuda:
            self.torch.cuda.synchronize()

    def measure(self, work: Callable[[], Any], repeats: int = 3) -> tuple[Any, dict[str, Any]]:
        """The last result, and times and peak memory."""
        times = []
        self.timed(work)
        if self.cuda:
            self.torch.cuda.reset_peak_memory_stats()
        result = None
        for _ in range(repeats):
            result, seconds = self.timed(work)
            times.append(seconds)
        if self.profile:
            self.explain(work)
        peak = self.torch.cuda.max_memory_allocated() / 1e9 if self.cuda else None
        return result, {"seconds": statistics.median(times), "all_seconds": times, "peak_gb": peak}

    def timed(self, work: Callable[[], Any]) -> tuple[Any, float]:
        self.wait()
        begin = time.perf_counter()
        result = work()
        self.wait()
        return result, time.perf_counter() - begin

    def explain(self, work: Callable[[], Any]) -> None:
        import cProfile
        import pstats

        profile = cProfile.Profile()
        profile.enable()
        work()
        self.wait()
        profile.disable()
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)


def sinc_surface(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The papers' 2-D sinc with noise 0.1: inputs, targets, the truth."""
    from sparsebayes.datasets import make_sinc2d

    X, y, truth = make_sinc2d(n, noise=0.1, return_clean=True, random_state=seed)
    return X, y, truth


def ripley_mixture(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, each an equal mixture of two Gaussians of variance 0.03 (Ripley 1996)."""
    rng = np.random.default_rng(seed)
    centres = np.array([[[-0.3, 0.7], [0.4, 0.7]], [[-0.7, 0.3], [0.3, 0.3]]])
    y, which = rng.integers(2, size=n), rng.integers(2, size=n)
    return centres[y, which] + math.sqrt(0.03) * rng.standard_normal((n, 2)), y


def regression_report(bench: Bench, model: Any, cost: dict[str, Any]) -> dict[str, Any]:
    X, _, truth = sinc_surface(bench.size(100_000), seed=1)
    error = bench.torch.asarray(model.predict(bench.put(X))).cpu().numpy() - truth
    return cost | certificate(model) | {"rmse_to_truth": float(np.sqrt(np.mean(error**2)))}


def certificate(model: Any) -> dict[str, Any]:
    found = model.certificate_
    return {
        "vectors": len(model.relevance_),
        "status": model.status_.name,
        "converged": found.converged,
        "moves": model.n_iter_,
        "excluded_gain": found.excluded_gain,
        "kept_gain": found.kept_gain,
        "noise_gain": found.noise_gain,
        "compression_error": found.compression_error,
        "noise_variance": getattr(model, "noise_variance_", None),
    }


def sinc_million(bench: Bench) -> dict[str, Any]:
    """2-D sinc, a candidate at every one of a million points."""
    from sparsebayes import RVR

    n = bench.size(1_000_000)
    X, y, _ = sinc_surface(n, seed=0)
    there = bench.put(X), bench.put(y)
    model, cost = bench.measure(lambda: RVR(gamma=1 / 2.5**2).fit(*there))
    return {"points": n, "candidates": n} | regression_report(bench, model, cost)


def sinc_ten_million(bench: Bench) -> dict[str, Any]:
    """2-D sinc, ten million points, a candidate at a hundred thousand of them."""
    from sparsebayes import SparseBayesRegressor
    from sparsebayes.basis import RBF

    n, m = bench.size(10_000_000), bench.size(100_000)
    X, y, _ = sinc_surface(n, seed=0)
    there = bench.put(X), bench.put(y)
    model, cost = bench.measure(lambda: SparseBayesRegressor(RBF(2.5, centres=there[0][:m, :])).fit(*there))
    return {"points": n, "candidates": m} | regression_report(bench, model, cost)


def ripley_million(bench: Bench) -> dict[str, Any]:
    """Ripley's mixture, a million points."""
    from sparsebayes import RVC

    n = bench.size(1_000_000)
    X, y = ripley_mixture(n, seed=0)
    there = bench.put(X), bench.put(y)
    model, cost = bench.measure(lambda: RVC(gamma=1 / 0.5**2).fit(*there))
    fresh, labels = ripley_mixture(bench.size(100_000), seed=1)
    wrong = bench.torch.asarray(model.predict(bench.put(fresh))).cpu().numpy() != labels
    return {"points": n, "candidates": n} | cost | certificate(model) | {"error_rate": float(np.mean(wrong))}


def gpytorch_sgpr(bench: Bench) -> dict[str, Any]:
    """GPyTorch's sparse Gaussian process: 500 inducing points, 100 steps of Adam, a million points."""
    try:
        import gpytorch
    except ImportError:
        return {"not run": "GPyTorch is not installed here"}
    n = bench.size(1_000_000)
    X, y, _ = sinc_surface(n, seed=0)
    inputs, targets = bench.put(X).float(), bench.put(y).float()

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood: Any) -> None:
            super().__init__(inputs, targets, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
            self.covar_module = gpytorch.kernels.InducingPointKernel(
                kernel, inducing_points=inputs[:500].clone(), likelihood=likelihood
            )

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def train() -> Any:
        likelihood = gpytorch.likelihoods.GaussianLikelihood().to(bench.device)
        model = Model(likelihood).to(bench.device)
        model.train()
        likelihood.train()
        adam = bench.torch.optim.Adam(model.parameters(), lr=0.1)
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        for _ in range(100):
            adam.zero_grad()
            loss = -objective(model(inputs), targets)
            loss.backward()
            adam.step()
        return model.eval()

    model, cost = bench.measure(train, repeats=1)
    fresh, _, truth = sinc_surface(bench.size(100_000), seed=1)
    with bench.torch.no_grad():
        mean = model(bench.put(fresh).float()).mean.cpu().numpy()
    return {"points": n} | cost | {"rmse_to_truth": float(np.sqrt(np.mean((mean - truth) ** 2)))}


MEASURES: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "sinc_million": sinc_million,
    "sinc_ten_million": sinc_ten_million,
    "ripley_million": ripley_million,
    "gpytorch_sgpr": gpytorch_sgpr,
}

if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        main()
