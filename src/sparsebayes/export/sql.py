"""Models as SQL: one SELECT in standard arithmetic, EXP, LN, SQRT and ABS.

Each step of a prediction is a common table expression whose columns the next one reads, so that nothing is written
twice: cells, inputs, sums over the inputs, functions, outputs, and what the head makes of them.

The query of a model of tables reads the table as it is: gaps, categories, truth values and dates become inputs in the
query itself, by expressions that SQLite, PostgreSQL and DuckDB share.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from sparsebayes.posterior.varying import LARGEST_LOG

from .columns import CYCLES, FALSE, MISSING, TRUE, Category, Column, Date
from .formulas import Node
from .plan import Head, Plan, make_plan, pair_table

_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
# Databases disagree on what an exponential beyond the range of doubles is: an error, infinity, or NULL.
_RANGE = 700.0
# Nested additions beyond some hundreds are too deep for the parsers of some databases.
_TERMS = 64


def to_sql(
    est: Any,
    table: str | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    materialized: bool = True,
) -> str:
    """Write a fitted model as a SELECT over a table.

    Parameters
    ----------
    est : estimator, Pipeline, TableModel or Plan
        A fitted estimator of this library, a pipeline of scalers that ends in one, a model of tables, or what
        :func:`sparsebayes.export.make_plan` made of any.
    table : str or sequence of str
        Name of the table; a sequence is a qualified name, such as ``("schema", "table")``.
    columns : sequence of str, optional
        Its columns that are the inputs, in their order; by default the names that the model was fitted with, or x0,
        x1, … if it was fitted on an array.  Of a model of tables, the columns of the table.
    keep : sequence of str
        Further columns of the table to pass on, such as a key.
    materialized : bool, default=True
        Write the steps as ``AS MATERIALIZED``, which SQLite (3.35) and PostgreSQL (12) need: they would otherwise paste
        each step into the next, and the query would grow exponentially.  False is for databases without that word.

    Returns
    -------
    str
        A query.  A regression gives the columns ``mean`` and ``std`` (of a new observation), numbered if there are
        several targets; a classification ``label`` and a column ``p_LABEL`` for each class, as ``predict_proba``.  A
        row in which an input that the model uses is NULL gives NULL; a model of tables fills gaps in, as its
        ``predict`` does, and gives NULL only where a cell cannot be read, such as letters in the place of a number.
        Dates are columns of dates or timestamps without a zone, or texts such as ``2024-03-31``, ``2024-03`` and
        ``31.03.2024`` (the order of day and month is that of the training rows); months in words give NULL.

    Raises
    ------
    TypeError
        If the model has functions without a closed form.

    Examples
    --------
    >>> from sparsebayes import SparseBayesRegressor
    >>> from sparsebayes.export import to_sql
    >>> model = SparseBayesRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [0.1, 1.0, 2.1, 2.9])
    >>> print(to_sql(model, "points").splitlines()[0])
    WITH sb_inputs AS MATERIALIZED (
    """
    plan = make_plan(est)
    known = plan.names if plan.columns is None else [column.name for column in plan.columns]
    names = list(known if columns is None else columns)
    if isinstance(columns, str) or len(names) != len(known):
        raise ValueError(f"columns={columns!r}: expected {len(known)} names, one for each input of the model")
    parts = [table] if isinstance(table, str) else list(table)
    if isinstance(keep, str):
        raise ValueError(f"keep={keep!r}: expected a list of names, such as [{keep!r}]")
    query = _Query(plan, [_identifier(n) for n in names], [_identifier(n) for n in keep])
    return query.text(parts, "AS MATERIALIZED" if materialized else "AS")


Steps = list[tuple[str, list[str]]]


class _Query:
    """Steps of one query; each is a list of ``expression AS name``."""

    def __init__(self, plan: Plan, columns: list[str], keep: list[str]) -> None:
        self.plan, self.columns, self.keep = plan, columns, keep
        self.used: set[int] = set()
        self.sums: list[str] = []

    def text(self, table: list[str], define: str) -> str:
        """The whole query."""
        prefix = "sb"
        while table[-1].lower().startswith(prefix):  # a step must not have the name of the table
            prefix += "_"
        functions = self._functions()
        # A name that is not a column of the table is an error only where it is qualified: SQLite would take it for a
        # text, and answer.
        row = f"{prefix}_row"
        kept = [f"{row}.{name} AS k{i}" for i, name in enumerate(self.keep)]
        self.columns = [f"{row}.{name}" for name in self.columns]
        source = ".".join(map(_identifier, table)) + f" AS {row}"
        last = [f"k{i} AS {name}" for i, name in enumerate(self.keep)]
        middle, results = (_gaussian if self.plan.head is Head.GAUSSIAN else _classes)(self.plan)
        steps = [("sums", self.sums), ("functions", functions), ("outputs", self._outputs()), *middle]
        query, before = [], source
        for name, expressions in [*self._inputs(kept), *steps]:
            if expressions:
                columns = _listed(["*", *expressions] if query else expressions)
                query.append(f"{prefix}_{name} {define} (\n  SELECT {columns}\n  FROM {before}\n)")
                before = f"{prefix}_{name}"
        return f"WITH {', '.join(query)}\nSELECT {_listed([*last, *results])}\nFROM {before}"

    def _inputs(self, kept: list[str]) -> Steps:
        """The steps from the table to the inputs; only what is used is read."""
        if self.plan.columns is None:
            return [("inputs", [*kept, *(f"{self._input(j)} AS x{j}" for j in sorted(self.used))] or ["0 AS k"])]
        cells, dates, days, inputs, first = list(kept), [], [], [], 0
        for i, column in enumerate(self.plan.columns):
            places = range(first, first + len(column.features))
            first += len(places)
            used = [j for j in places if j in self.used]
            if used:
                cells.append(f"{_cell(column, self.columns[i])} AS r{i}")
                if isinstance(column, Date):
                    dates.append(f"{_iso(f'r{i}', column)} AS t{i}")
                    days.append(f"{_days(f't{i}', column)} AS d{i}")
                features = _features(column, f"d{i}" if isinstance(column, Date) else f"r{i}")
                inputs += [f"{self._standardised(features[j - places[0]], j)} AS x{j}" for j in used]
        return [("cells", cells or ["0 AS k"]), ("dates", dates), ("days", days), ("inputs", inputs)]

    def _input(self, j: int) -> str:
        return self._standardised(f"CAST({self.columns[j]} AS DOUBLE PRECISION)", j)

    def _standardised(self, value: str, j: int) -> str:
        """An input as the functions take it."""
        if not self.plan.standardised:
            return value
        return f"({value} - {_number(self.plan.centre[j])}) / {_number(self.plan.scale[j])}"

    def _functions(self) -> list[str]:
        expressions: list[str] = []
        for block in self.plan.blocks:
            for m in range(block.count):
                expressions.append(f"{self._visit(block.expression, m, None)} AS f{len(expressions)}")
        return expressions

    def _visit(self, node: Node, m: int, j: int | None) -> str:
        """Return the expression of function m at input j; sums and products over the inputs become columns."""
        if node.op in ("inputs", "pick"):
            place = int(node.table[m]) if node.op == "pick" else j
            assert place is not None
            self.used.add(place)
            return f"x{place}"
        if node.op == "table":
            return _number(_entry(node, m, j))
        if node.op in ("total", "product"):
            parts = [self._visit(node.args[0], m, i) for i in range(len(self.plan.names))]
            joined = _sum(parts) if node.op == "total" else " * ".join(p for p in parts if p != "1.0") or "1.0"
            self.sums.append(f"{joined} AS s{len(self.sums)}")
            return f"s{len(self.sums) - 1}"
        if node.op == "power":
            exponent = int(_entry(node.args[1], m, j))
            if exponent == 0:
                return "1.0"  # the base is not visited: the function does not look at it
            base = self._visit(node.args[0], m, j)
            return base if exponent == 1 else f"({' * '.join([base] * exponent)})"
        args = [self._visit(arg, m, j) for arg in node.args]
        return f"({args[0]} {_INFIX[node.op]} {args[1]})" if node.op in _INFIX else _CALLS[node.op](*args)

    def _outputs(self) -> list[str]:
        """Outputs m_k, and the variances v_p of the outputs or of their differences."""
        plan = self.plan
        expressions = [
            f"{_linear(w, o)} AS m{k}" for k, (w, o) in enumerate(zip(plan.weights, plan.offsets, strict=True))
        ]
        if plan.log_noise is not None:
            expressions += [f"{_linear(w, o)} AS u{k}" for k, (w, o) in enumerate(zip(*plan.log_noise, strict=True))]
        return expressions + [f"{_form(matrix)} AS v{p}" for p, matrix in enumerate(plan.covariances)]


def _linear(weights: np.ndarray, offset: float) -> str:
    return _sum([_number(offset), *(f"{_number(w)} * f{i}" for i, w in enumerate(weights) if w != 0.0)])


def _form(matrix: np.ndarray) -> str:
    """The quadratic form Σ_i f_i (S_ii f_i + 2 Σ_{j<i} S_ij f_j)."""
    rows = []
    for i, row in enumerate(matrix):
        terms = [f"{_number((1.0 if j == i else 2.0) * row[j])} * f{j}" for j in range(i + 1) if row[j] != 0.0]
        if terms:
            rows.append(f"f{i} * ({_sum(terms)})")
    return _sum(rows)


def _cell(column: Column, name: str) -> str:
    """A cell as a number, or as a text that is empty where it is missing; NULL where it cannot be read."""
    text = f"TRIM(CAST({name} AS TEXT))"
    missing = f"{name} IS NULL OR LOWER({text}) IN ({_literals(MISSING)})"
    if isinstance(column, Date):
        # Only the first ten characters are the date's own: after them a dot stands before parts of a second.
        date = f"REPLACE(REPLACE(SUBSTR({text}, 1, 10), '/', '-'), '.', '-')"
        return f"CASE WHEN {missing} THEN '' ELSE {date} || SUBSTR({text}, 11) END"
    if isinstance(column, Category):
        if column.kind == "boolean":
            true, false = (f"LOWER({text}) IN ({_literals(words)})" for words in (TRUE, FALSE))
            return f"CASE WHEN {missing} THEN '' WHEN {true} THEN 'True' WHEN {false} THEN 'False' ELSE {text} END"
        return f"CASE WHEN {missing} THEN '' ELSE {text} END"
    value = name
    for sign in column.removed:
        value = f"REPLACE({value if value != name else f'CAST({name} AS TEXT)'}, {_literal(sign)}, '')"
    if column.decimal == ",":
        value = f"REPLACE({value if value != name else f'CAST({name} AS TEXT)'}, ',', '.')"
    # SQLite would take the digits that a text starts with, and zero where it starts with none.
    digits = f"TRIM(CAST({value} AS TEXT), '0123456789+-.eE ') = ''"
    return f"CASE WHEN {missing} THEN {_number(column.fill)} WHEN {digits} THEN CAST({value} AS DOUBLE PRECISION) END"


def _iso(cell: str, column: Date) -> str:
    """A date in ISO order, of a text with dashes; empty where it is missing, NULL where it cannot be read."""
    branches = [f"WHEN {_like(cell, '____-__', clock=False)} THEN {cell} || '-01'"]
    for first, second in product((1, 2), repeat=2):
        one, two = "_" * first, "_" * second
        ends = first + second + 7  # where the time of the day begins
        month, day = _two_digits(cell, 6, first), _two_digits(cell, first + 7, second)
        branches.append(f"WHEN {_like(cell, f'____-{one}-{two}')} THEN {_dashed(cell, 1, month, day, ends)}")
        month, day = _two_digits(cell, 1, first), _two_digits(cell, first + 2, second)
        month, day = (day, month) if column.day_first else (month, day)
        year = first + second + 3
        branches.append(f"WHEN {_like(cell, f'{one}-{two}-____')} THEN {_dashed(cell, year, month, day, ends)}")
    return f"CASE WHEN {cell} = '' THEN '' {' '.join(branches)} END"


def _two_digits(cell: str, place: int, length: int) -> str:
    part = f"SUBSTR({cell}, {place}, {length})"
    return part if length == 2 else f"'0' || {part}"


def _dashed(cell: str, year: int, month: str, day: str, rest: int) -> str:
    return f"SUBSTR({cell}, {year}, 4) || '-' || {month} || '-' || {day} || SUBSTR({cell}, {rest})"


def _like(cell: str, date: str, clock: bool = True) -> str:
    """Whether a text is a date of this form, alone or with a time of the day."""
    digits = f"TRIM(SUBSTR({cell}, 1, {len(date)}), '0123456789-') = ''"
    forms = " OR ".join(f"{cell} LIKE '{date}{time}'" for time in ("", " __:__%", "T__:__%")[: 3 if clock else 1])
    return f"{digits} AND ({forms})"


def _days(cell: str, column: Date) -> str:
    """Days since 1970-01-01 of a text in ISO order, by the calendar's rule; the year begins in March."""
    year, month, day = (f"CAST(SUBSTR({cell}, {place}) AS DOUBLE PRECISION)" for place in ("1, 4", "6, 2", "9, 2"))
    late = f"CASE WHEN {month} > 2.0 THEN 0.0 ELSE 1.0 END"
    y, m = f"({year} - {late})", f"({month} + 12.0 * {late} - 3.0)"
    leaps = f"FLOOR({y} / 4.0) - FLOOR({y} / 100.0) + FLOOR({y} / 400.0)"
    whole = f"365.0 * {y} + {leaps} + FLOOR((153.0 * {m} + 2.0) / 5.0) + {day} - 719469.0"
    hours, minutes, seconds = (
        f"CAST(SUBSTR({cell}, {place}) AS DOUBLE PRECISION)" for place in ("12, 2", "15, 2", "18")
    )
    exact = f"TRIM(SUBSTR({cell}, 18), '0123456789.') = ''"
    return (
        f"CASE WHEN {cell} = '' THEN {_number(column.fill)} WHEN LENGTH({cell}) = 10 THEN {whole} "
        f"WHEN LENGTH({cell}) = 16 THEN {whole} + {hours} / 24.0 + {minutes} / 1440.0 "
        f"WHEN LENGTH({cell}) > 18 AND {exact} "
        f"THEN {whole} + {hours} / 24.0 + {minutes} / 1440.0 + {seconds} / 86400.0 END"
    )


def _features(column: Column, value: str) -> list[str]:
    """The inputs that a cell becomes."""
    if isinstance(column, Category):
        return [f"CASE WHEN {_is_level(column, value, level)} THEN 1.0 ELSE 0.0 END" for level in column.shown]
    expressions = [f"({value} - {_number(column.centre)}) / {_number(column.scale)}"]
    for cycle in column.cycles if isinstance(column, Date) else ():
        angle = f"{_number(2.0 * np.pi / CYCLES[cycle])} * {value}"
        expressions += [f"COS({angle})", f"SIN({angle})"]
    return expressions


def _is_level(column: Category, value: str, level: str) -> str:
    """Whether a cell is of a level; numbers that name categories are compared as numbers."""
    if column.kind != "number" or level == "":
        return f"{value} = {_literal(level)}"
    digits = f"TRIM({value}, '0123456789+-.eE') = '' AND {value} <> ''"
    return f"CASE WHEN {digits} THEN CAST({value} AS DOUBLE PRECISION) = {_number(float(level))} ELSE FALSE END"


def _literals(texts: Sequence[str]) -> str:
    return ", ".join(map(_literal, texts))


def _gaussian(plan: Plan) -> tuple[Steps, list[str]]:
    results, steps = [], []
    noises = [_number(noise) for noise in plan.noise]
    if plan.log_noise is not None:
        noises = [f"n{k}" for k in range(plan.n_outputs)]
        steps = [
            ("exponents", [f"u{k} + 0.5 * v{plan.n_outputs + k} AS e{k}" for k in range(plan.n_outputs)]),
            ("noises", [f"{_exp(f'e{k}', LARGEST_LOG)} AS n{k}" for k in range(plan.n_outputs)]),
        ]
    for k, noise in enumerate(noises):
        suffix = "" if plan.single else f"_{k}"
        # Rounding may take a form of a positive matrix below zero.
        variance = f"CASE WHEN v{k} < 0.0 THEN 0.0 ELSE v{k} END"
        results += [f'm{k} AS "mean{suffix}"', f'SQRT({noise} + {variance}) AS "std{suffix}"']
    return steps, results


def _classes(plan: Plan) -> tuple[Steps, list[str]]:
    """Outputs tempered by their uncertainty, and from them the label and the probabilities."""
    steps, label, shares = (_two if plan.head is Head.LOGISTIC else _several)(plan)
    names = [_identifier(f"p_{name}") for name in np.asarray(plan.classes).tolist()]
    named = [f"{share} AS {name}" for share, name in zip(shares, names, strict=True)]
    return [("decisions", _decisions(plan)), *steps], [f'{label} AS "label"', *named]


def _decisions(plan: Plan) -> list[str]:
    """Columns d_k; of a softmax, how far each output is above the largest, in units of the uncertainty of the two."""
    count = range(plan.n_outputs)
    if plan.head is not Head.SOFTMAX:
        return [f"m{k} / {_inflation(k)} AS d{k}" for k in count]
    pairs = pair_table(plan.n_outputs)
    above = [{_largest("m", b, count): _gap(k, b, pairs) for b in count} for k in count]
    return [f"{_case(gaps)} AS d{k}" for k, gaps in enumerate(above)]


def _gap(k: int, b: int, pairs: np.ndarray) -> str:
    return "0.0" if k == b else f"(m{k} - m{b}) / {_inflation(pairs[b, k])}"


def _largest(column: str, k: int, count: range) -> str:
    """Whether the k-th of some columns is the largest."""
    return " AND ".join(f"{column}{k} >= {column}{i}" for i in count if i != k)


def _two(plan: Plan) -> tuple[Steps, str, list[str]]:
    first, second = (_literal(label) for label in np.asarray(plan.classes).tolist())
    shares = [f"1.0 / (1.0 + {_exp(f'{sign}d0')})" for sign in ("", "-")]
    return [], f"CASE WHEN d0 > 0.0 THEN {second} WHEN d0 <= 0.0 THEN {first} END", shares


def _several(plan: Plan) -> tuple[Steps, str, list[str]]:
    count = range(plan.n_outputs)
    labels = [_literal(label) for label in np.asarray(plan.classes).tolist()]
    softmax = plan.head is Head.SOFTMAX
    masses = [_exp(f"d{k}") if softmax else f"1.0 / (1.0 + {_exp(f'-d{k}')})" for k in count]
    total = _sum([f"e{k}" for k in count])
    even = _number(1.0 / plan.n_outputs)
    shares = [f"CASE WHEN total > 0.0 THEN e{k} / total WHEN total = 0.0 THEN {even} END" for k in count]
    steps = [("masses", [f"{mass} AS e{k}" for k, mass in enumerate(masses)]), ("total", [f"{total} AS total"])]
    return steps, _case({_largest("d", k, count): labels[k] for k in count}), shares


def _inflation(p: int) -> str:
    """1/κ(v) = (1 + πv/8)^1/2 (MacKay 1992), as in posterior/classes.py."""
    return f"SQRT(1.0 + {_number(np.pi / 8.0)} * CASE WHEN v{p} < 0.0 THEN 0.0 ELSE v{p} END)"


def _case(answers: dict[str, str]) -> str:
    return "CASE " + " ".join(f"WHEN {condition} THEN {answer}" for condition, answer in answers.items()) + " END"


def _listed(expressions: list[str]) -> str:
    return ",\n    ".join(expressions)


def _entry(node: Node, m: int, j: int | None) -> Any:
    values = node.table
    if values.ndim == 0:
        return values.item()
    return values[m if len(values) > 1 else 0] if values.ndim == 1 else values[m if len(values) > 1 else 0, j]


def _sum(terms: list[str]) -> str:
    """A sum whose tree is as shallow as need be."""
    if not terms:
        return "0.0"
    while len(terms) > _TERMS:
        terms = [f"({' + '.join(terms[i : i + _TERMS])})" for i in range(0, len(terms), _TERMS)]
    return " + ".join(terms)


def _exp(argument: str, limit: float = _RANGE) -> str:
    largest = _number(float(np.exp(limit)))
    over, under = f"{argument} > {limit}", f"{argument} < -{limit}"
    return f"CASE WHEN {over} THEN {largest} WHEN {under} THEN 0.0 ELSE EXP({argument}) END"


_CALLS = {
    "negative": lambda a: f"(-{a})",
    "absolute": lambda a: f"ABS({a})",
    "exp": lambda a: f"({_exp(a)})",
    "cos": lambda a: f"COS({a})",
    "tanh": lambda a: f"(1.0 - 2.0 / (1.0 + {_exp(f'(2.0 * {a})')}))",
    "minimum": lambda a, b: f"(CASE WHEN {a} < {b} THEN {a} ELSE {b} END)",
    "at_least": lambda a, b: f"(CASE WHEN {a} >= {b} THEN 1.0 WHEN {a} < {b} THEN 0.0 END)",
    "xlogx": lambda a: f"(CASE WHEN {a} > 0.0 THEN {a} * LN({a}) WHEN {a} <= 0.0 THEN 0.0 END)",
}


def _number(value: Any) -> str:
    """The shortest text that reads back as the same number; a negative one in brackets, since -- starts a comment."""
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text


def _literal(label: Any) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, int | float):
        return repr(label)
    return "'" + _printable(str(label)).replace("'", "''") + "'"


def _identifier(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name {name!r} cannot be that of a table or column: expected a text that is not empty")
    return '"' + _printable(name).replace('"', '""') + '"'


def _printable(text: str) -> str:
    if "\0" in text:
        raise ValueError(f"{text!r} holds a NUL character, which no SQL statement can")
    return text
