"""The interpreter's ground: symbols, objects, events, the step budget, and reading and joining states."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import is_not
from typing import TypeVar

import libcst as cst

from cachelint.flow.dependence import Dependence
from cachelint.flow.events import Event
from cachelint.flow.numbers import COUNT, Linear, Range, Symbol
from cachelint.flow.project import Class, Function, Module, Project
from cachelint.flow.state import Cache, Cell, State
from cachelint.flow.units import Unit
from cachelint.flow.values import UNKNOWN, Atom, Const, Num, Ref, Step, Test, Trail, Tup, Value, nested, ref

K = TypeVar("K")
V = TypeVar("V")

MAX_STEPS = 60_000
MAX_DEPTH = 12
MIN_GARBAGE = 300


class OutOfSteps(Exception):
    """A root function took more steps than it may; what follows in it stays unknown."""


@dataclass(slots=True)
class Frame:
    """One activation of a function (or of a module's top level)."""

    number: int
    outer: int | None
    module: Module
    unit: Unit | None
    cls: Class | None = None
    function: Function | None = None
    evidence: frozenset[str] = frozenset()
    receiver: Value = UNKNOWN
    # What is run: the definition of the function, or the statements of the module so far.
    body: list[cst.CSTNode] = field(default_factory=list)
    # Numbers from `since` on were given in this activation, from `statement` on in its unfinished statement;
    # `touched` are older places that this statement has made anew.
    since: int = 0
    statement: int = 0
    touched: set[int] = field(default_factory=set)
    elsewhere: dict[str, int] = field(default_factory=dict)
    returns: list[tuple[State, Value]] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)


@dataclass(slots=True)
class Loop:
    """The states that leave a loop's body before its end."""

    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)


# The bodies of the running functions with the call in each that led further, outermost first.
Chain = tuple[tuple[tuple[cst.CSTNode, ...], cst.CSTNode], ...]


class Numbering:
    """The symbols and heap places of one analysis, so that what one root function leaves another can read."""

    def __init__(self) -> None:
        self.symbols: dict[Hashable, Symbol] = {}
        self.objects: dict[Hashable, int] = {}
        self.lengths: set[Symbol] = set()
        # Numbers of layers, with the cache whose they are.
        self.counts: dict[Symbol, int] = {}
        # Names that were bound to a cache which has another name.
        self.kept: set[str] = set()
        self.frames: dict[int, Frame] = {}
        # The calls that run models, by their numbers.
        self.runs: dict[int, Chain] = {}
        self._serial = 0

    def serial(self) -> int:
        """A number that was never used."""
        self._serial += 1
        return self._serial


