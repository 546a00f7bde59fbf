"""Rows that come in chunks lead to the same model as rows that are held."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor, datasets, load, save
from sparsebayes.basis import RBF, Bias, Heaviside, Linear, Polynomial
from sparsebayes.chunks import ArrayChunks, Chunk, IterableChunks, ParquetChunks, sample_rows
from sparsebayes.design import MappedDesign, Reduction
from sparsebayes.inference import Sequential, Status
from sparsebayes.inference.fit.folds import Folds
from sparsebayes.testing.design import DesignConformance

WEIGHTS = np.array([1.0, 0.0, -2.0, 0.0, 0.5, 0.0])


def rows(n=700, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    return X, 3.0 + X @ WEIGHTS + 0.1 * rng.standard_normal(n), rng.integers(0, 3, n).astype(float)


def cut(*arrays, size=150):
    return [tuple(a[k : k + size] for a in arrays) for k in range(0, len(arrays[0]), size)]


def mapped(path, array):
    held = np.memmap(path, array.dtype, "w+", shape=array.shape)
    held[:] = array
    held.flush()
    return np.memmap(path, array.dtype, "r", shape=array.shape)


def same(one, other):
    assert_array_equal(one.relevance_, other.relevance_)
    assert_allclose(one.coef_, other.coef_, rtol=1e-7, atol=1e-10)
    assert_allclose(one.intercept_, other.intercept_, rtol=1e-9)
    assert_allclose(one.noise_variance_, other.noise_variance_, rtol=1e-8)
    assert one.log_marginal_likelihood_ == pytest.approx(other.log_marginal_likelihood_, rel=1e-10)
    assert one.status_ == other.status_


class TestMapped(DesignConformance):
    def make(self, Phi):
        return MappedDesign(Phi, max_bytes=1000)


BASES = {
    "columns": None,
    "polynomial": Bias() + Linear() + Polynomial(2),
    "given centres": RBF(3.0, centres=np.random.default_rng(5).standard_normal((20, 6))),
    "number of centres": Linear() + RBF(3.0, centres=15),
}


@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"noise_variance": 0.02}])
def test_chunks_lead_to_the_model_of_all_rows(basis, settings):
    X, y, w = rows()
    whole = SparseBayesRegressor(basis, **settings).fit(X[w > 0], y[w > 0], w[w > 0])
    chunks = cut(X[w > 0], y[w > 0], w[w > 0])
    same(SparseBayesRegressor(basis, **settings).fit(chunks), whole)
    same(SparseBayesRegressor(basis, **settings).fit(lambda: iter(chunks)), whole)


def test_partial_fits_lead_to_the_model_of_all_rows():
    X, y, w = rows()
    whole, parts = SparseBayesRegressor().fit(X, y, w), SparseBayesRegressor()
    for part in cut(X, y, w):
        assert parts.partial_fit(*part).predict(X).shape == (len(X),)
    same(parts, whole)


@pytest.mark.parametrize("shared", [False, True])
def test_several_targets(shared):
    X, y, _ = rows()
    Y = np.column_stack([y, 10.0 * y + X[:, 1]])
    same(
        SparseBayesRegressor(shared_support=shared).fit(cut(X, Y)),
        SparseBayesRegressor(shared_support=shared).fit(X, Y),
    )


def test_partial_fits_go_on_after_a_model_file(tmp_path):
    X, y, _ = rows()
    basis = RBF(3.0, centres=X[:15])
    begun = SparseBayesRegressor(basis).partial_fit(X[:300], y[:300])
    save(begun, tmp_path / "begun.model")
    same(load(tmp_path / "begun.model").partial_fit(X[300:], y[300:]), SparseBayesRegressor(basis).fit(X, y))


def test_a_fit_begins_anew():
    X, y, _ = rows()
    for again in (lambda m: m.fit(X, y), lambda m: m.fit(cut(X, y))):
        same(again(SparseBayesRegressor().partial_fit(X[:300], -y[:300])), SparseBayesRegressor().fit(X, y))


def test_partial_fits_go_on_from_chunks():
    X, y, _ = rows()
    begun = SparseBayesRegressor().fit([(X[:300], y[:300])])
    same(begun.partial_fit(X[300:], y[300:]), SparseBayesRegressor().fit(X, y))


@pytest.mark.parametrize("kind", ["array", "file", "wide file", "saved"])
def test_partial_fits_begin_anew_after_rows_of_which_nothing_was_kept_and_say_so(tmp_path, kind):
    X, y, _ = rows()
    if kind == "wide file":  # too many columns for inner products to pay: it is read as an array
        X, y = X[:5], y[:5]
    model = SparseBayesRegressor().fit(mapped(tmp_path / "X", X) if "file" in kind else X, -y)
    if kind == "saved":
        save(model, tmp_path / "model")
        model = load(tmp_path / "model")
    with pytest.warns(UserWarning, match=r"partial_fit begins anew: .* fitted to an array or a file") as caught:
        model.partial_fit(X, y)
    assert caught[0].filename == __file__
    same(model, SparseBayesRegressor().fit(X, y))
    model.partial_fit(X, y)  # from here on rows count, without a word


@pytest.mark.parametrize(
    ("basis", "change", "message"),
    [
        (None, {"basis": RBF(3.0, centres=4)}, r"basis=RBF.*summed with basis=None"),
        (RBF(3.0, centres=4), {"basis": None}, r"basis=None.*summed with basis=RBF"),
        (RBF(3.0, centres=4), {"basis": RBF(2.0, centres=4)}, r"basis=RBF.*summed with basis=RBF"),
        (RBF(3.0, centres=4), {"basis__width": 2.0}, r"basis=RBF.*summed with basis=RBF"),
        (RBF(3.0, centres=4), {"basis": RBF(3.0, centres=4) + Bias()}, r"basis=.*Bias.*summed with basis=RBF"),
        (RBF(3.0, centres=np.eye(6)), {"basis": RBF(3.0, centres=2 * np.eye(6))}, r"summed with basis=RBF"),
        (None, {"fit_intercept": False}, r"fit_intercept=False: .*fit_intercept=True"),
        (RBF(3.0, centres=4), {"fit_intercept": False}, r"fit_intercept=False: .*fit_intercept=True"),
    ],
)
def test_what_the_sums_are_of_cannot_change_between_them(tmp_path, basis, change, message):
    X, y, _ = rows()
    model = SparseBayesRegressor(basis).partial_fit(X[:300], y[:300])
    save(model, tmp_path / "model")
    for begun in (model, load(tmp_path / "model")):
        before = {name: begun.get_params()[name] for name in change}
        begun.set_params(**change)
        with pytest.raises(ValueError, match=message):
            begun.partial_fit(X[300:], y[300:])
        begun.set_params(**before)
        same(
            begun.partial_fit(X[300:], y[300:]),
            SparseBayesRegressor(basis).partial_fit(X[:300], y[:300]).partial_fit(X[300:], y[300:]),
        )


def test_a_basis_that_says_the_same_goes_on():
    X, y, _ = rows()
    model = SparseBayesRegressor(RBF(3.0, centres=X[:9]) + Bias()).partial_fit(X[:300], y[:300])
    model.set_params(basis=RBF(3.0, centres=X[:9].copy()) + Bias(), noise_variance=0.5).partial_fit(X[300:], y[300:])
    same(model, SparseBayesRegressor(RBF(3.0, centres=X[:9]) + Bias(), noise_variance=0.5).fit(X, y))


@pytest.mark.parametrize("estimator", [SparseBayesRegressor(), SparseBayesClassifier(), RVR(), RVC()])
def test_targets_beside_chunks_are_refused(estimator):
    X, y, _ = rows()
    labels = (y > 3).astype(float)
    for chunks in (cut(X, labels), lambda: iter(cut(X, labels)), iter(cut(X, labels)), IterableChunks(cut(X, labels))):
        with pytest.raises(ValueError, match=r"y is of type ndarray beside an X that comes in chunks.*leave y out"):
            clone(estimator).fit(chunks, labels)
    # Rows that are tuples of numbers are rows.
    assert (
        clone(estimator).fit([(1.0, 2.0), (2.0, 1.0), (3.0, 5.0), (4.0, 4.0)] * 3, [0, 1, 1, 0] * 3).n_features_in_ == 2
    )


def test_constant_targets_and_copies_of_columns():
    X, y, _ = rows()
    constant = SparseBayesRegressor().fit(cut(X, np.full(len(X), 7.3)))
    assert constant.status_.name == "CONSTANT"
    assert constant.intercept_ == 7.3
    twice = np.column_stack([X, X[:, 0], X[:, 2]])
    same(SparseBayesRegressor().fit(cut(twice, y)), SparseBayesRegressor().fit(twice, y))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("constant", [0.1, -7.3e8, 0.0])
@pytest.mark.parametrize("targets", [1, 2])
def test_the_noise_of_constant_targets_is_the_rounding_of_their_values(tmp_path, constant, targets, fit_intercept):
    X, y, w = rows()
    flat = np.full(len(X), constant)
    t = flat if targets == 1 else np.column_stack([flat, y])
    model = SparseBayesRegressor(shared_support=targets > 1, fit_intercept=fit_intercept)
    held, chunks = clone(model).fit(X, t, sample_weight=w), clone(model).fit(cut(X, t, w))
    there = clone(model).fit(mapped(tmp_path / "X", X), t, sample_weight=w)
    for one in (chunks, there):
        assert one.log_marginal_likelihood_ == pytest.approx(held.log_marginal_likelihood_, rel=1e-9)
        assert_allclose(one.noise_variance_, held.noise_variance_, rtol=1e-9)


def test_a_rule_that_counts_rows_counts_those_that_stand_for_others_exactly():
    # The search ends when more than a tenth of the rows were removed; thirty rows are not 29.99999.
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    X[:, 0] *= 1e-4
    y = 0.1 * (y + 3e4 * X[:, 0]) + 0.3 * X @ rng.standard_normal(12)
    model = SparseBayesRegressor(solver="subset")
    same(clone(model).fit(cut(X, y, size=10)), model.fit(X, y))


@pytest.mark.parametrize("size", [40, 1000])
def test_centres_are_never_chosen_among_rows_of_no_weight(tmp_path, size):
    X, y, w = rows()
    X[w == 0] += 30.0  # farthest from all others
    model = SparseBayesRegressor(Linear() + RBF(3.0, centres=15), random_state=0)
    held = clone(model).fit(X, y, sample_weight=w)
    same(clone(model).fit(cut(X, y, w, size=size)), held)
    same(clone(model).fit(mapped(tmp_path / "X", X), y, sample_weight=w), held)
    first = np.flatnonzero(w)[0] + 20
    ones = clone(model).partial_fit(X[:first], y[:first], sample_weight=w[:first])
    assert np.all(ones._dictionary.parts[1].centres[:, 0] < 15.0)
    with pytest.raises(ValueError, match="zero on every row"):
        clone(model).partial_fit(X, y, sample_weight=0.0 * w)
    with pytest.raises(ValueError, match="zero on every row"):
        clone(model).fit(cut(X, y, 0.0 * w))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_memory_mapped_rows(tmp_path, dtype):
    X, y, _ = rows()
    X = (10 * X).astype(dtype)
    held = mapped(tmp_path / "X", X)
    for basis in (None, RBF(30.0, centres=12)):
        same(SparseBayesRegressor(basis).fit(held, y), SparseBayesRegressor(basis).fit(X, y))
    labels = y > 3
    one, other = SparseBayesClassifier().fit(held, labels), SparseBayesClassifier().fit(X, labels)
    assert_array_equal(one.relevance_, other.relevance_)
    assert_allclose(one.predict_proba(held), other.predict_proba(X), rtol=1e-6)


def test_memory_mapped_columns_that_outnumber_the_rows(tmp_path):
    X, y, _ = datasets.make_spikes(60, 150, 4, noise=0.01, random_state=0)
    same(SparseBayesRegressor().fit(mapped(tmp_path / "X", X), y), SparseBayesRegressor().fit(X, y))


@pytest.mark.parametrize("seed", range(3))
def test_a_noise_that_would_collapse_is_held_where_no_row_can_be_left_out(seed):
    X, y, _ = datasets.make_spikes(60, 150, 4, noise=0.01, random_state=seed)
    model = SparseBayesRegressor().partial_fit(X[:25], y[:25]).partial_fit(X[25:], y[25:])
    assert model.status_ is Status.NOISE_HELD
    assert 0.5 <= model.noise_variance_ / 0.01**2 <= 2.0


def test_bad_memory_mapped_rows_are_refused(tmp_path):
    X, y, _ = rows(100)
    X[70, 3] = np.nan
    for estimator in (SparseBayesRegressor(), SparseBayesClassifier()):
        with pytest.raises(ValueError, match="NaN"):
            estimator.fit(mapped(tmp_path / "X", X), y > 3 if "Classifier" in type(estimator).__name__ else y)


def test_parquet_files(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y, w = rows()
    columns = {f"x{j}": X[:, j] for j in range(6)} | {"price": y, "weight": w}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=100)
    whole = SparseBayesRegressor().fit(X, y, w)
    chunks = ParquetChunks(tmp_path / "a.parquet", target="price", weight="weight", rows=64)
    same(SparseBayesRegressor().fit(chunks), whole)
    half = [tmp_path / "b.parquet", tmp_path / "c.parquet"]
    for path, part in zip(half, (slice(0, 350), slice(350, None)), strict=True):
        pq.write_table(pa.table({k: v[part] for k, v in columns.items()} | {"id": ["a"] * 350}), path)
    named = [f"x{j}" for j in range(6)]
    same(SparseBayesRegressor().fit(ParquetChunks(half, target="price", columns=named, weight="weight")), whole)
    with pytest.raises(ValueError, match=r"'id'.*not numbers"):
        list(ParquetChunks(half, target="price"))
    with pytest.raises(ValueError, match="no column"):
        list(ParquetChunks(half, target="cost"))


def test_columns_of_parquet_files_are_told_by_their_names(tmp_path):
    """Files whose columns stand in another order were read as if they stood in the first one's."""
    table = pytest.importorskip("pyarrow").table
    write = pytest.importorskip("pyarrow.parquet").write_table
    X, y, _ = rows(200)
    columns = {f"x{j}": X[:, j] for j in range(6)} | {"price": y}
    first, second = ({k: v[part] for k, v in columns.items()} for part in (slice(100), slice(100, None)))
    write(table(first), tmp_path / "a.parquet")
    write(table(dict(reversed(second.items()))), tmp_path / "b.parquet")
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    same(SparseBayesRegressor().fit(ParquetChunks(files, target="price")), SparseBayesRegressor().fit(X, y))
    write(table(second | {"x": second["price"]}), files[1])
    with pytest.raises(
        ValueError, match=r"b.parquet has columns \['x'\] that the files before it have not; .*columns="
    ):
        SparseBayesRegressor().fit(ParquetChunks(files, target="price"))


