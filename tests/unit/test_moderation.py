"""Moderated class probabilities against the integral that they approximate."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, softmax

from sparsebayes.posterior.classes import TEMPERS, ClassPosterior


def draw(rng, n_outputs, spread):
    """A posterior of one constant function for each output, so that the outputs are its weights."""
    root = rng.standard_normal((n_outputs, n_outputs)) * np.sqrt(spread * rng.exponential(size=(n_outputs, 1)))
    mean = rng.choice([1.0, 3.0, 6.0]) * rng.standard_normal(n_outputs)
    covariance = root @ root.T / n_outputs
    return ClassPosterior(np.zeros(n_outputs, dtype=int), np.arange(n_outputs), n_outputs, mean, covariance)


def distance(p, q):
    return 0.5 * np.sum(np.abs(p - q))


def test_nearer_to_the_integral_than_the_plug_in():
    rng, one = np.random.default_rng(0), np.ones((1, 1))
    near, plug = [], []
    for k in range(60):
        posterior = draw(rng, n_outputs=(3, 5, 10)[k % 3], spread=(1.0, 10.0)[k % 2])
        sampled = softmax(rng.multivariate_normal(posterior.mean, posterior.covariance, 4000), axis=1).mean(axis=0)
        near.append(distance(posterior.probabilities(one, moderated=True)[0], sampled))
        plug.append(distance(posterior.probabilities(one, moderated=False)[0], sampled))
    assert np.mean(near) < 0.6 * np.mean(plug)
    assert np.mean(near) < 0.08


@pytest.mark.parametrize("n_outputs", [2, 3, 7])
def test_the_class_of_the_largest_output_stays_the_most_probable(n_outputs):
    rng, one = np.random.default_rng(1), np.ones((1, 1))
    for _ in range(50):
        posterior = draw(rng, n_outputs, spread=30.0)
        p = posterior.probabilities(one, moderated=True)[0]
        np.testing.assert_allclose(p.sum(), 1.0)
        assert np.argmax(p) == np.argmax(posterior.mean)


def test_two_outputs_are_the_logistic_rule():
    posterior = draw(np.random.default_rng(2), 2, spread=10.0)
    difference = np.array([-1.0, 1.0])
    variance = difference @ posterior.covariance @ difference
    expected = expit(difference @ posterior.mean / np.sqrt(1.0 + np.pi * variance / 8.0))
    found = posterior.probabilities(np.ones((1, 1)), moderated=True)[0, 1]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("wide", [3.0, 30.0, 300.0])
def test_the_share_of_the_covariance_is_the_one_that_predicts_left_out_rows_best(wide):
    """Against integrals by drawing: no other share gives the left-out rows a density that is a nat higher."""
    rng = np.random.default_rng(0)
    n, classes = 60, 3
    values = rng.normal(size=(n, 2))
    functions, outputs = np.tile([0, 1], classes), np.repeat(np.arange(classes), 2)
    mean = 3.0 * rng.normal(size=2 * classes)
    posterior = ClassPosterior(functions, outputs, classes, mean, wide * np.eye(2 * classes))
    left_out = values @ mean.reshape(classes, 2).T
    labels = np.array([rng.choice(classes, p=softmax(0.6 * row)) for row in left_out])
    counts = rng.integers(1, 4, n).astype(float)
    found = posterior.tempered(values, left_out, np.eye(classes)[labels], counts).temper

    def density(share):
        spread = np.sqrt(share * wide * np.sum(values**2, axis=1))[:, None, None]
        drawn = left_out[:, None, :] + spread * rng.normal(size=(n, 4000, classes))
        return counts @ np.log(softmax(drawn, axis=2).mean(axis=1)[np.arange(n), labels])

    tried = {share: density(share) for share in (1.0, 0.3, 0.1, 0.03, 0.01)}
    assert tried[found] > max(tried.values()) - 1.0


def test_the_share_of_the_covariance_is_judged_by_the_probabilities_that_are_predicted_with_it():
    """Outputs are moderated by the variance of a difference of two, which is not that of one of them."""
    chosen = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        values, labels, n = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), 3
        # Only one output is uncertain, so that the difference of the others is known.
        covariance = np.diag(np.repeat(np.where(np.arange(n) == seed % n, 40.0, 0.01), 3))
        mean = 2.0 * rng.normal(size=9)
        posterior = ClassPosterior(np.tile(np.arange(3), n), np.repeat(np.arange(n), 3), n, mean, covariance)
        left_out = posterior.predict(values)
        labels = np.where(rng.random(40) < 0.8, np.argmax(left_out, axis=1), labels)

        def density(share, posterior=posterior, values=values, labels=labels):
            p = replace(posterior, temper=share).probabilities(values, moderated=True)
            return np.sum(np.log(p[np.arange(40), labels]))

        found = posterior.tempered(values, left_out, np.eye(n)[labels], np.ones(40)).temper
        assert found == max(TEMPERS, key=density)
        chosen.add(found)
    assert len(chosen) > 2


def test_a_weight_is_so_many_copies_where_the_share_is_chosen():
    """Half of the rows are met as surely as they were predicted, the others missed: weights say which count."""
    values, labels = np.ones((20, 1)), np.repeat([0, 1], 10)
    posterior = ClassPosterior(np.zeros(3, dtype=int), np.arange(3), 3, np.zeros(3), 30.0 * np.eye(3))
    left_out, classes, found = np.tile([3.0, 0.0, 0.0], (20, 1)), np.eye(3)[labels], []
    for met, missed in ((9, 1), (1, 3)):
        counts = np.repeat([met, missed], 10)
        rows = np.repeat(np.arange(20), counts)
        weighted = posterior.tempered(values, left_out, classes, counts.astype(float))
        copied = posterior.tempered(values[rows], left_out[rows], classes[rows], np.ones(len(rows)))
        assert weighted.temper == copied.temper
        found.append(weighted.temper)
    assert found[0] < found[1]
