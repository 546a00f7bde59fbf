"""Descriptions that several estimators share, so that each is written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sklearn.base import ClassifierMixin

T = TypeVar("T", bound=type)

KERNEL = """
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"}, Basis or callable
        Functions centred on the training rows.  A callable is ``k(X, Z)`` and returns the matrix of values.
    gamma : {"scale", "auto", "evidence", "ard", "multiscale"} or float
        As in scikit-learn: ``exp(-gamma * ||x - x'||²)``; a paper's width r is ``gamma = 1 / r**2``.  ``"evidence"``
        learns the parameters of the kernel by evidence, ``"ard"`` one scale for each input, so that irrelevant inputs
        switch off, and ``"multiscale"`` puts functions of several multiples of these scales into one dictionary; all
        also learn the parameters of a Basis, which is then where they begin.  Rows left out have the last word; of
        classes and counts they alone choose.
    degree, coef0 : int, float
        Of ``"poly"`` and ``"sigmoid"``, as in scikit-learn."""

SETTINGS = """
    fit_intercept : bool
        Let a constant function join the dictionary like any other; regression targets are centred first (by
        their median, where the likelihood is robust), and so are the columns of X where these are the functions
        (``basis=None``): a model then does not depend on where zero is on the scale of an input.
    solver : {"sequential", "mackay", "em", "variational", "backfitting", "subset", "single-effects"} or a solver object
        A solver object carries its own settings, which win over the estimator's.
    support : {"evidence", "conservative"}
        What a function must show to be kept: that it raises the evidence, q² > s (the papers' rule), or that
        q²/s > 2 log M, which at the true noise fewer than one irrelevant function of M is expected to pass.
    likelihood : {"gaussian", "outliers", "student-t", "poisson"}
        Distribution of the targets (regression): Gaussian noise; the same with a share of outliers anywhere in the
        range of the targets, or Student's t, both of which weigh the rows; or counts.
    noise : {"constant", "varies"}
        Whether the Gaussian noise is the same everywhere, or its log variance is a sparse model of its own on the same
        dictionary, learned with the mean; it stays constant where the evidence does not ask for that, and where the fit
        with constant noise ended early or did not determine it, which ``status_`` says (regression).
    noise_variance : float, optional
        A number fixes the noise variance of the search, the evidence and the posterior; None learns it (regression).
        Calibrated error bars multiply it by ``noise_scale_``² all the same: where the noise is known, ask for
        ``uncertainty="posterior"``.
    shared_support : bool
        One set of functions, each with one precision, for all targets in units of their standard deviations
        (regression; False by default: independent models), or for all of more than two classes under the softmax
        (classification; True by default).  Classes have functions of their own with False, and also with restarts at a
        given kernel, in ``path``, with exchanges, with solvers other than the sequential one in batches, and where no
        function of all classes is found (not with ``evidence="indicators"``).
    evidence : {"auto", "indicators", "laplace"}
        What chooses the functions of two classes, and those that more than two share (classification).
        ``"indicators"``: the evidence of a regression on the indicators of the classes, which is exact; the logistic or
        softmax likelihood learns one scale for all of its precisions.  ``"laplace"``: that of this likelihood, by
        Laplace's approximation, every precision for itself, as in the papers; fewer functions, which predict worse
        where classes can be separated.  ``"auto"``: the first, but the second for two classes where the dictionary has
        no kernels on the rows and at most one function for every eight of them, or a checkpoint is kept.  With restarts
        at a given kernel, in ``path``, with exchanges and with solvers other than the sequential one in batches it is
        always the second, and so it is for two classes, and one against the rest, where the regression finds nothing.
    multi_class : {"softmax", "ovr"}
        With more than two classes: one joint model, or one against the rest for each (classification).
    class_weight : dict or "balanced", optional
        Weights of the classes, as in scikit-learn; balanced, each class counts the same, rows as often as their sample
        weight says (classification).
    tol : float
        Converged means that no single move would raise the objective by more than this, in nats (by more than .1 where
        several classes share functions: their evidence is not known to less).
    max_iter : int
        Moves after which a start is broken off; of several made together each counts, and they are not divided.  Of
        several starts the best stands; where that is one that was broken off, the status is MAX_ITER.
    compression : {"auto", False}
        Whether a smooth kernel may be searched by factors of low rank where that pays; the answer is certified without
        them where that is affordable, but not where a regression chose the functions of a classifier.  Of a kernel on
        more than 3,000 rows that has no low rank, 3,000 functions, or fewer, are candidates then where a regression
        chooses, and ``certificate_.left_aside`` says how many are not.  False never compresses, and makes all functions
        candidates.
    storage : {"float64", "float32"}
        Precision in which the values of the functions are held, on the host or on a device, where they are held;
        float32 halves the memory, and all statistics are computed in float64 still.
    checkpoint : str, optional
        File in which a long search keeps its state; fitting the same data with the same settings again goes on from
        there.  It is removed once the search has ended by itself.
    effort : {"fast", "default", "thorough"}
        How many places a regression is searched from (see ``Sequential``); a solver object has its own.
    n_restarts : int
        Further starts from random models or, where the kernel is learned, from random parameters; the best is kept.
    random_state : int, optional
        Seed for restarts, and for solvers and bases that draw at random.
    verbose : int
        0 shows progress of what takes more than two seconds (a line on a terminal, logging elsewhere), -1 nothing, 1
        prints progress, 2 every move.
    device : str, optional
        Where NumPy inputs are computed with, such as ``"cuda"`` (through PyTorch); arrays of PyTorch, CuPy or JAX are
        computed with where they are."""

RESULTS = """

    Attributes
    ----------
    relevance_ : ndarray of int
        The kept functions, sorted; the union over the targets or classes.  Where it counts training rows, a row stands
        as often as it has kept functions (in the order of the dictionary), and -1 stands for a function without a row.
    relevance_vectors_ : ndarray of shape (n_kept, n_features)
        Their centres.
    relevance_functions_ : list of dict
        What they are, the intercept last.
    coef_ : ndarray
        Posterior mean weights, a row for each of several targets or classes (zero where one does without a function).
    intercept_ : float or ndarray
        Constant term.
    alpha_, sigma_ : ndarray
        Prior precisions and posterior covariance of the kept weights, in the order of ``relevance_``, the intercept
        last where one is kept.  With several targets or classes ``alpha_`` has a row for each, infinite where one does
        without a function; ``sigma_`` is then a list (independent models), each entry over the finite ``alpha_`` of its
        row, or the joint covariance (softmax), over the finite ``alpha_`` in row order.  In classification it is the
        covariance of the Gaussian about the mode that is nearest to the posterior (Laplace's, class by class, where
        several classes share functions; that of its bound with ``solver="variational"``), and with
        ``likelihood="poisson"`` ``coef_`` and ``sigma_`` are mean and covariance of the nearest Gaussian of all.
    noise_variance_ : float or ndarray
        Noise variance (regression); where it varies the mean of ``predict_noise(X)**2`` over the training rows, each as
        often as its weight says.
    noise_varies_ : bool or ndarray of bool
        Whether the noise depends on the inputs (see ``predict_noise``).  Functions that serve the noise only are in
        ``relevance_`` too, with zero ``coef_`` and infinite ``alpha_``, and ``sigma_`` is over the finite ``alpha_``.
    std_scale_ : float or ndarray
        What the standard deviation of the posterior is multiplied by, typically, so that 1.96 of them either side hold
        95 % of new observations; one for each target.  It is found by searches on parts of the rows when it, or an
        error bar, is first asked for, and is 1 where there are no rows to leave out: robust likelihoods and counts,
        data in chunks or partitions or on a device, columns of a memory-mapped X, dictionaries of more than 32 million
        values, fewer than 20 rows; or where the bars would miss more than a quarter of the training rows.
    noise_scale_, spread_scale_ : float or ndarray
        What the two parts of the standard deviation are multiplied by exactly: the noise's, and that of the uncertainty
        of the model's output; their squares add up.
    outlier_probability_ : ndarray
        Probability of each row to be an outlier (``likelihood="outliers"`` and ``"student-t"``).
    outlier_share_, degrees_of_freedom_ : float or ndarray
        What the robust likelihoods learned.
    classes_ : ndarray
        Labels (classification).
    log_marginal_likelihood_ : float
        Log evidence, summed over independent models.  With ``likelihood="outliers"`` and ``"student-t"``, and where the
        noise varies, it is a bound on that; for counts and classes it is Laplace's approximation.  Where more than two
        classes share functions it is a lower bound on Laplace's, and of classes with ``solver="variational"`` on the
        evidence; neither can be compared with Laplace's.
    history_ : list of Record
        One record per move, or for several made together; functions are numbered as in the dictionary, the intercept
        after the last one, and with several coupled classes number m of class k is k times the size of the dictionary
        (intercept included) plus m.
    n_iter_ : int
        Moves of the winning start.
    status_ : Status
        How the search ended, in words.
    kernel_ : Basis
        The kernel with the parameters that were learned (``gamma="evidence"``, ``"ard"`` or ``"multiscale"``).
    kernel_status_ : dict
        For each of them by name, what the data say about it: a ``ParameterStatus``.
    kernel_gain_ : dict
        What they gained over those given, by searches of the same kind: ``"evidence"`` of a regression in nats; and
        where rows were left out to judge them, ``"density"`` in nats for each such row, with its standard error
        ``"density_error"``.
    certificate_ : Certificate
        Proof of convergence, recomputed on the data.
"""

_REGRESSION = (
    "outlier_probability_",
    "outlier_share_, degrees_of_freedom_",
    "likelihood",
    "noise",
    "noise_variance",
    "noise_variance_",
    "noise_varies_",
    "std_scale_",
    "noise_scale_, spread_scale_",
)
_CLASSIFICATION = ("evidence", "multi_class", "class_weight", "classes_")


def document(*sections: str) -> Callable[[T], T]:
    """Insert the shared sections before the notes of a class's own description, leaving out what it has not got."""

    def insert(cls: T) -> T:
        own, notes, rest = (cls.__doc__ or "").partition("\n    Notes\n")
        absent = _REGRESSION if issubclass(cls, ClassifierMixin) else _CLASSIFICATION
        heading = "" if "Parameters\n" in own else "\n    Parameters\n    ----------"
        text = "".join(_without(section, absent) for section in sections)
        body = f"{heading}{text}" if heading else text.lstrip("\n")
        cls.__doc__ = f"{own.rstrip()}\n{body}\n{notes}{rest}"
        return cls

    return insert


def _without(section: str, absent: tuple[str, ...]) -> str:
    """Drop the entries with these names, each a line at the margin and the deeper lines below it."""
    kept: list[str] = []
    dropping = False
    for line in section.split("\n"):
        if line.startswith("    ") and not line.startswith("        "):
            dropping = line.strip().split(" :")[0] in absent
        if not dropping:
            kept.append(line)
    return "\n".join(kept)
