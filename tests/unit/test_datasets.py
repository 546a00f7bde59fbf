import functools
import math
import os
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from sparsebayes import datasets
from sparsebayes.datasets import DatasetNotFoundError, list_datasets, load

SIGNALS = [datasets.make_blocks, datasets.make_bumps, datasets.make_heavisine, datasets.make_doppler]
FRIEDMANS = [datasets.make_friedman1, datasets.make_friedman2, datasets.make_friedman3]
REGRESSION = [datasets.make_sinc, datasets.make_sinc2d, datasets.make_spikes, *FRIEDMANS, *SIGNALS]
GENERATORS = [datasets.make_ripley, *(functools.partial(make, noise=0.5) for make in REGRESSION)]


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("seeded", [np.random.RandomState, np.random.default_rng])
def test_same_seed_same_draw_and_random_states_are_advanced(make, seeded):
    state = seeded(7)
    first = make(50, random_state=state)
    for one, two in zip(first, make(50, random_state=seeded(7)), strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(first[1], make(50, random_state=state)[1])
    np.testing.assert_array_equal(make(50, random_state=3)[1], make(50, random_state=3)[1])


@pytest.mark.parametrize("make", REGRESSION)
def test_clean_target_is_what_noise_is_added_to(make):
    noisy = make(2000, noise=0.3, random_state=0, return_clean=True)
    residual = noisy[1] - noisy[-1]
    assert abs(residual.mean()) < 4 * 0.3 / math.sqrt(2000)
    assert residual.std() == pytest.approx(0.3, rel=0.06)
    quiet = make(30, noise=0.0, random_state=0, return_clean=True)
    np.testing.assert_array_equal(quiet[1], quiet[-1])
    assert len(make(30, random_state=0)) == len(quiet) - 1


@pytest.mark.parametrize("make", REGRESSION)
def test_bad_arguments_are_named(make):
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1, got 0"):
        make(0)
    with pytest.raises(ValueError, match="noise must be a number of at least 0, got -1"):
        make(noise=-1)


def test_sinc_formula_and_spacing():
    X, _y, clean = datasets.make_sinc(101, return_clean=True, random_state=0)
    np.testing.assert_allclose(X[:, 0], -10 + 0.2 * np.arange(101), atol=1e-12)
    assert clean[50] == 1.0
    x, others = np.abs(np.delete(X[:, 0], 50)), np.delete(clean, 50)
    np.testing.assert_allclose(others, np.sin(x) / x, atol=1e-12)


def test_sinc_random_inputs_and_uniform_noise():
    options = {"distribution": "uniform", "spacing": "random", "low": 0, "high": 4}
    X, y, clean = datasets.make_sinc(5000, noise=0.2, return_clean=True, random_state=1, **options)
    assert 0 < X.min() < X.max() < 4
    assert not np.all(np.diff(X[:, 0]) > 0)
    assert np.abs(y - clean).max() < 0.2
    assert (y - clean).std() == pytest.approx(0.2 / math.sqrt(3), rel=0.03)


def test_sinc_options_are_checked():
    with pytest.raises(ValueError, match=r"distribution must be one of \['gaussian', 'uniform'\], got 'log'"):
        datasets.make_sinc(distribution="log")
    with pytest.raises(ValueError, match="low must be smaller than high"):
        datasets.make_sinc(low=1, high=1)


def test_sinc2d_formula():
    X, _y, clean = datasets.make_sinc2d(500, return_clean=True, random_state=0)
    assert np.abs(X).max() <= 10
    radius = np.hypot(X[:, 0], X[:, 1])
    np.testing.assert_allclose(clean, np.sin(radius) / radius, atol=1e-12)


@pytest.mark.parametrize("make", FRIEDMANS)
@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_friedman_is_scikit_learns(make, noise):
    reference = getattr(sklearn.datasets, make.__name__)(60, noise=noise, random_state=5)
    for ours, theirs in zip(make(60, noise=noise, random_state=5), reference, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_friedman_defaults_and_sizes():
    assert datasets.make_friedman1()[0].shape == (240, 10)
    for make in (datasets.make_friedman2, datasets.make_friedman3):
        X, y, clean = make(20_000, return_clean=True, random_state=0)
        assert X.shape == (20_000, 4)
        assert clean.std() / (y - clean).std() == pytest.approx(3, rel=0.1)

    assert datasets.make_friedman1(10, n_features=5)[0].shape == (10, 5)
    with pytest.raises(ValueError, match="n_features must be at least 5, got 4"):
        datasets.make_friedman1(10, n_features=4)


PLACES = [0.1, 0.13, 0.15, 0.23, 0.25, 0.4, 0.44, 0.65, 0.76, 0.78, 0.81]
STEPS = [4, -5, 3, -4, 5, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2]
PEAKS = [4, 5, 3, 4, 5, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2]
WIDTHS = [0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005]
BUMPS = list(zip(PLACES, PEAKS, WIDTHS, strict=True))
POINTWISE = [
    (lambda t: sum(h for p, h in zip(PLACES, STEPS, strict=True) if t > p), 1.912369, 3.660381),
    (lambda t: sum(h / (1 + abs(t - p) / w) ** 4 for p, h, w in BUMPS), 0.665402, 10.519959),
    (lambda t: 4 * math.sin(4 * math.pi * t) - (2 if 0.3 < t < 0.72 else 0), 2.969900, 2.356982),
    (lambda t: math.sqrt(t * (1 - t)) * math.sin(2.1 * math.pi / (t + 0.05)), 0.288996, 24.221761),
]


@pytest.mark.parametrize(("make", "known"), list(zip(SIGNALS, POINTWISE, strict=True)))
def test_signal_formula_and_scale(make, known):
    formula, sd, factor = known
    # 1009 is prime, so that no point falls on a jump, where the two ways of writing a step differ.
    X, y = make(1009, sd=None)
    np.testing.assert_allclose(X[:, 0], np.arange(1, 1010) / 1009)
    np.testing.assert_allclose(y, [formula(t) for t in X[:, 0]], atol=1e-10)
    unscaled, scaled = make(2048, sd=None)[1], make(2048)[1]
    assert unscaled.std() == pytest.approx(sd, abs=5e-7)
    assert scaled.std() == pytest.approx(7)
    np.testing.assert_allclose(scaled, factor * unscaled, rtol=1e-6, atol=1e-6)


def test_blocks_jump_only_at_the_jumps_and_need_a_scale():
    with pytest.raises(ValueError, match="use sd=None"):
        datasets.make_blocks(1)
    with pytest.raises(ValueError, match="sd must be positive or None, got 0"):
        datasets.make_blocks(sd=0)
    X, y = datasets.make_blocks(1009, sd=None)
    places = X[1:, 0][np.abs(np.diff(y)) > 1e-9]
    np.testing.assert_allclose(places, datasets.blocks_jumps(), atol=1 / 1009)
    datasets.blocks_jumps()[0] = 9.0
    np.testing.assert_array_equal(datasets.blocks_jumps(), PLACES)


def test_ripley_is_the_mixture():
    X, y = datasets.make_ripley(40_000, random_state=0)
    assert y.dtype == np.int64
    assert y.mean() == pytest.approx(0.5, abs=0.01)
    centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    for label in (0, 1):
        own = X[y == label]
        np.testing.assert_allclose(own.mean(axis=0), centres[label].mean(axis=0), atol=0.02)
        np.testing.assert_allclose(own.var(axis=0), 0.03 + centres[label].var(axis=0), rtol=0.05)
    density = np.exp(-((X[:, None, None] - centres) ** 2).sum(axis=-1) / 0.06).sum(axis=2)
    assert np.mean(density.argmax(axis=1) != y) == pytest.approx(0.08, abs=0.01)


def test_spikes_are_few_and_of_unit_height():
    X, y, w, clean = datasets.make_spikes(random_state=0, return_clean=True)
    assert X.shape == (256, 1024)
    assert y.shape == (256,)
    assert np.count_nonzero(w) == 40
    assert set(np.unique(w)) == {-1.0, 0.0, 1.0}
    assert (X**2).sum(axis=0).mean() == pytest.approx(1, rel=0.02)
    np.testing.assert_allclose(clean, X @ w)
    with pytest.raises(ValueError, match="n_spikes must be at most n_features=5, got 6"):
        datasets.make_spikes(10, 5, 6)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An empty data folder, and no network."""

    def unreachable(**_request):
        raise URLError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)
    monkeypatch.setenv("SPARSEBAYES_DATA", str(tmp_path))
    for name in ("robust", "highdim", "ratsch", "regression"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def no_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)


@pytest.mark.usefixtures("folder", "no_pandas")
class TestAlwaysAtHand:
    def test_ripley_synth(self):
        bunch = load("ripley_synth")
        assert bunch.data.shape == (1250, 2)
        assert bunch.feature_names == ["xs", "ys"]
        np.testing.assert_array_equal(np.bincount(bunch.target[bunch.train_idx]), [125, 125])
        np.testing.assert_array_equal(np.bincount(bunch.target[bunch.test_idx]), [500, 500])
        assert bunch.data[250, 0] == -0.970990139
        assert (bunch.name, bunch.task) == ("ripley_synth", "classification")
        assert bunch.source == "package: ripley_synth_train.csv, ripley_synth_test.csv"

    def test_pima_ripley(self):
        bunch = load("pima_ripley")
        assert bunch.data.shape == (532, 7)
        assert bunch.target_names == ["No", "Yes"]
        assert (len(bunch.train_idx), bunch.target[bunch.train_idx].sum()) == (200, 68)
        assert (len(bunch.test_idx), bunch.target[bunch.test_idx].sum()) == (332, 109)

    def test_boston(self):
        plain, split = load("boston_mass"), load("boston")
        assert plain.data.shape == (506, 13)
        assert plain.target.mean() == pytest.approx(22.5328, abs=5e-5)
        assert plain.target_name == "medv"
        assert "train_idx" not in plain
        np.testing.assert_array_equal(plain.data, split.data)
        assert len(split.train_idx) == 20
        order = np.random.RandomState(1).permutation(506)
        np.testing.assert_array_equal(np.r_[split.train_idx[0], split.test_idx[0]], order)

    @pytest.mark.parametrize(
        ("name", "counts"),
        [("iris", [50, 50, 50]), ("wine", [59, 71, 48]), ("wdbc", [212, 357])],
    )
    def test_sets_of_scikit_learn(self, name, counts):
        bunch = load(name)
        np.testing.assert_array_equal(np.bincount(bunch.target), counts)
        assert len(bunch.target_names) == len(counts)

    def test_digits_and_diabetes_as_X_y(self):
        assert load("digits", return_X_y=True)[0].shape == (1797, 64)
        X, y = load("diabetes", return_X_y=True)
        assert X.shape == (442, 10)
        assert y.mean() == pytest.approx(152.1335, abs=5e-5)


def test_offline_error_says_what_to_set(folder, monkeypatch):
    with pytest.raises(DatasetNotFoundError, match=r"has no such file.*not on OpenML.*robust/mcycle.csv"):
        load("mcycle")
    monkeypatch.delenv("SPARSEBAYES_DATA")
    with pytest.raises(DatasetNotFoundError, match=r"is not set.*no route to host.*") as caught:
        load("abalone")
    assert isinstance(caught.value, FileNotFoundError)
    assert "Set SPARSEBAYES_DATA to a folder that holds regression/abalone.csv" in str(caught.value)


def test_unknown_name_lists_near_matches_and_all():
    with pytest.raises(ValueError, match=r"Unknown data set 'abalon'\. Did you mean 'abalone'\?") as caught:
        load("abalon")
    assert all(name in str(caught.value) for name in list_datasets())
    with pytest.raises(ValueError, match=r"Unknown data set 'zzzzzz'\. Known: "):
        load("zzzzzz")


def test_list_datasets_says_where():
    places = list_datasets()
    assert len(places) == 49
    assert places["abalone"] == ("SPARSEBAYES_DATA/regression/abalone.csv", "OpenML abalone (183)")
    assert places["boston_mass"][0] == "package boston_mass.csv"


def test_import_is_light():
    # A bare parent, because what else the whole package imports is not this folder's affair.
    parent = Path(datasets.__file__).parents[1]
    code = f"""
import sys, types
sys.modules["sparsebayes"] = types.ModuleType("sparsebayes")
sys.modules["sparsebayes"].__path__ = [{str(parent)!r}]
import sparsebayes.datasets
print({{"pandas", "sklearn.datasets"}} & set(sys.modules))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def _write(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


def test_several_outputs_and_extras(folder):
    header = "Acidity,Peroxide,K232,K270,DK,yellow,green,brown,glossy,transp,syrup,id"
    _write(folder / "highdim/oliveoil.csv", header, [[i] * 11 + [f"G{i}"] for i in range(16)])
    bunch = load("oliveoil")
    assert bunch.source == "SPARSEBAYES_DATA: highdim/oliveoil.csv"
    assert bunch.target.shape == (16, 6)
    assert bunch.target_name == ["yellow", "green", "brown", "glossy", "transp", "syrup"]
    assert bunch.extras["id"][3] == "G3"


def test_split_column_is_no_feature(folder):
    names = "lcavol,lweight,age,lbph,svi,lcp,gleason,pgg45,lpsa,train"
    _write(folder / "highdim/prostate.csv", names, [[i] * 9 + [i % 3 != 0] for i in range(97)])
    bunch = load("prostate")
    assert "train" not in bunch.feature_names
    np.testing.assert_array_equal(bunch.test_idx, np.arange(0, 97, 3))


def test_texts_are_coded_and_missing_numbers_are_nan(folder):
    header = "sex,length,diameter,height,whole,shucked,viscera,shell,rings"
    rows = [["MFI"[i % 3], "" if i == 5 else i, *range(6), i] for i in range(4177)]
    _write(folder / "regression/abalone.csv", header, rows)
    bunch = load("abalone")
    assert bunch.feature_names[:4] == ["sex=F", "sex=I", "sex=M", "length"]
    np.testing.assert_array_equal(bunch.data[:3, :3], [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(bunch.data).any(axis=1)), [5])


@pytest.mark.usefixtures("no_pandas")
def test_npz_with_stored_splits(folder):
    rows = np.arange(277, dtype=np.int16)
    arrays = {"train_idx": rows[None, :200], "test_idx": rows[None, 200:], "split_number": np.array([1])}
    y = np.where(rows % 2, 1, -1).astype(np.int8)
    np.savez(folder / "ratsch/breast_cancer.npz", X=np.ones((277, 9)), y=y, **arrays)
    bunch = load("breast_cancer")
    np.testing.assert_array_equal(bunch.target, rows % 2)
    assert bunch.target_names == ["-1", "1"]
    np.testing.assert_array_equal(bunch.test_idx[0], np.arange(200, 277))


def test_wrong_files_are_refused(folder):
    _write(folder / "robust/mcycle.csv", "times,accel", [(1, 2)])
    with pytest.raises(ValueError, match="1 rows and 1 features, expected 133 and 1: it is another version"):
        load("mcycle")
    _write(folder / "robust/mcycle.csv", "times,speed", [(1, 2)])
    with pytest.raises(ValueError, match=r"lacks the columns \['accel'\]; it has \['times', 'speed'\]"):
        load("mcycle")


def test_openml_copy_is_coded_alike_and_has_no_splits(folder, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.ones((20000, 15)), columns=list("abcdefghijklmno"))
    frame["text"] = pandas.Categorical(["v", "u"] * 10000)
    target = pandas.Series(["Z", "Y"] * 10000, dtype="category")
    asked = {}
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **kw: asked.update(kw) or (frame, target))
    bunch = load("letter")
    assert asked["data_id"] == 6
    assert bunch.feature_names[-3:] == ["o", "text=u", "text=v"]
    np.testing.assert_array_equal(bunch.target[:2], [1, 0])
    assert bunch.target_names == ["Y", "Z"]
    assert bunch.source == "OpenML: letter (6)"
    assert "train_idx" not in bunch


needs_folder = pytest.mark.skipif("SPARSEBAYES_DATA" not in os.environ, reason="SPARSEBAYES_DATA is not set")

# What was counted when the files were collected: means of targets, sizes of classes, (splits, train, test).
# fmt: off
MEANS = {
    "boston": 22.5328, "concrete": 35.8180, "energy": 22.3072, "protein": 7.7485, "wine_red": 5.6360,
    "yacht": 10.4954, "abalone": 9.9337, "wine_white": 5.8779, "california_housing": 206855.82,
    "cpu_act": 83.9688, "cpu_small": 83.9688, "airfoil": 124.8359, "diamonds": 3932.80,
    "kegg_undirected": 2.0e-06, "gasoline": 87.1775, "tecator": 18.1423, "prostate": 2.4784,
    "riboflavin": -7.1594, "stackloss": 17.5238, "starsCYG": 5.0121, "mcycle": -25.5459,
}
COUNTS = {
    "banana": {"1": round(0.4483 * 5300)}, "breast_cancer": {"1": round(0.2924 * 277)}, "german": {"1": 300},
    "image": {"1": round(0.5714 * 2310)}, "titanic": {"1": round(0.3230 * 2201)},
    "waveform": {"1": round(0.3294 * 5000)}, "pima_uci": {"pos": 268}, "letter": {"A": 789},
    "satimage": {"red soil": 1533, "grey soil": 1358, "damp grey soil": 626},
    "shuttle": {"Rad.Flow": 45586, "Bpv.Close": 10}, "segment": {str(k): 330 for k in range(1, 8)},
    "usps": {"0": 1194 + 359}, "spambase": {"spam": 1813}, "esl_mixture": {"0": 100, "1": 100},
    "colon": {"normal": 22, "tumour": 40},
}
SPLITS = {
    "banana": (10, 400, 4900), "breast_cancer": (10, 200, 77), "german": (10, 700, 300),
    "image": (9, 1300, 1010), "titanic": (10, 150, 2051), "waveform": (10, 400, 4600),
    "boston": (20, 455, 51), "concrete": (20, 927, 103), "energy": (20, 691, 77), "protein": (5, 41157, 4573),
    "wine_red": (20, 1439, 160), "yacht": (20, 277, 31), "kegg_undirected": (10, 57248, 6360),
    "ripley_synth": (1, 250, 1000), "pima_ripley": (1, 200, 332), "letter": (1, 16000, 4000),
    "usps": (1, 7291, 2007), "yarn": (1, 21, 7), "prostate": (1, 67, 30), "tecator": (1, 129, 43),
    "m1_chewie": (1, 1200, 1818),
}
# fmt: on


def _check_splits(bunch):
    several = isinstance(bunch.train_idx, list)
    trains, tests = (bunch[key] if several else [bunch[key]] for key in ("train_idx", "test_idx"))
    assert (len(trains), len(trains[0]), len(tests[0])) == SPLITS[bunch.name]
    for train, test in zip(trains, tests, strict=True):
        rows = np.concatenate([train, test, bunch.get("validation_idx", [])])
        np.testing.assert_array_equal(np.sort(rows), np.arange(len(bunch.data)))


@needs_folder
@pytest.mark.parametrize("name", list_datasets())
def test_every_set_loads(name):
    bunch = load(name)
    assert bunch.data.dtype == np.float64
    assert len(bunch.target) == len(bunch.data)
    assert len(bunch.feature_names) == bunch.data.shape[1]
    assert np.isnan(bunch.data).sum() == (207 if name == "california_housing" else 0)
    assert bunch.target.mean() == pytest.approx(MEANS.get(name, bunch.target.mean()), rel=1e-5, abs=6e-5)
    if name in COUNTS:
        found = dict(zip(bunch.target_names, np.bincount(bunch.target), strict=True))
        assert {label: found[label] for label in COUNTS[name]} == COUNTS[name]
    assert ("train_idx" in bunch) == (name in SPLITS)
    if name in SPLITS:
        _check_splits(bunch)


@needs_folder
def test_packaged_boston_is_the_file_of_the_splits():
    file = Path(os.environ["SPARSEBAYES_DATA"]) / "uci20" / "boston.csv"
    rows = np.genfromtxt(file, delimiter=",", skip_header=1)
    np.testing.assert_array_equal(np.column_stack(load("boston", return_X_y=True)), rows)