def test_names_that_chunks_have_are_those_of_the_model(tmp_path):
    """Wrong numbers for columns in another order, with no word that says so."""
    pandas = pytest.importorskip("pandas")
    write, table = pytest.importorskip("pyarrow.parquet").write_table, pytest.importorskip("pyarrow").table
    X, y, w = rows(200)
    names = ["c", "b", "a", "f", "e", "d"]
    frame = pandas.DataFrame(X, columns=names)
    whole = SparseBayesRegressor().fit(frame, y, w)
    write(table({"y": y, "w": w} | {name: frame[name].to_numpy() for name in names}), tmp_path / "a.parquet")
    parquet = ParquetChunks(tmp_path / "a.parquet", target="y", weight="w", rows=64)
    begun = SparseBayesRegressor()
    for chunk in parquet:
        begun.partial_fit(chunk.X, chunk.y, chunk.weight)
    sources = [
        parquet,
        ArrayChunks(frame, y, w, rows=64),
        [(frame[start : start + 64], y[start : start + 64], w[start : start + 64]) for start in (0, 64, 128, 192)],
    ]
    for model in (begun, *(SparseBayesRegressor().fit(source) for source in sources)):
        same(model, whole)
        assert list(model.feature_names_in_) == names
        np.testing.assert_allclose(model.predict(frame), whole.predict(frame), rtol=1e-8)
        np.testing.assert_array_equal(model.predict(next(iter(parquet)).X), model.predict(frame[:64]))
        with pytest.raises(ValueError, match="should match those that were passed during fit"):
            model.predict(frame[sorted(names)])
        with pytest.raises(ValueError, match="should match those that were passed during fit"):
            model.partial_fit(frame[sorted(names)], y)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            model.predict(X)
    centred = SparseBayesRegressor(RBF(2.0, centres=9)).fit(parquet)
    assert list(centred.feature_names_in_) == names


