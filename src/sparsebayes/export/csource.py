"""Models as C source: one file of C99 that needs nothing but ``math.h`` and allocates nothing."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes._version import __version__
from sparsebayes.posterior.far import LEAST_PART, NEAR
from sparsebayes.posterior.varying import LARGEST_LOG

from .columns import CYCLES, FALSE, MISSING, TRUE, Category, Column, Date
from .formulas import Block, Node
from .plan import Head, Plan, make_plan

_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_CALLS = {"absolute": "fabs", "exp": "exp", "cos": "cos", "tanh": "tanh"}
_REDUCTIONS = {"total": ("0.0", "+="), "product": ("1.0", "*=")}
_HELPERS = {
    "square": """static double {name}_square(double x)
{{
    return x * x;
}}""",
    "power": """static double {name}_power(double x, int n)
{{
    double result = 1.0;
    for (; n > 0; n /= 2) {{
        if (n % 2) {{
            result *= x;
        }}
        x *= x;
    }}
    return result;
}}""",
    "minimum": """static double {name}_minimum(double a, double b)
{{
    return a < b ? a : b;
}}""",
    "xlogx": """static double {name}_xlogx(double x)
{{
    return x > 0.0 ? x * log(x) : 0.0;
}}""",
}
_WIDTH = 110


def to_c(est: Any, name: str = "model") -> str:
    """Write a fitted model as one C99 file without dependencies and without allocation.

    Parameters
    ----------
    est : estimator, Pipeline, TableModel or Plan
        A fitted estimator of this library, a pipeline of scalers that ends in one, a model of tables, or what
        :func:`sparsebayes.export.make_plan` made of any.
    name : str, default="model"
        What the names in the file start with.

    Returns
    -------
    str
        The source.  For a regression it defines ``void NAME_predict(const double *x, double *mean, double *std)``, for
        a classification ``int NAME_predict(const double *x, double *probabilities)``, which returns the place of the
        label among ``NAME_class_names``.  Of a model of tables, ``x`` is a ``const NAME_row *row`` instead: a struct
        with a member for each column of the table, a ``double`` (NAN where it is missing; for a date, what
        ``NAME_days(year, month, day)`` returns) or a text (NULL or empty where it is missing).

    Raises
    ------
    TypeError
        If the model has functions without a closed form.

    Examples
    --------
    >>> from sparsebayes import RVR
    >>> from sparsebayes.datasets import make_sinc
    >>> from sparsebayes.export import to_c
    >>> source = to_c(RVR(gamma=1 / 4**2).fit(*make_sinc(100, noise=0.1, random_state=0)), name="sinc")
    >>> "void sinc_predict(const double *x, double *mean, double *std)" in source
    True
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", name):
        raise ValueError(
            f"name={name!r}: expected a C identifier of at most 31 letters, digits and underscores, the first a letter"
        )
    return _Source(make_plan(est), name).text()


