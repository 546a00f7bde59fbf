"""All problems of the ledger by name, and how some of them are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sparsebayes.benchmarks.ledger.cases import Case, NotAtHandError, Problem
from sparsebayes.benchmarks.ledger.papers import paper_problems
from sparsebayes.benchmarks.ledger.tables import table_problems

KINDS = ("regression", "classification", "papers")
PROBLEMS: dict[str, Problem] = {problem.name: problem for problem in [*table_problems(), *paper_problems()]}


def choose_problems(kinds: Iterable[str] | None = None, only: Iterable[str] | None = None) -> list[Problem]:
    """Problems of some kinds, or those that are named; a name or kind that is none is refused."""
    kinds, only = list(kinds or KINDS), list(only or ())
    for what, given, known in (("kind", kinds, KINDS), ("problem", only, tuple(PROBLEMS))):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"no {what} is called {', '.join(map(repr, unknown))}; choose among {', '.join(known)}")
    found = [problem for problem in PROBLEMS.values() if set(kinds) & set(problem.kinds)]
    found = [problem for problem in found if not only or problem.name in only]
    if not found:
        raise ValueError(f"no problem called {', '.join(only)} is of kind {' or '.join(kinds)}")
    return found


def drawn(
    problems: Iterable[Problem], seeds: list[int], tell: Callable[[str], None]
) -> Iterator[tuple[Problem, int, Case]]:
    """Draws of problems, one after the other; a problem whose data are not at hand is told and left out."""
    for problem in problems:
        for seed in seeds:
            tell(f"{problem.name}, seed {seed} ...")
            try:
                case = problem.draw(seed)
            except NotAtHandError as error:
                tell(f"{problem.name}: {error}")
                break
            yield problem, seed, case


def read_seeds(text: str) -> list[int]:
    """Seeds from ``"0-4"``, ``"3"`` or ``"0,2,5-7"``."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            seeds += range(int(first), int(last or first) + 1)
    except ValueError:
        seeds = []
    if not seeds:
        raise ValueError(f"seeds must be numbers and ranges of numbers such as 0-4 or 0,3, got {text!r}")
    return list(dict.fromkeys(seeds))
