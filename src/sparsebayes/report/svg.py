"""Small charts as SVG text: no library in the page, colours by CSS class, so that light, dark and print all work."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

WIDTH, HEIGHT = 420.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 74.0, 10.0, 10.0, 42.0
_TICKS = 5
_CHARACTER = 6.2  # width of a label's character, about


class Chart:
    """One chart: limits first, then layers from the back to the front.

    Parameters
    ----------
    x, y : array-like
        Everything that has to fit into the picture.
    labels : tuple of str
        Of the two axes.
    title : str
        What it shows, for those who cannot see it.
    height : float
        In the units of its width, 420.
    scale : bool
        Whether the vertical axis has numbers.
    whole : bool
        Whether these are whole, as numbers of rows are.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        labels: tuple[str, str],
        title: str,
        *,
        height: float = HEIGHT,
        scale: bool = True,
        whole: bool = False,
    ) -> None:
        self.height = height
        self.scale, self.whole = scale, whole
        self.xlim, self.ylim = limits(x), limits(y)
        self.labels = labels
        self.title = title
        self._layers: list[str] = []
        self._beside: list[str] = []

    def px(self, x: ArrayLike) -> Array:
        """Horizontal places of values."""
        low, high = self.xlim
        inside = np.clip(np.asarray(x, dtype=np.float64), low - (high - low), high + (high - low))
        return _LEFT + (inside - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def py(self, y: ArrayLike) -> Array:
        """Vertical places of values."""
        low, high = self.ylim
        inside = np.clip(np.asarray(y, dtype=np.float64), low - (high - low), high + (high - low))
        return self.height - _BOTTOM - (inside - low) / (high - low) * (self.height - _TOP - _BOTTOM)

    @property
    def span(self) -> tuple[float, float]:
        """Top and bottom of the picture inside the axes."""
        return _TOP, self.height - _BOTTOM

    def line(self, x: ArrayLike, y: ArrayLike, css: str) -> Chart:
        """Add a line through points."""
        self._layers.append(f'<polyline class="{css}" points="{_points(self.px(x), self.py(y))}"/>')
        return self

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, css: str = "band") -> Chart:
        """Add the area between two lines."""
        across = np.concatenate([self.px(x), self.px(x)[::-1]])
        edge = np.concatenate([self.py(low), self.py(high)[::-1]])
        self._layers.append(f'<polygon class="{css}" points="{_points(across, edge)}"/>')
        return self

    def bars(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, css: str = "bar") -> Chart:
        """Add vertical error bars."""
        ends = zip(self.px(x), self.py(low), self.py(high), strict=True)
        self._layers.append(f'<path class="{css}" d="{"".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in ends)}"/>')
        return self

    def dots(
        self, x: ArrayLike, y: ArrayLike, css: str, *, radius: float = 2.2, keys: Sequence[int] | None = None
    ) -> Chart:
        """Add points; with ``keys`` the script can find each by its function."""
        marks = [""] * len(np.asarray(x)) if keys is None else [f' data-f="{key}"' for key in keys]
        places = zip(self.px(x), self.py(y), marks, strict=True)
        self._layers.append(
            f'<g class="{css}">'
            + "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{radius}"{mark}/>' for a, b, mark in places)
            + "</g>"
        )
        return self

    def cells(self, across: Array, up: Array, shades: Array, css: str = "cell") -> Chart:
        """Add a map: one cell for each entry of ``shades`` (rows are ``up``), its opacity the value."""
        x, y = self.px(across), self.py(up)
        width, height = abs(x[1] - x[0]), abs(y[1] - y[0])
        self._layers.append(
            f'<g class="{css}">'
            + "".join(
                f'<rect x="{x[i] - width / 2:.1f}" y="{y[j] - height / 2:.1f}" width="{width + 0.3:.1f}" '
                f'height="{height + 0.3:.1f}" fill-opacity="{shades[j, i]:.2f}"/>'
                for j in range(len(up))
                for i in range(len(across))
                if shades[j, i] >= 0.01
            )
            + "</g>"
        )
        return self

    def extra(self, text: str) -> Chart:
        """Add SVG as it is."""
        self._layers.append(text)
        return self

    def beside(self, y: float, text: str) -> Chart:
        """Write a name beside the vertical axis, cut where it is too long."""
        most = int((_LEFT - 8.0) / _CHARACTER)
        said = text if len(text) <= most else f"{text[: most - 1]}…"
        self._beside.append(
            f'<text class="tick y" x="{_LEFT - 5}" y="{float(self.py(y)) + 4:.1f}">{escape(said)}'
            f"<title>{escape(text)}</title></text>"
        )
        return self

    def render(self) -> str:
        """Return the SVG element."""
        bottom = self.height - _BOTTOM
        inside = f'x="{_LEFT}" y="{_TOP}" width="{WIDTH - _LEFT - _RIGHT}" height="{bottom - _TOP}"'
        middle_x, middle_y = (_LEFT + WIDTH - _RIGHT) / 2, (_TOP + bottom) / 2
        # Elements of a page have names of their own; the same chart must get the same one in every run.
        name = "clip" + hashlib.sha256(repr((self.title, self.xlim, self.ylim)).encode()).hexdigest()[:12]
        said = escape(self.title, quote=True)
        return "".join(
            [
                f'<svg viewBox="0 0 {WIDTH:g} {self.height:g}" role="img" aria-label="{said}">',
                f'<clipPath id="{name}"><rect {inside}/></clipPath>',
                *self._ticks(),
                *self._beside,
                f'<g clip-path="url(#{name})">{"".join(self._layers)}</g>',
                f'<text class="label" x="{middle_x}" y="{self.height - 6}">{escape(self.labels[0])}</text>',
                f'<text class="label" transform="translate(12 {middle_y}) rotate(-90)">{escape(self.labels[1])}</text>',
                "</svg>",
            ]
        )

    def _ticks(self) -> Iterable[str]:
        bottom = self.height - _BOTTOM
        for value, said in labelled(*self.xlim):
            x = float(self.px(value))
            yield f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/>'
            yield _tick(x, bottom + 15, said)
        for value, said in labelled(*self.ylim, whole=self.whole) if self.scale else []:
            y = float(self.py(value))
            yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>'
            yield f'<text class="tick y" x="{_LEFT - 5}" y="{y + 4:.1f}">{said}</text>'


