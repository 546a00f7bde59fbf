"""A range coder: symbols of known frequencies to bytes and back, within a few bits of their entropy.

A message is a number in [0, 1): every symbol narrows the interval to the part that is its share of the frequencies.
``low`` and ``range`` are the interval in units of 2⁻³² of what is already written; a carry out of ``low`` runs through
bytes 0xFF that are held back until it can no longer come.
"""

from __future__ import annotations

_TOP = 1 << 32
_BOTTOM = 1 << 24


class Encoder:
    """Collects symbols into bytes."""

    def __init__(self) -> None:
        self._low = 0
        self._range = _TOP - 1
        self._last = 0
        self._held = 0
        self._begun = False
        self._out = bytearray()

    def encode(self, start: int, count: int, total: int) -> None:
        """Write the symbol whose frequencies are ``start … start + count`` of ``total``, which is far below 2²⁴."""
        share = self._range // total
        self._low += share * start
        self._range = share * count
        while self._range < _BOTTOM:
            self._range <<= 8
            self._shift()

    def encode_bits(self, value: int, n_bits: int) -> None:
        """Write ``n_bits`` equiprobable bits."""
        for place in reversed(range(n_bits)):
            self.encode((value >> place) & 1, 1, 2)

    def finish(self) -> bytes:
        """End the message; trailing zero bytes are implied and not written."""
        # Any number of the interval will do: take the one with the most zeros at the end.
        for n_zeros in (24, 16, 8, 0):
            rounded = ((self._low + (1 << n_zeros) - 1) >> n_zeros) << n_zeros
            if rounded < self._low + self._range:
                self._low = rounded
                break
        for _ in range(5):
            self._shift()
        return bytes(self._out).rstrip(b"\0")

    def _shift(self) -> None:
        """Write the top byte of ``low``, unless a carry might still change it."""
        if self._low < 0xFF << 24 or self._low >= _TOP:
            carry = self._low >> 32
            if self._begun:
                self._out.append((self._last + carry) & 0xFF)
            self._out.extend((0xFF + carry) & 0xFF for _ in range(self._held))
            self._held = 0
            self._last = (self._low >> 24) & 0xFF
            self._begun = True
        else:
            self._held += 1
        self._low = (self._low << 8) & (_TOP - 1)


class Decoder:
    """Reads symbols back, in the same order with the same frequencies."""

    def __init__(self, message: bytes) -> None:
        self._bytes = iter(message)
        self._range = _TOP - 1
        self._code = 0
        for _ in range(4):
            self._code = (self._code << 8) | next(self._bytes, 0)

    def peek(self, total: int) -> int:
        """Frequency, below ``total``, on which the next symbol lies."""
        return min(self._code // (self._range // total), total - 1)

    def consume(self, start: int, count: int, total: int) -> None:
        """Move past the symbol that :meth:`peek` found."""
        share = self._range // total
        self._code -= share * start
        self._range = share * count
        while self._range < _BOTTOM:
            self._range <<= 8
            self._code = (self._code << 8) | next(self._bytes, 0)

    def decode_bits(self, n_bits: int) -> int:
        """Read ``n_bits`` equiprobable bits."""
        value = 0
        for _ in range(n_bits):
            bit = self.peek(2)
            self.consume(bit, 1, 2)
            value = 2 * value + bit
        return value