def test_one_weight_for_all_rows_of_a_file(tmp_path):
    X, y, _ = rows(200)
    same(SparseBayesRegressor().fit(mapped(tmp_path / "X", X), y, 2.0), SparseBayesRegressor().fit(X, y, 2.0))


@pytest.mark.parametrize("basis", [RBF(2.0), Heaviside(), Linear() + RBF(1.0)])
def test_functions_at_every_row_need_all_rows(basis):
    X, y, _ = rows(50)
    with pytest.raises(ValueError, match="give kernels their centres"):
        SparseBayesRegressor(basis).fit(cut(X, y))
    assert not hasattr(SparseBayesRegressor(basis), "partial_fit")


def test_what_chunks_cannot_be():
    X, y, _ = rows(50)
    with pytest.raises(ValueError, match="read only once"):
        SparseBayesRegressor(RBF(2.0, centres=5)).fit(iter(cut(X, y)))
    with pytest.raises(ValueError, match=r"expected a tuple \(X, y\)"):
        SparseBayesRegressor().fit(lambda: iter([X]))
    with pytest.raises(ValueError, match="no chunks"):
        SparseBayesRegressor().fit(iter(()))
    with pytest.raises(ValueError, match="features"):
        SparseBayesRegressor().fit([(X, y), (X[:, :3], y)])
    with pytest.raises(ValueError, match="targets"):
        SparseBayesRegressor().fit([(X, y), (X, np.column_stack([y, y]))])
    with pytest.raises(ValueError, match="one common number"):
        ArrayChunks(X, y[:-1])