def bar_list(
    names: Sequence[str], sizes: ArrayLike, spread: ArrayLike, unit: str, title: str, *, most: float | None = None
) -> str:
    """Horizontal bars with their names above them, readable on a narrow screen; ``most`` would fill it."""
    sizes, spread = np.asarray(sizes, dtype=np.float64), np.asarray(spread, dtype=np.float64)
    step, height = 34.0, 34.0 * len(names) + 24.0
    largest = most or float(np.max(np.maximum(sizes, 0.0) + spread, initial=0.0)) or 1.0
    full = WIDTH - 90.0
    rows = []
    for k, (name, size, wide) in enumerate(zip(names, sizes, spread, strict=True)):
        y, length = k * step, max(size, 0.0) / largest * full
        low, high = (min(max(size + s * wide, 0.0), largest) / largest * full for s in (-1.0, 1.0))
        rows.append(
            f'<text class="name" x="0" y="{y + 12}">{escape(_cut(name))}</text>'
            f'<rect class="size" x="0" y="{y + 17}" width="{length:.1f}" height="11"/>'
            f'<path class="bar" d="M{low:.1f} {y + 22.5}H{high:.1f}"/>'
            f'<text class="name" x="{max(length, high) + 6:.1f}" y="{y + 27}">{number(size, 3)}</text>'
        )
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(title, quote=True)}">'
        f'{"".join(rows)}<text class="name quiet" x="0" y="{height - 6}">{escape(unit)}</text></svg>'
    )


def ranges(names: Sequence[str], at: ArrayLike, low: ArrayLike, high: ArrayLike, unit: str, title: str) -> str:
    """A dot on a range for each name, on one scale, with the names above them."""
    at, low, high = (np.asarray(a, dtype=np.float64) for a in (at, low, high))
    smallest, largest = limits(np.concatenate([at, low, high]))
    step, height = 34.0, 34.0 * len(names) + 40.0

    def place(value: float) -> float:
        return _RIGHT + (value - smallest) / (largest - smallest) * (WIDTH - 7.0 * _RIGHT)

    floor = step * len(names)
    rows = [
        f'<path class="grid" d="M{place(tick):.1f} 0V{floor}"/>{_tick(place(tick), floor + 14, said)}'
        for tick, said in labelled(smallest, largest)
    ]
    for k, name in enumerate(names):
        y = k * step
        rows.append(
            f'<text class="name" x="0" y="{y + 12}">{escape(_cut(name))}</text>'
            f'<path class="bar" d="M{place(low[k]):.1f} {y + 22.5}H{place(high[k]):.1f}"/>'
            f'<g class="data strong"><circle cx="{place(at[k]):.1f}" cy="{y + 22.5}" r="4.5"/></g>'
            f'<text class="name" x="{max(place(high[k]), place(at[k])) + 8:.1f}" y="{y + 27}">{number(at[k], 3)}</text>'
        )
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(title, quote=True)}">'
        f'{"".join(rows)}<text class="name quiet" x="0" y="{height - 6}">{escape(unit)}</text></svg>'
    )


