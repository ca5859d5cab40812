"""What the interpreter tells the rules: facts at a call site, each with the values and how they came there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cachelint.flow.numbers import Linear, Range
from cachelint.flow.state import Cache
from cachelint.flow.values import Trail, Value

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
class OfCache(Event):
    """Something that concerns one cache: `cache` is what was known of it just before."""

    cache: Cache


@dataclass(frozen=True, slots=True)
class Crop(OfCache):
    """A call of `crop` on what is, or is taken for, a KV cache.

    length: what `get_seq_length()` can have been then. argument: the node,
    None where the call's shape hides it (no argument, `*args`). names: what forms the local names hold, so
    that a rewrite can spell them. over: the length minus the window, where something tells of one;
    a window is full from 0 on.
    """

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
        if self.cache.is_static:
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
class UsedAfterFailure(OfCache):
    """A use of a cache after a crop that may have raised was swallowed."""


@dataclass(frozen=True, slots=True)
class Member(OfCache):
    """A member of a cache is read (or called, or stored to) by its name, and nothing guards that.

    node: the attribute node (or the call). stored: it is assigned to. owner: the class whose surface decides.
    """

    name: str
    stored: bool = False

    @property
    def owner(self) -> str:
        """The class of the library whose members count, empty where it can be any."""
        return next(iter(self.cache.classes)) if len(self.cache.classes) == 1 else ""


@dataclass(frozen=True, slots=True)
class Taken(OfCache):
    """A cache is taken for a tuple of pairs: "subscript" or "iterate"."""

    how: str


@dataclass(frozen=True, slots=True)
class Tested(OfCache):
    """A cache's truth value is asked for. maybe: what else the value can be ("None", or nothing)."""

    maybe: str


@dataclass(frozen=True, slots=True)
class LayersCounted(OfCache):
    """`len(cache)`, the number of layers, is used where a number of tokens belongs."""


@dataclass(frozen=True, slots=True)
class ShapeRead(OfCache):
    """A number of tokens is read from the shape of a layer's tensor."""


@dataclass(frozen=True, slots=True)
class Cut(OfCache):
    """A layer's tensor is replaced by a slice of itself. name: "keys" or "values"."""

    name: str


@dataclass(frozen=True, slots=True)
class Aliased(OfCache):
    """A name that was to keep a cache as it was is used after the cache has changed.

    how: "name" (a plain assignment), "copy" (`copy.copy`), "repeat" (`[cache] * n`). name: the name.
    bound: where it was bound.
    """

    how: str
    name: str
    bound: cst.CSTNode


@dataclass(frozen=True, slots=True)
class LengthMoved(OfCache):
    """The length of a static cache is used after a forward that moved it. asked: the call that gave it."""

    asked: cst.CSTNode


@dataclass(frozen=True, slots=True)
class Copied(OfCache):
    """`copy.deepcopy` of a cache that was filled with autograd on. sure: nothing outside can have turned it off."""

    sure: bool


@dataclass(frozen=True, slots=True)
class Reset(OfCache):
    """`reset()` of a cache. length: the tokens in it."""

    length: Range


@dataclass(frozen=True, slots=True)
class Recorded(OfCache):
    """Recording is turned on. length: the tokens in the cache by then."""

    length: Range


@dataclass(frozen=True, slots=True)
class MaximumTested(Event):
    """Whether there is a maximum is tested as if none were None. how: "is", "is not" or "truth"."""

    how: str
    operand: cst.BaseExpression


@dataclass(frozen=True, slots=True)
class Assembled(Event):
    """A layer whose tensors were set by hand is put among a cache's layers."""


@dataclass(frozen=True, slots=True)
class Made(Event):
    """A cache class is called.

    by_position: what is passed first by position: "config", "data", "number" or nothing. positions, keywords:
    the arguments. layers: those of the model that it is made for, where a configuration tells.
    sure: those are certain.
    """

    name: str
    by_position: str
    positions: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    hidden: bool = False
    layers: frozenset[str] = frozenset()
    sure: bool = False


@dataclass(frozen=True, slots=True)
class Named(Event):
    """A class of the library is imported or used by name. name: the class; module: where from."""

    name: str
    module: str


@dataclass(frozen=True, slots=True)
class Implementation(Event):
    """A `cache_implementation` is chosen at the node that names it."""

    name: str


@dataclass(frozen=True, slots=True)
class Run(Event):
    """A call that runs a model, or is taken for one.

    caches: those passed, as they were before. keyword: the name under which. generates: it is `generate`.
    known: the receiver is a model for certain. model: its class, or what it is called. layers: those of its own
    cache, sure: for certain. given: what is passed as the cache: "cache", "pairs" or nothing. options: the
    keywords with known constants. capacity: the length behind the call less what a static cache holds. about:
    what the flow found: "no loop crop", "other prompt", "same prompt", "grown ids", "other model",
    "other config", "other encoder input".
    """

    caches: tuple[Cache, ...]
    keyword: str
    generates: bool
    known: bool
    model: str
    layers: frozenset[str]
    sure: bool
    given: str
    options: Mapping[str, object]
    capacity: Range | None
    about: frozenset[str]
    argument: cst.Arg | None

    @property
    def classes(self) -> frozenset[str]:
        """The class of the cache that is passed, where it is known."""
        return self.caches[0].classes if len(self.caches) == 1 else frozenset()


@dataclass(frozen=True, slots=True)
class Overridden(Event):
    """A method of the library is overridden or replaced.

    base: the library class; method: its name; parameters: those of the new one, with "**" where it takes any
    others. text: the source of the new one.
    """

    base: str
    method: str
    parameters: tuple[str, ...]
    text: str
    methods: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SharedDefault(OfCache):
    """A cache is made once and for all: as the default of a parameter ("parameter"), or by a class ("class").

    name: the parameter or attribute.
    """

    how: str
    name: str
