"""Which functions are the same, in whichever list they stand."""

import numpy as np
import pytest
from modelfiles import BASES, problem

from sparsebayes.basis import RBF, Bias, Gabor, Heaviside, Linear, from_specifications
from sparsebayes.basis.identity import same_functions


def numbers(found):
    return [one.tolist() for one in found]


@pytest.mark.parametrize("basis", [*filter(None, BASES), Linear() + Heaviside() + RBF(0.5) + Bias()], ids=repr)
def test_every_function_is_itself_in_any_order(basis):
    X, _ = problem()
    functions = basis.bind(X)
    order = np.random.default_rng(0).permutation(len(functions))
    assert numbers(same_functions(functions.restrict(order), functions)) == order[:, None].tolist()
    written = from_specifications(functions.specifications(), X.shape[1])
    assert numbers(same_functions(written, functions)) == [[m] for m in range(len(functions))]


def test_waves_of_one_place_are_several():
    waves = Gabor(widths=(2.0,), cycles=(0.0, 0.25), spacing=2.0).bind(np.argwhere(np.ones((5, 5))))
    assert numbers(same_functions(waves, waves)) == [[m] for m in range(len(waves))]


def test_copies_of_a_row_are_one_function_and_widths_are_several():
    X = np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]])
    functions = (RBF(1.0) + RBF(2.0)).bind(X)
    assert numbers(same_functions(functions, functions)) == [[0, 2], [1], [0, 2], [3, 5], [4], [3, 5]]


def test_rounding_is_no_difference_and_more_is_one():
    X = np.array([[1e6, 1e-3], [1e6, 2e-3], [3.0, 0.0]])
    functions = RBF(1.0).bind(X)
    near, far = RBF(1.0).at(X * (1.0 + 1e-14)), RBF(1.0).at(X + np.array([0.0, 1e-8]))
    assert numbers(same_functions(near, functions)) == [[0], [1], [2]]
    assert numbers(same_functions(far, functions)) == [[], [], []]


def test_what_is_not_there_is_not_found():
    X, _ = problem()
    assert numbers(same_functions(Bias().bind(X), RBF(1.0).bind(X))) == [[]]
    assert numbers(same_functions(RBF(2.0).bind(X).restrict([0]), RBF(1.0).bind(X))) == [[]]
    assert same_functions(Linear().bind(X).restrict([]), Linear().bind(X)) == []
    assert numbers(same_functions(Linear().bind(X), Linear().bind(X).restrict([1]))) == [[], [0], []]
