"""What each policy and each constant of the search is worth: the ledger without it, or with half and twice of it.

Policies are taken away; every number that a module of the search names at its top is halved and doubled.  Each of these
is a change of one module's attribute in the process that measures the row, and nowhere else.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import Any

from sparsebayes.benchmarks.ledger.apart import Run, measure_apart
from sparsebayes.benchmarks.ledger.compare import Change, changes
from sparsebayes.benchmarks.ledger.measure import Row
from sparsebayes.benchmarks.ledger.record import commit

_PACKAGE = "sparsebayes.inference"
# Where the search of regressions lives.
_MODULES = ("search.climb", "search.starts", "models.gaussian", "fit.run", "fit.guard", "fit.folds")
# What a search is told from the outside, and what has no half: bounds of floating point, and places of decimals.
_NOT_VARIED = ("BATCH", "FOLDS", "_DECIMALS", "_TOLD_BY", "_LEAST_NOISE", "_TIE", "_SAMPLE")


@dataclass(frozen=True)
class Variation:
    """One change of the search.

    Attributes
    ----------
    name : str
        What it is, in words.
    module, attribute : str
        Which name of which module of the search; empty where it is an option of the estimator.
    value : object
        What it becomes there.
    options : dict
        Parameters of the estimator.
    """

    name: str
    module: str = ""
    attribute: str = ""
    value: Any = None
    options: dict[str, Any] | None = None

    def apply(self) -> None:
        """Make the change: in every module of the search that has the name, and in what it was read for at import."""
        if not self.module:
            return
        old = getattr(import_module(f"{_PACKAGE}.{self.module}"), self.attribute)
        for name, module in list(sys.modules.items()):
            own = name == f"{_PACKAGE}.{self.module}"
            shared = not self.attribute.startswith("_") and name.startswith(_PACKAGE)
            if (own or shared) and vars(module).get(self.attribute) is old:
                setattr(module, self.attribute, self.value)
                _read_again(module, old, self.value)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


_POLICIES = (
    Variation("no kicks", "search.starts", "KICKS", []),
    Variation("two kicks", "search.starts", "KICKS", [4.0, 2.0]),
    Variation("no start from all functions", "search.starts", "_SMALL_DICTIONARY", 0),
    Variation("every start is trusted", "fit.run", "_UNSUSPICIOUS", math.inf),
    Variation("no judge of the noise", "fit.guard", "SUSPICIOUS", math.inf),
    Variation("one function at a time", options={"solver__batch": 1}),
    Variation("batches of 4", options={"solver__batch": 4}),
    Variation("batches of 16", options={"solver__batch": 16}),
)


def variations() -> list[Variation]:
    """All of them: policies first, then constants by module, each halved and doubled."""
    found = list(_POLICIES)
    for name in _MODULES:
        for attribute, value in vars(import_module(f"{_PACKAGE}.{name}")).items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not attribute.isupper() or not number or attribute in _NOT_VARIED or _imported(name, attribute):
                continue
            for factor in (0.5, 2.0):
                other = value * factor if isinstance(value, float) else max(1, int(value * factor))
                title = f"`{name}.{attribute}` {other:g} instead of {value:g}"
                found.append(Variation(title, name, attribute, other))
    return found


def _imported(module: str, attribute: str) -> bool:
    """Whether a module of the search has the name from another one that is varied already."""
    before = _MODULES[: _MODULES.index(module)]
    return not attribute.startswith("_") and any(
        hasattr(import_module(f"{_PACKAGE}.{name}"), attribute) for name in before
    )


def _read_again(module: Any, old: Any, value: Any) -> None:
    """Change the defaults of functions that are this constant, and make anew what the compiled settling is told."""
    for function in vars(module).values():
        defaults = getattr(function, "__kwdefaults__", None) or {}
        defaults.update({name: value for name, default in defaults.items() if default is old})
    if hasattr(module, "_rules"):
        module._RULES = module._rules()


def ablate(
    run: Run, chosen: Iterable[Variation], tell: Callable[[str], None] = lambda text: None
) -> Iterable[tuple[Variation, list[Change]]]:
    """Measure the search as it is, then each variation of it, and hand out its changes as they come."""
    before = list(run.rows(tell=tell))
    for variation in chosen:
        tell(f"{variation.name} ...")
        after = [_measure(variation, row, run) for row in before]
        yield variation, changes(before, after)


def _measure(variation: Variation, row: Row, run: Run) -> Row:
    options = {**run.options, **(variation.options or {})}
    change = replace(variation, options=None) if variation.module else None
    return measure_apart(row.problem, row.seed, row.method, options, run.limit, change and change.as_dict())


def line(name: str, found: list[Change]) -> str:
    """A row of the table: evidence and error on average and at worst, seconds."""
    evidence = [change.evidence for change in found if change.evidence is not None]
    if not evidence:
        return f"| {name} | no figures | | | | |"
    error, seconds = (
        [math.log(value) for value in values if value]
        for values in ([change.error for change in found], [change.seconds for change in found])
    )
    return (
        f"| {name} | {sum(evidence) / len(evidence):+.2f} | {min(evidence):+.2f} | {_mean(error)} | "
        f"{math.exp(max(error)):.3f} | {_mean(seconds)} |"
    )


def _mean(logarithms: list[float]) -> str:
    return f"{math.exp(sum(logarithms) / len(logarithms)):.3f}"


_HEAD = """# What each part of the search is worth

The ledger's regressions without one policy of the search, or with half or twice one of its constants, compared with the
unchanged search. Evidence is in nats, on average over the rows and at worst; error and seconds are multiples, in the
geometric mean and (the error) at worst. The search is a chaotic map of its constants: on single tables anything moves
the evidence by several nats, so that a mean within a nat of zero says that a constant decides nothing.

Made by `sparsebayes bench ledger --ablate docs/ablation.md` with {rows}, at commit
{commit}: later changes of the search are not in it.

| variation | evidence | at worst | error x | at worst x | seconds x |
|---|---|---|---|---|---|
"""


def page(run: Run, lines: Iterable[str]) -> str:
    """The table as Markdown."""
    names = ", ".join(problem.name for problem in run.problems)
    seeds = "seed" if len(run.seeds) == 1 else "seeds"
    rows = f"{names}, {seeds} {', '.join(map(str, run.seeds))}"
    return _HEAD.format(rows=rows, commit=commit() or "unknown") + "\n".join(lines) + "\n"
