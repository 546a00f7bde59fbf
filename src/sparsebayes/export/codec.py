"""Fitted estimators as plain JSON values and back, by an explicit list of types; nothing else gets through.

Values that JSON has no word for are objects with one key that starts with ``$``. Reading one builds only what is
registered below, from checked parts, so that a file from a stranger runs no code. A new estimator, solver, status or
record is one more name in a registry.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable as Function
from dataclasses import fields
from enum import Enum
from inspect import signature
from typing import Any

import numpy as np
import sklearn
from sklearn import preprocessing
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from sparsebayes import inference
from sparsebayes.basis import Basis, Callable, Functions, Sum, from_specifications
from sparsebayes.basis.base import _KINDS, Joined
from sparsebayes.callers import stack_level
from sparsebayes.design import Reduction
from sparsebayes.estimators import EXPORTED
from sparsebayes.estimators.portable import Portable
from sparsebayes.inference import Certificate, ParameterStatus, Record, Status
from sparsebayes.inference.objective import Support, SupportRule, Supports
from sparsebayes.posterior import (
    Calibration,
    ClassPosterior,
    GaussianPosterior,
    PoissonPosterior,
    TrainingRows,
    VaryingNoise,
)

from .arrays import decode_array, encode_array
from .errors import ModelFileError

ESTIMATORS: dict[str, type[BaseEstimator]] = {cls.__name__: cls for cls in EXPORTED}
SOLVERS: dict[str, type[BaseEstimator]] = {cls.__name__: cls for cls in inference.SOLVERS.values()}
ENUMS: dict[str, type[Enum]] = {cls.__name__: cls for cls in (Status, ParameterStatus)}
DATACLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        Record,
        Certificate,
        Calibration,
        GaussianPosterior,
        ClassPosterior,
        PoissonPosterior,
        Support,
        SupportRule,
        TrainingRows,
        VaryingNoise,
        Reduction,
    )
}

# Steps of scikit-learn that may come before an estimator: their fitted state is data.  FunctionTransformer is what a
# ColumnTransformer passes columns through with; a function in it would be refused like any other.
TRANSFORMERS: dict[str, type[BaseEstimator]] = {
    cls.__name__: cls
    for cls in (
        Pipeline,
        ColumnTransformer,
        preprocessing.FunctionTransformer,
        preprocessing.MaxAbsScaler,
        preprocessing.MinMaxScaler,
        preprocessing.Normalizer,
        preprocessing.OneHotEncoder,
        preprocessing.OrdinalEncoder,
        PCA,
        preprocessing.PolynomialFeatures,
        preprocessing.PowerTransformer,
        preprocessing.QuantileTransformer,
        preprocessing.RobustScaler,
        SimpleImputer,
        preprocessing.StandardScaler,
        VarianceThreshold,
    )
}
_DTYPES = ("bool", "int32", "int64", "float32", "float64", "object")

# Keys of a dict; class weights, for one, are by label.
_KEYS = (str, int, float, np.generic)

# The table that polynomial functions are rebuilt into has a column for every degree, which a file could put at any
# number: this many entries are far beyond any model, and 32 MB.
_LARGEST_POWER_TABLE = 1 << 22

_OWN_KERNEL = (
    "use a kernel by name, or make it a subclass of sparsebayes.basis.Kernel with a kind of its own, and fit again"
)
_WAYS_OUT = {
    "kernel": _OWN_KERNEL,
    "function": _OWN_KERNEL,
    "_functions": _OWN_KERNEL,
    "random_state": "set_params(random_state=None), or an integer seed, before saving",
    "callback": "set_params(solver__callback=None) before saving; predictions do not need it",
    "candidates": "set_params(solver__candidates=None) before saving; predictions do not need it",
    "checkpoint": "pass it as text: set_params(checkpoint=str(path))",
    "solver": "name a solver, or pass one of sparsebayes's solver objects",
}
_ANY_WAY_OUT = "make it a number, a text, an array, or a list or dict of these, or remove it"


def encode_estimator(est: BaseEstimator) -> dict[str, Any]:
    """Return the class and the whole state of an estimator as plain JSON values.

    Raises
    ------
    TypeError
        Where the class is not registered, or an attribute is neither data nor an object of this library.
    """
    name = type(est).__name__
    if type(est) is Pipeline:
        _check_steps(est)
    elif ESTIMATORS.get(name) is not type(est) or not isinstance(est, Portable):
        raise TypeError(
            f"cannot save an object of type {name}: a model file holds one of {', '.join(ESTIMATORS)}, or a Pipeline "
            "that ends in one; of a search, save best_estimator_"
        )
    final = est.steps[-1][1] if isinstance(est, Pipeline) else est
    if isinstance(final, Portable):
        final._complete()
    behind = est._left_behind if isinstance(est, Portable) else ()
    return {
        "class": name,
        "state": {key: encode(value, key) for key, value in vars(est).items() if key not in behind},
    }


def _check_steps(pipeline: Pipeline) -> None:
    """Raise where a step is none that a model file holds, by its name."""
    for place, (name, step) in enumerate(pipeline.steps):
        last = place == len(pipeline.steps) - 1
        known = ESTIMATORS if last else TRANSFORMERS
        if (step is None or step == "passthrough") and not last:
            continue
        if known.get(type(step).__name__) is not type(step):
            what = "the last step" if last else "a step before the last"
            raise TypeError(
                f"cannot save the pipeline: its step {name!r} is of type {type(step).__name__}, and {what} may be one "
                f"of {', '.join(known)}; save the fitted estimator inside"
            )


def decode_estimator(node: Any) -> BaseEstimator:
    """Return the estimator that :func:`encode_estimator` described."""
    body = _body(node, "class", "state")
    if body["class"] == Pipeline.__name__:
        pipeline = _decode_state(Pipeline, body["state"])
        steps = vars(pipeline).get("steps")
        good = isinstance(steps, list) and all(
            isinstance(s, tuple) and len(s) == 2 and type(s[0]) is str for s in steps
        )
        if not good or not steps or type(steps[-1][1]) not in ESTIMATORS.values():
            raise ModelFileError("the steps of its pipeline do not end in an estimator")
        return pipeline
    cls = _registered(ESTIMATORS, body["class"], "estimator")
    state = _mapping(body["state"])
    for name in state:
        # Data in the place of a method would make a model that fails later, far from its cause.
        if name.startswith("__") or callable(getattr(cls, name, None)):
            raise ModelFileError(f"the attribute {name!r} is not one that a fitted {cls.__name__} has")
    # The constructor sets what a file from before a parameter existed does not have.
    est = cls()
    vars(est).update({name: decode(value) for name, value in state.items()})
    return est


def _decode_state(cls: type[BaseEstimator], node: Any) -> Any:
    """An object of a class of scikit-learn's with this state, and defaults for what the state does not have."""
    state = _mapping(node)
    for name in state:
        if name.startswith("__") or (callable(getattr(cls, name, None)) and name not in signature(cls).parameters):
            raise ModelFileError(f"the attribute {name!r} is not one that a fitted {cls.__name__} has")
    est = cls.__new__(cls)
    vars(est).update({p.name: p.default for p in signature(cls).parameters.values() if p.default is not p.empty})
    vars(est).update({name: decode(value) for name, value in state.items()})
    return est