def shares(names: Sequence[str], parts: Array, title: str) -> str:
    """A bar for each name, divided in the proportions of its row, coloured as the classes are."""
    step, height, full = 34.0, 34.0 * len(names) + 24.0, WIDTH - _RIGHT
    rows = []
    for k, (name, part) in enumerate(zip(names, parts, strict=True)):
        y, ends = k * step, np.concatenate([[0.0], np.cumsum(part)]) * full
        rows.append(f'<text class="name" x="0" y="{y + 12}">{escape(_cut(name))}</text>')
        rows += [
            f'<rect class="share c{c}" x="{a:.1f}" y="{y + 17}" width="{b - a:.1f}" height="12"/>'
            for c, (a, b) in enumerate(pairwise(ends))
            if b - a >= 0.05
        ]
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(title, quote=True)}">'
        f'{"".join(rows)}<text class="name quiet" x="0" y="{height - 6}">probability of each class</text></svg>'
    )


def swarm(names: Sequence[str], values: Sequence[Array], shades: Sequence[Array], unit: str, title: str) -> str:
    """Dots of each name on one scale, beside each other where they would cover one another, coloured by a shade.

    Parameters
    ----------
    names : sequence of str
        One for each row of dots.
    values, shades : sequences of ndarray
        Where the dots are, and how they are coloured, from 0 to 1; NaN has no colour.
    unit, title : str
        Below the scale, and for those who cannot see it.
    """
    smallest, largest = limits(np.concatenate([*values, [0.0]]))
    step, radius = 52.0, 2.6
    height, floor = step * len(names) + 40.0, step * len(names)

    def place(value: ArrayLike) -> Array:
        return _RIGHT + (np.asarray(value) - smallest) / (largest - smallest) * (WIDTH - 2.0 * _RIGHT)

    parts = [
        f'<path class="grid" d="M{x:.1f} 0V{floor}"/>{_tick(x, floor + 14, said)}'
        for said, x in ((said, float(place(t))) for t, said in labelled(smallest, largest))
    ]
    parts.append(f'<path class="ideal" d="M{float(place(0.0)):.1f} 0V{floor}"/>')
    for k, (name, at, shade) in enumerate(zip(names, values, shades, strict=True)):
        middle = k * step + 32.0
        parts.append(f'<text class="name" x="0" y="{k * step + 12}">{escape(_cut(name))}</text>')
        across = place(at)
        up = _apart(across, 2.0 * radius, step - 24.0)
        parts += [
            f'<circle class="{_shade(s)}" cx="{x:.1f}" cy="{middle + y:.1f}" r="{radius}"/>'
            for x, y, s in zip(across, up, shade, strict=True)
        ]
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(title, quote=True)}">'
        f'{"".join(parts)}<text class="name quiet" x="0" y="{height - 6}">{escape(unit)}</text></svg>'
    )


def _apart(across: Array, width: float, room: float) -> Array:
    """Heights of dots such that those in one column stand above and below each other, within the room."""
    bins = np.round(across / width).astype(int)
    up = np.zeros(len(across))
    for one in np.unique(bins):
        mine = np.flatnonzero(bins == one)
        order = (np.arange(len(mine)) + 1) // 2 * np.where(np.arange(len(mine)) % 2, 1.0, -1.0)
        up[mine] = order * min(width, room / max(len(mine), 1))
    return up


def _shade(value: float) -> str:
    return "v" if np.isnan(value) else f"v v{min(int(5.0 * value), 4)}"


def limits(values: ArrayLike) -> tuple[float, float]:
    """Smallest and largest value, with some room."""
    finite = np.asarray(values, dtype=np.float64).ravel()
    finite = finite[np.isfinite(finite)]
    if len(finite) == 0:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    room = 0.04 * (high - low) or 0.5 * max(abs(high), 1.0)
    return low - room, high + room


def ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round numbers between two limits, about five; whole ones where nothing else has a meaning."""
    raw = (high - low) / _TICKS
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min((m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= raw), default=10.0)
    step = np.ceil(step) if whole else step
    first = np.ceil(low / step)
    return [float(k * step) + 0.0 for k in np.arange(first, np.floor(high / step) + 1)]


def labelled(low: float, high: float, *, whole: bool = False) -> list[tuple[float, str]]:
    """Round numbers between two limits with their texts, of as many digits as tell them apart."""
    places = ticks(low, high, whole=whole)
    tried = ([number(place, digits) for place in places] for digits in range(4, 12))
    texts = next((some for some in tried if len(set(some)) == len(some)), [str(place) for place in places])
    return list(zip(places, texts, strict=True))


def number(value: float, digits: int = 4) -> str:
    """Number for people; large ones with commas between the thousands."""
    rounded = float(f"{value:.{digits}g}")
    text = f"{rounded:,.12g}" if 1e4 <= abs(rounded) < 1e9 else f"{rounded:.{digits}g}"
    return text.replace("-", "−")


def _tick(x: float, y: float, said: str) -> str:
    """A number below an axis; one at the edge stands as far inside as it takes to be whole."""
    half = len(said) * _CHARACTER / 2.0
    return f'<text class="tick" x="{min(max(x, half), WIDTH - half):.1f}" y="{y}">{said}</text>'


def _points(x: Array, y: Array) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _cut(name: str) -> str:
    most = int(WIDTH / _CHARACTER)
    return name if len(name) <= most else f"{name[: most - 1]}…"
