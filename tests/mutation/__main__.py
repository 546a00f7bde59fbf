"""Change the source in small wrong ways, and see whether the tests notice.

    PYTHONPATH=src python tests/mutation [--sample N] [--seed S] [--only SUBSTRING] [--limit SECONDS] [--list]

Every mutant is one change of the syntax tree of one file: an operator for its opposite, a constant for another, a term
of a sum or product left out, a comparison turned round, zero returned.  Only the test files that are named beside a
module in ``TARGETS`` run, on a copy of the source in a temporary folder; the checkout is never written to.  Survivors
are printed with their line; ``docs/testing.md`` says what to do about them.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path("src/sparsebayes")

_ACTIVE = ("reference/test_certificate.py", "reference/test_active.py")
_CLASSES = ("reference/test_laplace.py", "unit/test_likelihood.py", "unit/test_moderation.py")
_BARS = "unit/test_trust.py::test_augmented_bars"
_SUPPORT = "unit/test_trust.py::test_the_"
# Modules, and the test files (or single tests of one) that are about what they compute; the fast ones first, since the
# first failure decides.
TARGETS: dict[str, tuple[str, ...]] = {
    "likelihood/bernoulli.py": ("unit/test_likelihood.py", "reference/test_laplace.py"),
    "likelihood/categorical.py": ("unit/test_likelihood.py", "reference/test_laplace.py"),
    "likelihood/expected.py": ("unit/test_moderation.py", "reference/test_nearest.py"),
    "likelihood/poisson.py": ("unit/test_likelihood.py", "reference/test_rates.py"),
    "likelihood/robust.py": ("unit/test_robust.py", "unit/test_likelihood.py", "reference/test_hidden.py"),
    "likelihood/squares.py": ("unit/test_likelihood.py", "unit/test_varying.py"),
    "posterior/gaussian.py": (
        "unit/test_predictive.py",
        "reference/test_posterior.py",
        "unit/test_trust.py::test_left_out_scores_of_a_robust_model_weigh_rows_as_it_does",
        "unit/test_varying.py::test_the_density_and_the_bar_of_a_row_have_its_own_noise",
    ),
    "posterior/classes.py": ("unit/test_moderation.py", "unit/test_predictive.py", "reference/test_posterior.py"),
    "posterior/counts.py": ("unit/test_predictive.py", "reference/test_rates.py"),
    "posterior/conformal.py": (
        "unit/test_trust.py::test_calibrated_intervals_cover_whatever_the_noise",
        "unit/test_trust.py::test_left_out_scores_are_those_of_refits_with_the_same_functions",
        "unit/test_trust.py::test_a_quantile_that_needs_more_rows_is_infinite",
        "unit/test_trust.py::test_intervals_by_fits_without_each_fold_are_those_of_the_paper",
    ),
    "posterior/augmented.py": (f"{_BARS}_grow_away_from_the_data", f"{_BARS}_are_those_of_the_enlarged_model"),
    "posterior/calibration.py": ("unit/test_calibration.py",),
    "posterior/varying.py": ("unit/test_varying.py",),
    "posterior/far.py": ("unit/test_predictive.py",),
    "posterior/summary.py": ("unit/test_learning.py::test_summary_says_what_removal_costs", "unit/test_summary.py"),
    "posterior/axes.py": ("unit/test_kernel_pca.py",),
    "inference/models/evidence.py": _ACTIVE,
    "inference/models/bound.py": ("unit/test_predictive.py",),
    "inference/models/screening.py": ("reference/test_screening.py", *_CLASSES),
    "inference/models/laplace.py": ("reference/test_laplace.py",),
    "inference/models/classes.py": ("reference/test_shared_classes.py",),
    "inference/search/escapes.py": ("reference/test_hidden.py", "reference/test_laplace.py"),
    "inference/solvers/single_effects.py": ("unit/test_inclusion.py", "reference/test_single_effects.py"),
    "inference/objective.py": (
        *_ACTIVE,
        "reference/test_fixed_points.py",
        f"{_SUPPORT}expected_number_of_false_functions_is_bounded",
        f"{_SUPPORT}conservative_rule_holds_for_every_function_kept_and_left_out",
        f"{_SUPPORT}support_report_is_a_table",
        "unit/test_trust.py::test_evidence_lost_of_two_classes_is_that_of_the_model_without",
        "unit/test_trust.py::test_evidence_lost_under_a_bound_is_of_the_bound_at_its_best",
    ),
    "inference/status.py": (
        *_ACTIVE,
        f"{_SUPPORT}certificate_says_what_a_noise_that_is_held_costs",
    ),
    "inference/fit/classes.py": ("reference/test_shared_classes.py",),
    "inference/fit/indicators.py": ("reference/test_indicators.py",),
    "inference/fit/guard.py": (
        "equivalence/test_chunks.py::test_a_noise_that_would_collapse_is_held_where_no_row_can_be_left_out",
        "unit/test_trust.py::test_rows_left_out_may_speak_for_a_noise_that_is_low",
        "unit/test_trust.py::test_a_plane_with_little_noise_is_no_collapse",
        "unit/test_trust.py::test_noise_is_held_where_the_evidence_would_let_it_collapse",
        "unit/test_trust.py::test_noise_is_not_held_high_where_many_functions_predict_better",
        "unit/test_trust.py::test_a_noise_does_not_collapse_because_every_row_counts_four_times",
        "unit/test_trust.py::test_a_given_noise_is_no_noise_that_is_held",
        f"{_SUPPORT}certificate_says_what_a_noise_that_is_held_costs",
    ),
    "estimators/uncertainty.py": ("unit/test_predictive.py", "unit/test_trust.py", "unit/test_calibration.py"),
    "report/measures.py": ("unit/test_measures.py", "unit/test_plots.py"),
    "explain/inclusion.py": ("unit/test_inclusion.py",),
    "explain/modes.py": ("unit/test_inclusion.py",),
    "explain/problems.py": ("unit/test_inclusion.py",),
    "explain/widening.py": ("unit/test_shapley.py",),
}

_OPPOSITE: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, what it does, and the source that it makes."""

    module: str
    line: int
    what: str
    source: str

    @property
    def name(self) -> str:
        """How it is printed."""
        return f"{self.module}:{self.line}: {self.what}"


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    """Every mutant of one module, in the order of its lines."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        for what, change in _changes(node):
            wrong = copy.deepcopy(tree)
            target = next(n for k, n in enumerate(ast.walk(wrong)) if k == number)
            change(target)
            ast.fix_missing_locations(wrong)
            yield Mutant(module, getattr(node, "lineno", 0), f"{what}: {ast.unparse(node)[:70]}", ast.unparse(wrong))


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[Any], None]]]:
    """What can be done to a node, each as a function that does it to its twin in a copy of the tree."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPPOSITE:
        yield "opposite operator", lambda n: setattr(n, "op", _OPPOSITE[type(n.op)]())
        if not isinstance(node.op, ast.Mult | ast.Div) or _numeric(node):
            yield "without the right-hand term", lambda n: _become(n, n.left)
        if isinstance(node.op, ast.Add | ast.Sub):
            yield "without the left-hand term", lambda n: _become(n, n.right)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPPOSITE:
        yield "turned round", lambda n: setattr(n, "ops", [_OPPOSITE[type(n.ops[0])]()])
    elif isinstance(node, ast.BoolOp):
        yield "opposite connective", lambda n: setattr(n, "op", _OPPOSITE[type(n.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "without its sign", lambda n: _become(n, n.operand)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "another constant", lambda n: setattr(n, "value", n.value * 2 + 1 if n.value in (0, -1) else n.value * 2)
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "returns nothing but zeros", lambda n: setattr(n, "value", _times_zero(n.value))


def _numeric(node: ast.BinOp) -> bool:
    """Whether a factor may be left out: shapes of arrays do not change by a number."""
    return isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant | ast.Name | ast.Attribute)


def _become(node: ast.AST, other: ast.AST) -> None:
    """Turn a node of the tree into another expression, in place."""
    node.__class__ = other.__class__
    node.__dict__ = {**other.__dict__}


def _times_zero(value: ast.expr) -> ast.expr:
    """The same with every number zero, so that the shape still fits; tuples entry by entry."""
    if isinstance(value, ast.Tuple):
        return ast.Tuple([_times_zero(item) for item in value.elts], ast.Load())
    return ast.BinOp(value, ast.Mult(), ast.Constant(0))


def chosen(only: str, sample: int | None, seed: int) -> list[Mutant]:
    """The mutants of all modules, or a sample of them that takes its turn through the modules."""
    found: list[Mutant] = []
    for module in TARGETS:
        if only in module:
            found += mutants_of(module, (ROOT / PACKAGE / module).read_text())
    if sample is None or sample >= len(found):
        return found
    return random.Random(seed).sample(found, sample)


def check_targets() -> None:
    """Refuse modules and tests that are not there: a test that cannot be found would kill every mutant."""
    for module, tests in TARGETS.items():
        missing = [] if (ROOT / PACKAGE / module).exists() else [module]
        for name in tests:
            file, _, test = name.partition("::")
            path = ROOT / "tests" / file
            if not path.exists() or (test and f"def {test}(" not in path.read_text()):
                missing.append(name)
        if missing:
            raise SystemExit(f"TARGETS[{module!r}] names what is not there: {missing}")


def survives(mutant: Mutant, folder: Path, limit: float) -> bool:
    """Whether all tests of its module pass with the mutant in the place of the module."""
    place = folder / PACKAGE / mutant.module
    right = place.read_text()
    place.write_text(mutant.source)
    files = [str(ROOT / "tests" / name) for name in TARGETS[mutant.module]]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *files]
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=limit, check=False)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False  # a search that never ends is noticed
    finally:
        place.write_text(right)


