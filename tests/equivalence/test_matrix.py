"""Estimator x solver x likelihood x storage x options: the model of rows in memory, or a refusal that helps.

A fit is first made with everything that computes walled off.  Where it is refused before it comes to the wall, the
message must name a setting and the way out, and the declaration behind the table in the documentation must say so too;
where it comes to the wall, it must give the model of the same rows in memory.
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Callable, Heaviside, Linear, Polynomial, Precomputed
from sparsebayes.estimators import checks, cluster, dictionary, streaming
from sparsebayes.inference import SOLVERS, Sequential
from sparsebayes.studies.storages import page as storages_page

CLOSE = 1e-6
N, PARTS = 240, 3


@cache
def data():
    """Rows that single precision holds exactly, and targets of every kind."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (N, 3)).astype(np.float32).astype(np.float64)
    f = np.sin(X[:, 0]) + 0.5 * X[:, 1]
    noisy = f + 0.1 * rng.standard_normal(N)
    outlying = np.where(np.arange(N) % 20 == 0, noisy + 5.0, noisy)
    return X, {
        "gaussian": noisy,
        "student-t": outlying,
        "outliers": outlying,
        "poisson": rng.poisson(np.exp(f)).astype(float),
        "two": (f + 0.5 * rng.standard_normal(N) > 0.0).astype(int),
        "three": np.digitize(f + 0.3 * rng.standard_normal(N), [-0.5, 0.5]),
        "targets": np.column_stack([noisy, noisy + X[:, 2]]),
    }


@dataclass(frozen=True)
class Case:
    """A fit: which estimator, of what, with which settings; ``weights`` are none, or some rows twice, or some not."""

    kind: type
    targets: str
    settings: dict = field(default_factory=dict)
    weights: str = "none"
    name: str = ""

    def __str__(self):
        return self.name

    def make(self):
        return self.kind(**self.settings)

    def weight(self):
        weights = 1.0 + np.arange(N) % 2
        return {"none": None, "some": weights, "zero": np.where(np.arange(N) % 5 == 0, 0.0, weights)}[self.weights]


def case(kind, targets, name, settings, weights="none"):
    return Case(kind, targets, settings, weights, f"{kind.__name__}-{name}-{targets}")


def bases():
    # Kernels that hardly overlap: backfitting ends where its cycles change little, and between functions that are
    # nearly parallel rounding decides where that is.
    return {"columns": {}, "centres": {"basis": RBF(1.5, centres=data()[0][:8])}}


def cases_of(solver):
    """Every likelihood with a solver; other than Gaussian ones of kernels for two solvers only, which take long."""
    found = []
    for name, basis in bases().items():
        usual = name == "columns" or solver in ("sequential", "mackay")
        for likelihood in ("gaussian", "student-t", "poisson") if usual else ("gaussian",):
            settings = {**basis, "solver": solver, "likelihood": likelihood}
            found.append(case(SparseBayesRegressor, likelihood, f"{name}-{solver}", settings))
        for classes in ("two", "three") if usual else ():
            found.append(case(SparseBayesClassifier, classes, f"{name}-{solver}", {**basis, "solver": solver}))
    return found if solver == "backfitting" else [*found, case(RVR, "gaussian", solver, KERNEL | {"solver": solver})]


def options_of(kind):
    """Every option of an estimator."""
    targets = "gaussian" if kind in (RVR, SparseBayesRegressor) else "two"
    basis = KERNEL if kind in (RVR, RVC) else {}
    options = OPTIONS | (OF_REGRESSION if targets == "gaussian" else {})
    found = [case(kind, targets, name, {**basis, **settings}) for name, settings in options.items()]
    return found + [case(kind, targets, f"weights {weights}", basis, weights) for weights in ("some", "zero")]


