"""All studies of the papers' tables and figures, in the order in which they are listed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from sparsebayes.studies.framework import Study

# Modules of ``studies.papers``; each has a ``STUDY``.
MODULES: tuple[str, ...] = (
    "tf_figure1",
    "tf_regression",
    "tf_classification",
    "tf_million",
    "lecture_synthetic",
    "lecture_blocks",
    "lecture_compression",
    "lecture_approximation",
    "lecture_kernel_pca",
    "lecture_robust",
    "lecture_super_resolution",
    "bo_figure2",
    "bo_table1",
    "tipping_sinc",
    "tipping_ripley",
    "tipping_scales",
    "tipping_regression",
    "tipping_classification",
    "dsouza_figure3",
    "dsouza_table1",
    "dsouza_tables",
)


def all_studies() -> dict[str, Study]:
    """Every study by its name."""
    studies = [import_module(f"sparsebayes.studies.papers.{module}").STUDY for module in MODULES]
    return {study.name: study for study in studies}


def choose(names: Iterable[str]) -> list[Study]:
    """The studies of these names, ``all`` being every one; a name that is none is refused."""
    known, wanted = all_studies(), list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in known and name != "all"]
    if unknown:
        raise ValueError(f"no study is called {', '.join(map(repr, unknown))}; choose among all, {', '.join(known)}")
    return list(known.values()) if "all" in wanted else [known[name] for name in wanted]
