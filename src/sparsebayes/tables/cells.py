"""What the cells of a table mean: missing values, numbers, truth values, dates, and numbers with signs around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sparsebayes.export.columns import FALSE, KINDS, MISSING, TRUE

_MISSING = frozenset(MISSING)
_WORDS = {"true": "True", "false": "False"}
_TRUTHS = dict.fromkeys(TRUE, "True") | dict.fromkeys(FALSE, "False")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_ZONE = r"\s*(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?"
_CLOCK = rf"(?:[T\s]+(?P<h>\d{{1,2}}):(?P<min>\d{{2}})(?::(?P<s>\d{{2}})(?P<f>[.,]\d{{1,9}})?)?{_ZONE})?"
_ISO = re.compile(r"(?P<y>\d{4})([-/.])(?P<m>\d{1,2})\2(?P<d>\d{1,2})" + _CLOCK)
_LOCAL = re.compile(r"(?P<a>\d{1,2})([-/.])(?P<b>\d{1,2})\2(?P<y>\d{4})" + _CLOCK)
_NAMED = re.compile(r"(?P<d>\d{1,2})\.?[-\s](?P<name>[A-Za-z]{3,9})\.?,?[-\s](?P<y>\d{4})" + _CLOCK)
_NAMED_FIRST = re.compile(r"(?P<name>[A-Za-z]{3,9})\.?\s(?P<d>\d{1,2}),?\s(?P<y>\d{4})" + _CLOCK)
# A month stands for its first day; other centuries are more likely numbers of something else.
_MONTH = re.compile(r"(?:1[89]|2[01])\d{2}-(?:0[1-9]|1[0-2])")

# Signs that stand before or after numbers, and the spaces that stand between.
_SIGNS = ("$", "€", "£", "¥", "₹", "%", "‰", "USD", "EUR", "GBP", "CHF", "JPY")
_SPACES = (" ", "\u00a0", "\u202f")
_BODY = re.compile(
    r"(?P<before>[^\d+\-.,]*)(?P<minus>[+-]?)(?P<mid>[^\d+\-.,]*)(?P<body>[\d.,'\u00a0\u202f ]*\d)(?P<after>.*)"
)
_UNIT = re.compile(r"[^\W\d_]{1,5}[²³]?|°[CF]?")
# Units that are also written without a space: of other letters, as in 12a, nobody knows that they are one.
_ATTACHED = frozenset(
    (
        "k",
        "t",
        "kg",
        "g",
        "mg",
        "km",
        "m",
        "cm",
        "mm",
        "m²",
        "m³",
        "km²",
        "l",
        "ml",
        "h",
        "min",
        "s",
        "W",
        "kW",
        "kWh",
        "V",
    )
)
_ENGLISH = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+")
_CONTINENTAL = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d*,?\d+")
_GAPS = r"['\u00a0\u202f ]"
_SPACED = re.compile(rf"\d{{1,3}}(?:{_GAPS}\d{{3}})+(?:[.,]\d+)?")
# What stands before the decimals, what between the thousands, and how such numbers look.
_NOTATIONS = ((".", ",", _ENGLISH), (",", ".", _CONTINENTAL))


@dataclass(frozen=True)
class Meaning:
    """What a column is, from all its cells.

    Attributes
    ----------
    kind : {"number", "boolean", "date", "text"}
        What its cells are.
    removed, decimal : tuple of str, str
        Of numbers with signs around them: see :class:`sparsebayes.export.columns.Numeric`.
    day_first : bool
        Of dates.
    ambiguous : bool
        Whether the order of day and month is a guess.
    category : bool
        Whether the column is one of categories, whatever their labels are; where these are dates or have signs around
        them, they are texts.
    """

    kind: str
    removed: tuple[str, ...] = ()
    decimal: str = "."
    day_first: bool = False
    ambiguous: bool = False
    category: bool = False


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a value that is not there."""
    return cell.strip().lower() in _MISSING


def as_number(cell: str) -> float | None:
    """Value of a cell, NaN where it is missing, None where it is no number."""
    if is_missing(cell):
        return float("nan")
    try:
        # Python reads 1_000 as a number; in a table it is more likely a name.
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def as_truth(cell: str) -> str | None:
    """``"True"``, ``"False"``, empty where the cell is missing, or None where it is neither; 1 and 0 count."""
    return "" if is_missing(cell) else _TRUTHS.get(cell.strip().lower())


