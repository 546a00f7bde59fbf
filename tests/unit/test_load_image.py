import numpy as np
import pytest

from sparsebayes.datasets import DatasetNotFoundError, load_image

image_module = pytest.importorskip("PIL.Image")


def test_images_of_scikit_learn():
    assert load_image("china").shape == (427, 640, 3)


def test_images_of_the_data_folder(tmp_path, monkeypatch):
    (tmp_path / "images").mkdir()
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    image_module.fromarray(pixels).save(tmp_path / "images" / "camera.png")
    monkeypatch.setenv("SPARSEBAYES_DATA", str(tmp_path))
    assert np.array_equal(load_image("camera"), pixels)
    with pytest.raises(DatasetNotFoundError, match=r"images/coins\.png"):
        load_image("coins")


def test_absent_and_unknown_images(monkeypatch):
    monkeypatch.delenv("SPARSEBAYES_DATA", raising=False)
    with pytest.raises(DatasetNotFoundError, match="not set"):
        load_image("camera")
    with pytest.raises(ValueError, match="Known"):
        load_image("lena")
