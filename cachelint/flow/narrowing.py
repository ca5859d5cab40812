"""Conditions: what a comparison evaluates to, and what a branch knows because of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from cachelint.contracts.releases import comparing, part_comparing
from cachelint.contracts.surface import with_class, with_member, without_class
from cachelint.flow.expressions import Expressions
from cachelint.flow.library import CACHE_CLASSES, cache_class
from cachelint.flow.numbers import Linear
from cachelint.flow.state import Cache, Cell, State
from cachelint.flow.values import (
    FALSE,
    TRUE,
    UNKNOWN,
    Atom,
    Cls,
    Const,
    Func,
    HasName,
    IsKind,
    Lib,
    Num,
    OnReleases,
    Ref,
    Test,
    Tup,
    Value,
    Version,
)

_OPERATORS = {
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.GreaterThanEqual: ">=",
    cst.GreaterThan: ">",
    cst.Is: "==",
    cst.IsNot: "!=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class Narrowing(Expressions):
    """Comparisons, truth, and the states behind a condition."""

    # Comparisons

    def compare(self, node: cst.Comparison, state: State) -> Value:
        """The value of a comparison; only a single one is more than unknown."""
        left = self.eval(node.left, state)
        results = []
        for target in node.comparisons:
            right = self.eval(target.comparator, state)
            operator = _OPERATORS.get(type(target.operator))
            results.append(self._relate(operator, left, right) if operator else UNKNOWN)
            left = right
        return results[0] if len(results) == 1 and results[0].atoms else self.fresh(state)

    def _relate(self, operator: str, left: Value, right: Value) -> Value:
        for version, other, sign in ((left, right, operator), (right, left, _MIRRORED[operator])):
            atom = version.single
            if isinstance(atom, Version):
                return _releases(atom, sign, other)
        a, b = left.const(), right.const()
        if a is not ... and b is not ... and operator in ("==", "!="):
            return TRUE if (a == b) == (operator == "==") else FALSE
        x, y = _number(left), _number(right)
        if x is None or y is None:
            return UNKNOWN
        return _test(operator, x, y)

    def negate(self, value: Value) -> Value:
        """The value of `not value`."""
        atom = value.single
        if isinstance(atom, Const):
            return FALSE if atom.value else TRUE
        if isinstance(atom, (Test, IsKind, HasName)):
            return Value((replace(atom, negated=not atom.negated),))
        if isinstance(atom, OnReleases):
            return Value((OnReleases(~atom.mask),))
        if isinstance(atom, Num):
            return Value((Test(atom.form, equal=True),))
        return UNKNOWN

    # Branches

    def branch(self, node: cst.BaseExpression, state: State) -> tuple[State | None, State | None]:
        """The states in which `node` is true and in which it is false; None where that cannot be."""
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            true, false = self.branch(node.expression, state)
            return false, true
        if isinstance(node, cst.BooleanOperation):
            return self._branch_boolean(node, state)
        if isinstance(node, cst.Comparison):
            if len(node.comparisons) > 1:
                return self._branch_chain(node, state)
            return self._branch_comparison(node, state)
        if isinstance(node, cst.NamedExpr):
            value = self.eval(node, state)
            return self.split(value, node.target, state)
        value = self.eval(node, state)
        true, false = self.split(value, node, state)
        asked = value.single
        if isinstance(asked, IsKind) and isinstance(node, cst.Call) and len(asked.value.atoms) > 1:
            for way, holds in ((true, not asked.negated), (false, asked.negated)):
                if way is not None:
                    left = tuple(a for a in asked.value.atoms if self._narrow_kind(a, asked.kinds, way, holds))
                    self._rebind(node.args[0].value, Value(left), way)
        return true, false

    def _branch_boolean(self, node: cst.BooleanOperation, state: State) -> tuple[State | None, State | None]:
        true, false = self.branch(node.left, state)
        if isinstance(node.operator, cst.And):
            if true is None:
                return None, false
            both, rest = self.branch(node.right, true)
            return both, self.join(false, rest)
        if false is None:
            return true, None
        rest, neither = self.branch(node.right, false)
        return self.join(true, rest), neither

    def _branch_chain(self, node: cst.Comparison, state: State) -> tuple[State | None, State | None]:
        left = node.left
        true: State | None = state
        false: State | None = None
        for target in node.comparisons:
            if true is None:
                break
            link = cst.Comparison(left, [target])
            true, missed = self._branch_comparison(link, true)
            false = self.join(false, missed)
            left = target.comparator
        return true, false

    def _branch_comparison(self, node: cst.Comparison, state: State) -> tuple[State | None, State | None]:
        target = node.comparisons[0]
        left = self.eval(node.left, state)
        right = self.eval(target.comparator, state)
        operator = _OPERATORS.get(type(target.operator))
        if operator in ("==", "!=") and right.const() is None:
            inner = node.left.target if isinstance(node.left, cst.NamedExpr) else node.left
            self.maximum_tested(left, node, "is" if operator == "==" else "is not", state)
            true, false = self._split_none(left, inner, state)
            return (true, false) if operator == "==" else (false, true)
        if operator is None:
            return state, state.copy()
        x, y = self.num(left, state), self.num(right, state)
        versions = isinstance(left.single, Version) or isinstance(right.single, Version)
        if x is not None and y is not None and not versions:
            if self.numbering.counts:
                self.counted_beside(x.form, (y.form,), node, state)
                self.counted_beside(y.form, (x.form,), node, state)
            value = _test(operator, x.form, y.form)
        else:
            value = self._relate(operator, left, right)
        return self.split(value, node, state)

    def _split_none(self, value: Value, node: cst.BaseExpression, state: State) -> tuple[State | None, State | None]:
        has_none = Const(None) in value.atoms
        rest = value.without((Const(None),))
        certain = bool(rest.atoms) and not has_none and not self._any_open(rest, state)
        is_none: State | None = None if certain else state.copy()
        not_none: State | None = None if has_none and not rest.atoms else state
        if is_none is not None and has_none:
            self._rebind(node, Value((Const(None),)), is_none)
        if not_none is not None and has_none:
            self._rebind(node, rest, not_none)
        return is_none, not_none

    def _any_open(self, value: Value, state: State) -> bool:
        # A thing that only its name or its uses make a cache can be None as well.
        for atom in value.refs():
            cell = state.heap.get(atom.oid)
            if cell is None or (not cell.kind and (cell.cache is None or not cell.cache.seen)):
                return True
        return False

    def _rebind(self, node: cst.BaseExpression, value: Value, state: State) -> None:
        if isinstance(node, (cst.Name, cst.Attribute)):
            self.bind(node, value, state)

    def split(self, value: Value, node: cst.BaseExpression, state: State) -> tuple[State | None, State | None]:
        """The states in which a value that `node` gave is true and false."""
        self.tested(value, node, state)
        other = state.copy()
        true = self.assume(value, state, True)
        false = self.assume(value, other, False)
        if true is not None and len(value.atoms) > 1:
            self._rebind(node, value.without((Const(None), Const(False))), true)
        return true, false

    def assume(self, value: Value, state: State, truth: bool) -> State | None:
        """The state with a value known to be true or false, None where it cannot be so."""
        atoms = value.atoms
        if not atoms:
            return state
        if len(atoms) > 1:
            possible = [atom for atom in atoms if _truth(atom) in (None, truth)]
            return state if possible else None
        atom = atoms[0]
        known = _truth(atom)
        if known is not None:
            return state if known == truth else None
        handler = _ASSUMERS.get(type(atom))
        return state if handler is None or handler(self, atom, state, truth) else None

    def _assume_test(self, atom: Test, state: State, truth: bool) -> bool:
        holds = truth != atom.negated
        form = atom.form
        if not atom.equal:
            return state.assume(form) if holds else state.assume(-form - Linear((), 1))
        if holds:
            return state.assume(form) and state.assume(-form)
        return state.assume_not_zero(form)

    def _assume_number(self, atom: Num, state: State, truth: bool) -> bool:
        return self._assume_test(Test(atom.form, equal=True), state, not truth)

    def _assume_open(self, atom: Ref, state: State, truth: bool) -> bool:
        cell = state.heap.get(atom.oid)
        if cell is None or not self.is_open(atom, state):
            return True
        number = self.num(Value((atom,)), state)
        return number is None or not truth or self._assume_number(number, state, True)

    def _assume_releases(self, atom: OnReleases, state: State, truth: bool) -> bool:
        state.releases &= atom.mask if truth else ~atom.mask
        return state.releases != 0

    def _assume_name(self, atom: HasName, state: State, truth: bool) -> bool:
        holds = truth != atom.negated
        library = atom.value.single
        if isinstance(library, Lib):
            # Whether the library has a class is a question about the release, too.
            missing = without_class(atom.name, library.name, state.releases)
            state.releases &= ~missing if holds else missing
        for pointer in atom.value.refs():
            cell = state.cell(pointer.oid)
            if holds:
                state.heap[pointer.oid] = cell.with_field(("#", f"has {atom.name}"), TRUE)
            if cell.cache is not None and not cell.denied and cell.cls is None:
                # Whether a cache has a member is a question about the release.
                there = with_member(atom.name)
                state.releases &= there if holds else ~there
        return state.releases != 0

    def _assume_kind(self, atom: IsKind, state: State, truth: bool) -> bool:
        holds = truth != atom.negated
        left = [a for a in atom.value.atoms if self._narrow_kind(a, atom.kinds, state, holds)]
        return bool(left) or not atom.value.atoms

    def _narrow_kind(self, atom: Atom, kinds: tuple[str, ...], state: State, holds: bool) -> bool:
        """Narrow what one atom points to; False where it cannot be of the kinds (or not of them)."""
        if isinstance(atom, Tup):
            return not kinds or ("builtins.tuple" in kinds) == holds
        if isinstance(atom, Const):
            return not holds or bool(kinds and type(atom.value).__name__ in {k.split(".")[-1] for k in kinds})
        if not isinstance(atom, Ref) or atom.oid not in state.heap:
            return True
        cell = state.cell(atom.oid)
        wanted = frozenset(name for kind in kinds if (name := cache_class(kind)))
        if wanted:
            if holds and len(wanted) == len(kinds):
                # On a release without the class nothing is an instance of it.
                state.releases &= with_class(wanted)
            return self._narrow_cache(atom, cell, wanted, state, holds, only=len(wanted) == len(kinds))
        plain = kinds and all(kind.startswith(("builtins.", "torch.", "numpy.", "PIL.")) for kind in kinds)
        if plain:
            # Code that asks takes it for possible; the two ways may meet again further down.
            cell = cell.with_field(("#", "may be something else"), TRUE)
            state.heap[atom.oid] = cell
        if holds and plain:
            if cell.cache is not None and cell.cache.seen:
                return False
            state.heap[atom.oid] = replace(cell, denied=True)
        return True

    def _narrow_cache(
        self, atom: Ref, cell: Cell, wanted: frozenset[str], state: State, holds: bool, *, only: bool
    ) -> bool:
        known = cell.cache
        if known is None:
            if holds and only and not cell.denied and cell.kind in ("", "instance"):
                classes = wanted - {"Cache"}
                cache = Cache(
                    classes,
                    self.layers_of_classes(classes),
                    length=self.length_form(state),
                    recording=frozenset({"no", "before", "late"}),
                )
                state.heap[atom.oid] = replace(cell, cache=cache)
            return True
        if holds:
            if known.classes and "Cache" not in wanted and not (known.classes & wanted):
                return not known.classes
            if not known.classes and "Cache" not in wanted and only:
                layers = self.layers_of_classes(wanted)
                state.heap[atom.oid] = replace(cell, cache=replace(known, classes=wanted, layers=layers))
            return True
        if "Cache" in wanted or (known.classes and known.classes <= wanted):
            if known.classes and known.seen:
                return False
            state.heap[atom.oid] = replace(cell, denied=True)
            return True
        left = replace(known, excluded=known.excluded | wanted, classes=known.classes - wanted)
        state.heap[atom.oid] = replace(cell, cache=left)
        return True

    @staticmethod
    def layers_of_classes(classes: frozenset[str]) -> frozenset[str]:
        """The layer kinds that an instance of one of the cache classes may hold, whatever it was made from."""
        found: frozenset[str] = frozenset()
        for name in classes:
            known = CACHE_CLASSES[name]
            found |= known.with_config or known.layers
        return found

    def kinds_of(self, value: Value, state: State) -> tuple[str, ...]:
        """The names of the classes in the second argument of `isinstance`."""
        kinds: list[str] = []
        for atom in value.atoms:
            if isinstance(atom, Lib):
                kinds.append(atom.name)
            elif isinstance(atom, Cls):
                kinds.append(f"project.{atom.cls.name}")
            elif isinstance(atom, Tup):
                for item in atom.items:
                    kinds.extend(self.kinds_of(item, state))
            else:
                kinds.append("?")
        return tuple(kinds)


def _number(value: Value) -> Linear | None:
    atom = value.single
    return atom.form if isinstance(atom, Num) else None


def _test(operator: str, x: Linear, y: Linear) -> Value:
    one = Linear((), 1)
    tests = {
        ">=": Test(x - y),
        ">": Test(x - y - one),
        "<=": Test(y - x),
        "<": Test(y - x - one),
        "==": Test(x - y, equal=True),
        "!=": Test(x - y, equal=True, negated=True),
    }
    return Value((tests[operator],))


def _releases(version: Version, operator: str, other: Value) -> Value:
    text = _version_text(other)
    try:
        if version.part is not None:
            number = other.const()
            if isinstance(number, str) and number.isdigit():
                number = int(number)
            if isinstance(number, int) and version.part < 3:
                return Value((OnReleases(part_comparing(version.part, operator, number)),))
        elif text:
            return Value((OnReleases(comparing(operator, text, version.width)),))
    except ValueError:
        pass
    return UNKNOWN


def _version_text(value: Value) -> str:
    atom = value.single
    if isinstance(atom, Const) and isinstance(atom.value, str):
        return atom.value
    if isinstance(atom, Tup):
        parts = [item.const() for item in atom.items]
        if parts and all(isinstance(part, (int, str)) for part in parts):
            return ".".join(str(part) for part in parts)
    return ""


def releases_tested(args: list[Value]) -> Value | None:
    """The value of `is_transformers_version(operator, version)`, a test that several libraries export."""
    words = [value.const() for value in args]
    if len(words) != 2 or not isinstance(words[0], str):
        return None
    tested = _releases(Version(), words[0], args[1])
    return tested if tested.atoms else None


def _truth(atom: Atom) -> bool | None:
    """Whether an atom is true or false whatever happens, None where that is open."""
    if isinstance(atom, Const):
        return bool(atom.value)
    if isinstance(atom, Num) and atom.form.constant is not None:
        return atom.form.constant != 0
    if isinstance(atom, Test) and atom.form.constant is not None:
        holds = atom.form.constant == 0 if atom.equal else atom.form.constant >= 0
        return holds != atom.negated
    if isinstance(atom, Tup):
        return bool(atom.items)
    if isinstance(atom, (Func, Cls)):
        return True
    return None


_ASSUMERS: dict[type, Callable[[Narrowing, object, State, bool], bool]] = {
    Test: Narrowing._assume_test,  # type: ignore[dict-item]
    Num: Narrowing._assume_number,  # type: ignore[dict-item]
    Ref: Narrowing._assume_open,  # type: ignore[dict-item]
    OnReleases: Narrowing._assume_releases,  # type: ignore[dict-item]
    IsKind: Narrowing._assume_kind,  # type: ignore[dict-item]
    HasName: Narrowing._assume_name,  # type: ignore[dict-item]
}
