"""Builtins and the few library functions that matter to where a cache goes and what a number is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from cachelint.contracts.surface import with_member
from cachelint.flow.arguments import Arguments
from cachelint.flow.caches import CACHE_METHODS
from cachelint.flow.events import Copied
from cachelint.flow.numbers import COUNT, Range
from cachelint.flow.running import Running
from cachelint.flow.state import ANY_ITEM, Cell, Key, State
from cachelint.flow.values import (
    NONE,
    TRUE,
    UNKNOWN,
    Cls,
    Const,
    Func,
    HasName,
    IsKind,
    Method,
    Partial,
    Ref,
    Tup,
    Value,
    Version,
    number,
    ref,
)


class Builtins(Running):
    """The value of each builtin, None where a call of it has a shape of which nothing is known."""

    def store_attribute(
        self, receiver: Value, name: str, value: Value, state: State, node: cst.CSTNode | None = None
    ) -> None:
        """The effect of `receiver.name = value`."""
        raise NotImplementedError

    def list_of(self, element: Value, state: State) -> Value:
        """A new list that holds any number of `element`."""
        oid = self.place()
        state.heap[oid] = Cell(kind="list", fields={ANY_ITEM: element})
        return ref(oid)

    def builtin_len(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`len`: the same symbol each time for a thing that is not tracked."""
        if not args.args:
            return None
        atom = args.args[0].single
        if isinstance(atom, Tup):
            return number(len(atom.items))
        if isinstance(atom, Const) and isinstance(atom.value, (str, bytes)):
            return number(len(atom.value))
        if not isinstance(atom, Ref):
            return self.count(state)
        cell = state.cell(atom.oid)
        if cell.cache is not None and not cell.denied:
            return self.layer_count(atom.oid, state)
        if cell.kind in ("list", "dict"):
            if all(key != ANY_ITEM and isinstance(key, tuple) for key in cell.fields) and self.context == ():
                return number(len(cell.fields))
            return self.count(state, name="len")
        if ("#", "len") not in cell.fields:
            value = self.count(state, name=f"len({cell.name})")
            state.heap[atom.oid] = cell.with_field(("#", "len"), value)
        return state.cell(atom.oid).fields[("#", "len")]

    def builtin_isinstance(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`isinstance`, kept as a test that a branch can narrow by."""
        if len(args.args) != 2:
            return None
        return Value((IsKind(args.args[0], self.kinds_of(args.args[1], state)),))

    def builtin_hasattr(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`hasattr` with a constant name."""
        if len(args.args) != 2 or not isinstance(args.args[1].const(), str):
            return None
        return Value((HasName(args.args[0], str(args.args[1].const())),))

    def builtin_getattr(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`getattr` with a constant name; the default is another possible value."""
        name = args.args[1].const() if len(args.args) > 1 else ...
        if not isinstance(name, str):
            return None
        path = self.path(node.args[0].value)
        if len(args.args) > 2:
            # A default answers for what may be missing.
            for atom in args.args[0].refs():
                cell = state.cell(atom.oid).with_field(("#", f"has {name}"), TRUE)
                if name in CACHE_METHODS and not (cell.cache is not None and cell.cache.classes):
                    # Code that asks for what every cache has takes it for possible that it is none.
                    cell = cell.with_field(("#", "may be something else"), TRUE)
                state.heap[atom.oid] = cell
        caches = [cache for _, cache in self.caches(args.args[0], state)]
        known = len(caches) == len(args.args[0].atoms) and all(cache.classes for cache in caches)
        halves = name in ("self_attention_cache", "cross_attention_cache")
        if len(args.args) > 2 and halves and known and not any("EncoderDecoderCache" in c.classes for c in caches):
            return args.args[2]
        value = self.attribute(args.args[0], name, state)
        value = self.as_cache(f"{path}.{name}" if path else name, value, state, node)
        if len(args.args) < 3 or self._surely_has(args.args[0], name, state):
            return value
        return value.union(args.args[2])

    def _surely_has(self, receiver: Value, name: str, state: State) -> bool:
        """Whether a value can only be caches whose class has a method on every release."""
        known = [cache for _, cache in self.caches(receiver, state) if cache.classes or cache.seen]
        return (
            name in CACHE_METHODS and 0 < len(known) == len(receiver.atoms) and not state.releases & ~with_member(name)
        )

    def builtin_callable(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`callable` of what can only be functions and classes."""
        atoms = args.args[0].atoms if len(args.args) == 1 else ()
        return TRUE if atoms and all(isinstance(atom, (Func, Method, Cls)) for atom in atoms) else None

    def builtin_setattr(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`setattr` with a constant name."""
        name = args.args[1].const() if len(args.args) == 3 else ...
        if isinstance(name, str):
            self.store_attribute(args.args[0], name, args.args[2], state, node)
        return NONE

    def builtin_extreme(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`max` and `min` of two or more numbers."""
        numbers = [self.num(value, state) for value in args.args]
        if len(numbers) < 2 or any(n is None for n in numbers):
            return self.count(state) if len(args.args) == 1 else None
        forms = [n.form for n in numbers if n is not None]
        ranges = [state.range(form) for form in forms]
        largest = self.path(node.func) == "max"
        lows = [r.lo for r in ranges]
        highs = [r.hi for r in ranges]
        if largest:
            lo = max((x for x in lows if x is not None), default=None)
            hi = None if None in highs else max(x for x in highs if x is not None)
        else:
            lo = None if None in lows else min(x for x in lows if x is not None)
            hi = min((x for x in highs if x is not None), default=None)
        zero = any(form.constant == 0 for form in forms) and lo != hi
        value = self.count(state, Range(lo, hi, zero))
        result = self.num(value, state)
        assert result is not None
        for form in forms:
            state.assume(result.form - form if largest else form - result.form)
        return value

    def builtin_abs(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`abs` of a number."""
        operand = self.num(args.args[0], state) if len(args.args) == 1 else None
        if operand is None:
            return None
        known = state.range(operand.form)
        if known.lo is not None and known.lo >= 0:
            return args.args[0]
        if known.hi is not None and known.hi <= 0:
            return number(-operand.form)
        return self.count(state)

    def builtin_int(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`int` of what is already taken for a number."""
        if len(args.args) != 1:
            return None
        value = args.args[0]
        if isinstance(value.const(), str) and str(value.const()).isdigit():
            return number(int(str(value.const())))
        if isinstance(value.single, Version):
            return value
        known = self.num(value, state)
        return Value((replace(known, live=None),)) if known is not None else None

    def builtin_bool(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`bool`: the truth of a cache is told."""
        if len(args.args) == 1:
            self.tested(args.args[0], node.args[0].value, state)
        return None

    def builtin_sum(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`sum`: a count that can be 0, as of things that match."""
        return self.count(state, Range(0, None, zero=True), name="sum")

    def builtin_range(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`range`: a list whose elements lie between the ends."""
        numbers = [self.num(value, state) for value in args.args]
        first, last = Range(0, 0), COUNT
        if len(numbers) == 1 and numbers[0] is not None:
            last = state.range(numbers[0].form)
        elif len(numbers) == 2 and numbers[0] is not None and numbers[1] is not None:
            first, last = state.range(numbers[0].form), state.range(numbers[1].form)
        elif numbers:
            return self.list_of(self.count(state, Range(None, None)), state)
        hi = None if last.hi is None else max(last.hi - 1, first.lo or 0)
        return self.list_of(self.count(state, Range(first.lo, hi, first.zero or first.lo == 0)), state)

    def builtin_enumerate(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`enumerate`: pairs of a count and an element."""
        if not args.args:
            return None
        index = self.count(state, Range(0, None, zero=True))
        return self.list_of(Value((Tup((index, self.element(args.args[0], state))),)), state)

    def builtin_zip(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`zip`: tuples of elements."""
        if args.hidden:
            return None
        return self.list_of(Value((Tup(tuple(self.element(a, state) for a in args.args)),)), state)

    def builtin_listed(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`list`, `tuple`, `sorted`, `reversed`: the same elements; a version stays a version."""
        if len(args.args) == 1:
            atom = args.args[0].single
            if isinstance(atom, (Tup, Version)):
                return args.args[0]
            if isinstance(atom, Ref) and state.cell(atom.oid).kind in ("list", "tuple"):
                oid = self.place()
                state.heap[oid] = state.cell(atom.oid)
                return ref(oid)
            return None
        return self.list_of(UNKNOWN, state) if not args.args else None

    def builtin_dict(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`dict` of keywords or of another dict."""
        oid = self.place(self.site(node))
        fields: dict[Key, Value] = {}
        for value in args.args:
            for atom in value.refs():
                fields.update(state.cell(atom.oid).fields)
        fields.update({("item", key): value for key, value in args.keywords.items()})
        state.heap[oid] = Cell(kind="dict", fields=fields)
        return ref(oid)

    def builtin_map(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`map(int, version.split(…))` keeps the version; anything else is unknown."""
        if len(args.args) == 2 and isinstance(args.args[1].single, Version):
            return args.args[1]
        return None

    def library_copy(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`copy.deepcopy`: another thing that is known to be the same."""
        if not args.args:
            return None
        value = UNKNOWN
        for atom in args.args[0].atoms:
            if isinstance(atom, Ref):
                self._deep_copied(atom, node, state)
                oid = self.place((self.site(node), atom.oid))
                state.heap[oid] = state.cell(atom.oid)
                atom = Ref(oid)
            value = value.union(Value((atom,)))
        return value

    def _deep_copied(self, atom: Ref, node: cst.Call, state: State) -> None:
        cell = state.cell(atom.oid)
        if cell.cache is not None and not cell.denied and cell.cache.graded:
            models = [state.cell(oid).kind for oid in cell.cache.models]
            sure = bool(models) and all(kind == "model" for kind in models)
            event = Copied(self.unit, node, self.calls, state.releases, cell.cache, sure)
            self.emit(event, atom.oid, "copied")

    def library_alias(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`copy.copy` of a cache shares its layers, so what crops one crops the other; also `cast`, `tqdm`."""
        return args.args[0] if args.args else None

    def library_bound(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`types.MethodType`: a function with its receiver."""
        atom = args.args[0].single if len(args.args) == 2 else None
        return Value((replace(atom, receiver=args.args[1]),)) if isinstance(atom, Func) else None

    def library_second(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`typing.cast`."""
        return args.args[1] if len(args.args) > 1 else None

    def library_partial(self, args: Arguments, node: cst.Call, state: State) -> Value | None:
        """`functools.partial`."""
        if not args.args or args.hidden:
            return None
        callee = args.args[0]
        atom = callee.single
        keywords = tuple(args.keywords.items())
        if isinstance(atom, Func):
            return Value((replace(atom, args=(*atom.args, *args.args[1:]), keywords=(*atom.keywords, *keywords)),))
        return Value((Partial(callee, tuple(args.args[1:]), keywords),))


LIBRARY: dict[str, Any] = {
    "len": Builtins.builtin_len,
    "callable": Builtins.builtin_callable,
    "isinstance": Builtins.builtin_isinstance,
    "hasattr": Builtins.builtin_hasattr,
    "getattr": Builtins.builtin_getattr,
    "setattr": Builtins.builtin_setattr,
    "max": Builtins.builtin_extreme,
    "min": Builtins.builtin_extreme,
    "abs": Builtins.builtin_abs,
    "int": Builtins.builtin_int,
    "bool": Builtins.builtin_bool,
    "sum": Builtins.builtin_sum,
    "range": Builtins.builtin_range,
    "enumerate": Builtins.builtin_enumerate,
    "zip": Builtins.builtin_zip,
    "list": Builtins.builtin_listed,
    "tuple": Builtins.builtin_listed,
    "sorted": Builtins.builtin_listed,
    "reversed": Builtins.builtin_listed,
    "iter": Builtins.builtin_listed,
    "dict": Builtins.builtin_dict,
    "map": Builtins.builtin_map,
    "copy.deepcopy": Builtins.library_copy,
    "copy.copy": Builtins.library_alias,
    "types.MethodType": Builtins.library_bound,
    "typing.cast": Builtins.library_second,
    "tqdm.tqdm": Builtins.library_alias,
    "tqdm.auto.tqdm": Builtins.library_alias,
    "functools.partial": Builtins.library_partial,
}
