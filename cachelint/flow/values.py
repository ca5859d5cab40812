"""The abstract values of the interpreter.

A `Value` is a small set of atoms, each one thing that an expression can be. Whatever can change lives in a
`Cell` of the heap, and an atom `Ref` points to it, so that two names of one cache are one cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cachelint.flow.numbers import Linear

if TYPE_CHECKING:
    import libcst as cst

    from cachelint.flow.project import Class, Function, Module
    from cachelint.flow.units import Unit

MAX_ATOMS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of evidence: a place in the source and what happened there; `value` is quoted behind it."""

    unit: Unit
    node: cst.CSTNode
    message: str
    value: cst.CSTNode | None = None

    @property
    def text(self) -> str:
        """The message with the quoted source, which is only looked up for a report."""
        if self.value is None:
            return self.message
        source = " ".join(self.unit.text(self.value).split())
        return f"{self.message} `{source if len(source) <= 60 else source[:57] + '…'}`"


@dataclass(frozen=True, slots=True, eq=False)
class Trail:
    """Steps of evidence, newest first, shared between the values that came the same way."""

    step: Step
    before: Trail | None = None

    def steps(self) -> list[Step]:
        """The steps, origin first."""
        found: list[Step] = []
        trail: Trail | None = self
        while trail is not None:
            found.append(trail.step)
            trail = trail.before
        return found[::-1]


@dataclass(frozen=True, slots=True)
class Const:
    """A known constant that is not a whole number: None, a bool, a string, bytes, a float, `...`."""

    value: object


@dataclass(frozen=True, slots=True)
class Num:
    """A whole number.

    negated: the code wrote it as the negative of something. live: it is the length of the cache at a heap place
    itself, a tensor that moves with the cache, as it was asked for by a call.
    """

    form: Linear
    negated: bool = False
    live: tuple[int, cst.CSTNode] | None = None
    trail: Trail | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Ref:
    """A pointer to the cell `oid` of the heap."""

    oid: int


@dataclass(frozen=True, slots=True)
class Tup:
    """A tuple of known length."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Lib:
    """A thing of an installed library, by its normalised dotted name, as in `copy.deepcopy`."""

    name: str


@dataclass(frozen=True, slots=True)
class Func:
    """A function of the project, with the frame it closes over and what is already bound to it."""

    function: Function
    frame: int
    receiver: Value | None = None
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """The method `name` of what `receiver` points to, not yet called."""

    receiver: Value
    name: str


@dataclass(frozen=True, slots=True)
class Partial:
    """`functools.partial` of a callable that is no project function."""

    callee: Value
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Cls:
    """A class of the project."""

    cls: Class


@dataclass(frozen=True, slots=True)
class Mod:
    """A module of the project."""

    module: Module


@dataclass(frozen=True, slots=True)
class Test:
    """The outcome of a comparison of numbers: true where `form` is >= 0 (or == 0), negated or not."""

    form: Linear
    equal: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsKind:
    """The outcome of `isinstance(value, kinds)`; kinds are library names, builtins and project classes."""

    value: Value
    kinds: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class HasName:
    """The outcome of `hasattr(value, name)`."""

    value: Value
    name: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class OnReleases:
    """True exactly on the transformers releases of the bit mask."""

    mask: int


@dataclass(frozen=True, slots=True)
class Version:
    """The installed transformers release itself, `width` parts of it known to be looked at (0: all)."""

    width: int = 0
    part: int | None = None


Atom = (
    Const | Num | Ref | Tup | Lib | Func | Method | Partial | Cls | Mod | Test | IsKind | HasName | OnReleases | Version
)


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression can be; without atoms it is a thing that nothing is known of and nobody tracks."""

    atoms: tuple[Atom, ...] = ()

    def __iter__(self) -> Iterator[Atom]:
        return iter(self.atoms)

    @property
    def single(self) -> Atom | None:
        """The atom where there is exactly one."""
        return self.atoms[0] if len(self.atoms) == 1 else None

    def refs(self) -> tuple[Ref, ...]:
        """The pointers among the atoms."""
        return tuple(atom for atom in self.atoms if isinstance(atom, Ref))

    def const(self) -> object:
        """The constant where the value is exactly one, else `...`."""
        atom = self.single
        if isinstance(atom, Const):
            return atom.value
        if isinstance(atom, Num) and atom.form.constant is not None:
            return atom.form.constant
        return ...

    def union(self, other: Value) -> Value:
        """Either value; an unknown side adds nothing."""
        if self == other or not other.atoms:
            return self
        if not self.atoms:
            return other
        extra = tuple(atom for atom in other.atoms if atom not in self.atoms)
        return Value((self.atoms + extra)[:MAX_ATOMS])

    def without(self, atoms: tuple[Atom, ...]) -> Value:
        """The value with `atoms` ruled out."""
        return Value(tuple(atom for atom in self.atoms if atom not in atoms))


def nested(atom: Atom) -> tuple[Value, ...]:
    """The values that an atom holds."""
    if isinstance(atom, Tup):
        return atom.items
    if isinstance(atom, Method):
        return (atom.receiver,)
    if isinstance(atom, (IsKind, HasName)):
        return (atom.value,)
    if isinstance(atom, (Func, Partial)):
        first = atom.receiver if isinstance(atom, Func) else atom.callee
        held = (*atom.args, *(value for _, value in atom.keywords))
        return (first, *held) if first is not None else held
    return ()


UNKNOWN = Value()
NONE = Value((Const(None),))
TRUE = Value((Const(True),))
FALSE = Value((Const(False),))


def number(form: Linear | int, *, negated: bool = False, trail: Trail | None = None) -> Value:
    """The value of a whole number."""
    if isinstance(form, int):
        form = Linear((), form)
    return Value((Num(form, negated, trail=trail),))


def constant(value: object) -> Value:
    """The value of a constant; whole numbers become `Num`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    return Value((Const(value),))


def lib(name: str) -> Value:
    """The value of a library's thing."""
    return Value((Lib(name),))


def ref(oid: int) -> Value:
    """The value of a heap cell."""
    return Value((Ref(oid),))