def encode(value: Any, where: str) -> Any:
    """Return a value as plain JSON values.

    Parameters
    ----------
    value : object
        What to encode.
    where : str
        Name of the attribute it came from, for the error message.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is Supports:
        return encode(value.all(), where)
    if kind is list:
        return [encode(item, f"{where}[{k}]") for k, item in enumerate(value)]
    if kind is tuple:
        return {"$tuple": encode(list(value), where)}
    if kind is dict:
        return _encode_dict(value, where)
    if isinstance(value, np.generic):
        return {"$scalar": _encode_array(np.asarray(value), where)}
    if kind is np.ndarray:
        return {"$array": _encode_array(value, where)}
    if isinstance(value, Functions):
        return {"$functions": _encode_functions(value, where)}
    if isinstance(value, Basis):
        return _encode_basis(value, where)
    return _encode_registered(value, where)


def decode(node: Any) -> Any:
    """Return the value that :func:`encode` described."""
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if isinstance(node, list):
        return [decode(item) for item in node]
    tags = [key for key in node if key.startswith("$")]
    if not tags:
        return {key: decode(item) for key, item in node.items()}
    if len(node) != 1 or tags[0] not in _DECODERS:
        raise ModelFileError(f"a value is marked {', '.join(map(repr, tags))}, which this version does not know")
    return _DECODERS[tags[0]](node[tags[0]])


def _refuse(value: Any, where: str, what: str | None = None) -> TypeError:
    last = where.rpartition(".")[2].partition("[")[0]
    what = f"is of type {type(value).__name__}" if what is None else what
    return TypeError(
        f"cannot save the attribute {where!r}: it {what}, and a model file holds data, never code or live objects; "
        f"{_WAYS_OUT.get(last, _ANY_WAY_OUT)}"
    )


def _encode_dict(value: dict[Any, Any], where: str) -> Any:
    if not all(isinstance(key, _KEYS) for key in value):
        raise _refuse(value, where, "is a dict with keys that are neither texts nor numbers")
    items = [[encode(key, where), encode(item, f"{where}[{key!r}]")] for key, item in value.items()]
    if all(type(key) is str and not key.startswith("$") for key in value):
        return dict(items)
    return {"$dict": items}


def _encode_array(array: Any, where: str) -> dict[str, Any]:
    try:
        return encode_array(array)
    except TypeError as error:
        raise _refuse(array, where, str(error)) from None


def _encode_functions(value: Functions, where: str) -> dict[str, Any]:
    # Part by part: how functions are grouped for evaluation decides the last bit of what BLAS returns.
    parts = [part.specifications() for part in (value.parts if isinstance(value, Joined) else [value])]
    body = {"n_features": value.n_features, "parts": encode([part for part in parts if part], where)}
    try:
        _decode_functions(body)
    except ValueError as error:
        raise _refuse(value, where, f"has functions that cannot be rebuilt ({error})") from None
    return body


def _encode_basis(value: Basis, where: str) -> dict[str, Any]:
    if type(value) is Sum:
        return {"$sum": [_encode_basis(term, f"{where}.bases[{k}]") for k, term in enumerate(value.bases)]}
    kind = getattr(value, "kind", None)
    if isinstance(value, Callable) or kind is None or _KINDS.get(kind) is not type(value):
        raise _refuse(value, f"{where}.function" if isinstance(value, Callable) else where)
    return {"$basis": {"kind": kind, "parameters": _encode_parameters(value, where)}}


def _encode_registered(value: Any, where: str) -> dict[str, Any]:
    name = type(value).__name__
    if ENUMS.get(name) is type(value):
        return {"$enum": {"class": name, "member": value.name}}
    if DATACLASSES.get(name) is type(value):
        items = {f.name: encode(getattr(value, f.name), f"{where}.{f.name}") for f in fields(value)}
        return {"$dataclass": {"class": name, "fields": items}}
    if SOLVERS.get(name) is type(value):
        return {"$solver": {"class": name, "parameters": _encode_parameters(value, where)}}
    if TRANSFORMERS.get(name) is type(value):
        state = {key: encode(item, f"{where}.{key}") for key, item in vars(value).items()}
        return {"$transformer": {"class": name, "state": state, "sklearn": sklearn.__version__}}
    if ESTIMATORS.get(name) is type(value):
        return {"$estimator": encode_estimator(value)}
    if type(value) is slice:
        return {"$slice": [encode(item, where) for item in (value.start, value.stop, value.step)]}
    if isinstance(value, np.dtype) and value.name in _DTYPES:
        return {"$dtype": value.name}
    if isinstance(value, type) and issubclass(value, np.generic) and np.dtype(value).name in _DTYPES:
        return {"$dtype": f"class {np.dtype(value).name}"}
    raise _refuse(value, where)


def _encode_parameters(value: BaseEstimator, where: str) -> dict[str, Any]:
    return {key: encode(item, f"{where}.{key}") for key, item in value.get_params(deep=False).items()}


def _mapping(node: Any) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise ModelFileError(f"a {type(node).__name__} stands where named values were expected")
    return node


def _body(node: Any, *keys: str) -> dict[str, Any]:
    if set(_mapping(node)) != set(keys):
        raise ModelFileError(f"a part has the entries {sorted(node)}, expected {sorted(keys)}")
    return node


def _registered(registry: dict[str, Any], name: Any, what: str) -> Any:
    if not isinstance(name, str) or name not in registry:
        raise ModelFileError(f"the {what} {name!r} is unknown; this version knows {', '.join(registry)}")
    return registry[name]


def _decode_float(node: Any) -> float:
    if node not in ("inf", "-inf", "nan"):
        raise ModelFileError(f"the special number {node!r} is unknown, expected inf, -inf or nan")
    return float(node)


def _decode_list(node: Any) -> list[Any]:
    if not isinstance(node, list):
        raise ModelFileError(f"a {type(node).__name__} stands where a list was expected")
    return [decode(item) for item in node]


def _decode_dict(node: Any) -> dict[Any, Any]:
    pairs = _decode_list(node)
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], _KEYS) for pair in pairs):
        raise ModelFileError("a dict has an entry that is not a pair of a text or number and a value")
    return dict(pairs)


def _decode_scalar(node: Any) -> Any:
    array = decode_array(node)
    if array.ndim:
        raise ModelFileError(f"a single number has the shape {array.shape}")
    return array[()]


def _decode_functions(node: Any) -> Functions:
    body = _body(node, "n_features", "parts")
    n_features, parts = body["n_features"], _decode_list(body["parts"])
    if type(n_features) is not int or n_features < 1:
        raise ModelFileError(f"functions of {n_features!r} inputs are not possible")
    for part in parts:
        _check_powers(part)
    built = [from_specifications(part, n_features) for part in parts]
    if not built:
        return from_specifications([{"kind": "bias"}], n_features).restrict([])
    return built[0] if len(built) == 1 else Joined(built)


def _check_powers(part: Any) -> None:
    degrees = [sum(spec["powers"]) for spec in part if spec.get("kind") == "polynomial"]
    if len(degrees) * max(degrees, default=0) > _LARGEST_POWER_TABLE:
        raise ModelFileError(f"polynomial functions of degree {max(degrees)} are too large to rebuild")


def _decode_sum(node: Any) -> Sum:
    return Sum(*_decode_list(node))


def _decode_basis(node: Any) -> Basis:
    body = _body(node, "kind", "parameters")
    known = {kind: cls for kind, cls in _KINDS.items() if not issubclass(cls, Callable)}
    cls = _registered(known, body["kind"], "basis kind")
    return cls(**_decode_parameters(cls, body["parameters"]))


def _decode_solver(node: Any) -> BaseEstimator:
    body = _body(node, "class", "parameters")
    cls = _registered(SOLVERS, body["class"], "solver")
    return cls(**_decode_parameters(cls, body["parameters"]))


def _decode_parameters(cls: type[BaseEstimator], node: Any) -> dict[str, Any]:
    unknown = sorted(set(_mapping(node)) - set(signature(cls).parameters))
    if unknown:
        raise ModelFileError(f"{cls.__name__} has no parameter {', '.join(map(repr, unknown))}")
    return {key: decode(item) for key, item in node.items()}


def _decode_enum(node: Any) -> Enum:
    body = _body(node, "class", "member")
    cls = _registered(ENUMS, body["class"], "enumeration")
    return _registered(dict(cls.__members__), body["member"], cls.__name__)


def _decode_dataclass(node: Any) -> Any:
    body = _body(node, "class", "fields")
    cls = _registered(DATACLASSES, body["class"], "record")
    unknown = sorted(set(_mapping(body["fields"])) - {f.name for f in fields(cls)})
    if unknown:
        raise ModelFileError(f"{cls.__name__} has no field {', '.join(map(repr, unknown))}")
    # A field that is missing and has no default is a TypeError of the constructor, reported like the rest.
    return cls(**{key: decode(item) for key, item in body["fields"].items()})


def _decode_transformer(node: Any) -> Any:
    body = _body(node, "class", "state", "sklearn")
    written = str(body["sklearn"])
    if written.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        warnings.warn(
            f"the model's {body['class']} was fitted with scikit-learn {written[:20]}, and this is "
            f"{sklearn.__version__}: compare a few predictions before you rely on it",
            UserWarning,
            stacklevel=stack_level(),
        )
    return _decode_state(_registered(TRANSFORMERS, body["class"], "step"), body["state"])


def _decode_slice(node: Any) -> slice:
    ends = _decode_list(node)
    if len(ends) != 3 or not all(end is None or type(end) is int for end in ends):
        raise ModelFileError("a slice has ends that are not whole numbers")
    return slice(*ends)


def _decode_dtype(node: Any) -> Any:
    name = node.removeprefix("class ") if isinstance(node, str) else node
    if name not in _DTYPES:
        raise ModelFileError(f"the dtype {node!r} is unknown; this version knows {', '.join(_DTYPES)}")
    return np.dtype(name).type if name != node else np.dtype(name)


_DECODERS: dict[str, Function[[Any], Any]] = {
    "$float": _decode_float,
    "$tuple": lambda node: tuple(_decode_list(node)),
    "$dict": _decode_dict,
    "$scalar": _decode_scalar,
    "$array": decode_array,
    "$functions": _decode_functions,
    "$sum": _decode_sum,
    "$basis": _decode_basis,
    "$enum": _decode_enum,
    "$dataclass": _decode_dataclass,
    "$solver": _decode_solver,
    "$transformer": _decode_transformer,
    "$estimator": decode_estimator,
    "$slice": _decode_slice,
    "$dtype": _decode_dtype,
}