def others():
    """What single estimators have."""
    split = {**bases()["centres"], "solver": Sequential(split_merge=True)}
    found = [
        case(RVR, name, "sequential", KERNEL | {"likelihood": name}) for name in ("outliers", "student-t", "poisson")
    ]
    found += [case(RVC, classes, "sequential", KERNEL) for classes in ("two", "three")]
    found.append(case(RVC, "three", "own functions", KERNEL | {"shared_support": False}))
    found.append(case(SparseBayesClassifier, "three", "own functions", {"shared_support": False}))
    for shared in (False, True):
        found.append(case(SparseBayesRegressor, "targets", f"shared {shared}", {"shared_support": shared}))
        found.append(case(RVR, "targets", f"shared {shared}", KERNEL | {"shared_support": shared}))
    for name, basis in FUNCTIONS.items():
        found.append(case(SparseBayesRegressor, "gaussian", name, {"basis": basis}))
        found.append(case(SparseBayesClassifier, "two", name, {"basis": basis}))
    return [
        *found,
        case(RVR, "gaussian", "sum", {"kernel": RBF(4.5) + Linear()}),
        case(RVR, "gaussian", "callable", {"kernel": _gaussian}),
        case(SparseBayesRegressor, "gaussian", "centres-split", split),
        case(SparseBayesRegressor, "gaussian", "noise", {"noise_variance": 0.01}),
        case(SparseBayesClassifier, "three", "ovr", {"multi_class": "ovr"}),
        case(SparseBayesClassifier, "three", "ovr-variational", {"multi_class": "ovr", "solver": "variational"}),
        case(SparseBayesClassifier, "two", "class_weight", {"class_weight": {0: 2.0, 1: 1.0}}),
        case(RVR, "gaussian", "evidence", {"gamma": "evidence"}),
        case(RVC, "two", "evidence", {"gamma": "evidence"}),
        case(RVR, "student-t", "evidence", {"gamma": "evidence", "likelihood": "student-t"}),
    ]


def _shifted(centres, rng):
    return centres + 0.1


def _gaussian(X, Z):
    return np.exp(-0.05 * np.square(X[:, None] - Z).sum(axis=2))


KERNEL = {"gamma": 0.05}
# What depends on no row, on some rows, on all rows, or on all of them with a function on each.
FUNCTIONS = {
    "polynomial": Polynomial(2),
    "precomputed": Precomputed(),
    "linear and some": Linear() + RBF(1.5, centres=8),
    "some of them": RBF(2.5, centres=8),
    "steps": Linear() + Heaviside(),
    "every row": RBF(4.5),
    "own code": Callable(_gaussian, centres=8),
}
OPTIONS = {
    "exchange": {"solver": Sequential(exchange="converged")},
    "always": {"solver": Sequential(exchange="always")},
    "split": {"solver": Sequential(split_merge=True)},
    "candidates": {"solver": Sequential(candidates=_shifted, rounds=1)},
    "conservative": {"support": "conservative"},
    "restarts": {"n_restarts": 1, "random_state": 0},
    "checkpoint": {"checkpoint": "matrix.json"},
    "device": {"device": "cpu"},
    "no intercept": {"fit_intercept": False},
}
OF_REGRESSION = {
    "single": {"solver": Sequential(batch=1)},
    "uncompressed": {"compression": False},
    "fast": {"effort": "fast"},
    "varies": {"noise": "varies"},
}


def cut(array):
    return None if array is None else np.array_split(array, PARTS)


# -- storages -----------------------------------------------------------------------------------------------------