def main() -> int:
    """Run; the exit status is the number of survivors, at most 99."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sample", type=int, help="so many mutants, drawn at random, instead of all")
    asked.add_argument("--seed", type=int, default=0, help="of the draw")
    asked.add_argument("--only", default="", help="modules whose name contains this")
    asked.add_argument("--limit", type=float, default=180.0, help="seconds for the tests of one mutant")
    asked.add_argument("--list", action="store_true", help="print the mutants, and run nothing")
    settings = asked.parse_args()
    check_targets()
    mutants = chosen(settings.only, settings.sample, settings.seed)
    if not mutants:
        raise SystemExit(f"--only {settings.only!r} is in the name of no module: {', '.join(TARGETS)}")
    if settings.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0
    survivors, begun = [], time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        # Without this, an installation that comes before the copy would make every mutant survive.
        broken = Mutant("inference/models/evidence.py", 0, "cannot be imported", "raise ImportError")
        if survives(broken, folder, settings.limit):
            raise SystemExit("the tests do not run on the copy of the source: another installation comes before it")
        # Nor would one that fails, or takes too long, on the source as it is: it would kill every mutant.
        for module in dict.fromkeys(mutant.module for mutant in mutants):
            unchanged = Mutant(module, 0, "unchanged", (ROOT / PACKAGE / module).read_text())
            if not survives(unchanged, folder, settings.limit):
                raise SystemExit(f"the tests of {module} do not pass in {settings.limit:g} s on the source as it is")
        for number, mutant in enumerate(mutants, start=1):
            alive = survives(mutant, folder, settings.limit)
            survivors += [mutant] if alive else []
            print(f"{number}/{len(mutants)} {'SURVIVES' if alive else 'killed  '} {mutant.name}", flush=True)
    spent = time.monotonic() - begun
    print(f"\n{len(mutants)} mutants, {len(survivors)} survivors, {spent:.0f} s")
    print("\n".join(mutant.name for mutant in survivors))
    return min(len(survivors), 99)


if __name__ == "__main__":
    sys.exit(main())