def test_a_sample_is_spread_over_all_rows():
    X = np.arange(1000.0)[:, None]
    sample = sample_rows(IterableChunks(cut(X, X, size=77)), 100)[:, 0]
    assert 50 <= len(sample) <= 100
    assert len(np.unique(np.diff(sample))) == 1
    assert_array_equal(sample_rows(IterableChunks(cut(X, X, size=77)), 1000), X)


def test_a_reduction_has_the_inner_products_of_all_rows():
    X, y, w = rows()
    reduced = Reduction.empty(6, np.array([1.0]))
    for part in cut(X, y[:, None], w, size=5):
        reduced = reduced.add(*part)
    everything = np.column_stack([X, y - 1.0])
    assert reduced.factor.shape == (7, 7)
    assert_allclose(reduced.factor.T @ reduced.factor, everything.T @ (w[:, None] * everything), rtol=1e-12, atol=1e-10)
    assert reduced.total == w.sum()


# -- settings that inner products can, and cannot, give ----------------------------------------------------------


def outlying(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4))
    y = X[:, 0] - 2.0 * X[:, 1] + 0.05 * rng.standard_normal(300)
    y[:45] += 30.0
    return X, y


def ways(tmp_path, X, y):
    """The four ways in which a fixed dictionary can be given its rows."""
    held = mapped(tmp_path / "X", X)
    return {
        "array": lambda model: model.fit(X, y),
        "memmap": lambda model: model.fit(held, y),
        "chunks": lambda model: model.fit(cut(X, y)),
        "partial_fit": lambda model: model.partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:]),
    }


