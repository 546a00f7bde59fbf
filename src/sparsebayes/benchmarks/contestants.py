"""The contestants: this library, its rivals, and one that learns nothing; a class for each."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from sparsebayes.benchmarks.measure import Effort, Outcome, Timed, interleave
from sparsebayes.benchmarks.problems import Problem
from sparsebayes.machine import installed


class Contestant(ABC):
    """Something that learns; ``package`` names what has to be installed for it."""

    name: str
    package: str = "scikit-learn"

    @property
    def available(self) -> bool:
        """Whether its package is installed."""
        return installed(self.package) is not None

    @abstractmethod
    def build(self, problem: Problem) -> Any:
        """An estimator for this problem, not fitted."""

    def vectors(self, est: Any) -> int | None:
        """Functions that its predictions need."""
        return None

    def status(self, est: Any) -> str:
        """How its search says that it ended."""
        return ""

    def run(self, problem: Problem) -> Callable[[], Any]:
        """The work that is timed: build and fit."""

        def work() -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what matters is measured: error and status
                return self.build(problem).fit(problem.X, problem.y)

        return work

    def outcome(self, problem: Problem, timed: Timed) -> Outcome:
        """What it took and achieved."""
        est = timed.value
        error = problem.error(est.predict(problem.X_test))
        return Outcome(self.name, timed.seconds, error, self.vectors(est), self.status(est))


class Ours(Contestant):
    """This library at its defaults, or with the given settings."""

    package = "sparsebayes"

    def __init__(self, name: str = "sparsebayes", **settings: Any) -> None:
        self.name, self.settings = name, settings

    @property
    def available(self) -> bool:
        """It is here."""
        return True

    def build(self, problem: Problem) -> Any:
        """A kernel machine, or a linear model where the problem has no kernel."""
        from sparsebayes import RVC, RVR, SparseBayesRegressor

        if problem.gamma is None:
            return SparseBayesRegressor(fit_intercept=False, **self.settings)
        return (RVC if problem.classes else RVR)(gamma=problem.gamma, **self.settings)

    def vectors(self, est: Any) -> int:
        """Kept functions."""
        return len(est.relevance_)

    def status(self, est: Any) -> str:
        """Status and whether the certificate proves it."""
        return f"{est.status_.name}{'' if est.certificate_.converged else ' (certificate open)'}"


class SupportVectors(Contestant):
    """SVR(C=1, epsilon=0.1) or SVC(C=1)."""

    name = "SVM"

    def build(self, problem: Problem) -> Any:
        """With the problem's kernel."""
        from sklearn.svm import SVC, SVR

        gamma: Any = problem.gamma or "scale"
        return (SVC if problem.classes else SVR)(C=1.0, gamma=gamma)

    def vectors(self, est: Any) -> int:
        """Support vectors."""
        return len(est.support_)


class TunedSupportVectors(SupportVectors):
    """The same with the cross-validation that its penalties need: 5 folds over 5 values of C and 3 of another."""

    name = "SVM with cross-validation"

    def build(self, problem: Problem) -> Any:
        """C and epsilon for regression, C and gamma for classification, which has no epsilon."""
        from sklearn.model_selection import GridSearchCV

        scale = problem.gamma or 1.0
        other = {"gamma": [0.5 * scale, scale, 2.0 * scale]} if problem.classes else {"epsilon": [0.01, 0.05, 0.1]}
        return GridSearchCV(super().build(problem), {"C": [0.01, 0.1, 1.0, 10.0, 100.0], **other}, cv=5)

    def vectors(self, est: Any) -> int:
        """Support vectors of the best."""
        return super().vectors(est.best_estimator_)


class AutomaticRelevance(Contestant):
    """scikit-learn's ARDRegression."""

    name = "ARDRegression"

    def build(self, problem: Problem) -> Any:
        """At its defaults, without an intercept."""
        from sklearn.linear_model import ARDRegression

        return ARDRegression(fit_intercept=False)

    def vectors(self, est: Any) -> int:
        """Weights that are not zero."""
        return int(np.sum(est.coef_ != 0.0))


class Lasso(AutomaticRelevance):
    """LassoCV."""

    name = "LassoCV"

    def build(self, problem: Problem) -> Any:
        """At its defaults, without an intercept."""
        from sklearn.linear_model import LassoCV

        return LassoCV(fit_intercept=False)


class GaussianProcess(Contestant):
    """GaussianProcessRegressor with the problem's kernel and a learned noise."""

    name = "GaussianProcessRegressor"

    def build(self, problem: Problem) -> Any:
        """The width is given, as to all others."""
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        width = float(np.sqrt(0.5 / (problem.gamma or 1.0)))
        kernel = ConstantKernel() * RBF(width, length_scale_bounds="fixed") + WhiteKernel(0.1)
        return GaussianProcessRegressor(kernel)

    def vectors(self, est: Any) -> int:
        """All rows."""
        return len(est.X_train_)


class FastRVM(Contestant):
    """The package fastrvm."""

    name = package = "fastrvm"

    def build(self, problem: Problem) -> Any:
        """With an intercept, as ours."""
        import fastrvm  # pyright: ignore[reportMissingImports]

        return (fastrvm.RVC if problem.classes else fastrvm.RVR)(gamma=problem.gamma or "scale", fit_intercept=True)

    def vectors(self, est: Any) -> int | None:
        """Relevance vectors, under the name that it gives them."""
        found = [getattr(est, name) for name in ("relevance_", "relevance_vectors_") if hasattr(est, name)]
        return len(found[0]) if found else None


class SklearnRVM(FastRVM):
    """The package sklearn-rvm."""

    name = package = "sklearn-rvm"

    def build(self, problem: Problem) -> Any:
        """At its defaults."""
        import sklearn_rvm  # pyright: ignore[reportMissingImports]

        return (sklearn_rvm.EMRVC if problem.classes else sklearn_rvm.EMRVR)(gamma=problem.gamma or "scale")


class Nothing(Contestant):
    """The mean, or the most frequent class: what no learning costs and achieves."""

    name = "nothing"

    def build(self, problem: Problem) -> Any:
        """A dummy."""
        from sklearn.dummy import DummyClassifier, DummyRegressor

        return DummyClassifier() if problem.classes else DummyRegressor()

    def vectors(self, est: Any) -> int:
        """None at all."""
        return 0


def compete(problem: Problem, contestants: list[Contestant], effort: Effort) -> tuple[list[Outcome], list[str]]:
    """Let the contestants that can run do so in turn; outcomes in their order, and a note on each that did not."""
    notes = [f"{c.name}: not run, {c.package} is not installed" for c in contestants if not c.available]
    ready = {c.name: c for c in contestants if c.available}
    works: dict[str, Callable[[], Any]] = {}
    for name, contestant in ready.items():
        try:
            if contestant.package not in ("sparsebayes", "scikit-learn"):
                contestant.run(problem)()  # a rival that cannot run here must not end the run
            works[name] = contestant.run(problem)
        except Exception as error:
            notes.append(f"{name}: not run, it fails here with {type(error).__name__}: {error}")
    timed = interleave(works, effort)
    return [ready[name].outcome(problem, timed[name]) for name in works], notes
