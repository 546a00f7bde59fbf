"""Images: compression beside JPEG, super-resolution beside bicubic interpolation, compressed sensing beside the lasso.

Run ``python -m sparsebayes.studies.images [compression|super-resolution|sensing ...] [--jobs N] [--pictures FOLDER]``.
It needs Pillow, and ``SPARSEBAYES_DATA`` for the images.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LassoCV

from sparsebayes import SparseBayesRegressor
from sparsebayes.applications import compress, decompress, super_resolve
from sparsebayes.applications.images import RandomProjections, Wavelets, make_views, psnr, registration_error
from sparsebayes.datasets import load_image
from sparsebayes.typing import Array

Pictures = dict[str, Array]

_RATES = (0.25, 0.5, 1.0)
_SENSED = 0.4
_KEPT = 300
_NOISE = 0.01


def jpeg(image: NDArray[np.uint8], n_bytes: int, *, header: bool = True) -> float:
    """PSNR of JPEG at this file size, interpolated between the qualities on both sides of it.

    Without ``header`` only what follows the header (tables and sizes, some hundred bytes) counts as its size.
    """
    sizes, quality = [], []
    for level in range(2, 96):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=level, optimize=True)
        sizes.append(file.tell() - (0 if header else jpeg_header(file.getvalue())))
        quality.append(psnr(np.asarray(Image.open(file)), image))
    return float(np.interp(np.log(n_bytes), np.log(np.maximum.accumulate(sizes)), quality))


def jpeg_header(content: bytes) -> int:
    """Bytes before the coded picture: all segments up to and including the start of scan."""
    place = 2  # after the start of the image
    while content[place + 1] != 0xDA:
        place += 2 + int.from_bytes(content[place + 2 : place + 4], "big")
    return place + 2 + int.from_bytes(content[place + 2 : place + 4], "big")


def study_compression(pictures: Pictures, jobs: int) -> None:
    """PSNR at several bit rates, the size of the file counted, beside JPEG's."""
    for name in ("camera", "coins"):
        image = load_image(name)
        previous = -np.inf
        for rate in _RATES:
            begun = time.perf_counter()
            file = compress(image, bits_per_pixel=rate, n_jobs=jobs).to_bytes()
            seconds = time.perf_counter() - begun
            found = decompress(file)
            ours, theirs = psnr(found, image), jpeg(image, len(file))
            met = ours >= theirs - 3.0 and ours > previous and len(file) * 8 <= rate * image.size
            print(
                f"compression {name:<7} {8 * len(file) / image.size:.3f} bit/pixel ({len(file)} bytes)  PSNR {ours:.2f}"
                f" dB  JPEG {theirs:.2f} dB  {seconds:.0f} s  {'met' if met else 'missed'}",
                flush=True,
            )
            previous = ours
            pictures[f"{name}-{rate}"] = found / 255.0


def study_super_resolution(pictures: Pictures, jobs: int) -> None:
    """Registration and PSNR from 16 views, beside bicubic interpolation of the first."""
    for name in ("text", "camera"):
        scene = load_image(name) / 255.0
        views, motion = make_views(scene, 16, scale=4, shift=2.0, degrees=2.0, noise=0.01, random_state=1)
        rows, columns = views[0].shape
        truth = scene[: 4 * rows, : 4 * columns]
        begun = time.perf_counter()
        found = super_resolve(views, scale=4)
        seconds = time.perf_counter() - begun
        enlarged = Image.fromarray(views[0].astype(np.float32)).resize(
            (4 * columns, 4 * rows), Image.Resampling.BICUBIC
        )
        bicubic = np.asarray(enlarged, dtype=np.float64)
        sharp = np.clip(found.image, 0.0, 1.0)
        error = registration_error(found.motion, motion, views[0].shape)
        ours, theirs = psnr(sharp, truth), psnr(bicubic, truth)
        print(
            f"super-resolution {name:<7} registration within {error:.3f} pixels  PSNR {ours:.2f} dB  bicubic"
            f" {theirs:.2f} dB  blur {found.blur:.3f} (true {2.0**-1.5:.3f})  noise {found.noise:.4f} (true 0.01)"
            f"  {seconds:.0f} s  {'met' if error <= 0.1 and ours >= theirs + 3.0 else 'missed'}",
            flush=True,
        )
        pictures[f"super-{name}"] = np.hstack([np.clip(bicubic, 0.0, 1.0), sharp, truth])


