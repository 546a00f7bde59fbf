import io

import numpy as np
import pytest

from sparsebayes.applications import compress, decompress
from sparsebayes.applications.images import psnr
from sparsebayes.applications.images.models import IntegerModel, SubsetModel, unzigzag, zigzag
from sparsebayes.applications.images.pixels import double, from_tiles, halve, to_tiles
from sparsebayes.applications.images.rangecoder import Decoder, Encoder
from sparsebayes.basis import RBF, Gabor


@pytest.fixture(scope="module")
def picture():
    """Smooth shading, an edge, stripes and some texture, 61 × 83 pixels."""
    rows, columns = np.mgrid[:61, :83].astype(float)
    image = 90 + 0.8 * columns + 60 * (np.hypot(rows - 30, columns - 25) < 18)
    image += 25 * np.sin(columns / 1.7) * (columns > 55)
    return np.clip(image + 3 * np.random.default_rng(0).standard_normal(image.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("totals", [[2], [3, 1 << 18, 7], [1 << 16]])
def test_range_coder_returns_every_symbol(totals):
    rng = np.random.default_rng(1)
    symbols = []
    coder = Encoder()
    for k in range(4000):
        total = totals[k % len(totals)]
        start = int(rng.integers(total)) if k % 5 else total - 1  # the last symbol leads to carries
        symbols.append((start, total))
        coder.encode(start, 1, total)
    message = coder.finish()
    decoder = Decoder(message)
    for start, total in symbols:
        assert decoder.peek(total) == start
        decoder.consume(start, 1, total)
    entropy = sum(np.log2(total) for _, total in symbols) / 8
    assert len(message) <= 1.002 * entropy + 4


def test_range_coder_comes_close_to_the_entropy_of_skewed_symbols():
    coder = Encoder()
    rng = np.random.default_rng(2)
    bits = rng.random(20000) < 0.01
    for bit in bits:
        coder.encode(99 if bit else 0, 1 if bit else 99, 100)
    entropy = -np.sum(np.where(bits, np.log2(0.01), np.log2(0.99))) / 8
    assert len(coder.finish()) <= entropy + 4


def test_integer_model_codes_small_and_huge_integers():
    values = [0, 1, 23, 24, 25, 100, 3, 10**9, 0]
    coder, model = Encoder(), IntegerModel(24)
    for value in values:
        model.encode(coder, value)
    decoder, model = Decoder(coder.finish()), IntegerModel(24)
    assert [model.decode(decoder) for _ in values] == values


def test_zigzag_is_a_bijection():
    assert sorted(zigzag(v) for v in range(-5, 5)) == list(range(10))
    assert [unzigzag(zigzag(v)) for v in range(-5, 6)] == list(range(-5, 6))


def test_subset_model_learns_which_functions_are_used():
    rng = np.random.default_rng(3)
    weights = np.where(np.arange(200) < 20, 0.1, 1e-4)
    subsets = [sorted(np.flatnonzero(rng.random(200) < weights).tolist()) for _ in range(300)] + [[198, 199], [0]]
    kinds = np.arange(200) // 10
    coder, model = Encoder(), SubsetModel(kinds)
    for subset in subsets:
        model.encode(coder, subset)
    message = coder.finish()
    decoder, model = Decoder(message), SubsetModel(kinds)
    assert [model.decode(decoder, len(subset)) for subset in subsets] == subsets
    equally_likely = sum(len(subset) * np.log2(200) for subset in subsets) / 8
    assert len(message) < 0.65 * equally_likely


def test_tiles_and_colour_planes_come_back():
    plane = np.arange(35.0).reshape(5, 7)
    assert np.array_equal(from_tiles(to_tiles(plane, 4), (5, 7), 4), plane)
    ramp = np.add.outer(np.arange(9.0), 2 * np.arange(13.0))
    assert np.abs(double(halve(ramp), (9, 13)) - ramp)[2:-2, 2:-2].max() < 1e-12


def test_file_reproduces_the_code(picture):
    code = compress(picture, noise=8.0)
    file = code.to_bytes()
    assert np.array_equal(decompress(file), decompress(code))
    assert decompress(file).dtype == np.uint8
    assert decompress(file).shape == picture.shape
    assert len(file) < picture.size / 4


def test_file_on_disk(picture, tmp_path):
    path = tmp_path / "image.sbi"
    path.write_bytes(compress(picture[:20, :20], noise=10.0).to_bytes())
    assert decompress(path).shape == (20, 20)


def test_smaller_noise_gives_more_functions_and_a_better_image(picture):
    codes = [compress(picture, noise=noise) for noise in (16.0, 8.0, 4.0)]
    sizes = [len(code.to_bytes()) for code in codes]
    quality = [psnr(decompress(code), picture) for code in codes]
    functions = [code.n_functions for code in codes]
    assert sizes == sorted(sizes)
    assert quality == sorted(quality)
    assert functions == sorted(functions)
    assert quality[-1] > 30.0


def test_rate_is_kept_and_quality_rises_with_it(picture):
    quality = []
    part = picture[16:48, 16:64]
    for rate in (0.5, 1.0):
        file = compress(part, bits_per_pixel=rate).to_bytes()
        assert 0.85 * rate * part.size < 8 * len(file) <= rate * part.size
        quality.append(psnr(decompress(file), part))
    assert quality == sorted(quality)


def test_not_worse_than_jpeg_by_three_decibels():
    image_module = pytest.importorskip("PIL.Image")
    from sklearn.datasets import load_sample_image

    image = np.array(load_sample_image("china.jpg"))[150:214, 200:264].mean(axis=2).astype(np.uint8)
    file = compress(image, bits_per_pixel=0.75).to_bytes()
    best = 0.0
    for quality in range(1, 60):
        stream = io.BytesIO()
        image_module.fromarray(image).save(stream, "JPEG", quality=quality, optimize=True)
        if stream.tell() <= len(file):
            best = max(best, psnr(np.asarray(image_module.open(stream)), image))
    assert psnr(decompress(file), image) >= best - 3.0


def test_colour_and_other_types(picture):
    colour = np.stack([picture, picture[::-1], 255 - picture], axis=2)
    found = decompress(compress(colour, noise=8.0).to_bytes())
    assert found.shape == colour.shape
    assert psnr(found, colour) > 20.0
    floats = picture[:32, :32].astype(np.float32) * 0.03 - 2.0
    found = decompress(compress(floats, noise=5.0).to_bytes())
    assert found.dtype == np.float32
    assert np.sqrt(np.mean((found - floats) ** 2)) < 0.03 * 8
    wide = picture[:32, :32].astype(np.uint16) * 257
    assert psnr(decompress(compress(wide, noise=5.0).to_bytes()), wide) > 28.0


def test_constant_image_costs_next_to_nothing():
    image = np.full((64, 64), 77, dtype=np.uint8)
    file = compress(image, noise=2.0).to_bytes()
    assert len(file) < 50
    assert np.array_equal(decompress(file), image)


def test_other_dictionaries_are_part_of_the_file(picture):
    basis = Gabor((2.0,), orientations=3) + Gabor((4.0,), cycles=(0.1,))
    found = decompress(compress(picture[:24, :24], basis=basis, noise=8.0, tile=12).to_bytes())
    assert psnr(found, picture[:24, :24]) > 20.0


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((0, 5), dtype=np.uint8), "empty"),
        (np.full((8, 8), np.nan), "NaN"),
        (np.zeros((8, 8, 4), dtype=np.uint8), "fourth channel"),
        (np.zeros(8, dtype=np.uint8), "shape"),
    ],
)
def test_bad_images_are_refused(image, message):
    with pytest.raises(ValueError, match=message):
        compress(image)


def test_bad_settings_are_refused(picture):
    with pytest.raises(TypeError, match="dtype"):
        compress(picture.astype(np.int64))
    with pytest.raises(ValueError, match="tile=2"):
        compress(picture, tile=2)
    with pytest.raises(ValueError, match="both given"):
        compress(picture, noise=3.0, bits_per_pixel=1.0)
    with pytest.raises(ValueError, match="noise=-1"):
        compress(picture, noise=-1)
    with pytest.raises(TypeError, match="Gabor"):
        compress(picture, basis=RBF(2.0))
    with pytest.raises(ValueError, match="not reached"):
        compress(picture, bits_per_pixel=0.001)


def test_bad_files_are_refused(picture):
    with pytest.raises(ValueError, match="begins with"):
        decompress(b"not an image")
    with pytest.raises(ValueError, match="damaged"):
        decompress(compress(picture[:16, :16], noise=8.0).to_bytes()[:9])
    with pytest.raises(TypeError, match="SparseCode"):
        decompress(5)  # pyright: ignore[reportArgumentType]