def mapped(X, y, w, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r"), y, w


def in_chunks(X, y, w, folder):
    parts = [cut(X), cut(y)] + ([] if w is None else [cut(w)])
    return list(zip(*parts, strict=True)), None, None


def parquet(X, y, w, folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from sparsebayes.chunks import ParquetChunks

    Y = y.reshape(len(y), -1)
    names = [f"t{k}" for k in range(Y.shape[1])]
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | dict(zip(names, Y.T, strict=True))
    columns |= {} if w is None else {"w": w}
    pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=50)
    target = "t0" if y.ndim == 1 else names
    return ParquetChunks(folder / "rows.parquet", target=target, weight=None if w is None else "w"), None, None


def torch(X, y, w, folder):
    module = pytest.importorskip("torch", reason="PyTorch is not installed")
    module.set_num_threads(1)
    return module.asarray(X), module.asarray(y), w


def strict(X, y, w, folder):
    module = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    return module.asarray(X), module.asarray(y), w


def dask_array(X, y, w, folder):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    return *(da.from_array(a, chunks=(N // PARTS, *a.shape[1:])) for a in (X, y)), w


def dask_frame(X, y, w, folder):
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    if y.ndim == 2:
        pytest.skip("a Series has one target")
    table = pandas.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"t": y})
    return frames.from_pandas(table, npartitions=PARTS), "t", w


STORAGES = {
    "float32": (checks.ARRAY, lambda X, y, w, folder: (X.astype(np.float32), y, w)),
    "memmap": (checks.MAPPED, mapped),
    "csr": (checks.SPARSE, lambda X, y, w, folder: (sp.csr_array(X), y, w)),
    "operator": (checks.OPERATOR, lambda X, y, w, folder: (aslinearoperator(X), y, w)),
    "torch": (checks.ELSEWHERE, torch),
    "array-api-strict": (checks.ELSEWHERE, strict),
    "chunks": (checks.CHUNKS, in_chunks),
    "parquet": (checks.CHUNKS, parquet),
    "dask": (checks.DASK, dask_array),
    "dask frame": (checks.DASK, dask_frame),
}
# The same program runs behind these as behind others: asked for the plainest fits only.
ALIKE = {"torch", "parquet", "dask frame", "float32"}
CASES = [
    *(made for solver in SOLVERS for made in cases_of(solver)),
    *(made for kind in (RVR, SparseBayesRegressor, RVC, SparseBayesClassifier) for made in options_of(kind)),
    *others(),
]


def counted_first(case, storage):
    """Whether a refusal depends on how many classes there are, which only the rows say."""
    own = case.settings.get("multi_class") == "ovr" or not case.settings.get("shared_support", True)
    sequential = case.settings.get("solver", "sequential") == "sequential"
    return "dask" in storage and case.targets == "three" and sequential and not own


def asked(case, storage):
    plain = case.settings.get("solver", "sequential") in ("sequential", "subset") and case.kind is not RVC
    return storage not in ALIKE or (plain and case.targets in ("gaussian", "two", "targets"))


PAIRS = [(case, name) for case in CASES for name in STORAGES if asked(case, name) and not counted_first(case, name)]


# -- the test -----------------------------------------------------------------------------------------------------


class Wall(Exception):
    """Something was about to be computed."""


def walled(monkeypatch):
    def wall(*_, **__):
        raise Wall

    monkeypatch.setattr(dictionary.Dictionary, "build", wall)
    monkeypatch.setattr(cluster.Cluster, "gather", wall)
    monkeypatch.setattr(streaming.ChunkedRegression, "_read", wall)


def fitted(case, X, y, w):
    model = case.make()
    return model.fit(X, y, w) if w is not None else model.fit(X, y)


def predictions(model, X):
    if hasattr(model, "feature_names_in_"):  # names of columns are compared, as those of a data frame are
        X = pytest.importorskip("pandas").DataFrame(X, columns=list(model.feature_names_in_))
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@cache
def in_memory(number, folder):
    X, targets = data()
    case = CASES[number]
    return fitted(case, X, targets[case.targets], case.weight())


def declared(case, storage, y):
    """What the declaration says of it: whether solver and settings go together, and what the storage lacks."""
    model = case.make()
    solver = model._checked_solver()
    try:
        if case.targets in ("two", "three"):
            checks.check_classifier(model, solver, storage, case.weight())
            checks.check_classes(model, solver, len(np.unique(y)))
        else:
            checks.check_regressor(model, solver, storage, case.weight(), checks.targets_of(y))
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("case", "name"), PAIRS, ids=lambda value: str(value))
def test_the_model_in_memory_or_a_refusal_that_helps(case, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dask = pytest.importorskip("dask", reason="Dask is not installed") if "dask" in name else None
    X, targets = data()
    y = targets[case.targets]
    storage, put = STORAGES[name]
    with monkeypatch.context() as patch:
        walled(patch)
        try:
            fitted(case, *put(X, y, case.weight(), tmp_path))
        except Wall:
            refusal = None
        except (TypeError, ValueError) as error:
            refusal = str(error)
    assert (refusal is None) == declared(case, storage, y), refusal
    if refusal is not None:
        helps = ("; use ", "; give ", "; repeat ", "; leave ", "; fit ", ", or pass ")
        assert any(way in refusal for way in helps), refusal
        return
    if dask is not None:
        with dask.config.set(scheduler="synchronous"):
            there = fitted(case, *put(X, y, case.weight(), tmp_path))
    else:
        there = fitted(case, *put(X, y, case.weight(), tmp_path))
    here = in_memory(CASES.index(case), None)
    np.testing.assert_array_equal(there.relevance_, here.relevance_)
    spread = 1.0 if y.dtype.kind == "i" else y.std()
    np.testing.assert_allclose(predictions(there, X), predictions(here, X), rtol=0, atol=CLOSE * spread)


@pytest.mark.parametrize("number", [k for k, case in enumerate(CASES) if counted_first(case, "dask")])
def test_classes_that_share_functions_are_refused_on_dask_once_they_are_counted(number, tmp_path):
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    X, targets = data()
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match="use shared_support=False"):
        fitted(CASES[number], *dask_array(X, targets["three"], None, tmp_path))


def test_the_page_is_that_of_the_declarations():
    page = Path(__file__).parents[2] / "docs" / "storages.md"
    assert page.read_text(encoding="utf-8") == storages_page(), (
        "run python -m sparsebayes.studies.storages --page docs/storages.md"
    )
