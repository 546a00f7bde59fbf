"""Models as ONNX graphs.

Arithmetic is in double precision inside the graph, whatever its inputs are: the quadratic form of the posterior
covariance loses too many digits in single precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes._version import __version__
from sparsebayes.posterior.far import LEAST_PART, NEAR
from sparsebayes.posterior.varying import LARGEST_LOG

from .columns import CYCLES, FALSE, MISSING, TRUE, Category, Column, Date
from .formulas import Node
from .plan import Head, Plan, make_plan, pair_table

# Old enough for the runtimes of several years, new enough for every operator used.
_OPSET = 17
_ML_OPSET = 3  # of the operators on texts
_IR_VERSION = 8

_BINARY = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "minimum": "Min",
    "power": "Pow",
}
_UNARY = {"negative": "Neg", "absolute": "Abs", "exp": "Exp", "cos": "Cos", "tanh": "Tanh"}
_REDUCTIONS = {"total": "ReduceSum", "product": "ReduceProd"}


def to_onnx(est: Any, *, dtype: str = "float64") -> Any:
    """Write a fitted model as an ONNX graph.

    Parameters
    ----------
    est : estimator, Pipeline, TableModel or Plan
        A fitted estimator of this library, a pipeline of scalers that ends in one, a model of tables, or what
        :func:`sparsebayes.export.make_plan` made of any.
    dtype : {"float64", "float32"}, default="float64"
        Type of the inputs that are numbers, and of the outputs.  The arithmetic between is in double precision either
        way.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` of shape (n, n_features).  A model of tables has an input of shape (n,) for each of its columns,
        under the column's name: texts for categories and truth values, empty where one is missing, and numbers, NaN
        where one is missing; a date is the number of days since 1970-01-01.
        A regression has the outputs ``mean`` and ``std`` (of a new observation), of shape (n,), or (n, n_targets) if
        it was fitted on a matrix of targets; a classification has ``label`` of shape (n,) and ``probabilities`` of
        shape (n, n_classes), those of ``predict_proba``.

    Raises
    ------
    TypeError
        If the model has functions without a closed form.
    ImportError
        If the ``onnx`` package is not installed.

    Examples
    --------
    >>> import pytest; _ = pytest.importorskip("onnx")
    >>> from sparsebayes import RVR
    >>> from sparsebayes.datasets import make_sinc
    >>> from sparsebayes.export import to_onnx
    >>> model = to_onnx(RVR(gamma=1 / 4**2).fit(*make_sinc(100, noise=0.1, random_state=0)))
    >>> [output.name for output in model.graph.output]
    ['mean', 'std']
    """
    try:
        import onnx
    except ImportError:
        raise ImportError("to_onnx needs the package onnx: pip install 'sparsebayes[onnx]'") from None
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype={dtype!r}: expected 'float64' or 'float32'")
    plan = make_plan(est)
    outside = onnx.TensorProto.DOUBLE if dtype == "float64" else onnx.TensorProto.FLOAT
    graph = _Graph(onnx, "" if plan.columns is None else _free_prefix([c.name for c in plan.columns]))
    inputs = graph.node("Cast", "X", to=onnx.TensorProto.DOUBLE) if plan.columns is None else _encoded(graph, plan)
    if plan.standardised:
        inputs = graph.node("Div", graph.node("Sub", inputs, graph.constant(plan.centre)), graph.constant(plan.scale))
    parts = [_Block(graph, inputs).values(block.expression) for block in plan.blocks]
    values = graph.node("Concat", *parts, axis=1)
    if plan.head is Head.GAUSSIAN:
        means, variances = _outputs(graph, plan, values)
        named = _gaussian(graph, plan, means, _with_noise(graph, plan, values, variances), outside)
    else:
        values, part = _within_reach(graph, values)
        named = _classes(graph, plan, *_outputs(graph, plan, values), part, outside)
    return _finish(graph, plan, named, outside)


class _Graph:
    """Nodes and constants in the order in which they are made."""

    def __init__(self, onnx: Any, prefix: str = "") -> None:
        self.onnx, self.prefix = onnx, prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, op: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add an operation and return the name of its result."""
        name = output or f"{self.prefix}t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(self, values: Any) -> str:
        """Add numbers (double, or int64 where they are integers) or texts and return their name."""
        array = np.asarray(values)
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name


class _Block:
    """Expressions of one block: arrays of shape (n, M), and (n, M, d) before the inputs are taken together."""

    def __init__(self, graph: _Graph, inputs: str) -> None:
        self.graph, self.inputs = graph, inputs
        self._known: dict[Node, str] = {}  # nodes that are used more than once are computed once

    def values(self, expression: Node) -> str:
        """Return the (n, M) values; a constant block has to be told the number of rows."""
        name = self.visit(expression)
        if expression.op != "table":
            return name
        rows = self.graph.node("ReduceSum", self.inputs, self.graph.constant(np.array([1])), keepdims=1)
        ones = self.graph.node("Add", self.graph.node("Mul", rows, self.graph.constant(0.0)), self.graph.constant(1.0))
        return self.graph.node("Mul", ones, name)

    def visit(self, node: Node) -> str:
        """Return the name of what a node computes."""
        if node not in self._known:
            self._known[node] = self._compute(node)
        return self._known[node]

    def _compute(self, node: Node) -> str:
        graph = self.graph
        if node.op == "inputs":
            return graph.node("Unsqueeze", self.inputs, graph.constant(np.array([1])))
        if node.op == "pick":
            return graph.node("Gather", self.inputs, graph.constant(node.table), axis=1)
        if node.op == "table":
            # Leading axes are added by broadcasting; (M,) stands beside (n, M), (M, d) beside (n, M, d).
            return graph.constant(node.table.astype(np.float64))
        args = [self.visit(arg) for arg in node.args]
        if node.op in _REDUCTIONS:
            return self._reduce(node, args[0])
        if node.op == "at_least":
            return graph.node("Cast", graph.node("GreaterOrEqual", *args), to=graph.onnx.TensorProto.DOUBLE)
        if node.op == "xlogx":
            positive = graph.node("Greater", args[0], graph.constant(0.0))
            safe = graph.node("Where", positive, args[0], graph.constant(1.0))
            return graph.node("Mul", args[0], graph.node("Log", safe))
        return graph.node((_BINARY | _UNARY)[node.op], *args)

    def _reduce(self, node: Node, arg: str) -> str:
        graph = self.graph
        if node.op == "total":  # the axes of this one are an input since opset 13
            return graph.node("ReduceSum", arg, graph.constant(np.array([2])), keepdims=0)
        return graph.node(_REDUCTIONS[node.op], arg, axes=[2], keepdims=0)


def _free_prefix(taken: list[str]) -> str:
    """What names of results start with, so that no column of the table has one of them, nor an output's."""
    reserved = sorted({"mean", "std", "label", "probabilities"} & set(taken))
    if reserved:
        raise ValueError(
            f"the column {reserved[0]!r} has the name of an output of the graph; rename it in the table and fit again"
        )
    prefix = "sb_"
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


def _encoded(graph: _Graph, plan: Plan) -> str:
    """The inputs of the functions, (n, d), from the columns of a table."""
    assert plan.columns is not None
    axis = graph.constant(np.array([1]))
    parts: list[str] = []
    for column in plan.columns:
        if isinstance(column, Category):
            parts.append(_indicators(graph, column))
            continue
        value = graph.node("Cast", column.name, to=graph.onnx.TensorProto.DOUBLE)
        value = graph.node("Where", graph.node("IsNaN", value), graph.constant(column.fill), value)
        shifted = graph.node("Sub", value, graph.constant(column.centre))
        values = [graph.node("Div", shifted, graph.constant(column.scale))]
        for cycle in column.cycles if isinstance(column, Date) else ():
            angle = graph.node("Mul", value, graph.constant(2.0 * np.pi / CYCLES[cycle]))
            # Sines of doubles are not in every runtime: sin a = cos(a - π/2).
            values += [graph.node("Cos", angle)]
            values += [graph.node("Cos", graph.node("Sub", angle, graph.constant(np.pi / 2.0)))]
        parts += [graph.node("Unsqueeze", part, axis) for part in values]
    return graph.node("Concat", *parts, axis=1)


def _indicators(graph: _Graph, column: Category) -> str:
    """An indicator for every level of a category that has one, (n, levels), from texts."""
    places = {level: place for place, level in enumerate(column.shown)}
    table = np.vstack([np.eye(len(places)), np.zeros(len(places))])  # the last row is for everything else
    words = {level: [level] for level in column.levels}
    words[""] = [written for word in MISSING for written in _cases(word)]
    if column.kind == "boolean":
        words |= {"True": [w for word in TRUE for w in _cases(word)], "False": [w for f in FALSE for w in _cases(f)]}
    if column.kind == "number":  # as texts of numbers may be written
        words |= {level: [level, f"{float(level)!r}", f"{float(level):.6f}"] for level in column.levels if level}
    keys = {word: places.get(level, len(places)) for level, written in words.items() for word in written}
    place = graph.node(
        "LabelEncoder",
        column.name,
        domain="ai.onnx.ml",
        keys_strings=list(keys),
        values_int64s=list(keys.values()),
        default_int64=len(places),
    )
    return graph.node("Gather", graph.constant(table), place, axis=0)


def _cases(word: str) -> list[str]:
    """The ways in which a word is written."""
    nan = ["NaN"] if word == "nan" else ["NaT"] if word == "nat" else []
    return list(dict.fromkeys([word, word.upper(), word.capitalize(), *nan]))


def _within_reach(graph: _Graph, values: str) -> tuple[str, str]:
    """Rows of values of which each is taken a part such that its squares are numbers, and these parts, (n, 1)."""
    largest = graph.node("ReduceMax", graph.node("Abs", values), axes=[1], keepdims=1)
    reach = graph.constant(NEAR)
    part = graph.node("Div", reach, graph.node("Max", largest, reach))
    return graph.node("Mul", values, part), graph.node("Max", part, graph.constant(LEAST_PART))


def _outputs(graph: _Graph, plan: Plan, values: str) -> tuple[str, str]:
    """Outputs m_k, (n, K), and the variances of the outputs or of their differences, (n, P)."""
    means = graph.node(
        "Add", graph.node("MatMul", values, graph.constant(plan.weights.T)), graph.constant(plan.offsets)
    )
    forms = []
    for covariance in plan.covariances:
        product = graph.node("Mul", graph.node("MatMul", values, graph.constant(covariance)), values)
        forms.append(graph.node("ReduceSum", product, graph.constant(np.array([1])), keepdims=1))
    # Rounding may take a form of a positive matrix below zero.
    return means, graph.node("Max", graph.node("Concat", *forms, axis=1), graph.constant(0.0))


def _with_noise(graph: _Graph, plan: Plan, values: str, variances: str) -> str:
    """Squares of the standard deviations, (n, K)."""
    if plan.log_noise is None:
        return graph.node("Add", variances, graph.constant(plan.noise))
    weights, offsets = plan.log_noise
    place = np.arange(plan.n_outputs, dtype=np.int64)
    own, forms = (graph.node("Gather", variances, graph.constant(at), axis=1) for at in (place, plan.n_outputs + place))
    linear = graph.node("Add", graph.node("MatMul", values, graph.constant(weights.T)), graph.constant(offsets))
    exponent = graph.node("Add", linear, graph.node("Mul", forms, graph.constant(0.5)))
    held = graph.node("Max", graph.node("Min", exponent, graph.constant(LARGEST_LOG)), graph.constant(-LARGEST_LOG))
    return graph.node("Add", own, graph.node("Exp", held))


def _gaussian(graph: _Graph, plan: Plan, means: str, squares: str, outside: int) -> list[Any]:
    std = graph.node("Sqrt", squares)
    shape = ["n"] if plan.single else ["n", plan.n_outputs]
    named = []
    for name, value in (("mean", means), ("std", std)):
        flat = graph.node("Squeeze", value, graph.constant(np.array([1]))) if plan.single else value
        graph.node("Cast", flat, output=name, to=outside)
        named.append(graph.onnx.helper.make_tensor_value_info(name, outside, shape))
    return named


def _classes(graph: _Graph, plan: Plan, means: str, variances: str, part: str, outside: int) -> list[Any]:
    if plan.head is Head.SOFTMAX:
        means, variances = _against_the_best(graph, plan, means, variances)
    # κ(v) = (1 + πv/8)^-1/2 (MacKay 1992), as in posterior/classes.py, of a part of outputs.
    inflated = graph.node("Mul", variances, graph.constant(np.pi / 8.0))
    inflated = graph.node("Add", inflated, graph.node("Mul", part, part))
    decision = graph.node("Div", means, graph.node("Sqrt", inflated))
    if plan.head is Head.SOFTMAX:
        probabilities = graph.node("Softmax", decision, axis=1)
    else:
        probabilities = graph.node("Sigmoid", decision)
    if plan.head is Head.LOGISTIC:
        # With the first class's output, zero, at its side the label is an argmax like any other.
        probabilities = graph.node(
            "Concat", graph.node("Sub", graph.constant(1.0), probabilities), probabilities, axis=1
        )
        zero = graph.node("Mul", decision, graph.constant(0.0))
        decision = graph.node("Concat", zero, decision, axis=1)
    elif plan.head is Head.ONE_AGAINST_REST:
        total = graph.node("ReduceSum", probabilities, graph.constant(np.array([1])), keepdims=1)
        some = graph.node("Greater", total, graph.constant(0.0))
        shares = graph.node("Div", probabilities, graph.node("Where", some, total, graph.constant(1.0)))
        probabilities = graph.node("Where", some, shares, graph.constant(1.0 / plan.n_outputs))
    graph.node("Cast", probabilities, output="probabilities", to=outside)
    labels, kind = _labels(graph.onnx, plan.classes)
    place = graph.node("ArgMax", decision, axis=1, keepdims=0)
    graph.node("Gather", graph.constant(labels), place, output="label", axis=0)
    info = graph.onnx.helper.make_tensor_value_info
    return [info("label", kind, ["n"]), info("probabilities", outside, ["n", len(labels)])]


def _against_the_best(graph: _Graph, plan: Plan, means: str, variances: str) -> tuple[str, str]:
    """Outputs less the largest of them, and the variances of these differences, (n, K)."""
    best = graph.node("ArgMax", means, axis=1, keepdims=0)
    none = graph.node("ReduceMin", graph.node("Mul", variances, graph.constant(0.0)), axes=[1], keepdims=1)
    place = graph.node("Gather", graph.constant(pair_table(plan.n_outputs).astype(np.int64)), best, axis=0)
    gathered = graph.node("GatherElements", graph.node("Concat", variances, none, axis=1), place, axis=1)
    return graph.node("Sub", means, graph.node("ReduceMax", means, axes=[1], keepdims=1)), gathered


def _labels(onnx: Any, classes: Any) -> tuple[NDArray[Any], int]:
    """Labels as ONNX can hold them: integers, truth values and numbers as they are, anything else as text."""
    array = np.asarray(classes)
    if array.dtype.kind in "iu":
        return array.astype(np.int64), onnx.TensorProto.INT64
    if array.dtype.kind == "b":
        return array, onnx.TensorProto.BOOL
    if array.dtype.kind == "f":
        return array.astype(np.float64), onnx.TensorProto.DOUBLE
    return np.array([str(label) for label in array], dtype=object), onnx.TensorProto.STRING


def _named_input(onnx: Any, column: Column, outside: int) -> Any:
    if isinstance(column, Category):
        what, kind = "text, empty where it is missing", onnx.TensorProto.STRING
    else:
        unit = "days since 1970-01-01" if isinstance(column, Date) else "number"
        what, kind = f"{unit}, NaN where it is missing", outside
    return onnx.helper.make_tensor_value_info(column.name, kind, ["n"], doc_string=what)


def _finish(graph: _Graph, plan: Plan, outputs: list[Any], outside: int) -> Any:
    helper = graph.onnx.helper
    opsets = [helper.make_opsetid("", _OPSET)]
    if plan.columns is None:
        inputs = [helper.make_tensor_value_info("X", outside, ["n", len(plan.names)])]
    else:
        opsets.append(helper.make_opsetid("ai.onnx.ml", _ML_OPSET))
        inputs = [_named_input(graph.onnx, column, outside) for column in plan.columns]
    made = helper.make_graph(graph.nodes, "sparsebayes", inputs, outputs, graph.constants)
    model = helper.make_model(
        made,
        opset_imports=opsets,
        ir_version=_IR_VERSION,
        producer_name="sparsebayes",
        producer_version=__version__,
        doc_string=f"Inputs: {', '.join(plan.names)}. Outputs: {plan.head.value}.",
    )
    graph.onnx.checker.check_model(model, full_check=True)
    return model
