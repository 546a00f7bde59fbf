"""Classification sets."""

from typing import Any

from sparsebayes.datasets.catalogue.licences import ESL, MASS, MLBENCH, RATSCH, UCI
from sparsebayes.datasets.registry import Arrays, DataSet, OpenML, ScikitLearn
from sparsebayes.datasets.splits import Consecutive, Stored


def _classification(name: str, *paths: str, **rest: Any) -> DataSet:
    return DataSet(name=name, task="classification", paths=paths, **rest)


def _ratsch(name: str, n_rows: int, n_columns: int) -> DataSet:
    return _classification(
        name,
        f"ratsch/{name}.npz",
        shape=(n_rows, n_columns),
        target=("y",),
        splits=Stored(),
        arrays=Arrays(extras={"split_number": ("split_number",)}),
        citation="Rätsch, Onoda & Müller 2001, Machine Learning 42:287-320",
        licence=RATSCH,
    )


def _shipped(name: str, loader: str, n_rows: int, n_columns: int, citation: str) -> DataSet:
    return _classification(
        name,
        shape=(n_rows, n_columns),
        target=("target",),
        scikit_learn=ScikitLearn(loader),
        citation=citation,
        licence="BSD-3-Clause (scikit-learn); CC BY 4.0 (UCI)",
    )


_RATSCH = (
    _ratsch("banana", 5300, 2),
    _ratsch("breast_cancer", 277, 9),
    _ratsch("german", 1000, 20),
    _ratsch("image", 2310, 18),
    _ratsch("titanic", 2201, 3),
    _ratsch("waveform", 5000, 21),
)

_GENERAL = (
    _classification(
        "ripley_synth",
        "classification/ripley_synth_train.csv",
        "classification/ripley_synth_test.csv",
        shape=(1250, 2),
        target=("yc",),
        bundled=("ripley_synth_train.csv", "ripley_synth_test.csv"),
        splits=Consecutive(train=250),
        citation="Ripley 1996, Pattern Recognition and Neural Networks",
        licence=MASS,
    ),
    _classification(
        "pima_ripley",
        "classification/pima_ripley_train.csv",
        "classification/pima_ripley_test.csv",
        shape=(532, 7),
        target=("type",),
        bundled=("pima_ripley_train.csv", "pima_ripley_test.csv"),
        splits=Consecutive(train=200),
        citation="Smith et al. 1988; Ripley 1996",
        licence=MASS,
    ),
    _classification(
        "pima_uci",
        "classification/pima_uci.csv",
        shape=(768, 8),
        target=("diabetes",),
        openml=OpenML("diabetes", 37),
        citation="Smith et al. 1988",
        licence=MLBENCH,
    ),
    _classification(
        "satimage",
        "classification/satimage.csv.gz",
        shape=(6435, 36),
        target=("classes",),
        citation="Statlog Landsat",
        licence=MLBENCH,
    ),
    _classification(
        "letter",
        "classification/letter.csv.gz",
        shape=(20000, 16),
        target=("lettr",),
        splits=Consecutive(train=16000),
        openml=OpenML("letter", 6),
        citation="Frey & Slate 1991",
        licence=MLBENCH,
    ),
    _classification(
        "shuttle",
        "classification/shuttle.csv.gz",
        shape=(58000, 9),
        target=("Class",),
        openml=OpenML("shuttle", 40685),
        citation="Statlog Shuttle",
        licence=MLBENCH,
    ),
    _classification(
        "segment",
        "classification/segment.csv.gz",
        shape=(2310, 19),
        target=("Class",),
        openml=OpenML("segment", 36),
        citation="Brodley 1990",
        licence=UCI,
    ),
    _shipped("iris", "load_iris", 150, 4, "Fisher 1936"),
    _shipped("wine", "load_wine", 178, 13, "Forina et al."),
    _shipped("digits", "load_digits", 1797, 64, "Alpaydin & Kaynak 1998, UCI optdigits, test part"),
    _shipped("wdbc", "load_breast_cancer", 569, 30, "Street, Wolberg & Mangasarian 1993"),
    _classification(
        "usps",
        "classification/usps.npz",
        shape=(9298, 256),
        target=("digit",),
        # The file holds thousandths as integers; OpenML numbers the digits 1 to 10.
        arrays=Arrays(data=("X_train_x1000", "X_test_x1000"), target=("y_train", "y_test"), divisor=1000.0),
        classes=tuple("0123456789"),
        splits=Consecutive(train=7291),
        openml=OpenML("USPS", 41082),
        citation="LeCun et al. 1990; Hastie, Tibshirani & Friedman, The Elements of Statistical Learning",
        licence=ESL,
    ),
    _classification(
        "spambase",
        "classification/spambase.csv.gz",
        shape=(4601, 57),
        target=("spam",),
        openml=OpenML("spambase", 44),
        citation="Hopkins et al. 1999",
        licence=f"{ESL}; {UCI}",
    ),
    _classification(
        "esl_mixture",
        "classification/esl_mixture.csv",
        shape=(200, 2),
        target=("y",),
        citation="Hastie, Tibshirani & Friedman, The Elements of Statistical Learning, Figure 2.1",
        licence=ESL,
    ),
    _classification(
        "colon",
        "highdim/colon.npz",
        shape=(62, 2000),
        target=("tissue",),
        classes=("normal", "tumour"),
        citation="Alon et al. 1999, PNAS 96:6745",
        licence="GPL-2 or later (R package plsgenomics); Princeton microarray site",
    ),
)

CLASSIFICATION = (*_RATSCH, *_GENERAL)