def sparse_phantom(side: int, n_kept: int) -> tuple[Wavelets, Array]:
    """The Shepp-Logan phantom at this size, of its Haar coefficients only the largest."""
    image = load_image("phantom")[..., 0] / 255.0
    places = (np.arange(side) + 0.5) * len(image) / side
    small = image[np.ix_(places.astype(int), places.astype(int))]
    wavelets = Wavelets((side, side))
    coefficients = wavelets.rmatvec(small.ravel())
    least = np.sort(np.abs(coefficients))[-n_kept]
    return wavelets, np.where(np.abs(coefficients) >= least, coefficients, 0.0)


def price(n_functions: int) -> float:
    """Nats that a function with q²/s = 2 log M brings: fewer, and chance would let irrelevant ones in."""
    ratio = 2.0 * np.log(n_functions)
    return float(0.5 * (ratio - 1.0 - np.log(ratio)))


def study_sensing(pictures: Pictures, jobs: int) -> None:
    """Recovery of a wavelet-sparse phantom from random projections, beside the lasso with a cross-validated penalty."""
    side = 64
    wavelets, coefficients = sparse_phantom(side, _KEPT)
    image = wavelets.matvec(coefficients)
    rng = np.random.default_rng(0)
    projections = RandomProjections(int(_SENSED * side**2), side**2, rng)
    t = projections @ image + _NOISE * rng.standard_normal(projections.shape[0])
    dictionary = projections @ wavelets
    begun = time.perf_counter()
    model = SparseBayesRegressor(fit_intercept=False, tol=price(side**2)).fit(dictionary, t)
    seconds = time.perf_counter() - begun
    lasso = LassoCV(fit_intercept=False, n_jobs=jobs, max_iter=3000).fit(dictionary @ np.eye(side**2), t)

    def error(weights: Array) -> float:
        return float(np.sum((weights - coefficients) ** 2) / np.sum(coefficients**2))

    ours, theirs = error(model.coef_), error(lasso.coef_)
    ratio = float(np.sqrt(model.noise_variance_)) / _NOISE
    print(
        f"sensing phantom  NMSE {ours:.2e}  LassoCV {theirs:.2e}  noise {ratio:.3f} of the true  "
        f"{len(model.relevance_)} functions for {np.count_nonzero(coefficients)} ({np.count_nonzero(lasso.coef_)} of "
        f"the lasso)  {seconds:.0f} s  {'met' if ours <= theirs and abs(ratio - 1.0) <= 0.2 else 'missed'}",
        flush=True,
    )
    found = wavelets.matvec(model.coef_)
    pictures["phantom"] = np.clip(np.hstack([image.reshape(side, side), found.reshape(side, side)]), 0.0, 1.0)


STUDIES: dict[str, Callable[[Pictures, int], None]] = {
    "compression": study_compression,
    "super-resolution": study_super_resolution,
    "sensing": study_sensing,
}


def main() -> None:
    """Print a line for every figure, and write the pictures on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", default=[], choices=[*STUDIES, []])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    pictures: Pictures = {}
    for name in arguments.studies or STUDIES:
        STUDIES[name](pictures, arguments.jobs)
    if arguments.pictures is not None:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
        for name, values in pictures.items():
            Image.fromarray(np.round(255.0 * values).astype(np.uint8)).save(arguments.pictures / f"{name}.png")


if __name__ == "__main__":
    main()
