"""Regression sets."""

from typing import Any

from sparsebayes.datasets.catalogue.licences import DELVE, ESL, MASS, PLS, UCI, UCI20
from sparsebayes.datasets.registry import Arrays, DataSet, OpenML, ScikitLearn
from sparsebayes.datasets.splits import Consecutive, Flagged, PackedMasks, Seeded


def _regression(name: str, path: str, **rest: Any) -> DataSet:
    return DataSet(name=name, task="regression", paths=(path,), **rest)


def _uci20(name: str, target: str, *, suffix: str = "csv", n_splits: int = 20, **rest: Any) -> DataSet:
    path = f"uci20/{name}.{suffix}"
    return _regression(name, path, target=(target,), splits=Seeded(n_splits), licence=UCI20, **rest)


_UCI20 = (
    _regression(
        "boston",
        "uci20/boston.csv",
        shape=(506, 13),
        target=("medv",),
        # Rows and order are those of the file in MASS, so the packaged copy serves for these splits too.
        bundled=("boston_mass.csv",),
        splits=Seeded(20),
        citation="Harrison & Rubinfeld 1978; splits of Hernández-Lobato & Adams 2015",
        licence=MASS,
    ),
    _uci20(
        "concrete",
        "strength",
        shape=(1030, 8),
        openml=OpenML("concrete_compressive_strength", 44959),
        citation="Yeh 1998, Cement & Concrete Research 28",
    ),
    _uci20("energy", "heating_load", shape=(768, 8), citation="Tsanas & Xifara 2012"),
    _uci20(
        "protein",
        "RMSD",
        suffix="csv.gz",
        n_splits=5,
        shape=(45730, 9),
        openml=OpenML("physiochemical_protein", 44963),
        citation="Rana 2013, UCI CASP",
    ),
    _uci20(
        "wine_red",
        "quality",
        shape=(1599, 11),
        openml=OpenML("red_wine", 44972),
        citation="Cortez et al. 2009",
    ),
    _uci20("yacht", "resistance", shape=(308, 6), citation="Gerritsma et al. 1981"),
)

_GENERAL = (
    _regression(
        "boston_mass",
        "regression/boston_mass.csv",
        shape=(506, 13),
        target=("medv",),
        bundled=("boston_mass.csv",),
        citation="Harrison & Rubinfeld 1978; used in Tipping 2001",
        licence=MASS,
    ),
    _regression(
        "abalone",
        "regression/abalone.csv",
        shape=(4177, 8),
        target=("rings",),
        openml=OpenML("abalone", 183),
        citation="Nash et al. 1994",
        licence=UCI,
    ),
    _regression(
        "wine_white",
        "regression/wine_white.csv",
        shape=(4898, 11),
        target=("quality",),
        openml=OpenML("white_wine", 44971),
        citation="Cortez et al. 2009",
        licence=UCI,
    ),
    _regression(
        "california_housing",
        "regression/california_housing.csv.gz",
        shape=(20640, 9),
        target=("median_house_value",),
        citation="Pace & Barry 1997, Statistics & Probability Letters 33; 207 values removed by Géron",
        licence="StatLib, no formal licence; Apache-2.0 (handson-ml2)",
    ),
    _regression(
        "cpu_act",
        "regression/cpu_act.csv.gz",
        shape=(8192, 21),
        target=("usr",),
        openml=OpenML("cpu_act", 197),
        citation="DELVE comp-activ (Revow); KEEL",
        licence=DELVE,
    ),
    _regression(
        "cpu_small",
        "regression/cpu_small.csv.gz",
        shape=(8192, 12),
        target=("usr",),
        openml=OpenML("cpu_small", 227),
        citation="DELVE comp-activ, prototask cpuSmall (Revow)",
        licence=DELVE,
    ),
    _regression(
        "airfoil",
        "regression/airfoil.csv",
        shape=(1503, 5),
        target=("sound_db",),
        openml=OpenML("airfoil_self_noise", 44957),
        citation="Brooks, Pope & Marcolini 1989",
        licence=UCI,
    ),
    _regression(
        "diamonds",
        "regression/diamonds.csv.gz",
        shape=(53940, 9),
        target=("price",),
        openml=OpenML("diamonds", 42225),
        citation="Wickham, ggplot2",
        licence="MIT (R package ggplot2)",
    ),
    DataSet(
        name="diabetes",
        task="regression",
        shape=(442, 10),
        target=("target",),
        scikit_learn=ScikitLearn("load_diabetes", {"scaled": False}),
        citation="Efron, Hastie, Johnstone & Tibshirani 2004, Annals of Statistics 32:407-499",
        licence="BSD-3-Clause (scikit-learn)",
    ),
    _regression(
        "kegg_undirected",
        "regression/kegg_undirected.npz",
        shape=(63608, 27),
        target=("y",),
        splits=PackedMasks("test_mask_packed"),
        citation="Naeem & Asghar 2011, UCI KEGG; Evans, uci_datasets",
        licence="MIT (uci_datasets); CC BY 4.0 (UCI)",
    ),
    _regression(
        "gagurine",
        "regression/gagurine.csv",
        shape=(314, 1),
        target=("GAG",),
        citation="Venables & Ripley 2002",
        licence=MASS,
    ),
    _regression(
        "laser",
        "regression/laser.csv",
        shape=(993, 4),
        target=("Output",),
        citation="Weigend & Gershenfeld 1994",
        licence="KEEL; Santa Fe competition, set A",
    ),
)