def as_days(cell: str, day_first: bool = False) -> float | None:
    """Days since 1970-01-01 (in UTC where a zone is given), NaN where the cell is missing, None where it is no date."""
    text = cell.strip()
    if is_missing(text):
        return float("nan")
    if _MONTH.fullmatch(text):
        text += "-01"
    if found := _ISO.fullmatch(text):
        return _days(found, found["m"], found["d"])
    if found := _LOCAL.fullmatch(text):
        return _days(found, *((found["b"], found["a"]) if day_first else (found["a"], found["b"])))
    if found := _NAMED.fullmatch(text) or _NAMED_FIRST.fullmatch(text):
        name = found["name"][:3].lower()
        return _days(found, str(_MONTHS.index(name) + 1), found["d"]) if name in _MONTHS else None
    return None


def cleaned(cell: str, removed: Sequence[str], decimal: str) -> str:
    """Text of a number without the signs around and between its digits."""
    for sign in removed:
        cell = cell.replace(sign, "")
    return cell.replace(",", ".") if decimal == "," else cell


def as_category(meaning: Meaning) -> Meaning:
    """What a column is whose type says that it holds categories."""
    plain = meaning.kind in KINDS and not meaning.removed
    return replace(meaning, kind=meaning.kind if plain else "text", category=True)


def meaning_of(cells: Sequence[str]) -> Meaning:
    """What a column of texts is: numbers, truth values, dates, numbers with signs around them, or else texts."""
    present = list(dict.fromkeys(cell.strip() for cell in cells if not is_missing(cell)))
    if all(as_number(cell) is not None for cell in present):
        return Meaning("number")
    if all(cell.lower() in _WORDS for cell in present):
        return Meaning("boolean")
    return _as_dates(present) or _as_signed_numbers(present) or Meaning("text")


def _days(found: re.Match[str], month: str, day: str) -> float | None:
    try:
        moment = datetime(int(found["y"]), int(month), int(day), tzinfo=UTC)
        if found["h"] is not None:
            moment = moment.replace(hour=int(found["h"]), minute=int(found["min"]), second=int(found["s"] or 0))
            moment += timedelta(seconds=float("0." + found["f"][1:]) if found["f"] else 0.0)
            moment -= _offset(found["zone"])
    except (ValueError, OverflowError):
        return None
    return (moment - _EPOCH) / _DAY


def _offset(zone: str | None) -> timedelta:
    if zone in (None, "Z"):
        return timedelta(0)
    digits = zone[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if zone[0] == "-" else size


def _as_dates(present: list[str]) -> Meaning | None:
    local = [found for cell in present if (found := _LOCAL.fullmatch(cell))]
    day_first = any(int(found["a"]) > 12 for found in local)
    month_first = any(int(found["b"]) > 12 for found in local)
    ambiguous = bool(local) and not day_first and not month_first
    if ambiguous:  # dots and dashes are written where the day comes first
        day_first = local[0][2] != "/"
    if all(as_days(cell, day_first) is not None for cell in present):
        return Meaning("date", day_first=day_first, ambiguous=ambiguous)
    return None


def _as_signed_numbers(present: list[str]) -> Meaning | None:
    """Numbers with a currency, a percent sign or one unit, or with separators between the thousands."""
    found = [match for cell in present if (match := _BODY.fullmatch(cell))]
    signs = _signs_around(found)
    notation = _notation([match["body"] for match in found])
    if len(found) < len(present) or signs is None or notation is None:
        return None
    decimal, between = notation
    between |= set(_SPACES) & set("".join(present))
    # Longer signs first: one may be part of another.
    return Meaning("number", tuple(sorted(signs | between, key=lambda sign: (-len(sign), sign))), decimal)


def _signs_around(found: list[re.Match[str]]) -> set[str] | None:
    """What stands before and after the numbers, or None where it is more than a sign or one unit."""
    leading = {match[place].strip() for match in found for place in ("before", "mid")} - {""}
    trailing = {match["after"].strip() for match in found} - {""}
    units = trailing - set(_SIGNS)
    if not leading <= set(_SIGNS) or len(units) > 1 or len(leading | trailing) > 2:
        return None  # pounds and kilograms are not one number
    if any(not _UNIT.fullmatch(unit) for unit in units):
        return None
    with_unit = [match["after"] for match in found if match["after"].strip() in units]
    apart = all(after[0].isspace() for after in with_unit)
    attached = units <= _ATTACHED and len(with_unit) == len(found)
    return leading | trailing if apart or attached else None


def _notation(bodies: list[str]) -> tuple[str, set[str]] | None:
    """What stands before the decimals, and what between the thousands; None where they are written in several ways."""
    spaced = any(_SPACED.fullmatch(body) for body in bodies)
    plain = [re.sub(_GAPS, "", body) if _SPACED.fullmatch(body) else body for body in bodies]
    for decimal, thousands, pattern in _NOTATIONS:
        if all(pattern.fullmatch(body) for body in plain):
            return decimal, {thousands} & set("".join(plain)) | ({"'"} & set("".join(bodies)) if spaced else set())
    return None
