"""What the coder expects: adaptive frequencies of integers, and of which functions of the dictionary are used.

Encoder and decoder learn the same frequencies from what has been coded so far, so none are sent.  Only additions,
products and quotients are used in floating point, each rounded the same on every machine, and sums run in a fixed
order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsebayes.applications.images.rangecoder import Decoder, Encoder
from sparsebayes.typing import Index

# How much one occurrence counts against the initial frequencies, and when old occurrences are forgotten by half.
_STEP = 24
_FORGET = 1 << 13
# Resolution of the distribution over functions.
_SHARES = 1 << 18
# Shape of the gamma distribution of frequencies within a kind: how far a function's own history is trusted.
_SHAPE = 1.5
# No function is certain.
_SUREST = 0.9


class IntegerModel:
    """Adaptive frequencies of small non-negative integers; larger ones follow an escape, in Elias's gamma code.

    Parameters
    ----------
    size : int
        Integers below this have a frequency of their own.
    """

    def __init__(self, size: int = 24) -> None:
        self._escape = size
        self._counts = [max(1, 64 >> (symbol // 2)) for symbol in range(size)] + [1]
        self._total = sum(self._counts)

    def encode(self, coder: Encoder, value: int) -> None:
        """Write a non-negative integer."""
        symbol = min(value, self._escape)
        coder.encode(sum(self._counts[:symbol]), self._counts[symbol], self._total)
        self._learn(symbol)
        if symbol == self._escape:
            excess = value - self._escape + 1
            n_bits = excess.bit_length()
            coder.encode_bits(1, n_bits)
            coder.encode_bits(excess - (1 << (n_bits - 1)), n_bits - 1)

    def decode(self, coder: Decoder) -> int:
        """Read a non-negative integer."""
        place = coder.peek(self._total)
        symbol, start = 0, 0
        while start + self._counts[symbol] <= place:
            start += self._counts[symbol]
            symbol += 1
        coder.consume(start, self._counts[symbol], self._total)
        self._learn(symbol)
        if symbol < self._escape:
            return symbol
        n_bits = 1
        while coder.decode_bits(1) == 0:
            n_bits += 1
            if n_bits > 64:
                raise ValueError("the file is damaged: an integer has no end")
        return self._escape - 1 + (1 << (n_bits - 1)) + coder.decode_bits(n_bits - 1)

    def _learn(self, symbol: int) -> None:
        self._counts[symbol] += _STEP
        self._total += _STEP
        if self._total > _FORGET:
            self._counts = [(count + 1) // 2 for count in self._counts]
            self._total = sum(self._counts)


def zigzag(value: int) -> int:
    """Map 0, −1, 1, −2, … to 0, 1, 2, 3, …"""
    return 2 * value if value >= 0 else -2 * value - 1


def unzigzag(code: int) -> int:
    """Inverse of :func:`zigzag`."""
    return code // 2 if code % 2 == 0 else -(code + 1) // 2


class SubsetModel:
    """Which functions a tile uses, coded in ascending order.

    Given that r more functions follow, each function passed by is used with probability r times its share of the
    frequencies ahead; the next one used is then coded in a single step.  A function's frequency is shrunk towards
    that of its kind (same shape, anywhere in the tile).

    Parameters
    ----------
    kinds : (M,) array of int
        The kind of every function.
    """

    def __init__(self, kinds: Index) -> None:
        self._kinds = kinds
        self._sizes = np.bincount(kinds).astype(np.float64)
        self._of_kind = np.zeros(len(self._sizes))
        self._own = np.zeros(len(kinds))
        self._refresh()

    def encode(self, coder: Encoder, chosen: list[int]) -> None:
        """Write an ascending list of functions whose length the decoder knows."""
        begin = 0
        for place, function in enumerate(chosen):
            ends = self._cumulative(begin, len(chosen) - place)
            k = function - begin
            start = int(ends[k - 1]) if k else 0
            coder.encode(start, int(ends[k]) - start, int(ends[-1]))
            begin = function + 1
        self._learn(chosen)

    def decode(self, coder: Decoder, length: int) -> list[int]:
        """Read an ascending list of functions."""
        chosen: list[int] = []
        begin = 0
        for place in range(length):
            ends = self._cumulative(begin, length - place)
            k = int(np.searchsorted(ends, coder.peek(int(ends[-1])), side="right"))
            start = int(ends[k - 1]) if k else 0
            coder.consume(start, int(ends[k]) - start, int(ends[-1]))
            chosen.append(begin + k)
            begin += k + 1
        self._learn(chosen)
        return chosen

    def _cumulative(self, begin: int, remaining: int) -> NDArray[np.int64]:
        """Cumulative integer frequencies of the next function used, from ``begin`` on."""
        last = len(self._own) - remaining + 1  # the others must still fit behind it
        used = np.minimum(remaining * self._shares[begin:last], _SUREST)
        passed = np.cumprod(1.0 - used)
        probability = used.copy()
        probability[1:] *= passed[:-1]
        return np.cumsum((probability * _SHARES).astype(np.int64) + 1)

    def _learn(self, chosen: list[int]) -> None:
        for function in chosen:
            self._own[function] += 1.0
            self._of_kind[self._kinds[function]] += 1.0
        if chosen:
            self._refresh()

    def _refresh(self) -> None:
        """Every function's share of the frequencies from itself to the end of the dictionary."""
        of_kind = (self._of_kind + 1.0) / self._sizes
        # Posterior mean of a Poisson rate whose gamma prior has the mean of the kind.
        frequency = (self._own + _SHAPE) * (of_kind / (of_kind + _SHAPE))[self._kinds]
        ahead = np.cumsum(frequency[::-1])[::-1]
        self._shares = frequency / ahead
