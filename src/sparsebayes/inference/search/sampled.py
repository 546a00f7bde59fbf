r"""A search on a part of the rows, from which one on all of them begins.

What the first few thousand rows say of which functions matter, and of the noise, nearly all rows say too: the search
that decides, from many places, is made where a pass costs little, and what it found is then settled, and climbed on
from, on all rows.  These are reduced in one pass to as many rows as there are candidates, with the same inner products
(``GaussianProblem.on_fewer_rows``), so that only that pass, and the certificate on the rows themselves, grow like their
number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsebayes.inference.models.gaussian import GaussianModel, Gram
from sparsebayes.inference.search.starts import Accepted, Plan, ascend

# What another start has to bring on a part of the rows, and a kick for all of them to be tried again, in nats.
_HARDLY = 1.0
# Share of the rows that functions may use up: nobody is asked here whether more of them carry over.
_UNSUSPICIOUS = 0.1
# Kicks on all rows, each made once.  A second one brings less than the climb among functions that inner products cannot
# tell apart, which follows in any case (50,000 diamonds: 42 nats for 8 s after 263 for 6 s; that climb, 170 for 16 s).
_KICKS = 1
# How many times more functions are added at once than on few rows: models are large, and to settle one is what a step
# costs (50,000 diamonds, 700 functions, a start and two kicks on all rows: 19 s of the processor instead of 34, and 107
# nats more, partly by what the sample gave; with 8 times more 23 s, and 117 nats less than with 4).
_WIDER = 4


def wider(batch: int) -> int:
    """Functions that are added at once at most, where there are many rows."""
    return _WIDER * batch


def continued(plan: Plan) -> Plan:
    """What is left of a plan for all rows: one start, and a kick of what it finds."""
    return replace(plan, starts=plan.starts[:1], kicks=plan.kicks[:_KICKS], rounds=1)


def search_sample(
    data: Gram,
    plan: Plan,
    tol: float,
    *,
    fixed: float | None,
    batch: int,
    accepted: Accepted | None = None,
    tell: Callable[[float], None] = lambda done: None,
) -> GaussianModel:
    """The best model of a part of the rows, each kick of it made once: the search goes on elsewhere.

    Parameters
    ----------
    data : Gram
        The part.
    plan : Plan
        Where to begin.
    tol, fixed, batch, accepted
        As in :func:`~sparsebayes.inference.search.starts.ascend`.
    tell : callable, optional
        Called with the share of the places that is behind.
    """
    plan = replace(plan, rounds=1)
    best, leader, number = ascend(plan.starts[0], data, None, tol, fixed=fixed, batch=batch, accepted=accepted), 0, 1
    while (policy := plan.policy(number, leader)) is not None:
        model = ascend(policy, data, best, tol, fixed=fixed, batch=batch, accepted=accepted)
        if model.objective > best.objective + _HARDLY and model.used <= max(_UNSUSPICIOUS, best.used):
            best, leader = model, number
        number += 1
        tell(plan.share(number, leader))
    return best


def carried(model: GaussianModel, data: Gram, tol: float) -> GaussianModel:
    """The functions and precisions of a model of some rows in a problem with more rows, settled there."""
    learn = model.learn_noise
    there = GaussianModel.weighing(
        data, model.indices, np.maximum(model.alpha, np.finfo(float).tiny), model.beta, learn
    )
    return there.settled(tol)
