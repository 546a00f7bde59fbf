"""A converter for skl2onnx, so that a pipeline of any steps it knows, ending in our estimator, exports whole.

>>> import pytest; _ = pytest.importorskip("skl2onnx")
>>> import numpy as np
>>> from skl2onnx import to_onnx
>>> from sklearn.decomposition import PCA
>>> from sklearn.pipeline import make_pipeline
>>> from sparsebayes import RVR
>>> from sparsebayes.export.skl2onnx import register
>>> register()
>>> X = np.random.default_rng(0).standard_normal((50, 3))
>>> model = make_pipeline(PCA(2), RVR()).fit(X, X[:, 0])
>>> [output.name for output in to_onnx(model, X[:1]).graph.output]
['variable']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from sparsebayes.estimators import RVC, RVR, ARDRegression, SparseBayesClassifier, SparseBayesRegressor

from .graph import to_onnx

_REGRESSORS = (RVR, SparseBayesRegressor, ARDRegression)
_CLASSIFIERS = (RVC, SparseBayesClassifier)
# Operators whose axes became an input in this version of the operator set.
_AXES_INPUT, _REDUCTIONS = 18, ("ReduceProd", "ReduceMin", "ReduceMax")


def _outputs(est: Any) -> list[tuple[str, str, list[int | None]]]:
    """Names of the outputs, those of our own graph that they are, and their shapes."""
    if is_classifier(est):
        return [("label", "label", [None]), ("probabilities", "probabilities", [None, len(est.classes_)])]
    targets = 1 if getattr(est, "_single", True) else len(est._posteriors)
    return [("variable", "mean", [None, targets]), ("std", "std", [None, targets])]


def _refuse_selection(operator: Any) -> None:
    """Refuse a model that another step takes its columns from: skl2onnx would hand on its predictions instead."""
    steps = [step for output in operator.outputs for step in output.operators_inputs_ if step.raw_operator is not None]
    if steps:
        own, other = (type(step.raw_operator).__name__ for step in (operator, steps[0]))
        raise NotImplementedError(
            f"{own} is a step before {other}, which takes "
            "the columns that it kept; skl2onnx knows its predictions only. Put ColumnTransformer([('kept', "
            "'passthrough', model.get_support(indices=True).tolist())]) in its place"
        )


@dataclass(frozen=True)
class _Converter:
    """The functions that skl2onnx wants of a converter; its modules come with it, since they are optional."""

    skl2onnx: Any
    types: Any
    proto: Any
    onnx: Any

    def shapes(self, operator: Any) -> None:
        """Set the types and shapes of the outputs."""
        est = operator.raw_operator
        _refuse_selection(operator)
        double = isinstance(operator.inputs[0].type, self.types.DoubleTensorType)
        number = self.types.DoubleTensorType if double else self.types.FloatTensorType
        for output, (_, inside, shape) in zip(operator.outputs, _outputs(est), strict=False):
            if inside != "label":
                output.type = number(shape)
            elif est.classes_.dtype.kind in "iu":
                output.type = self.types.Int64TensorType(shape)
            elif est.classes_.dtype.kind == "b":
                output.type = self.types.BooleanTensorType(shape)
            else:
                output.type = self.types.StringTensorType(shape)

    def convert(self, scope: Any, operator: Any, container: Any) -> None:
        """Write the nodes of our own graph into skl2onnx's."""
        est = operator.raw_operator
        given = operator.inputs[0]
        double = isinstance(given.type, self.types.DoubleTensorType)
        model = to_onnx(est, dtype="float64" if double else "float32")
        source = given.full_name
        if not isinstance(given.type, (self.types.DoubleTensorType, self.types.FloatTensorType)):
            source = scope.get_unique_variable_name("numbers")
            container.add_node("Cast", [given.full_name], [source], to=self.proto.TensorProto.FLOAT, op_version=13)
        named = {"X": source}
        flat = {}
        for output, (_, inside, _) in zip(operator.outputs, _outputs(est), strict=False):
            if not is_classifier(est) and getattr(est, "_single", True):
                flat[inside] = output.full_name  # ours is (n,), and theirs (n, 1)
            else:
                named[inside] = output.full_name

        def name(inside: str) -> str:
            if inside not in named:
                named[inside] = scope.get_unique_variable_name(f"sparsebayes_{inside}")
            return named[inside]

        self._copy(model.graph, name, scope, container)
        for inside, outside in flat.items():
            shape = scope.get_unique_variable_name("sparsebayes_column")
            container.add_initializer(shape, self.proto.TensorProto.INT64, [2], np.array([-1, 1]).tolist())
            container.add_node("Reshape", [name(inside), shape], [outside], op_version=13)

    def _copy(self, graph: Any, name: Callable[[str], str], scope: Any, container: Any) -> None:
        """Add the constants and nodes of a graph under other names."""
        version = min(container.target_opset, 17)
        for tensor in graph.initializer:
            container.initializers.append(self.onnx.TensorProto.FromString(tensor.SerializeToString()))
            container.initializers[-1].name = name(tensor.name)
        for node in graph.node:
            attributes = {a.name: self.onnx.helper.get_attribute_value(a) for a in node.attribute}
            inputs = [name(inside) for inside in node.input]
            at = version
            if node.op_type in _REDUCTIONS and container.target_opset >= _AXES_INPUT:
                axes = scope.get_unique_variable_name("sparsebayes_axes")
                container.add_initializer(axes, self.proto.TensorProto.INT64, [1], list(attributes.pop("axes")))
                inputs, at = [*inputs, axes], _AXES_INPUT
            container.add_node(
                node.op_type,
                inputs,
                [name(inside) for inside in node.output],
                name=scope.get_unique_operator_name("sparsebayes"),
                op_version=at,
                **attributes,
            )

    def parse(self, scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> Any:
        """Declare the outputs: the second of a regression only where it is asked for."""
        del custom_parsers
        operator = scope.declare_local_operator(self.skl2onnx.get_model_alias(type(model)), model)
        operator.inputs.append(inputs[0])
        wanted = _outputs(model)
        if not scope.get_options(model, {"return_std": False}, fail=False).get("return_std", False):
            wanted = wanted[:1]
        for outside, _, shape in wanted:
            operator.outputs.append(scope.declare_local_variable(outside, self.types.FloatTensorType(shape)))
        return operator.outputs


def register() -> None:
    """Make the estimators of this library known to skl2onnx.

    A regression then has the output ``variable`` of shape (n, targets) that skl2onnx gives to all of them, and with the
    option ``{RVR: {"return_std": True}}`` (as of a Gaussian process) a second, ``std``: that of a new observation.  A
    classification has ``label`` and ``probabilities``.

    Raises
    ------
    ImportError
        If the package skl2onnx is not installed.
    """
    try:
        skl2onnx = import_module("skl2onnx")
        types = import_module("skl2onnx.common.data_types")
        proto = import_module("skl2onnx.proto").onnx_proto
        onnx = import_module("onnx")
    except ImportError:
        raise ImportError("a converter needs the package skl2onnx: pip install 'sparsebayes[onnx]'") from None
    converter = _Converter(skl2onnx, types, proto, onnx)
    for cls in _REGRESSORS:
        skl2onnx.update_registered_converter(
            cls,
            f"SparseBayes{cls.__name__}",
            converter.shapes,
            converter.convert,
            overwrite=True,
            parser=converter.parse,
            options={"return_std": [True, False]},
        )
    for cls in _CLASSIFIERS:
        skl2onnx.update_registered_converter(
            cls,
            f"SparseBayes{cls.__name__}",
            converter.shapes,
            converter.convert,
            overwrite=True,
            options={"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [True, False]},
        )
