import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, zoom

from sparsebayes.applications import super_resolve
from sparsebayes.applications.images import Motion, make_views, psnr, registration_error
from sparsebayes.applications.images.posterior import posterior_mean
from sparsebayes.applications.images.registration import centred_pixels, first_guess
from sparsebayes.applications.images.scene import Patch, Scene, log_evidence


@pytest.fixture(scope="module")
def scene():
    """Random shapes with sharp edges, 96 × 112 pixels."""
    rng = np.random.default_rng(5)
    rows, columns = np.mgrid[:96, :112]
    image = np.full((96, 112), 0.5)
    for _ in range(40):
        row, column, radius = rng.uniform(0, 96), rng.uniform(0, 112), rng.uniform(2, 12)
        image[np.hypot(rows - row, columns - column) < radius] = rng.uniform()
    return gaussian_filter(image, 0.5)


@pytest.fixture(scope="module")
def views(scene):
    return make_views(scene, 8, scale=4, shift=1.5, degrees=2.0, noise=0.01, random_state=0)


def test_gradient_of_the_evidence_is_exact():
    rng = np.random.default_rng(1)
    patch = Patch(np.repeat(np.arange(3), 6), 2.0 * rng.standard_normal((18, 2)), rng.standard_normal(18))
    begin = Scene.typical(1.0, 0.5, 0.3, 0.5)
    size = len(begin.variances) + 2

    def evidence(v):
        motion = Motion(v[size : size + 6].reshape(3, 2), v[size + 6 :])
        return log_evidence([patch], motion, begin.at(v[:size]))

    at = np.concatenate([begin.logarithms, np.zeros(9)]) + 0.3 * rng.standard_normal(size + 9)
    _, gradient = evidence(at)
    exact = np.concatenate([gradient.logarithms, gradient.shifts.ravel(), gradient.angles])
    step = 1e-5
    numerical = [(evidence(at + step * e)[0] - evidence(at - step * e)[0]) / (2 * step) for e in np.eye(len(at))]
    np.testing.assert_allclose(exact, numerical, rtol=1e-6, atol=1e-7)


def test_evidence_is_that_of_the_high_resolution_image_integrated_out():
    """The closed form against brute force on a fine grid."""
    scene = Scene.typical(0.7, 0.4, 0.2, 0.8)
    places = np.array([[0.0, 0.0], [0.3, -0.4], [-0.9, 0.6]])
    patch = Patch(np.zeros(3, dtype=np.intp), places, np.array([0.5, -0.2, 0.1]))
    value, _ = log_evidence([patch], Motion(np.zeros((1, 2)), np.zeros(1)), scene)
    axis = np.linspace(-3.0, 3.0, 41)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    squares = np.sum((grid[:, None] - grid) ** 2, axis=2)
    Z = sum(a * np.exp(-squares / r2) for a, r2 in zip(scene.variances, scene.squared_scales, strict=True))
    W = np.exp(-np.sum((places[:, None] - grid) ** 2, axis=2) / (2 * scene.blur**2))
    W /= W.sum(axis=1, keepdims=True)
    C = W @ Z @ W.T + scene.noise**2 * np.eye(3)
    brute = -0.5 * (patch.values @ np.linalg.solve(C, patch.values) + np.linalg.slogdet(2 * np.pi * C)[1])
    assert value == pytest.approx(brute, rel=1e-4)


def test_posterior_mean_is_the_dense_solution():
    rng = np.random.default_rng(2)
    images = rng.standard_normal((3, 12, 12, 1))
    motion = Motion(np.array([[0.0, 0.0], [0.4, -0.3], [-0.6, 0.2]]), np.array([0.0, 0.02, -0.01]))
    scene = Scene.typical(0.5, 0.5, 0.3, 0.75)
    found = posterior_mean(images, motion, scene, 2)[..., 0]
    middle = 0.5 * np.array([23.0, 23.0])
    inner = np.stack(np.mgrid[6:18, 6:18], axis=-1).reshape(-1, 2)
    targets = (inner - middle) / 2
    places = np.vstack([motion.places(k, centred_pixels((12, 12))) for k in range(3)])

    def kernel(d2, extra):
        wide = scene.squared_scales + extra
        return sum(
            a * r2 / w * np.exp(-d2 / w) for a, r2, w in zip(scene.variances, scene.squared_scales, wide, strict=True)
        )

    C = kernel(np.sum((places[:, None] - places) ** 2, axis=2), 4 * scene.blur**2)
    C += scene.noise**2 * np.eye(len(places))
    cross = kernel(np.sum((targets[:, None] - places) ** 2, axis=2), 2 * scene.blur**2)
    level = images.mean()
    dense = level + cross @ np.linalg.solve(C, images.ravel() - level)
    # The grid is finite and periodic, the dense solution a continuum.
    assert np.sqrt(np.mean((found[6:18, 6:18].ravel() - dense) ** 2)) < 0.03 * np.std(dense)


