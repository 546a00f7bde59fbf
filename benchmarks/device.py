"""Fits on one GPU: times, memory and errors, a line of JSON for each as soon as it is measured.

    PYTHONPATH=src python benchmarks/device.py [--device cuda] [--scale 1.0] [--only NAME ...] [--repeats 3]

Needs PyTorch and array-api-compat. Every time is the median of the fits, after a small one that warms up, with the data
already on the device; a row that fails is reported and the next one is measured. All rows go to ``device.json`` in the
folder ``$OUT``, where there is one. ``--scale 0.002`` makes every problem that many times smaller, to try the program
on a CPU.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# Seconds after which a fit is not repeated.
_ENOUGH = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", default=list(MEASURES), choices=list(MEASURES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="print where the host spends its time")
    arguments = parser.parse_args()
    try:
        import array_api_compat  # noqa: F401
        import torch
    except ImportError as error:
        sys.exit(f"this benchmark needs PyTorch and array-api-compat: {error}")
    if arguments.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit(f"device {arguments.device!r} is not there: PyTorch {torch.__version__} sees no CUDA GPU")
    bench = Bench(torch, arguments.device, arguments.scale, arguments.repeats, arguments.profile)
    results: dict[str, Any] = {}
    for name, work in [("machine", Bench.machine), ("warm_up", warm_up), *((n, MEASURES[n]) for n in arguments.only)]:
        results[name] = attempt(bench, work)
        print(json.dumps({name: results[name]}), flush=True)
        write(results)
    ratio = speed_ratio(results)
    if ratio is not None:
        results["rival_seconds_per_second"] = ratio
        print(json.dumps({"rival_seconds_per_second": ratio}), flush=True)
        write(results)


def attempt(bench: Bench, work: Callable[[Bench], dict[str, Any]]) -> dict[str, Any]:
    """A row, or why there is none."""
    try:
        return work(bench)
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        return {"failed": f"{type(error).__name__}: {error}"[:500]}
    finally:
        bench.clear()


def write(results: dict[str, Any]) -> None:
    """Keep what is known so far."""
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "device.json").write_text(json.dumps(results, indent=1))


def speed_ratio(results: dict[str, Any]) -> float | None:
    """How many times as long as the fit the rival took, where both were measured."""
    ours, rival = results.get("sinc_million", {}), results.get("sgpr", {})
    return rival["seconds"] / ours["seconds"] if "seconds" in ours and "seconds" in rival else None


class Bench:
    """The device, and how things are measured on it."""

    def __init__(self, torch: Any, device: str, scale: float, repeats: int = 3, profile: bool = False) -> None:
        self.torch, self.device, self.scale, self.repeats, self.profile = torch, device, scale, repeats, profile
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

    def clear(self) -> None:
        """Give back what earlier rows held."""
        if self.cuda:
            self.torch.cuda.empty_cache()

    def measure(self, work: Callable[[], Any], repeats: int | None = None) -> tuple[Any, dict[str, Any]]:
        """The last result, and times and peak memory."""
        times: list[float] = []
        if self.cuda:
            self.torch.cuda.reset_peak_memory_stats()
        result = None
        while len(times) < (repeats or self.repeats) and sum(times) < _ENOUGH:
            result, seconds = self.timed(work)
            times.append(seconds)
        peak = self.torch.cuda.max_memory_allocated() / 1e9 if self.cuda else None
        if self.profile:
            self.explain(work)
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
        pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(25)


def sinc_surface(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The papers' 2-D sinc with noise 0.1: inputs, targets, the truth."""
    from sparsebayes.datasets import make_sinc2d

    X, y, truth = make_sinc2d(n, noise=0.1, return_clean=True, random_state=seed)
    return X, y, truth