@pytest.mark.parametrize("likelihood", ["student-t", "outliers", "poisson"])
def test_other_likelihoods_are_fitted_or_refused_before_a_row_is_read(tmp_path, likelihood):
    X, y = outlying()
    y = np.abs(np.round(y)) if likelihood == "poisson" else y
    way = ways(tmp_path, X, y)
    here = way["array"](SparseBayesRegressor(likelihood=likelihood))
    there = way["memmap"](SparseBayesRegressor(likelihood=likelihood))
    assert_array_equal(there.relevance_, here.relevance_)
    assert_allclose(there.predict(X), here.predict(X), rtol=1e-6, atol=1e-8)

    def unread():
        raise AssertionError("a row was read")
        yield X, y

    for refused in (lambda m: m.fit(unread), lambda m: m.partial_fit(None, None)):
        with pytest.raises(ValueError, match=f"likelihood='{likelihood}' weighs every row.*one array or file"):
            refused(SparseBayesRegressor(likelihood=likelihood))


@pytest.mark.parametrize("basis", [None, RBF(3.0, centres=np.random.default_rng(5).standard_normal((40, 4)))])
@pytest.mark.parametrize("settings", [{"support": "conservative"}, {"n_restarts": 2, "random_state": 3}])
def test_every_way_takes_the_same_rule_and_restarts(tmp_path, settings, basis):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4))
    X = np.column_stack([X, rng.standard_normal((300, 36))]) if basis is None else X
    y = X[:, 0] - 2.0 * X[:, 1] + rng.standard_normal(300)
    for way, fit in ways(tmp_path, X, y).items():
        found = fit(SparseBayesRegressor(basis, **settings))
        if way == "array":
            here = found
        same(found, here)
        assert found.certificate_.objective == pytest.approx(here.certificate_.objective, rel=1e-9)
        assert len(found.history_) == len(here.history_)
    if "support" in settings:
        assert len(here.relevance_) < len(SparseBayesRegressor(basis).fit(X, y).relevance_)