def test_first_guess_is_within_a_fraction_of_a_pixel(views):
    images, motion = views
    assert registration_error(first_guess(images), motion, images[0].shape) < 0.3


def test_sharper_than_bicubic_and_registered(scene, views):
    images, motion = views
    found = super_resolve(images, scale=4, max_iter=20)
    assert registration_error(found.motion, motion, images[0].shape) < 0.1
    assert found.noise == pytest.approx(0.01, rel=0.2)
    assert found.blur == pytest.approx(2.0**-1.5, rel=0.25)
    bicubic = zoom(images[0], 4, order=3, mode="nearest", grid_mode=True)
    assert psnr(found.image, scene) > psnr(bicubic, scene) + 1.5


def test_colour_images_share_the_registration(scene):
    views, _ = make_views(scene[:64, :64], 3, scale=2, shift=0.5, noise=0.01, random_state=3)
    colour = [np.stack([view, 1.0 - view, view], axis=2) for view in views]
    found = super_resolve(colour, scale=2, max_iter=3)
    assert found.image.shape == (64, 64, 3)
    np.testing.assert_allclose(found.image[..., 0], found.image[..., 2])
    np.testing.assert_allclose(found.image[..., 0], 1.0 - found.image[..., 1], atol=1e-2)


def test_bad_input_is_refused():
    image = np.random.default_rng(0).random((16, 16))
    with pytest.raises(ValueError, match="at least two"):
        super_resolve([image])
    with pytest.raises(ValueError, match="one common shape"):
        super_resolve([image, image[:15]])
    with pytest.raises(ValueError, match=r"images\[1\].*NaN"):
        super_resolve([image, np.where(image > 0.9, np.nan, image)])
    with pytest.raises(ValueError, match="at least 12"):
        super_resolve([image[:8], image[:8]])
    with pytest.raises(ValueError, match="constant"):
        super_resolve([np.zeros((16, 16)), image])
    with pytest.raises(ValueError, match="scale=0"):
        super_resolve([image, image], scale=0)
    with pytest.raises(ValueError, match="empty"):
        super_resolve([image[:0], image[:0]])


def page(seed):
    """A page of made-up letters, 64 × 64 pixels: strokes one pixel wide, black on white."""
    rng, image = np.random.default_rng(seed), np.ones((64, 64))
    for top in range(2, 55, 11):
        for left in range(2, 57, 6):
            letter, along = np.zeros((7, 5)), np.arange(5)
            for _ in range(3):
                kind = rng.integers(3)
                if kind == 0:
                    letter[:, rng.integers(5)] = 1.0
                elif kind == 1:
                    letter[rng.integers(7)] = 1.0
                else:
                    letter[along + rng.integers(3), along if rng.random() < 0.5 else 4 - along] = 1.0
            image[top : top + 7, left : left + 5] -= letter
    return image


@pytest.mark.parametrize("seed", [0, 1])
def test_little_blur_is_registered_too(seed):
    scene = page(seed)
    images, motion = make_views(scene, 16, scale=4, blur=0.3, noise=0.02, random_state=seed)
    found = super_resolve(images, scale=4)
    assert np.sqrt(np.mean((found.motion.shifts - motion.shifts) ** 2)) < 0.1
    assert 0.1 < found.blur < 0.5
    assert found.noise == pytest.approx(0.02, rel=0.4)
    bicubic = zoom(images[0], 4, order=3, mode="nearest", grid_mode=True)
    assert psnr(found.image, scene) > psnr(bicubic, scene) + 0.8
