"""Rows one after the other, each in a process of its own that is ended at its limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from sparsebayes.benchmarks.ledger.cases import Problem
from sparsebayes.benchmarks.ledger.measure import FAILED, OURS, OVER_LIMIT, Row

# On a busy machine a process waits; after this many times its limit it is ended by the clock.
_WAITING = 10.0


@dataclass(frozen=True)
class Run:
    """What is measured.

    Attributes
    ----------
    problems : list of Problem
        In this order.
    seeds : list of int
        Draws of each.
    options : mapping
        Parameters of our estimators.
    rivals : list of str
        Other methods to measure beside.
    limit : float
        Seconds of processor time that a row may take.
    """

    problems: list[Problem]
    seeds: list[int]
    options: Mapping[str, Any] = field(default_factory=dict)
    rivals: list[str] = field(default_factory=list)
    limit: float = 120.0

    def rows(self, known: Iterable[Row] = (), tell: Callable[[str], None] = lambda text: None) -> Iterable[Row]:
        """Measure row after row, except those that are known, and hand out each as it comes."""
        keys = {row.key for row in known}
        for name, seed, method in product([p.name for p in self.problems], self.seeds, (OURS, *self.rivals)):
            if (name, seed, method) not in keys:
                tell(f"{name}, seed {seed}, {method} ...")
                yield measure_apart(name, seed, method, self.options, self.limit)


def measure_apart(
    problem: str,
    seed: int,
    method: str = OURS,
    options: Mapping[str, Any] | None = None,
    limit: float = 120.0,
    variation: Mapping[str, Any] | None = None,
) -> Row:
    """Measure one row in a process of its own.

    Parameters
    ----------
    problem, seed, method : str, int, str
        What to measure.
    options : mapping, optional
        Parameters of our estimator; they must be such that JSON can carry them.
    limit : float
        Seconds of processor time after which it is ended.
    variation : mapping, optional
        A :class:`~sparsebayes.benchmarks.ledger.ablation.Variation` of the search as a mapping.
    """
    request = {"problem": problem, "seed": seed, "method": method, "options": dict(options or {}), "limit": limit}
    request["variation"] = variation
    command = [sys.executable, "-m", "sparsebayes.benchmarks.ledger.child", json.dumps(request)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=_environment(), timeout=_WAITING * (limit + 10.0)
        )
    except subprocess.TimeoutExpired:
        return Row(problem, seed, method, OVER_LIMIT, note=f"more than {limit:g} s")
    if done.returncode == -getattr(signal, "SIGXCPU", 0) != 0:
        return Row(problem, seed, method, OVER_LIMIT, note=f"more than {limit:g} s")
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return Row(problem, seed, method, FAILED, note=last)
    return Row(**json.loads(done.stdout.splitlines()[-1]))


def _environment() -> dict[str, str]:
    """The same package as here, and one thread wherever a library counts them by itself."""
    here = str(Path(__file__).parents[3])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(paths)}