@pytest.mark.parametrize("basis", [None, RBF(3.0, centres=np.random.default_rng(5).standard_normal((40, 4)))])
def test_error_bars_without_rows_work_or_say_what_is_missing(tmp_path, basis):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)
    way = ways(tmp_path, X, y)
    for name in ("memmap", "chunks", "partial_fit"):
        model = way[name](SparseBayesRegressor(basis))
        with pytest.raises(ValueError, match="kept no rows; call calibrate"):
            model.predict(X, return_std=True, uncertainty="conformal")
        with pytest.raises(ValueError, match="training rows, which are kept by a fit on an array"):
            model.predict(X, return_std=True, uncertainty="augmented")
        with pytest.raises(ValueError, match="training rows, which are kept by a fit on an array"):
            model.predict_interval(X, uncertainty="augmented")
        low, high = model.calibrate(X, y).predict_interval(X, uncertainty="conformal")
        assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"device": "cpu"}, "device='cpu'.*rows that come in chunks are reduced on the host; use device=None"),
        (
            {"solver": Sequential(split_merge=True)},
            "split_merge: functions are made on the way, and of rows that come in chunks only",
        ),
        ({"solver": "subset", "basis": RBF(3.0, centres=15)}, "solver='subset' takes the function of the row"),
        ({"support": "generous"}, "support='generous'"),
        ({"storage": "float16"}, "storage='float16'"),
        ({"compression": True}, "compression=True"),
        ({"n_restarts": -1}, "n_restarts=-1"),
    ],
)
def test_settings_of_chunks_are_refused_by_name(settings, message):
    X, y, _ = rows()
    with pytest.raises(ValueError, match=message):
        SparseBayesRegressor(**settings).fit(cut(X, y))


@pytest.mark.parametrize("solver", ["mackay", "em", "variational", "backfitting", "subset"])
def test_every_solver_gives_the_model_of_all_rows(solver):
    X, y, _ = rows(300)
    here, there = SparseBayesRegressor(solver=solver).fit(X, y), SparseBayesRegressor(solver=solver).fit(cut(X, y))
    assert_array_equal(there.relevance_, here.relevance_)
    assert_allclose(there.predict(X), here.predict(X), rtol=0, atol=1e-7 * y.std())


def test_rows_that_stand_for_others_are_not_left_out_as_if_they_were_observations(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 100)), rng.standard_normal(60)  # a model that has to be judged
    asked, possible = [], Folds.possible

    def spied(problem):
        asked.append(possible(problem))
        return asked[-1]

    monkeypatch.setattr(Folds, "possible", staticmethod(spied))
    SparseBayesRegressor().fit(cut(X, y))
    assert asked
    assert not any(asked)
    SparseBayesRegressor().fit(X, y)
    assert asked[-1]


# -- data that drift ---------------------------------------------------------------------------------------------


