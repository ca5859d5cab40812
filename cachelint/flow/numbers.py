"""Whole numbers as the flow knows them: linear forms over symbols, and ranges of what they can be.

A form such as ``length - n`` keeps what an interval forgets: that exactly ``n`` is removed. A symbol stands
for one number that never changes; a variable that changes is bound to another form.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A number that is not known; it is only the same as itself. `name` is what a person would call it."""

    key: int
    name: str = ""

    def __lt__(self, other: Symbol) -> bool:
        return self.key < other.key


@dataclass(frozen=True, slots=True)
class Range:
    """What a number can be: `lo <= number <= hi` (None is unbounded).

    `zero` tells that some path really gives it the value 0, as opposed to 0 merely not being excluded.
    """

    lo: int | None = None
    hi: int | None = None
    zero: bool = False

    def join(self, other: Range) -> Range:
        """The smallest range that holds both."""
        lo = None if self.lo is None or other.lo is None else min(self.lo, other.lo)
        hi = None if self.hi is None or other.hi is None else max(self.hi, other.hi)
        return Range(lo, hi, self.zero or other.zero)

    def widen(self, newer: Range) -> Range:
        """Let go of every bound that `newer` moves, so that a loop's fixpoint is reached.

        A lower bound that sinks stops at 0 first: counts are what caches are cropped by.
        """
        lo = self.lo
        if newer.lo is None or (lo is not None and newer.lo < lo):
            lo = 0 if newer.lo is not None and newer.lo >= 0 else None
        hi = self.hi
        if newer.hi is None or (hi is not None and newer.hi > hi):
            hi = None
        return Range(lo, hi, self.zero or newer.zero)

    def meet(self, lo: int | None, hi: int | None) -> Range | None:
        """This range cut to the bounds; None where nothing is left."""
        new_lo = self.lo if lo is None else lo if self.lo is None else max(lo, self.lo)
        new_hi = self.hi if hi is None else hi if self.hi is None else min(hi, self.hi)
        if new_lo is not None and new_hi is not None and new_lo > new_hi:
            return None
        holds_zero = (new_lo is None or new_lo <= 0) and (new_hi is None or new_hi >= 0)
        return Range(new_lo, new_hi, self.zero and holds_zero)

    def shifted(self, factor: int, offset: int) -> Range:
        """The range of `factor * number + offset`, for a factor other than 0."""
        ends = [None if end is None else end * factor + offset for end in (self.lo, self.hi)]
        if factor < 0:
            ends.reverse()
        return Range(ends[0], ends[1], self.zero and offset == 0)


COUNT = Range(0, None)
DIMENSION = Range(1, None)


@dataclass(frozen=True, slots=True)
class Linear:
    """`sum(factor * symbol) + const`, the terms sorted by symbol and without zero factors."""

    terms: tuple[tuple[Symbol, int], ...] = ()
    const: int = 0

    @staticmethod
    def of(symbol: Symbol) -> Linear:
        """The form that is just `symbol`."""
        return Linear(((symbol, 1),))

    @property
    def constant(self) -> int | None:
        """The number itself where it is known, else None."""
        return None if self.terms else self.const

    @property
    def symbol(self) -> Symbol | None:
        """The symbol where the form is exactly one symbol."""
        if self.const == 0 and len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    def __add__(self, other: Linear) -> Linear:
        if not other.terms:
            return Linear(self.terms, self.const + other.const)
        factors = dict(self.terms)
        for symbol, factor in other.terms:
            factors[symbol] = factors.get(symbol, 0) + factor
        terms = tuple(sorted((s, f) for s, f in factors.items() if f))
        return Linear(terms, self.const + other.const)

    def __neg__(self) -> Linear:
        return self.times(-1)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.times(-1)

    def times(self, factor: int) -> Linear:
        """The form multiplied by a known number."""
        if factor == 0:
            return Linear()
        return Linear(tuple((s, f * factor) for s, f in self.terms), self.const * factor)

    def factor(self, symbol: Symbol) -> int:
        """How often `symbol` counts in the form."""
        return next((f for s, f in self.terms if s == symbol), 0)

    def range(self, ranges: Mapping[Symbol, Range], facts: Collection[Linear] = ()) -> Range:
        """What the form can be, from its symbols' ranges and from facts (forms known to be >= 0)."""
        lo: int | None = self.const
        hi: int | None = self.const
        for symbol, factor in self.terms:
            part = ranges.get(symbol, COUNT).shifted(factor, 0)
            lo = None if lo is None or part.lo is None else lo + part.lo
            hi = None if hi is None or part.hi is None else hi + part.hi
        if self.terms and facts:
            lo, hi = self._by_facts(ranges, lo, hi, facts)
        zero = not self.terms and self.const == 0
        if len(self.terms) == 1:
            symbol, factor = self.terms[0]
            zero = ranges.get(symbol, COUNT).zero and self.const == 0
        return Range(lo, hi, zero)

    def _by_facts(
        self, ranges: Mapping[Symbol, Range], lo: int | None, hi: int | None, facts: Collection[Linear]
    ) -> tuple[int | None, int | None]:
        """Tighten the bounds: what is left of the form beside a fact bounds the form."""
        mine = {symbol for symbol, _ in self.terms}
        for fact in facts:
            if not any(symbol in mine for symbol, _ in fact.terms):
                continue
            above = (self - fact).range(ranges).lo
            if above is not None:
                lo = above if lo is None else max(lo, above)
            below = (self + fact).range(ranges).hi
            if below is not None:
                hi = below if hi is None else min(hi, below)
        return lo, hi
