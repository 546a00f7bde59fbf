"""Models on disk: files that are data and never code.

>>> import os, tempfile
>>> from sparsebayes import RVR
>>> from sparsebayes.datasets import make_sinc
>>> from sparsebayes.export import load, save
>>> X, y = make_sinc(100, noise=0.1, random_state=0)
>>> model = RVR(gamma=1 / 4**2).fit(X, y)
>>> with tempfile.TemporaryDirectory() as folder:
...     save(model, os.path.join(folder, "sinc.model"))
...     again = load(os.path.join(folder, "sinc.model"))
>>> bool((again.predict(X) == model.predict(X)).all())
True
"""

from .errors import ModelFileError
from .modelfile import load, save

__all__ = ["ModelFileError", "load", "save"]
