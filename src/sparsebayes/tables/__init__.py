"""Tables in, models and tables out: what the command line does, for Python.

>>> import numpy as np
>>> from sparsebayes.tables import TableModel, learn
>>> rng = np.random.default_rng(0)
>>> size, town = rng.uniform(20, 120, 80), rng.choice(["Pisa", "Rome"], 80)
>>> price = 3.0 * size + 50.0 * (town == "Rome") + rng.normal(size=80)
>>> study = learn({"size": size, "town": list(town), "price": price}, "price")
>>> study.target.task, len(study.train), len(study.test)
('regression', 64, 16)
>>> mean, std = study.model.predict({"size": [50.0], "town": ["Rome"]}).values()
>>> bool(abs(mean[0] - 200.0) < 5.0)
True
"""

from .encoder import Encoder
from .files import read_table, write_table
from .learning import Options, Study, learn, reopen
from .model import TableModel, load
from .table import Table, as_table
from .target import Target

__all__ = [
    "Encoder",
    "Options",
    "Study",
    "Table",
    "TableModel",
    "Target",
    "as_table",
    "learn",
    "load",
    "read_table",
    "reopen",
    "write_table",
]