def ripley(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ripley's mixture: inputs and classes."""
    from sparsebayes.datasets import make_ripley

    return make_ripley(n, random_state=seed)


def warm_up(bench: Bench) -> dict[str, Any]:
    """Small fits of each kind, so that libraries are loaded and kernels compiled before anything is measured."""
    from sparsebayes import RVC, RVR

    X, y, _ = sinc_surface(3000, seed=2)
    rows, labels = ripley(3000, seed=2)
    _, first = bench.timed(lambda: RVR(gamma=1 / 2.5**2).fit(bench.put(X), bench.put(y)))
    _, second = bench.timed(lambda: RVC(gamma=1 / 0.5**2).fit(bench.put(rows), bench.put(labels)))
    return {"regression_seconds": first, "classification_seconds": second}


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
    X, y = ripley(n, seed=0)
    there = bench.put(X), bench.put(y)
    model, cost = bench.measure(lambda: RVC(gamma=1 / 0.5**2).fit(*there))
    fresh, labels = ripley(bench.size(100_000), seed=1)
    wrong = bench.torch.asarray(model.predict(bench.put(fresh))).cpu().numpy() != labels
    return {"points": n, "candidates": n} | cost | certificate(model) | {"error_rate": float(np.mean(wrong))}


def ten_classes(bench: Bench) -> dict[str, Any]:
    """Ten classes in the plane, each a mixture of two Gaussians, a hundred thousand points."""
    from sparsebayes import RVC

    X, y = mixture(bench.size(100_000), seed=0)
    there = bench.put(X), bench.put(y)
    model, cost = bench.measure(lambda: RVC().fit(*there))
    fresh, labels = mixture(bench.size(20_000), seed=1)
    wrong = bench.torch.asarray(model.predict(bench.put(fresh))).cpu().numpy() != labels
    return {"points": len(X), "classes": 10} | cost | certificate(model) | {"error_rate": float(np.mean(wrong))}


def mixture(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of ten classes, two Gaussians each, at fixed places."""
    places = np.random.default_rng(12).uniform(-4.0, 4.0, (20, 2))
    rng = np.random.default_rng(seed)
    part = rng.integers(0, 20, n)
    return places[part] + 0.6 * rng.standard_normal((n, 2)), part // 2


def sgpr(bench: Bench) -> dict[str, Any]:
    """A sparse Gaussian process of 500 inducing points, 100 steps of Adam, a million points.

    GPyTorch's where it is installed, else the same bound (Titsias 2009) written in PyTorch.
    """
    n = bench.size(1_000_000)
    X, y, _ = sinc_surface(n, seed=0)
    inputs, targets = bench.put(X).float(), bench.put(y).float()
    try:
        import gpytorch
    except ImportError:
        rival = "PyTorch, written here: GPyTorch is not installed"
        train: Callable[[int], Callable[[Any], Any]] = PlainSGPR(bench.torch, inputs, targets).train
    else:
        rival = f"GPyTorch {gpytorch.__version__}"
        train = gpytorch_trainer(gpytorch, bench, inputs, targets)
    train(2)
    predict, cost = bench.measure(lambda: train(100), repeats=1)
    fresh, _, truth = sinc_surface(bench.size(100_000), seed=1)
    with bench.torch.no_grad():
        mean = predict(bench.put(fresh).float()).cpu().numpy()
    return {"rival": rival, "points": n} | cost | {"rmse_to_truth": float(np.sqrt(np.mean((mean - truth) ** 2)))}


class PlainSGPR:
    """Titsias's collapsed bound with an RBF kernel; as GPyTorch does, in float32 with Adam at a rate of 0.1."""

    def __init__(self, torch: Any, inputs: Any, targets: Any) -> None:
        self.torch, self.inputs, self.targets = torch, inputs, targets

    def train(self, steps: int) -> Callable[[Any], Any]:
        """Climb the bound; what comes back predicts the mean."""
        torch, new = self.torch, self.inputs.new_zeros
        centres = self.inputs[:500].clone().requires_grad_()
        length, height, noise, offset = (new(k).requires_grad_() for k in (self.inputs.shape[1], 1, 1, 1))
        parameters = [centres, length, height, noise, offset]
        adam = torch.optim.Adam(parameters, lr=0.1)
        for _ in range(steps):
            adam.zero_grad()
            (-self.bound(*parameters)[0] / len(self.targets)).backward()
            adam.step()
        with torch.no_grad():
            _, factor, outer, projected = self.bound(*parameters)

        def predict(X: Any) -> Any:
            cross = self.kernel(centres, X, length, height)
            inner = torch.linalg.solve_triangular(factor, cross, upper=False)
            return (torch.linalg.solve_triangular(outer, inner, upper=False).T @ projected)[:, 0] + offset

        return predict

    def kernel(self, A: Any, B: Any, length: Any, height: Any) -> Any:
        scale = self.torch.nn.functional.softplus(length)
        a, b = A / scale, B / scale
        squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2.0 * a @ b.T
        return self.torch.nn.functional.softplus(height) * self.torch.exp(-0.5 * squares.clamp(min=0.0))

    def bound(self, centres: Any, length: Any, height: Any, noise: Any, offset: Any) -> tuple[Any, Any, Any, Any]:
        """The bound, and the factors that predictions need."""
        torch, n = self.torch, len(self.targets)
        variance = torch.nn.functional.softplus(noise) + 1e-4
        amplitude = torch.nn.functional.softplus(height)
        unit = torch.eye(len(centres), dtype=centres.dtype, device=centres.device)
        factor = torch.linalg.cholesky(self.kernel(centres, centres, length, height) + 1e-4 * amplitude * unit)
        cross = self.kernel(centres, self.inputs, length, height)
        A = torch.linalg.solve_triangular(factor, cross, upper=False) / variance.sqrt()
        gram, residual = A @ A.T, (self.targets - offset)[:, None]
        outer = torch.linalg.cholesky(unit + gram)
        projected = torch.linalg.solve_triangular(outer, A @ residual, upper=False) / variance.sqrt()
        fit = (projected**2).sum() - (residual**2).sum() / variance
        occam = 2.0 * outer.diagonal().log().sum() + n * variance.log() + n * math.log(2.0 * math.pi)
        rest = n * amplitude / variance - gram.diagonal().sum()
        return (0.5 * (fit - occam - rest)).sum(), factor, outer, projected


def gpytorch_trainer(gpytorch: Any, bench: Bench, inputs: Any, targets: Any) -> Callable[[int], Callable[[Any], Any]]:
    """The same by GPyTorch."""

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

    def train(steps: int) -> Callable[[Any], Any]:
        likelihood = gpytorch.likelihoods.GaussianLikelihood().to(bench.device)
        model = Model(likelihood).to(bench.device)
        model.train()
        likelihood.train()
        adam = bench.torch.optim.Adam(model.parameters(), lr=0.1)
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        for _ in range(steps):
            adam.zero_grad()
            loss = -objective(model(inputs), targets)
            loss.backward()
            adam.step()
        model.eval()
        return lambda X: model(X).mean

    return train


MEASURES: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "sinc_million": sinc_million,
    "ripley_million": ripley_million,
    "ten_classes": ten_classes,
    "sgpr": sgpr,
    "sinc_ten_million": sinc_ten_million,
}

if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        main()