class Machine:
    """What every part of the interpreter shares during one root function."""

    def __init__(self, project: Project, releases: int, numbering: Numbering) -> None:
        self.project = project
        self.releases = releases
        self.numbering = numbering
        self.steps = 0
        self.max_steps = MAX_STEPS
        self.events: dict[Hashable, Event] = {}
        self.frames = numbering.frames
        self.stack: list[Frame] = []
        self.calls: Trail | None = None
        self.context: tuple[int, ...] = ()
        self.crops_open = False
        # The exceptions that handlers around the running statement catch.
        self.caught: list[frozenset[str]] = []
        self.lengths = numbering.lengths
        self.locals: dict[cst.CSTNode, Function] = {}
        self.defined: dict[Function, int] = {}
        self.loops: list[Loop] = []
        self.collect_at = MIN_GARBAGE
        # How many of the blocks and functions around turn autograd off.
        self.no_grad = 0
        self.dependences: dict[tuple[cst.CSTNode, ...], Dependence] = {}

    # Time

    def tick(self, steps: int = 1) -> None:
        """Count a step. Raises OutOfSteps."""
        self.steps += steps
        if self.steps > self.max_steps:
            raise OutOfSteps

    @property
    def frame(self) -> Frame:
        """The running activation."""
        return self.stack[-1]

    @property
    def unit(self) -> Unit:
        """The unit whose nodes are being interpreted."""
        unit = self.frame.unit
        assert unit is not None
        return unit

    # Symbols and objects

    def symbol(self, key: Hashable = None, name: str = "") -> Symbol:
        """The symbol of `key`, a fresh one where that is None."""
        if key is None:
            return Symbol(self.numbering.serial(), name)
        if key not in self.numbering.symbols:
            self.numbering.symbols[key] = Symbol(self.numbering.serial(), name)
        return self.numbering.symbols[key]

    def place(self, key: Hashable = None) -> int:
        """The heap place of `key`, a fresh one where that is None."""
        if key is None:
            return self.numbering.serial()
        if key not in self.numbering.objects:
            self.numbering.objects[key] = self.numbering.serial()
        elif self.stack:
            self.stack[-1].touched.add(self.numbering.objects[key])
        return self.numbering.objects[key]

    def site(self, node: cst.CSTNode) -> Hashable:
        """What tells an allocation at `node` in this calling context from all others."""
        return (self.context, node)

    def fresh(
        self, state: State, name: str = "", within: Range | None = None, *, kind: str = "", denied: bool = False
    ) -> Value:
        """A thing of which nothing is known but its name and perhaps its kind, or its range as a number."""
        oid = self.place()
        state.heap[oid] = Cell(kind, name, denied=denied)
        if within is not None:
            state.ranges[self.symbol(("value", oid), name)] = within
        return ref(oid)

    def count(self, state: State, within: Range = COUNT, name: str = "", trail: Trail | None = None) -> Value:
        """A fresh whole number in a range."""
        symbol = self.symbol(name=name)
        state.ranges[symbol] = within
        return Value((Num(Linear.of(symbol), trail=trail),))

    def length_form(self, state: State, least: int = 0, name: str = "length") -> Linear:
        """The form of a cache's length that is not known."""
        symbol = self.symbol(name=name)
        self.lengths.add(symbol)
        state.ranges[symbol] = Range(least, None)
        return Linear.of(symbol)

    def num(self, value: Value, state: State) -> Num | None:
        """The whole number that the value is, if it can be one; things of which nothing is known can.

        Where it can be one of several, it is a fresh one that can be what any of them can.
        """
        found = [number for atom in value.atoms if (number := self._atom_number(atom, state)) is not None]
        if len(found) < 2:
            return found[0] if found else None
        span = state.range(found[0].form)
        for other in found[1:]:
            span = span.join(state.range(other.form))
        symbol = self.symbol()
        state.ranges[symbol] = span
        if any(s in self.lengths for number in found for s, f in number.form.terms if f > 0):
            self.lengths.add(symbol)
        return Num(Linear.of(symbol), all(number.negated for number in found), trail=found[0].trail)

    def _atom_number(self, atom: Atom, state: State) -> Num | None:
        if isinstance(atom, Num):
            return atom
        if isinstance(atom, Ref) and self.is_open(atom, state):
            name = state.cell(atom.oid).name
            return Num(Linear.of(self.symbol(("value", atom.oid), name)))
        if isinstance(atom, Const) and isinstance(atom.value, bool):
            return Num(Linear((), int(atom.value)))
        return None

    @staticmethod
    def is_open(atom: Ref, state: State) -> bool:
        """Whether nothing is known of what `atom` points to, so that it can be anything."""
        cell = state.heap.get(atom.oid)
        return cell is not None and cell.kind == "" and cell.cache is None

    # Evidence

    def step(
        self, node: cst.CSTNode, message: str, before: Trail | None = None, value: cst.CSTNode | None = None
    ) -> Trail:
        """A trail that ends with what happened at `node`; the source of `value` ends the message."""
        return Trail(Step(self.unit, node, message, value), before)

    def emit(self, event: Event, *key: Hashable) -> None:
        """Tell the rules; a later visit of the same point in the same context replaces the earlier one."""
        self.events[(self.context, event.node, *key)] = event

    def caches(self, value: Value, state: State) -> list[tuple[int, Cache]]:
        """The caches that the value can be."""
        found = []
        for atom in value.refs():
            cell = state.heap.get(atom.oid)
            if cell is not None and cell.cache is not None and not cell.denied:
                found.append((atom.oid, cell.cache))
        return found

    def set_cache(self, state: State, oid: int, cache: Cache, *, weak: bool = False) -> None:
        """Store what is known of a cache; weakly where the value can also be another."""
        cell = state.cell(oid)
        if weak and cell.cache is not None:
            length = cache.length if cache.length == cell.cache.length else self.length_form(state)
            cache = cell.cache.join(cache, length)
        state.heap[oid] = replace(cell, cache=cache)

    def reachable(self, values: Iterable[Value], state: State) -> list[int]:
        """The heap cells that can be reached from the values."""
        seen: dict[int, None] = {}
        pending = list(values)
        while pending:
            for atom in pending.pop().atoms:
                if isinstance(atom, Ref) and atom.oid not in seen and atom.oid in state.heap:
                    seen[atom.oid] = None
                    pending.extend(state.cell(atom.oid).fields.values())
                else:
                    pending.extend(nested(atom))
        return list(seen)

    # Memory

    def collect(self, state: State) -> None:
        """Forget what nothing holds any more.

        Only between two statements. What the unfinished statements of the callers have made so far stays, since
        only those know whether they still hold it.
        """
        roots = [value for names in state.frames.values() for value in names.values()]
        for frame in self.stack:
            roots += [*frame.yields, frame.receiver]
        live = set(self.reachable(roots, state))
        for frame in self.stack[:-1]:
            live |= frame.touched
        windows = [
            range(outer.statement, inner.since) for outer, inner in zip(self.stack, self.stack[1:], strict=False)
        ]
        first = self.stack[0].since

        def is_garbage(number: int) -> bool:
            return number >= first and not any(number in window for window in windows)

        state.heap = {oid: cell for oid, cell in state.heap.items() if oid in live or not is_garbage(oid)}
        used = self._symbols_in(roots, state)
        dead = {symbol for symbol in state.ranges if symbol not in used and is_garbage(symbol.key)}
        state.ranges = {symbol: span for symbol, span in state.ranges.items() if symbol not in dead}
        state.facts = frozenset(fact for fact in state.facts if not any(s in dead for s, _ in fact.terms))
        self.collect_at = max(MIN_GARBAGE, 2 * (len(state.heap) + len(state.ranges)))

    def _symbols_in(self, roots: list[Value], state: State) -> set[Symbol]:
        used: set[Symbol] = set()
        for oid, cell in state.heap.items():
            roots.extend(cell.fields.values())
            if cell.cache is not None:
                used.update(symbol for symbol, _ in cell.cache.length.terms)
            symbol = self.numbering.symbols.get(("value", oid))
            if symbol is not None:
                used.add(symbol)
        while roots:
            for atom in roots.pop().atoms:
                if isinstance(atom, (Num, Test)):
                    used.update(symbol for symbol, _ in atom.form.terms)
                else:
                    roots.extend(nested(atom))
        return used

    # Joins

    def join(
        self, left: State | None, right: State | None, tag: Hashable = None, *, widen: bool = False
    ) -> State | None:
        """The state that holds on both ways; `tag` names a loop's head, whose symbols stay the same."""
        if left is None or right is None:
            return left or right
        return Join(self, left, right, tag, widen).run()

    def join_all(self, states: Iterable[State | None]) -> State | None:
        """The state that holds on all ways, None where there is none."""
        joined: State | None = None
        for state in states:
            joined = self.join(joined, state)
        return joined


