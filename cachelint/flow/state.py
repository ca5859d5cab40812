"""The state of a program point: what the names hold, what the heap holds, which numbers are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from cachelint.flow.numbers import Linear, Range, Symbol
from cachelint.flow.values import Trail, Value

if TYPE_CHECKING:
    from cachelint.flow.project import Class

MAX_FACTS = 24
EMPTY: Mapping[Key, Value] = MappingProxyType({})

# An attribute is keyed by its name, an item by ("item", constant), what the interpreter remembers by ("#", …).
Key = str | tuple[str, object]
ANY_ITEM: Key = ("item", ...)
# The cache that a layer, a tensor or a shape belongs to.
OF_CACHE: Key = ("#", "of cache")


@dataclass(frozen=True, slots=True)
class Cache:
    """What is known of one KV cache.

    classes: the library's classes that it can be an instance of; empty where it is some cache.
    layers: the layer kinds that it holds or may hold ("full", "sliding", "chunked", "linear", "static" …).
    sure: the layer kinds are known for certain; False where they depend on a config that nobody sees.
    seen: nothing contradicts that the layers are what `layers` says; False where the origin is unknown.
    window: the smallest sliding window, in tokens, where something tells it.
    length: the tokens seen so far.
    recording: what `activate_past_recording` can have been when the last tokens came.
    excluded: classes that a guard has ruled out.
    compacted: it was cropped, and nothing was fed since.
    failed: a crop may have raised half way, was swallowed, and the cache is still the same.
    cropped: on some path it was cropped, and nothing was fed since.
    fed: the calls that fed it since it was made, cropped or reset; served: those among them that generate.
    models: the models that fed it. origin: the model whose configuration it was made from.
    configured: it was made from a configuration. graded: it was filled with autograd on.
    repeated: its batch was repeated. capacity: what a static one holds, in tokens.
    encoder: what its encoder was given.
    trail: how it was made. filled: what filled it last.
    """

    classes: frozenset[str] = frozenset()
    layers: frozenset[str] = frozenset()
    sure: bool = False
    seen: bool = False
    window: Linear | None = None
    length: Linear = Linear()
    recording: frozenset[str] = frozenset({"no"})
    excluded: frozenset[str] = frozenset()
    compacted: bool = False
    failed: bool = False
    cropped: bool = False
    fed: frozenset[int] = frozenset()
    served: frozenset[int] = frozenset()
    models: frozenset[int] = frozenset()
    origin: int | None = None
    configured: bool = False
    graded: bool = False
    repeated: bool = False
    capacity: Linear | None = None
    encoder: Value | None = None
    trail: Trail | None = field(default=None, compare=False)
    filled: Trail | None = field(default=None, compare=False)

    def may_slide(self) -> bool:
        """Whether something tells that a layer can be a sliding or chunked one."""
        return self.seen and bool(self.layers & {"sliding", "chunked"})

    @property
    def is_static(self) -> bool:
        """Whether every layer is a static one."""
        return bool(self.layers) and self.layers <= {"static", "static sliding"}

    def known_linear(self) -> bool:
        """Whether the model's layers are known, and a linear one is among them."""
        return self.seen and "linear" in self.layers and (self.sure or "sliding" not in self.layers)

    def join(self, other: Cache, length: Linear) -> Cache:
        """Either cache, with the joined length."""
        return Cache(
            classes=self.classes | other.classes if self.classes and other.classes else frozenset(),
            layers=self.layers | other.layers,
            sure=self.sure and other.sure and self.layers == other.layers,
            seen=self.seen and other.seen,
            window=self.window if self.window == other.window else None,
            length=length,
            recording=self.recording | other.recording,
            excluded=self.excluded & other.excluded,
            compacted=self.compacted and other.compacted,
            failed=self.failed or other.failed,
            cropped=self.cropped or other.cropped,
            fed=self.fed | other.fed,
            served=self.served | other.served,
            models=self.models | other.models,
            origin=self.origin if self.origin == other.origin else None,
            configured=self.configured and other.configured,
            graded=self.graded and other.graded,
            repeated=self.repeated or other.repeated,
            capacity=self.capacity if self.capacity == other.capacity else None,
            encoder=self.encoder if self.encoder == other.encoder else None,
            trail=self.trail or other.trail,
            filled=self.filled or other.filled,
        )