class _Source:
    """The parts of one file."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan, self.name = plan, name
        self.tables: list[str] = []
        self.helpers: set[str] = set()
        self.n_bytes = 0

    def text(self) -> str:
        """The whole file; functions come first, since writing them finds the tables and helpers they need."""
        body = [self._functions(), self._variance()]
        noise = self.plan.log_noise
        body += [*([] if noise is None else [self._noise(*noise)]), self._predict()]
        if self.plan.columns is not None:
            body = [*self._encoding(), *body]
        helpers = [_HELPERS[helper].format(name=self.name) for helper in _HELPERS if helper in self.helpers]
        return "\n\n".join([self._head(), "\n".join(self.tables), *helpers, *body]) + "\n"

    def table(self, values: NDArray[Any], ctype: str = "double") -> str:
        """Add a table of numbers and return its name."""
        name = f"{self.name}_table{len(self.tables)}"
        self.n_bytes += values.size * (8 if ctype == "double" else 4)
        shape = "".join(f"[{length}]" for length in values.shape)
        self.tables.append(f"static const {ctype} {name}{shape} = {_braces(values)};")
        return name

    def _head(self) -> str:
        plan, name, upper = self.plan, self.name, self.name.upper()
        stack = 8 * (plan.n_functions + len(plan.names) * (plan.standardised + (plan.columns is not None)))
        lines = [
            f"/* Written by sparsebayes {__version__}: {plan.n_functions} functions of {len(plan.names)} inputs.",
            f" * {plan.head.value[0].upper()}{plan.head.value[1:]}.",
            f" * C99, needs only math.h, allocates nothing: {self.n_bytes} bytes of constants, {stack} bytes of arrays",
            " * on the stack.  Inputs are expected to be finite.",
            " */",
            "#include <math.h>",
            *(["#include <stddef.h>"] if plan.columns is not None else []),
            "",
            f"#define {upper}_INPUTS {len(plan.names)}",
            f"#define {upper}_FUNCTIONS {plan.n_functions}",
            f"#define {upper}_OUTPUTS {plan.n_outputs}",
        ]
        if plan.classes is not None:
            lines.append(f"#define {upper}_CLASSES {len(plan.classes)}")
        lines += ["", f"extern const char *const {name}_input_names[{upper}_INPUTS];"]
        definitions = [_texts(f"{name}_input_names[{upper}_INPUTS]", plan.names)]
        if plan.classes is not None:
            lines.append(f"extern const char *const {name}_class_names[{upper}_CLASSES];")
            definitions.append(_texts(f"{name}_class_names[{upper}_CLASSES]", [str(c) for c in plan.classes]))
        if plan.columns is not None:
            lines += ["", *self._struct(plan.columns)]
        return "\n".join([*lines, f"{self._signature()};", "", *definitions])

    def _signature(self) -> str:
        inputs = "const double *x" if self.plan.columns is None else f"const {self.name}_row *row"
        if self.plan.head is Head.GAUSSIAN:
            return f"void {self.name}_predict({inputs}, double *mean, double *std)"
        return f"int {self.name}_predict({inputs}, double *probabilities)"

    def _struct(self, columns: tuple[Column, ...]) -> list[str]:
        """The struct of one row of the table."""
        lines = ["/* One row of the table.  A number is NAN where it is missing, a text NULL or empty. */"]
        lines += ["typedef struct {"]
        for column, member in zip(columns, _members(columns), strict=True):
            kind = "const char *" if isinstance(column, Category) else "double "
            unit = f", from {self.name}_days" if isinstance(column, Date) else ""
            lines.append(f"    {kind}{member}; /* {_comment(column.name)}{unit} */")
        lines.append(f"}} {self.name}_row;")
        if any(isinstance(column, Date) for column in columns):
            lines += [
                "/* Days since 1970-01-01; add hours / 24.0 for a time of the day. */",
                f"double {self.name}_days(int year, int month, int day);",
            ]
        return lines

    def _encoding(self) -> list[str]:
        """The functions that make the inputs from a row."""
        columns = self.plan.columns
        assert columns is not None
        parts = [_DAYS.format(name=self.name)] if any(isinstance(column, Date) for column in columns) else []
        if any(isinstance(column, Category) for column in columns):
            parts.append(_SAME.format(name=self.name))
            parts.append(_MISSING_TEXT.format(name=self.name, tests=self._any_of("text", MISSING)))
        lines = [f"static void {self.name}_encode(const {self.name}_row *row, double *x)", "{"]
        first = 0
        for column, member in zip(columns, _members(columns), strict=True):
            lines += self._encode(column, f"row->{member}", first)
            first += len(column.features)
        return [*parts, "\n".join([*lines, "}"])]

    def _any_of(self, text: str, words: tuple[str, ...]) -> str:
        return " || ".join(f"{self.name}_same({text}, {_quote(word)}, 1)" for word in words)

    def _encode(self, column: Column, value: str, first: int) -> list[str]:
        if isinstance(column, Category):
            return [
                line
                for k, level in enumerate(column.shown)
                for line in [f"    x[{first + k}] = {self._is_level(column, value, level)} ? 1.0 : 0.0;"]
            ]
        lines = [
            "    {",
            f"        double value = isnan({value}) ? {column.fill!r} : {value};",
            f"        x[{first}] = (value - {_signed(column.centre)}) / {column.scale!r};",
        ]
        for k, cycle in enumerate(column.cycles if isinstance(column, Date) else ()):
            angle = 2.0 * np.pi / CYCLES[cycle]
            lines += [
                f"        x[{first + 1 + 2 * k}] = cos({angle!r} * value);",
                f"        x[{first + 2 + 2 * k}] = sin({angle!r} * value);",
            ]
        return [*lines, "    }"]

    def _is_level(self, column: Category, value: str, level: str) -> str:
        if level == "":
            return f"{self.name}_is_missing({value})"
        present = f"!{self.name}_is_missing({value})"
        if column.kind == "boolean":
            words = TRUE if level == "True" else FALSE
            return f"({present} && ({self._any_of(value, words)}))"
        if column.kind == "number":
            written = list(dict.fromkeys([level, repr(float(level))]))
            tests = " || ".join(f"{self.name}_same({value}, {_quote(word)}, 0)" for word in written)
            return f"({present} && ({tests}))"
        return f"({present} && {self.name}_same({value}, {_quote(level)}, 0))"

    def _functions(self) -> str:
        """The function that fills ``phi``."""
        plan, upper = self.plan, self.name.upper()
        loops, start = [], 0
        for block in plan.blocks:
            loops += self._block(block, start)
            start += block.count
        lines = [f"static void {self.name}_functions(const double *x, double *phi)", "{"]
        if not any(_uses_inputs(block.expression) for block in plan.blocks):
            lines.append("    (void)x;")
        elif plan.standardised:
            centre, scale = self.table(plan.centre), self.table(plan.scale)
            lines += [
                f"    double z[{upper}_INPUTS];",
                f"    for (int j = 0; j < {upper}_INPUTS; ++j) {{",
                f"        z[j] = (x[j] - {centre}[j]) / {scale}[j];",
                "    }",
            ]
        return "\n".join([*lines, *loops, "}"])

    def _block(self, block: Block, start: int) -> list[str]:
        hoisted: list[str] = []
        result = self._visit(block.expression, hoisted)
        return [
            f"    for (int m = 0; m < {block.count}; ++m) {{",
            *(f"        {line}" for line in hoisted),
            f"        phi[{start} + m] = {result};",
            "    }",
        ]

    def _visit(self, node: Node, hoisted: list[str]) -> str:
        """Return a C expression; sums and products over the inputs become loops in ``hoisted``."""
        if node.op == "inputs":
            return "z[j]" if self.plan.standardised else "x[j]"
        if node.op == "pick":
            return f"{'z' if self.plan.standardised else 'x'}[{self.table(node.table, 'int')}[m]]"
        if node.op == "table":
            return self._number(node.table)
        args = [self._visit(arg, hoisted) for arg in node.args]
        if node.op in _INFIX:
            return f"({args[0]} {_INFIX[node.op]} {args[1]})"
        if node.op == "negative":
            return f"(-{args[0]})"
        if node.op in _CALLS:
            return f"{_CALLS[node.op]}({args[0]})"
        if node.op == "at_least":
            return f"({args[0]} >= {args[1]} ? 1.0 : 0.0)"
        if node.op in _REDUCTIONS:
            begin, update = _REDUCTIONS[node.op]
            result = f"r{sum(line.startswith('double r') for line in hoisted)}"
            hoisted += [
                f"double {result} = {begin};",
                f"for (int j = 0; j < {self.name.upper()}_INPUTS; ++j) {{",
                f"    {result} {update} {args[0]};",
                "}",
            ]
            return result
        if node.op == "power" and args[1] == "2":
            return self._help("square", args[:1])
        return self._help(node.op, args)

    def _help(self, helper: str, args: list[str]) -> str:
        self.helpers.add(helper)
        return f"{self.name}_{helper}({', '.join(args)})"

    def _number(self, values: NDArray[Any]) -> str:
        """A literal where all numbers are the same, else an entry of a table."""
        if values.size and np.all(values == values.flat[0]):
            return repr(values.flat[0].item())
        name = self.table(values, "int" if values.dtype.kind == "i" else "double")
        if values.ndim == 1:
            return f"{name}[m]"
        return f"{name}[{'m' if values.shape[0] > 1 else '0'}][j]"

    def _variance(self) -> str:
        """The quadratic forms, from the packed lower triangles of their matrices."""
        packed = np.array([matrix[np.tril_indices(len(matrix))] for matrix in self.plan.covariances])
        table = self.table(packed)
        return f"""static double {self.name}_variance(const double *phi, int k)
{{
    const double *entry = {table}[k];
    double variance = 0.0;
    for (int i = 0; i < {self.name.upper()}_FUNCTIONS; ++i) {{
        double row = 0.0;
        for (int j = 0; j < i; ++j) {{
            row += *entry++ * phi[j];
        }}
        variance += phi[i] * (2.0 * row + *entry++ * phi[i]);
    }}
    return variance > 0.0 ? variance : 0.0;
}}"""

    def _noise(self, weights: NDArray[np.float64], offsets: NDArray[np.float64]) -> str:
        """The variance of the noise where it varies, as in posterior/varying.py."""
        name, upper, table = self.name, self.name.upper(), self.table(weights)
        return f"""static double {name}_noise(const double *phi, int k)
{{
    double exponent = {self.table(offsets)}[k] + 0.5 * {name}_variance(phi, {upper}_OUTPUTS + k);
    for (int m = 0; m < {upper}_FUNCTIONS; ++m) {{
        exponent += {table}[k][m] * phi[m];
    }}
    return exp(fmax(fmin(exponent, {LARGEST_LOG!r}), -{LARGEST_LOG!r}));
}}"""

    def _predict(self) -> str:
        plan, name, upper = self.plan, self.name, self.name.upper()
        weights, offsets = self.table(plan.weights), self.table(plan.offsets)
        gaussian = plan.head is Head.GAUSSIAN
        into = "mean[k]" if gaussian else "y[k]"
        lines = [
            "/* std may be a null pointer, which spares the quadratic form. */" if gaussian else "",
            self._signature(),
            "{",
            f"    double phi[{upper}_FUNCTIONS];",
            *([] if plan.columns is None else [f"    double x[{upper}_INPUTS];", f"    {name}_encode(row, x);"]),
            *([] if gaussian else [f"    double y[{upper}_OUTPUTS];"]),
            f"    {name}_functions(x, phi);",
            *([] if gaussian else _WITHIN_REACH.format(N=upper, reach=NEAR, least=LEAST_PART).split("\n")),
            f"    for (int k = 0; k < {upper}_OUTPUTS; ++k) {{",
            f"        double sum = {offsets}[k];",
            f"        for (int m = 0; m < {upper}_FUNCTIONS; ++m) {{",
            f"            sum += {weights}[k][m] * phi[m];",
            "        }",
        ]
        if gaussian:
            noise = f"{self.table(plan.noise)}[k]" if plan.log_noise is None else f"{name}_noise(phi, k)"
            tail = [
                f"        {into} = sum;",
                "        if (std) {",
                f"            std[k] = sqrt({noise} + {name}_variance(phi, k));",
                "        }",
                "    }",
                "}",
            ]
        else:
            # κ(v) = (1 + πv/8)^-1/2 (MacKay 1992), as in posterior/classes.py, of a part of outputs.
            pairs = plan.head is Head.SOFTMAX
            kappa = f"sqrt(part * part + {np.pi / 8.0!r} * {name}_variance(phi, {'pair' if pairs else 'k'}))"
            head = _HEADS[plan.head].format(N=upper, kappa=kappa)
            tail = [f"        {into} = sum{'' if pairs else f' / {kappa}'};", "    }", *head.split("\n"), "}"]
        return "\n".join([*lines, *tail]).lstrip("\n")


_DAYS = """double {name}_days(int year, int month, int day)
{{
    /* The year begins in March, so that the leap day is its last. */
    double y = year - (month > 2 ? 0 : 1), m = month + (month > 2 ? -3 : 9);
    return 365.0 * y + floor(y / 4.0) - floor(y / 100.0) + floor(y / 400.0) + floor((153.0 * m + 2.0) / 5.0) + day
        - 719469.0;
}}"""

_WITHIN_REACH = """    /* Of rows far out a part is taken, so that squares are numbers. */
    double part = {reach!r};
    for (int m = 0; m < {N}_FUNCTIONS; ++m) {{
        part = fmax(part, fabs(phi[m]));
    }}
    part = {reach!r} / part;
    for (int m = 0; m < {N}_FUNCTIONS; ++m) {{
        phi[m] *= part;
    }}
    part = fmax(part, {least!r});"""

_SAME = """/* Whether two texts are the same, but for spaces around the first, and, if asked, for capitals in it. */
static int {name}_same(const char *text, const char *word, int any_case)
{{
    while (*text == ' ' || *text == '\\t') {{
        ++text;
    }}
    for (; *word; ++text, ++word) {{
        char letter = any_case && *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
        if (letter != *word) {{
            return 0;
        }}
    }}
    while (*text == ' ' || *text == '\\t') {{
        ++text;
    }}
    return *text == 0;
}}"""

_MISSING_TEXT = """static int {name}_is_missing(const char *text)
{{
    return text == NULL || {tests};
}}"""

# Words that are no names of members.
_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        "auto break case char const continue default do double else enum extern float for goto if inline int "
        "long register restrict return short signed sizeof static struct switch typedef union unsigned void "
        "volatile while asm bool class delete explicit export false friend mutable namespace new operator "
        "private protected public template this throw true try typename using virtual and or not xor",
    )
)

_LOGISTIC = """    probabilities[1] = 1.0 / (1.0 + exp(-y[0]));
    probabilities[0] = 1.0 - probabilities[1];
    return y[0] > 0.0;"""

_BEST = """    int best = 0;
    for (int k = 1; k < {N}_OUTPUTS; ++k) {{
        if (y[k] > y[best]) {{
            best = k;
        }}
    }}
