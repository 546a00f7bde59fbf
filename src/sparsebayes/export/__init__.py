"""Models elsewhere: files that are data and never code, ONNX graphs, C source, SQL.

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

from .csource import to_c
from .errors import ModelFileError
from .graph import to_onnx
from .inference_data import to_inference_data
from .modelfile import load, save
from .plan import make_plan
from .sql import to_sql

__all__ = ["ModelFileError", "load", "make_plan", "save", "to_c", "to_inference_data", "to_onnx", "to_sql"]