def drifting(n, forgetting, size=90):
    """Rows whose coefficients switch half way, their chunks, and the weights that forgetting leaves them."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, 6))
    before, after = np.array([2.0, 0, 0, -1.0, 0, 0]), np.array([0, -1.5, 0, 0, 0, 3.0])
    y = 1.0 + np.where(np.arange(n) < n // 2, X @ before, X @ after) + 0.1 * rng.standard_normal(n)
    return X, y, cut(X, y, size=size), forgetting ** np.arange(n - 1.0, -1.0, -1.0), after


@pytest.mark.parametrize("basis", [None, RBF(3.0, centres=np.random.default_rng(5).standard_normal((20, 6)))])
@pytest.mark.parametrize("size", [1, 90, 1000])
def test_forgetting_is_a_weight_for_every_row_by_its_age(basis, size):
    X, y, chunks, weights, _ = drifting(300, 0.98, size)
    model = SparseBayesRegressor(basis)
    for k, part in enumerate(chunks):  # a row at a time too, without a fit for each
        if size > 1 or k == 0 or k == len(chunks) - 1:
            model.partial_fit(*part, forgetting=0.98)
        else:
            model._read(Chunk(*part), None, 0.98)
    whole = SparseBayesRegressor(basis).fit(X, y, weights)
    assert_array_equal(model.relevance_, whole.relevance_)
    assert_allclose(model.predict(X), whole.predict(X), rtol=0, atol=1e-6 * y.std())
    assert_allclose(model.noise_variance_, whole.noise_variance_, rtol=1e-6)


def test_forgetting_follows_a_switch_of_coefficients():
    *_, chunks, _, after = drifting(3000, 0.99)
    keeping, forgetting = SparseBayesRegressor(), SparseBayesRegressor()
    for part in chunks:
        keeping.partial_fit(*part)
        forgetting.partial_fit(*part, forgetting=0.99)
    assert set(forgetting.relevance_) >= {1, 5}
    assert_allclose(forgetting.coef_, after, atol=0.05)
    assert forgetting.noise_variance_ == pytest.approx(0.01, rel=0.4)
    assert np.max(np.abs(keeping.coef_ - after)) > 0.5


def test_weights_and_forgetting_multiply():
    X, y, _, weights, _ = drifting(300, 0.98)
    given = np.random.default_rng(1).integers(0, 3, 300).astype(float)
    model = SparseBayesRegressor()
    for part in cut(X, y, given, size=90):
        model.partial_fit(*part, forgetting=0.98)
    # A row of weight zero is no observation, yet it ages those before it: time goes by rows.
    same(model, SparseBayesRegressor().fit(X, y, weights * given))


@pytest.mark.parametrize("wrong", [0.0, -0.5, 1.01, np.nan, "slow", True, None])
def test_forgetting_out_of_range_is_refused_before_a_row_is_read(wrong):
    with pytest.raises(ValueError, match=r"forgetting=.*expected a number above 0 and at most 1"):
        SparseBayesRegressor().partial_fit(None, None, forgetting=wrong)


# -- what is refused leaves nothing behind --------------------------------------------------------------------


def test_weights_beside_chunks_are_refused():
    X, y, weights = rows()
    with pytest.raises(ValueError, match="sample_weight: rows that come in chunks bring their weights"):
        SparseBayesRegressor().fit(cut(X, y), sample_weight=weights)


@pytest.mark.parametrize(
    ("settings", "given"),
    [({}, {"sample_weight": -np.ones(100)}), ({}, {"sample_weight": np.ones(3)}), ({"noise_variance": -1.0}, {})],
)
def test_rows_that_were_refused_can_be_given_again(settings, given):
    X, y, _ = rows(200)
    model, whole = SparseBayesRegressor(), SparseBayesRegressor()
    for k in (0, 100):
        part = slice(k, k + 100)
        with pytest.raises(ValueError, match=r"sample_weight|noise_variance"):
            model.set_params(**settings).partial_fit(X[part], y[part], forgetting=0.9, **given)
        model.set_params(noise_variance=None).partial_fit(X[part], y[part], forgetting=0.9)
        whole.partial_fit(X[part], y[part], forgetting=0.9)
    same(model, whole)


def test_a_refused_first_call_does_not_fix_the_width_of_the_rows():
    X, y, _ = rows(100)
    model = SparseBayesRegressor()
    with pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(X[:, :2], y, sample_weight=-np.ones(100))
    assert model.partial_fit(X, y).n_features_in_ == 6


def test_a_source_that_fills_one_array_again_and_again_is_sampled_right():
    X, _, _ = rows(600)

    def refilled():
        held = np.empty((150, 6))
        for k in range(0, 600, 150):
            held[:] = X[k : k + 150]
            yield held, np.zeros(150)

    assert_array_equal(sample_rows(IterableChunks(refilled), 1000), X)


def test_chunks_are_predicted_one_at_a_time():
    X, y, _ = rows()
    source = ArrayChunks(X, y, rows=300)
    model = SparseBayesRegressor().fit(source)
    with pytest.raises(TypeError, match=r"predict\(chunk\.X\)"):
        model.predict(source)
    each = np.concatenate([model.predict(chunk.X) for chunk in source])
    assert_allclose(each, model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("kind", [RVR, RVC, SparseBayesClassifier])
def test_the_refusal_of_chunks_does_not_ask_for_targets(kind):
    """Chunks bring their targets with them, so that nobody gives any; the refusal says what to do."""
    X = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.raises((TypeError, ValueError), match=r"come in chunks .*or pass all rows as one array"):
        kind().fit([(X, X[:, 0] > 0.0)])
    with pytest.raises(ValueError, match="requires y to be passed"):
        kind().fit(X)