_HIGHDIM = (
    _regression(
        "gasoline",
        "highdim/gasoline.csv.gz",
        shape=(60, 401),
        target=("octane",),
        citation="Kalivas 1997, Chemometrics and Intelligent Laboratory Systems 37",
        licence=PLS,
    ),
    _regression(
        "yarn",
        "highdim/yarn.csv",
        shape=(28, 268),
        target=("density",),
        splits=Flagged("train"),
        citation="Swierenga et al. 1999",
        licence=PLS,
    ),
    _regression(
        "oliveoil",
        "highdim/oliveoil.csv",
        shape=(16, 5),
        target=("yellow", "green", "brown", "glossy", "transp", "syrup"),
        extras=("id",),
        citation="Massart et al. 1998",
        licence=PLS,
    ),
    _regression(
        "tecator",
        "highdim/tecator.csv.gz",
        shape=(215, 100),
        target=("fat",),
        extras=("water", "protein"),
        splits=Consecutive(train=129, validation=43),
        citation="Borggaard & Thodberg 1992",
        licence="StatLib; free use with acknowledgement to Tecator",
    ),
    _regression(
        "prostate",
        "highdim/prostate.csv",
        shape=(97, 8),
        target=("lpsa",),
        splits=Flagged("train"),
        citation="Stamey et al. 1989; Hastie, Tibshirani & Friedman, The Elements of Statistical Learning",
        licence=ESL,
    ),
    _regression(
        "riboflavin",
        "highdim/riboflavin.npz",
        shape=(71, 4088),
        target=("log_production",),
        arrays=Arrays(feature_names="names"),
        citation="Bühlmann, Kalisch & Meier 2014, Annual Review of Statistics",
        licence="GPL (R package hdi); data provided by DSM (Kaiseraugst)",
    ),
    _regression(
        "m1_chewie",
        "highdim/m1_chewie.npz",
        shape=(3018, 71),
        target=("velocity_x", "velocity_y"),
        arrays=Arrays(
            data=("spikes_train", "spikes_test"),
            target=("vel_train", "vel_test"),
            extras={"direction": ("dir_train", "dir_test")},
        ),
        splits=Consecutive(train=1200),
        citation="Dyer et al. 2017, Nature Biomedical Engineering 1:967",
        licence="no licence file; the authors ask to cite the paper",
    ),
)

_ROBUST = (
    _regression(
        "stackloss",
        "robust/stackloss.csv",
        shape=(21, 3),
        target=("stack.loss",),
        citation="Brownlee 1965; outliers in the literature: observations 1, 3, 4, 21 (counted from 1)",
        licence="GPL (R)",
    ),
    _regression(
        "starsCYG",
        "robust/starsCYG.csv",
        shape=(47, 1),
        target=("log.light",),
        citation="Rousseeuw & Leroy 1987; four giants: observations 11, 20, 30, 34 (counted from 1)",
        licence="GPL-2 or later (R package robustbase)",
    ),
    _regression(
        "mcycle",
        "robust/mcycle.csv",
        shape=(133, 1),
        target=("accel",),
        citation="Silverman 1985",
        licence=MASS,
    ),
)

REGRESSION = (*_UCI20, *_GENERAL, *_HIGHDIM, *_ROBUST)
