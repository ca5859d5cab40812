"""What the interpreter tells the rules: facts at a call site, each with the values and how they came there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cachelint.flow.numbers import Linear, Range
from cachelint.flow.state import Cache
from cachelint.flow.values import Trail

if TYPE_CHECKING:
    import libcst as cst

    from cachelint.flow.units import Unit


@dataclass(frozen=True, slots=True)
class Amount:
    """The argument of a crop.

    form, range: the number. negated: the code wrote it as the negative of something. from_length: the code
    takes the cache's length away from something, as in `kept - cache.get_seq_length()`. taken, taken_range: the
    length less the number, which is what goes where the number says what is kept. trail: how it came.
    """

    form: Linear
    range: Range
    negated: bool
    from_length: bool
    taken: Linear
    taken_range: Range
    trail: Trail | None = field(default=None, compare=False)

    @property
    def surely_positive(self) -> bool:
        """Whether it is above 0 on every path that reaches the call."""
        return self.range.lo is not None and self.range.lo > 0

    @property
    def removes(self) -> bool:
        """Whether it counts what is removed: it is not above 0, or is written so that it is taken for that."""
        if self.surely_positive:
            return False
        if self.range.hi is not None and self.range.hi <= 0:
            return True
        return self.negated or self.from_length

    @property
    def may_be_positive(self) -> bool:
        """Whether it can be above 0, a bare number being taken for a count."""
        return not self.removes

    @property
    def is_zero(self) -> bool:
        """Whether it is 0 and nothing else."""
        return self.range.lo == 0 and self.range.hi == 0

    @property
    def may_be_zero(self) -> bool:
        """Whether 0 is not excluded."""
        lo, hi = self.range.lo, self.range.hi
        return (lo is None or lo <= 0) and (hi is None or hi >= 0)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at `node` of `unit`.

    calls: the call sites through which the interpreter came here, outermost first. releases: bit mask of the
    releases on which the point is reached.
    """

    unit: Unit
    node: cst.CSTNode
    calls: Trail | None
    releases: int


@dataclass(frozen=True, slots=True)
class Crop(Event):
    """A call of `crop` on what is, or is taken for, a KV cache.

    cache: what was known just before. length: what `get_seq_length()` can have been then. argument: the node,
    None where the call's shape hides it (no argument, `*args`). names: what forms the local names hold, so
    that a rewrite can spell them. over: the length minus the window, where something tells of one;
    a window is full from 0 on.
    """

    cache: Cache
    receiver: cst.BaseExpression | None
    argument: cst.BaseExpression | None
    keyword: str | None
    amount: Amount | None
    length: Range
    over: Range | None
    names: Mapping[Linear, str]

    @property
    def layer(self) -> str:
        """The kind of layer whose contract decides: a static or quantised one where every layer is, else "full"."""
        layers = self.cache.layers
        if layers and layers <= {"static", "static sliding"}:
            return "static sliding" if "static sliding" in layers else "static"
        return "quantised" if layers == {"quantised"} else "full"

    @property
    def layer_takes_zero(self) -> bool:
        """Whether 0 means something to the layers."""
        return self.layer == "full"

    @property
    def may_meet_full_window(self) -> bool:
        """Whether a layer can be a sliding one whose window is full."""
        below = self.over is not None and self.over.hi is not None and self.over.hi < 0
        return self.cache.may_slide() and not below and self.length.hi != 0

    @property
    def surely_full_window(self) -> bool:
        """Whether a layer is a sliding one and its window is full."""
        full = self.over is not None and self.over.lo is not None and self.over.lo >= 0
        return full and self.cache.sure and self.cache.may_slide()

    @property
    def recorded(self) -> str:
        """Since when the past is recorded, where that is certain: "no", "before" the removed tokens, "late"."""
        return next(iter(self.cache.recording)) if len(self.cache.recording) == 1 else ""

    @property
    def is_literal(self) -> bool:
        """Whether the argument is written as a number."""
        return self.argument is not None and type(self.argument).__name__ == "Integer"

    @property
    def argument_text(self) -> str:
        """The source of the argument on one line, shortened; empty where it is not seen."""
        if self.argument is None:
            return ""
        text = " ".join(self.unit.text(self.argument).split())
        return text if len(text) <= 48 else f"{text[:45]}…"


@dataclass(frozen=True, slots=True)
class UsedAfterFailure(Event):
    """A use of a cache after a crop that may have raised was swallowed."""

    cache: Cache


@dataclass(frozen=True, slots=True)
class Member(Event):
    """A member of a cache is read (or called, or stored to) by its name, and nothing guards that.

    node: the attribute node (or the call). stored: it is assigned to. owner: the class whose surface decides.
    """

    cache: Cache
    name: str
    stored: bool = False

    @property
    def owner(self) -> str:
        """The class of the library whose members count, empty where it can be any."""
        return next(iter(self.cache.classes)) if len(self.cache.classes) == 1 else ""


@dataclass(frozen=True, slots=True)
class Taken(Event):
    """A cache is taken for a tuple of pairs: "subscript" or "iterate"."""

    cache: Cache
    how: str


@dataclass(frozen=True, slots=True)
class Made(Event):
    """A cache class is called. by_position: what is passed first by position: "config", "data" or nothing."""

    name: str
    by_position: str