class Join:
    """One join of two states."""

    def __init__(self, machine: Machine, left: State, right: State, tag: Hashable, widen: bool) -> None:
        self.machine = machine
        self.left = left
        self.right = right
        self.tag = tag
        self.widen = widen
        self.out = State({}, {}, {}, frozenset(), left.releases | right.releases)
        self.met: dict[Symbol, tuple[Linear, Linear]] = {}

    def run(self) -> State:
        """The joined state."""
        left, right, out = self.left, self.right, self.out
        out.ranges = dict(left.ranges)
        for symbol in _changed(left.ranges, right.ranges):
            mine, span = left.ranges.get(symbol), right.ranges[symbol]
            if mine is not None and mine != span:
                span = mine.widen(span) if self.widen else mine.join(span)
            out.ranges[symbol] = span
        out.heap = dict(left.heap)
        for oid in _changed(left.heap, right.heap):
            a, b = left.heap.get(oid), right.heap[oid]
            out.heap[oid] = b if a is None else self._cell(oid, a, b)
        for frame in left.frames.keys() | right.frames.keys():
            names = left.frames.get(frame, {})
            others = right.frames.get(frame, {})
            out.frames[frame] = names if names is others else self._names(frame, names, others)
        out.facts = self._facts()
        return out

    def _names(self, frame: int, names: dict[str, Value], others: dict[str, Value]) -> dict[str, Value]:
        joined = dict(names)
        for name in _changed(names, others):
            mine, value = names.get(name), others[name]
            if mine is None:
                joined[name] = value
            elif mine != value:
                joined[name] = self.value(mine, value, ("name", frame, name), name)
        return joined

    def _cell(self, oid: int, a: Cell, b: Cell) -> Cell:
        if a == b:
            return a
        fields = dict(a.fields)
        for key, value in b.fields.items():
            if key not in fields:
                fields[key] = value
            elif fields[key] != value:
                fields[key] = self.value(fields[key], value, ("field", oid, key), str(key))
        for key in fields.keys() - (a.fields.keys() & b.fields.keys()):
            if any(isinstance(atom, Num) for atom in fields[key].atoms):
                del fields[key]
        cache = a.cache or b.cache
        if a.cache and b.cache and a.cache != b.cache:
            cache = a.cache.join(b.cache, self._length(oid, a.cache.length, b.cache.length))
        return replace(
            a,
            fields=fields,
            cache=cache,
            denied=a.denied and b.denied,
            kind=a.kind or b.kind,
            cls=a.cls or b.cls,
        )

    def _length(self, oid: int, a: Linear, b: Linear) -> Linear:
        if a == b:
            return a
        form = self._phi(a, b, ("length", oid), "length")
        symbol = form.symbol
        if symbol is not None:
            self.machine.lengths.add(symbol)
        return form

    def value(self, a: Value, b: Value, place: Hashable, name: str) -> Value:
        """The value that is either; `place` tells where it is held."""
        x, y = self._number(a, self.left), self._number(b, self.right)
        if x is not None and y is not None and (_has_num(a) or _has_num(b)):
            if x.form == y.form:
                return a if x.negated == y.negated or not x.negated else b
            form = self._phi(x.form, y.form, place, name)
            negated = x.negated and y.negated
            return Value((Num(form, negated, trail=x.trail or y.trail),))
        m, n = a.single, b.single
        if isinstance(m, Tup) and isinstance(n, Tup) and len(m.items) == len(n.items):
            pairs = enumerate(zip(m.items, n.items, strict=True))
            return Value((Tup(tuple(self.value(v, w, (place, i), name) for i, (v, w) in pairs)),))
        return self._collapse(a.union(b), place, name)

    def _number(self, value: Value, state: State) -> Num | None:
        return self.machine.num(value, state) if len(value.atoms) == 1 else None

    def _collapse(self, value: Value, place: Hashable, name: str) -> Value:
        """One open thing in place of several, so that a loop which makes new ones comes to an end."""
        left, right = self.left, self.right
        opened = tuple(
            atom
            for atom in value.refs()
            if (atom.oid not in left.heap or Machine.is_open(atom, left))
            and (atom.oid not in right.heap or Machine.is_open(atom, right))
        )
        if len(opened) < 2 or (self.tag is None and any(self._fields(atom) for atom in opened)):
            return value
        oid = self.machine.place(None if self.tag is None else (self.tag, place))
        self.out.heap.setdefault(oid, Cell(name=name))
        if Ref(oid) in opened:
            self.out.heap[oid] = Cell(name=name)
        # A new thing: what was known of the old one as a number is not known of it.
        self.out.ranges.pop(self.machine.symbol(("value", oid), name), None)
        return value.without(opened).union(ref(oid))

    def _fields(self, atom: Ref) -> bool:
        cells = (self.left.heap.get(atom.oid), self.right.heap.get(atom.oid))
        return any(cell is not None and cell.fields for cell in cells)

    def _phi(self, a: Linear, b: Linear, place: Hashable, name: str) -> Linear:
        symbol = self.machine.symbol(None if self.tag is None else (self.tag, place), name)
        x, y = self.left.range(a), self.right.range(b)
        if any(s in self.machine.lengths for s, f in (*a.terms, *b.terms) if f > 0):
            self.machine.lengths.add(symbol)
        self.out.ranges[symbol] = x.widen(y) if self.widen else x.join(y)
        self.met[symbol] = (a, b)
        return Linear.of(symbol)

    def _facts(self) -> frozenset[Linear]:
        met = self.met.keys()
        kept = {f for f in self.left.facts & self.right.facts if not any(s in met for s, _ in f.terms)}
        kept |= {fact for fact in self.left.facts - kept if self._holds(fact, 1)}
        if self.tag is None:
            kept |= {fact for fact in self.right.facts - kept if self._holds(fact, 0)}
        for symbol, (a, b) in self.met.items():
            # Where one way leaves the number as it was, the other tells in which direction it moves.
            form = Linear.of(symbol)
            for base, other, state in ((a, b, self.right), (b, a, self.left)):
                if form == base or not base.terms:
                    continue
                if self.tag is None and not any(s in self.machine.lengths for s, _ in base.terms):
                    continue
                moved = state.range(other - base)
                if moved.lo is not None and moved.lo >= 0:
                    kept.add(form - base)
                elif moved.hi is not None and moved.hi <= 0:
                    kept.add(base - form)
                if self.tag is not None:
                    break
        return frozenset(sorted(kept, key=_fact_order)[:24])

    def _holds(self, fact: Linear, side: int) -> bool:
        """Whether a fact of one side is one of the other too, the met symbols read as what they are there."""
        state = (self.left, self.right)[side]
        here = fact
        for symbol, factor in fact.terms:
            if symbol in self.met:
                here = here - Linear(((symbol, factor),)) + self.met[symbol][side].times(factor)
        lo = state.range(here).lo
        return lo is not None and lo >= 0


def _changed(left: dict[K, V], right: dict[K, V]) -> Iterator[K]:
    """The keys of `right` that `left` lacks or maps to another object: most of two states is the same."""
    return compress(right, map(is_not, map(left.get, right), right.values()))


def _has_num(value: Value) -> bool:
    return any(isinstance(atom, Num) for atom in value.atoms)


def _fact_order(form: Linear) -> tuple[int, tuple[tuple[Symbol, int], ...], int]:
    return len(form.terms), form.terms, form.const