"""

_SOFTMAX = (
    _BEST
    + """    double total = 0.0;
    for (int k = 0; k < {N}_OUTPUTS; ++k) {{
        probabilities[k] = 1.0;
        if (k != best) {{
            int i = k < best ? k : best, j = k < best ? best : k;
            int pair = i * (2 * {N}_OUTPUTS - i - 1) / 2 + j - i - 1;
            probabilities[k] = exp((y[k] - y[best]) / {kappa});
        }}
        total += probabilities[k];
    }}
    for (int k = 0; k < {N}_OUTPUTS; ++k) {{
        probabilities[k] /= total;
    }}
    return best;"""
)

_ONE_AGAINST_REST = (
    _BEST
    + """    double total = 0.0;
    for (int k = 0; k < {N}_OUTPUTS; ++k) {{
        probabilities[k] = 1.0 / (1.0 + exp(-y[k]));
        total += probabilities[k];
    }}
    for (int k = 0; k < {N}_OUTPUTS; ++k) {{
        probabilities[k] = total > 0.0 ? probabilities[k] / total : 1.0 / {N}_OUTPUTS;
    }}
    return best;"""
)

_HEADS = {Head.LOGISTIC: _LOGISTIC, Head.SOFTMAX: _SOFTMAX, Head.ONE_AGAINST_REST: _ONE_AGAINST_REST}


def _members(columns: tuple[Column, ...]) -> list[str]:
    """Names of the struct's members: the columns' names as C can have them, each once."""
    members: list[str] = []
    for column in columns:
        plain = unicodedata.normalize("NFKD", column.name.replace("ß", "ss")).encode("ascii", "ignore").decode()
        base = re.sub(r"\W+", "_", plain).strip("_")[:50] or "column"
        base = f"c_{base}" if base[0].isdigit() else f"{base}_" if base in _KEYWORDS else base
        member, count = base, 1
        while member in members:
            count += 1
            member = f"{base}_{count}"
        members.append(member)
    return members


def _comment(text: str) -> str:
    """A text inside a comment, which it must not end."""
    printable = "".join(c if 32 <= ord(c) < 127 and c != "\\" else "?" for c in text)
    return printable.replace("*/", "* /").replace("/*", "/ *")


def _signed(value: float) -> str:
    return f"({value!r})" if value < 0.0 else repr(value)


def _uses_inputs(node: Node) -> bool:
    return node.op in ("inputs", "pick") or any(map(_uses_inputs, node.args))


def _braces(values: NDArray[Any]) -> str:
    """Numbers as an initialiser, each the shortest text that reads back as the same number."""
    if values.ndim > 1:
        return "{\n" + ",\n".join(_braces(row) for row in values) + "}"
    lines, line = [], ""
    for text in map(repr, values.tolist()):
        if len(line) + len(text) > _WIDTH:
            lines.append(line)
            line = ""
        line += f"{text}, "
    return "{" + "\n    ".join([*lines, line]).rstrip(", ") + "}"


def _texts(declaration: str, texts: list[str]) -> str:
    return f"const char *const {declaration} = {{" + ", ".join(map(_quote, texts)) + "};"


def _quote(text: str) -> str:
    """A C string; everything but plain ASCII, and what would start a trigraph, is escaped as octal."""
    plain = [
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "backslashreplace")
    ]
    return '"' + "".join(plain) + '"'
