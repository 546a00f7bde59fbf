"""Which candidates, and how sure: inclusion probabilities and credible sets of a fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array

from sparsebayes.design import Design, as_design
from sparsebayes.estimators import SparseBayesRegressor
from sparsebayes.estimators.checks import check_noise, check_weights
from sparsebayes.frames import data_frame
from sparsebayes.inference.solvers.single_effects import Correlations, Effect, Effects, Search, check_max_effects
from sparsebayes.threads import one_thread
from sparsebayes.typing import Array, Index

from .modes import Logistic
from .problems import Posed, TwoClasses, candidates_of, opened, problems_of

# Members of a set among which correlations are computed.
_PAIRED = 100
# Rounds of bounding a likelihood by a Gaussian, and the change of an inclusion probability below which they end.
_ROUNDS, _SAME = 50, 1e-3
# Times the model's noise variance from which on the effects are a poorer description.
_WORSE = 1.5


@dataclass(frozen=True)
class CredibleSet:
    """Candidates of which one carries an effect, with a given probability.

    Attributes
    ----------
    output : int
        Target or class.
    members : tuple of int
        Candidates, the most probable first.
    names : tuple of str
        What they are called.
    probabilities : tuple of float
        That each of them carries the effect.
    probability : float
        That one of them does.
    purity : float
        Smallest absolute correlation among them.
    evidence : float
        Log Bayes factor of the effect's being there.
    weight, std : float
        Posterior mean and standard deviation of its weight, if the first member carries it.
    """

    output: int
    members: tuple[int, ...]
    names: tuple[str, ...]
    probabilities: tuple[float, ...]
    probability: float
    purity: float
    evidence: float
    weight: float
    std: float

    def __len__(self) -> int:
        return len(self.members)


@dataclass(frozen=True)
class CredibleSets:
    """Credible sets, the best supported first; printable, and a DataFrame by ``to_frame()``."""

    sets: tuple[CredibleSet, ...]
    coverage: float

    def __len__(self) -> int:
        return len(self.sets)

    def __iter__(self) -> Iterator[CredibleSet]:
        return iter(self.sets)

    def __getitem__(self, place: int) -> CredibleSet:
        return self.sets[place]

    def to_frame(self) -> Any:
        """One row for each member of each set, as a pandas DataFrame."""
        rows = [
            (k, one.output, *member, one.probability, one.purity, one.evidence)
            for k, one in enumerate(self.sets)
            for member in zip(one.members, one.names, one.probabilities, strict=True)
        ]
        columns = ["set", "output", "candidate", "name", "probability", "set_probability", "purity", "evidence"]
        return data_frame(rows, columns=columns)

    def __str__(self) -> str:
        if not self.sets:
            return f"no set holds an effect with probability {self.coverage:g}"
        lines = []
        for k, one in enumerate(self.sets):
            shown = ", ".join(
                f"{name} ({probability:.2g})"
                for name, probability in zip(one.names[:6], one.probabilities, strict=False)
            )
            more = f", and {len(one) - 6} more" if len(one) > 6 else ""
            lines.append(f"{k}: one of {shown}{more}; purity {one.purity:.2f}, evidence {one.evidence:.1f} nats")
        return "\n".join(lines)


@dataclass(frozen=True)
class Inclusion:
    """What is known of every candidate.

    Attributes
    ----------
    inclusion : ndarray of shape (M,) or (K, M)
        Probability that each candidate carries an effect; a row for each of several targets or classes.
    mean, std : ndarray of the same shape
        Posterior of its weight, with the uncertainty about which candidates carry one.
    names : tuple of str
        What the candidates are called.
    noise_variance : ndarray of shape (K,)
        In the units of the targets; one where the likelihood has no noise of its own.
    n_effects : ndarray of shape (K,)
        Expected number of effects.
    log_evidence : ndarray of shape (K,)
        Lower bound of the log evidence, of classes that of the search; of counts, of robust likelihoods and of noise
        that varies, of that of the weighted Gaussian problem in the place of theirs.
    status : str
        What to make of the probabilities; in particular whether the effects explain as much as the model did.
    kept : tuple of ndarray of int
        Which candidates each function that the model kept is, without the intercept: several where rows have copies.
        Empty where there is no model.
    """

    inclusion: Array
    mean: Array
    std: Array
    names: tuple[str, ...]
    noise_variance: Array
    n_effects: Array
    log_evidence: Array
    status: str
    kept: tuple[Index, ...]
    _found: tuple[tuple[Correlations, Effects], ...] = field(repr=False)

    @property
    def inclusion_of_kept(self) -> Array:
        """Probability that each function that the model kept carries an effect, of shape (K, n_kept)."""
        return np.array([[state.together(same) for same in self.kept] for _, state in self._found])

    def credible_sets(self, coverage: float = 0.95, min_abs_corr: float = 0.5) -> CredibleSets:
        """Sets of candidates, each of which holds one effect with at least this probability.

        Parameters
        ----------
        coverage : float, default=0.95
            Probability that an effect is there and that one of the set carries it.
        min_abs_corr : float, default=0.5
            Smallest absolute correlation of any two members: a set whose members do not correlate says only that the
            data do not tell.
        """
        for name, value, ends in (("coverage", coverage, False), ("min_abs_corr", min_abs_corr, True)):
            if not isinstance(value, Real) or not (0.0 < value < 1.0 or (ends and value in (0.0, 1.0))):
                raise ValueError(f"{name}={value!r}: expected a number between 0 and 1")
        sets: dict[tuple[int, frozenset[int]], CredibleSet] = {}
        for output, (problem, state) in enumerate(self._found):
            for effect in sorted(state.effects, key=lambda e: -e.evidence):
                found = self._set(output, problem, effect, coverage)
                if found is not None and found.purity >= min_abs_corr:
                    sets.setdefault((output, frozenset(found.members)), found)
        return CredibleSets(tuple(sets.values()), coverage)

    def _set(self, output: int, problem: Correlations, effect: Effect, coverage: float) -> CredibleSet | None:
        order = np.argsort(-effect.alpha, kind="stable")
        cumulated = effect.exists * np.cumsum(effect.alpha[order])
        if cumulated[-1] < coverage:
            return None
        members = order[: int(np.searchsorted(cumulated, coverage)) + 1]
        paired = members[:_PAIRED]
        return CredibleSet(
            output=output,
            members=tuple(members.tolist()),
            names=tuple(self.names[m] for m in members),
            probabilities=tuple((effect.exists * effect.alpha[members]).tolist()),
            probability=float(cumulated[len(members) - 1]),
            purity=float(np.min(problem.cosines(paired)[:, paired])),
            evidence=effect.evidence,
            weight=float(effect.mean[members[0]] * problem.scale[members[0]]),
            std=float(np.sqrt(np.broadcast_to(effect.variance, order.shape)[members[0]]) * problem.scale[members[0]]),
        )

    def to_frame(self) -> Any:
        """One row for each candidate (and target or class), as a pandas DataFrame."""
        inclusion, mean, std = (np.atleast_2d(part) for part in (self.inclusion, self.mean, self.std))
        k, m = inclusion.shape
        return data_frame(
            {
                "output": np.repeat(np.arange(k), m),
                "candidate": np.tile(np.arange(m), k),
                "name": list(self.names) * k,
                "inclusion": inclusion.ravel(),
                "mean": mean.ravel(),
                "std": std.ravel(),
            }
        )

    def __str__(self) -> str:
        inclusion = np.atleast_2d(self.inclusion)
        lines = []
        for k, row in enumerate(inclusion):
            best = [m for m in np.argsort(-row, kind="stable")[:20] if row[m] >= 0.01]
            head = f"expected number of effects: {self.n_effects[k]:.2f}"
            lines.append(head if len(inclusion) == 1 else f"output {k}, {head}")
            lines += [f"  {self.names[m]}  {row[m]:.3f}" for m in best]
        return "\n".join([*lines, self.status])


# Candidates and targets, the effects, and the bound of the log evidence.
_Found = tuple[Correlations, Effects, float]


def inclusion(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    max_effects: int | None = None,
) -> Inclusion:
    """Inclusion probabilities of every candidate of a fitted model, by a sum of single effects.

    The search starts from the functions that the model kept.  Prior variance, noise (where the model learned it) and
    number of effects are those of the largest evidence.  Counts are the weighted Gaussian problem that their likelihood
    is, to second order, at the model's own outputs.  Effects on classes are searched with the bound of Jaakkola and
    Jordan, from the model's outputs on, and then judged without it.

    Parameters
    ----------
    estimator : RVR, RVC, SparseBayesRegressor, SparseBayesClassifier, or a Pipeline that ends in one
        Fitted on these data.
    X, y, sample_weight : array-like
        The training data.
    max_effects : int, optional
        Largest number of effects; by default a quarter of the rows, and at least ten.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import SparseBayesRegressor
    >>> from sparsebayes.explain import inclusion
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 10))
    >>> X[:, 4] = X[:, 3] + 0.01 * rng.standard_normal(200)  # twins
    >>> y = X[:, 0] - X[:, 3] + rng.standard_normal(200)
    >>> found = inclusion(SparseBayesRegressor().fit(X, y), X, y)
    >>> [sorted(one.members) for one in found.credible_sets()]
    [[3, 4], [0]]
    """
    est, prepare, inputs = opened(estimator)
    check_max_effects(max_effects)
    with one_thread():
        candidates = candidates_of(est, prepare(X), y, sample_weight, inputs)
        problems = problems_of(est, candidates)
        found = [_solve(candidates.design, posed, candidates.constant, max_effects) for posed in problems]
    single = len(found) == 1 and getattr(est, "_single", True)
    before = [posed.start or np.inf for posed in problems]
    return _collect(found, candidates.names, before, single=single, kept=candidates.kept)


def single_effects(
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    fit_intercept: bool = True,
    noise_variance: float | None = None,
    start: Sequence[int] | None = None,
    max_effects: int | None = None,
) -> Inclusion:
    """The same for a matrix and a vector.

    Parameters
    ----------
    X : Design, array-like of shape (N, M), SciPy sparse array or LinearOperator
        Candidates in columns.
    y : array-like of shape (N,)
        Targets.
    sample_weight : array-like of shape (N,), optional
        A weight of k is exactly k copies of the row.
    fit_intercept : bool, default=True
        Whether a constant is fitted beside them.
    noise_variance : float, optional
        Given, or learned.
    start : sequence of int, optional
        Candidates to begin from, beside none; by default those that a fit keeps, or of a Design none.
    max_effects : int, optional
        Largest number of effects; by default a quarter of the rows, and at least ten.
    """
    names = ()
    if not isinstance(X, Design | LinearOperator):
        names = tuple(map(str, getattr(X, "columns", ())))
        X = check_array(X, accept_sparse=True, dtype="float64", input_name="X")
    design = as_design(X)
    n, m = design.shape
    target = check_array(y, ensure_2d=False, dtype="float64", input_name="y")
    if target.shape != (n,):
        raise ValueError(f"y has shape {target.shape}: expected ({n},), one number for each row of X")
    check_max_effects(max_effects)
    weights, given = check_weights(sample_weight, n), check_noise(noise_variance, 1)
    noise = begin = None if given is None else float(given[0])
    if start is None and not isinstance(X, Design):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is only where the search begins
            model = SparseBayesRegressor(fit_intercept=fit_intercept, noise_variance=noise).fit(X, target, weights)
        start, begin = model.relevance_.tolist(), float(model.noise_variance_) or None
    places = np.asarray(start) if start is not None and np.size(start) else np.zeros(0, dtype=np.intp)
    if places.ndim != 1 or places.dtype.kind not in "iu" or np.any((places < 0) | (places >= m)):
        raise ValueError(f"start={start!r}: expected candidates from 0 to {m - 1}")
    posed = Posed(target, weights, float(weights.sum()), noise, begin, places.tolist())
    with one_thread():
        found = [_solve(design, posed, fit_intercept, max_effects)]
    return _collect(found, names or tuple(f"x{j}" for j in range(m)), [np.inf], single=True)


def _solve(design: Design, posed: Posed, constant: bool, limit: int | None) -> _Found:
    """Effects of one problem, and the bound of its evidence."""
    ones = np.ones(design.shape[0]) if constant else None
    classes = posed.classes
    if classes is None:
        search, state = _search(design, posed, ones, limit)
        return search.problem, search.finish(state), search.bound(state)
    # Where classes separate, the model's outputs are large, and what begins there may stay; so also begin at none.
    nothing = replace(classes, outputs=np.zeros(design.shape[0]))
    starts = [(posed, classes), (replace(posed, places=[]), nothing)]
    found = (_bounded(design, start, of, ones, limit) for start, of in starts)
    search, state, bound = max(found, key=lambda one: one[2])
    return *Logistic.settled(search.problem, state, classes, limit=search.max_effects), bound


def _search(design: Design, posed: Posed, constant: Array | None, limit: int | None) -> tuple[Search, Effects]:
    """Effects of a Gaussian problem."""
    problem = Correlations(design, posed.target, posed.weights, constant=constant, size=posed.size)
    search = Search(problem, noise=posed.noise, max_effects=limit)
    if posed.effects is None or limit is not None:
        return search, max(search.run(posed.places, posed.start), key=search.bound)
    return search, posed.effects.again(search)


def _bounded(
    design: Design, posed: Posed, classes: TwoClasses, constant: Array | None, limit: int | None
) -> tuple[Search, Effects, float]:
    """Effects of a likelihood that Gaussians bound, each from where the one before led."""
    outputs, before, rounds = (classes.outputs, 0.0), np.array(np.inf), 0
    while True:
        target, weights, further = classes.bounded(*outputs)
        search, state = _search(design, replace(posed, target=target, weights=weights), constant, limit)
        if rounds == _ROUNDS or np.abs(state.inclusion - before).max() < _SAME:
            further += 0.5 * search.problem.observations * float(np.log(2.0 * np.pi))
            return search, state, search.bound(state) + further
        outputs, before, rounds = _outputs(search.problem, state, target), state.inclusion, rounds + 1
        posed = replace(posed, places=[effect.lead for effect in state.effects])


def _outputs(problem: Correlations, state: Effects, target: Array) -> tuple[Array, Array]:
    """Mean and variance of the outputs on the rows."""
    mean, variance = problem.fitted(target), np.square(problem.unit)
    for effect in state.effects:
        support = np.flatnonzero(effect.alpha)
        columns = problem.values(support)
        own = columns @ effect.expected[support]
        mean += own
        variance += np.maximum(np.square(columns) @ effect.squares[support] - np.square(own), 0.0)
    return mean, variance


def _collect(
    found: list[_Found], names: tuple[str, ...], before: list[float], *, single: bool, kept: tuple[Index, ...] = ()
) -> Inclusion:
    each, noises = [], [state.hyper.noise for _, state, _ in found]
    for problem, state, _ in found:
        mean, variance = np.zeros_like(state.residual), np.zeros_like(state.residual)
        for effect in state.effects:
            mean += effect.expected
            variance += np.maximum(effect.squares - np.square(effect.expected), 0.0)
        each.append((state.inclusion, problem.scale * mean, problem.scale * np.sqrt(variance)))
    return Inclusion(
        *(each[0] if single else map(np.array, zip(*each, strict=True))),
        names=names,
        noise_variance=np.array(noises),
        n_effects=np.array([sum(effect.exists for effect in state.effects) for _, state, _ in found], dtype=np.float64),
        log_evidence=np.array([bound for *_, bound in found]),
        status=_status(noises, before),
        kept=kept,
        _found=tuple((problem, state) for problem, state, _ in found),
    )


def _status(noises: list[float], before: list[float]) -> str:
    """Whether the effects explain what the model explained."""
    worst = max(noise / known for noise, known in zip(noises, before, strict=True))
    if worst <= _WORSE:
        return "The effects explain what the model explains."
    return (
        f"The effects leave {worst:.2g} times the noise variance of the model: its functions overlap so much that they "
        "cannot be told apart one by one, and the probabilities are those of the coarser description."
    )