@dataclass(frozen=True, slots=True)
class Cell:
    """A thing on the heap: an object, a container, a model, a cache, or something of which nothing is known.

    kind: "" (unknown), "instance", "list", "dict", "tuple", "model", "config", "output", "generated".
    fields: attributes and items that are known, by key.
    name: what the code calls it, for messages and for the names that say what a thing is.
    denied: a guard or an annotation has told that it is no KV cache.
    """

    kind: str = ""
    name: str = ""
    cls: Class | None = None
    fields: Mapping[Key, Value] = field(default_factory=lambda: EMPTY)
    cache: Cache | None = None
    denied: bool = False
    trail: Trail | None = field(default=None, compare=False)

    def with_field(self, key: Key, value: Value) -> Cell:
        """The cell after a store."""
        return replace(self, fields={**self.fields, key: value})


_FORGOTTEN = Cell()


@dataclass(slots=True)
class State:
    """One program point.

    frames: each activation's names. The inner dictionaries are shared between states, so that a store makes a new
    one (`set_name`), and a branch costs nothing for the frames that it leaves alone.
    """

    frames: dict[int, dict[str, Value]]
    heap: dict[int, Cell]
    ranges: dict[Symbol, Range]
    facts: frozenset[Linear]
    releases: int

    def copy(self) -> State:
        """A state that can go another way."""
        return State(
            dict(self.frames),
            dict(self.heap),
            dict(self.ranges),
            self.facts,
            self.releases,
        )

    def set_name(self, frame: int, name: str, value: Value) -> None:
        """Let a name of a frame hold a value."""
        self.frames[frame] = {**self.frames.get(frame, {}), name: value}

    def forget_name(self, frame: int, name: str) -> None:
        """Let a name of a frame hold nothing."""
        self.frames[frame] = {other: value for other, value in self.frames.get(frame, {}).items() if other != name}

    def cell(self, oid: int) -> Cell:
        """What a heap place holds; a thing that was forgotten while an expression held it is an open one."""
        return self.heap.get(oid, _FORGOTTEN)

    def range(self, form: Linear) -> Range:
        """What the form can be here."""
        return form.range(self.ranges, self.facts)

    def assume(self, form: Linear) -> bool:
        """Take for known that `form >= 0`; False where that cannot be, and the point is not reached."""
        now = self.range(form)
        if now.lo is not None and now.lo >= 0:
            return True
        if now.hi is not None and now.hi < 0:
            return False
        for symbol, factor in form.terms:
            if not self._bound(symbol, factor, form):
                return False
        if len(form.terms) > 1 and len(self.facts) < MAX_FACTS:
            self.facts |= {form}
        return True

    def _bound(self, symbol: Symbol, factor: int, form: Linear) -> bool:
        """Draw from `form >= 0` what it says of one symbol."""
        rest = form - Linear(((symbol, factor),))
        most = self.range(rest).hi
        if most is None:
            return True
        # factor * symbol >= -rest >= -most
        lo = -(most // factor) if factor > 0 else None
        hi = most // -factor if factor < 0 else None
        met = self.ranges.get(symbol, Range(0, None)).meet(lo, hi)
        if met is None:
            return False
        self.ranges[symbol] = met
        return True

    def assume_not_zero(self, form: Linear) -> bool:
        """Take for known that `form != 0`; False where it is 0 for certain."""
        now = self.range(form)
        if now.lo == 0 and now.hi == 0:
            return False
        if now.lo == 0:
            return self.assume(form - Linear((), 1))
        if now.hi == 0:
            return self.assume(-form - Linear((), 1))
        symbol = form.symbol
        if symbol is not None:
            self.ranges[symbol] = replace(self.ranges.get(symbol, Range(0, None)), zero=False)
        return True
