import json

import numpy as np
import pytest
from sklearn.base import clone

import sparsebayes
from sparsebayes import SparseBayesRegressor
from sparsebayes.basis import RBF, Bias, Gabor, from_specifications

PIXELS = np.argwhere(np.ones((9, 7))).astype(float)


def test_a_function_is_a_wave_under_an_envelope():
    functions = Gabor((2.0,), cycles=(0.3,), orientations=4, phases=2, aspect=1.5, spacing=2.0).bind(PIXELS)
    values = functions.evaluate(PIXELS)
    for j in (0, 17, len(functions) - 1):
        spec = functions.specifications()[j]
        step = (PIXELS - spec["centre"]) / spec["width"]
        angle = spec["orientation"]
        u = step @ [np.cos(angle), np.sin(angle)]
        v = step @ [-np.sin(angle), np.cos(angle)]
        wave = np.cos(2 * np.pi * spec["cycles"] * u + spec["phase"])
        expected = np.exp(-0.5 * (u**2 + (v / spec["aspect"]) ** 2)) * wave
        np.testing.assert_allclose(values[:, j], expected, atol=1e-14)


def test_without_a_wave_it_is_the_gaussian_kernel():
    functions = Gabor((1.5,), cycles=(0.0,), orientations=8).bind(PIXELS)
    kernel = RBF(1.5 * np.sqrt(2.0), centres=functions.centres).bind(PIXELS)
    np.testing.assert_allclose(functions.evaluate(PIXELS), kernel.evaluate(PIXELS), atol=1e-14)


def test_grids_cover_the_inputs_and_no_function_comes_twice():
    basis = Gabor((1.0, 3.0), cycles=(0.0, 0.25), orientations=3, phases=2, aspect=2.0)
    functions = basis.bind(PIXELS)
    assert functions.centres.min(axis=0).tolist() == [0.0, 0.0]
    assert functions.centres.max(axis=0).tolist() == [8.0, 6.0]
    texts = {json.dumps(spec) for spec in functions.specifications()}
    assert len(texts) == len(functions) == (9 * 7 + 4 * 3) * (3 + 6)


def test_restricted_and_rebuilt_functions_are_the_same():
    functions = (Bias() + Gabor((2.0, 4.0))).bind(PIXELS)
    chosen = [3, 0, len(functions) - 1]
    expected = functions.evaluate(PIXELS)[:, chosen]
    part = functions.restrict(chosen)
    np.testing.assert_array_equal(part.evaluate(PIXELS), expected)
    rebuilt = from_specifications(json.loads(json.dumps(part.specifications())), 2)
    np.testing.assert_array_equal(rebuilt.evaluate(PIXELS), expected)


def test_a_model_with_gabor_functions_is_saved(tmp_path):
    t = np.exp(-0.1 * np.sum((PIXELS - 3) ** 2, axis=1)) * np.cos(PIXELS[:, 1])
    model = SparseBayesRegressor(clone(Gabor((2.0,), orientations=2)), noise_variance=1e-4).fit(PIXELS, t)
    sparsebayes.save(model, tmp_path / "model.sb")
    np.testing.assert_array_equal(sparsebayes.load(tmp_path / "model.sb").predict(PIXELS), model.predict(PIXELS))


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (Gabor(()), "widths"),
        (Gabor((1.0, -2.0)), "widths"),
        (Gabor(cycles=(-0.1,)), "cycles"),
        (Gabor(orientations=0), "orientations"),
        (Gabor(phases=1.5), "phases"),  # pyright: ignore[reportArgumentType]
        (Gabor(aspect=0.0), "aspect"),
        (Gabor(spacing=np.nan), "spacing"),
    ],
)
def test_bad_parameters_are_named(basis, message):
    with pytest.raises(ValueError, match=message):
        basis.bind(PIXELS)


def test_two_inputs_are_needed():
    with pytest.raises(ValueError, match="take two"):
        Gabor().bind(np.zeros((5, 3)))
