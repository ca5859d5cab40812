"""Expressions: what each kind of node evaluates to, and what it changes on the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from cachelint.flow.dependence import dotted, names_in
from cachelint.flow.machine import Machine
from cachelint.flow.naming import is_cache_name
from cachelint.flow.numbers import DIMENSION, Linear, Range
from cachelint.flow.project import Class, Function, LocalFunction, Module, Resolved
from cachelint.flow.state import ANY_ITEM, OF_CACHE, Cache, Cell, Key, State
from cachelint.flow.values import (
    FALSE,
    NONE,
    TRUE,
    UNKNOWN,
    Cls,
    Const,
    Func,
    Lib,
    Method,
    Mod,
    Num,
    Ref,
    Tup,
    Value,
    Version,
    constant,
    lib,
    number,
    ref,
)

# What holds one entry a token.
_OF_TOKENS = re.compile(r"(?:ids|tokens|mask|embeds|positions?|prompt|sequences?)$")
_SINGLETONS = {"None": NONE, "True": TRUE, "False": FALSE}


class Expressions(Machine):
    """Evaluation. Every method takes the node and the state, changes the state, and returns the value."""

    def eval(self, node: cst.BaseExpression, state: State) -> Value:
        """The value of an expression; what nothing is known of becomes a fresh open thing."""
        self.tick()
        handler = _HANDLERS.get(type(node))
        return handler(self, node, state) if handler else self.fresh(state)

    def branch(self, node: cst.BaseExpression, state: State) -> tuple[State | None, State | None]:
        """The states in which a condition is true and false."""
        raise NotImplementedError

    def split(self, value: Value, node: cst.BaseExpression, state: State) -> tuple[State | None, State | None]:
        """The states in which a value that `node` gave is true and false."""
        raise NotImplementedError

    def invoke(self, node: cst.Call, state: State) -> Value:
        """The value of a call."""
        raise NotImplementedError

    def call_function(
        self,
        func: Func,
        args: list[Value],
        keywords: dict[str, Value],
        node: cst.CSTNode,
        state: State,
        *,
        hidden: bool = False,
    ) -> Value:
        """The value of a project function's body run on the arguments."""
        raise NotImplementedError

    def annotate(self, value: Value, annotation: cst.Annotation, state: State) -> Value:
        """What an annotation says of a value of which nothing else is known."""
        raise NotImplementedError

    def member(self, oid: int, name: str, node: cst.CSTNode, state: State, *, stored: bool = False) -> None:
        """A member of a cache is named."""
        raise NotImplementedError

    def taken(self, oid: int, how: str, node: cst.CSTNode, state: State) -> None:
        """A cache is taken for a tuple of pairs."""
        raise NotImplementedError

    def maximum_tested(self, value: Value, node: cst.BaseExpression, how: str, state: State) -> None:
        """A value is tested as to whether it is something at all."""
        raise NotImplementedError

    def repeated(self, value: Value, node: cst.CSTNode, state: State) -> None:
        """One thing is put several times into a list."""
        raise NotImplementedError

    def reveal(self, given: Value, node: cst.CSTNode, state: State) -> None:
        """Whatever nothing is known of in a value is a KV cache."""
        raise NotImplementedError

    def tested(self, value: Value, node: cst.BaseExpression, state: State) -> None:
        """The truth of a value is asked for."""
        raise NotImplementedError

    def name_read(self, name: str, value: Value, node: cst.CSTNode, state: State) -> None:
        """A name is read."""
        raise NotImplementedError

    def layers_of_cache(self, oid: int, state: State) -> Value:
        """`cache.layers`."""
        raise NotImplementedError

    def layer_attribute(self, oid: int, cell: Cell, name: str, state: State) -> Value:
        """An attribute of a layer, or of one of its tensors."""
        raise NotImplementedError

    def sliced_tensor(self, cell: Cell, state: State) -> Value:
        """A slice of a layer's tensor."""
        raise NotImplementedError

    def shape_read(self, cell: Cell, key: object, node: cst.CSTNode, state: State) -> None:
        """One dimension of a shape is read."""
        raise NotImplementedError

    def counted_beside(self, form: Linear, others: tuple[Linear, ...], node: cst.CSTNode, state: State) -> None:
        """A number meets others in arithmetic or a comparison."""
        raise NotImplementedError

    def counted(self, form: Linear, node: cst.CSTNode, state: State) -> None:
        """A number is used as one of tokens."""
        raise NotImplementedError

    def library_named(self, name: str, node: cst.CSTNode, state: State) -> None:
        """A thing of a library is used by its dotted name."""
        raise NotImplementedError

    def config_of(self, oid: int, cell: Cell, state: State) -> Value:
        """The `config` attribute of a model that was not given one."""
        raise NotImplementedError

    def compare(self, node: cst.Comparison, state: State) -> Value:
        """The value of a comparison."""
        raise NotImplementedError

    def method_value(self, receiver: Value, name: str, state: State) -> Value | None:
        """The value of reading an attribute that the library defines on a cache, None where it does not."""
        raise NotImplementedError

    # Names

    def read_name(self, node: cst.Name, state: State) -> Value:
        name = node.value
        if name in _SINGLETONS:
            return _SINGLETONS[name]
        value = self.as_cache(name, self.lookup(name, state), state, node)
        self.name_read(name, value, node, state)
        return value

    def lookup(self, name: str, state: State) -> Value:
        """What a name holds in the running function, its closures, its module, or among the builtins."""
        number: int | None = self.frame.elsewhere.get(name, self.frame.number)
        while number is not None:
            names = state.frames.get(number)
            if names is not None and name in names:
                return names[name]
            frame = self.frames.get(number)
            number = frame.outer if frame is not None else None
        stored = state.frames.get(self.globals_of(self.frame.module), {})
        if name in stored:
            return stored[name]
        return self.global_value(self.frame.module, name, state)

    def globals_of(self, module: Module) -> int:
        """The frame of the names that functions of a module declare global."""
        return self.place(("globals", module.path))

    def global_value(self, module: Module, name: str, state: State) -> Value:
        """What a name of a module holds, as far as its definitions tell."""
        found = self.project.resolve(module, name)
        if not found:
            if module.skeleton.bindings.get(name):
                return self.fresh(state, name)
            return lib(f"builtins.{name}")
        value = UNKNOWN
        for thing in found:
            value = value.union(self.resolved(thing, name, state))
        if module.declares_global(name):
            value = value.union(self.fresh(state, name))
        return value if value.atoms else self.fresh(state, name)

    def resolved(self, thing: Resolved, name: str, state: State) -> Value:
        """The value of something that a name was resolved to."""
        if isinstance(thing, str):
            return self.library_value(thing)
        if isinstance(thing, Function):
            return Value((Func(thing, 0),))
        if isinstance(thing, Class):
            return Value((Cls(thing),))
        if isinstance(thing, Module):
            return Value((Mod(thing),))
        return self.global_assignment(*thing, name, state)

    def global_assignment(self, module: Module, lines: tuple[int, int], name: str, state: State) -> Value:
        """The value that an assignment at the top of a module gives a name."""
        raise NotImplementedError

    @staticmethod
    def library_value(name: str) -> Value:
        """The value of a library's thing; the installed release is a value of its own."""
        if name in ("transformers.__version__", "transformers.utils.__version__"):
            return Value((Version(),))
        if name in ("typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING"):
            return FALSE
        return lib(name)

    def as_cache(self, path: str, value: Value, state: State, node: cst.CSTNode) -> Value:
        """The value read under a dotted name, turned into a KV cache where the name or its uses say so."""
        last = path.rsplit(".", 1)[-1]
        named = is_cache_name(last) or last in self.project.hints.names
        if not named and path not in self.frame.evidence:
            return value
        if not value.atoms:
            value = self.fresh(state, last)
        for atom in value.refs():
            cell = state.heap.get(atom.oid)
            if cell is None or cell.cache or cell.denied or cell.kind:
                continue
            why = "is named as a KV cache" if named else "is used as a KV cache"
            cache = Cache(
                length=self.length_form(state),
                recording=frozenset({"no", "before", "late"}),
                trail=self.step(node, f"`{path}` {why}"),
            )
            state.heap[atom.oid] = replace(cell, cache=cache, name=cell.name or last)
        return value

    # Attributes and items

    def read_attribute(self, node: cst.Attribute, state: State) -> Value:
        receiver = self.eval(node.value, state)
        for atom in receiver.refs():
            self.member(atom.oid, node.attr.value, node, state)
        value = self.attribute(receiver, node.attr.value, state)
        library = value.single
        if isinstance(library, Lib):
            self.library_named(library.name, node, state)
        path = self.path(node)
        return self.as_cache(path or node.attr.value, value, state, node)

    def attribute(self, receiver: Value, name: str, state: State) -> Value:
        """The value of `receiver.name`."""
        value = UNKNOWN
        for atom in receiver.atoms:
            value = value.union(self._attribute(atom, receiver, name, state))
        return value if value.atoms else self.fresh(state, name)

    def _attribute(self, atom: object, receiver: Value, name: str, state: State) -> Value:
        if isinstance(atom, Lib):
            return self.library_value(f"{atom.name}.{name}")
        if isinstance(atom, Mod):
            value = UNKNOWN
            for thing in self.project.member(atom.module, name):
                value = value.union(self.resolved(thing, name, state))
            return value
        if isinstance(atom, Cls):
            return self._class_attribute(atom.cls, name, state)
        if isinstance(atom, Version):
            return _version_attribute(atom, name)
        if isinstance(atom, Ref):
            return self._object_attribute(atom, name, state)
        if isinstance(atom, Const) and atom.value is None:
            return UNKNOWN
        return Value((Method(receiver, name),))

    def _class_attribute(self, cls: Class, name: str, state: State) -> Value:
        found = self.project.member(cls, name)
        if found:
            value = self.resolved(found[0], name, state)
            atom = value.single
            if isinstance(atom, Func) and atom.function.is_class_method:
                return Value((replace(atom, receiver=Value((Cls(cls),))),))
            return value
        field = cls.field(name)
        if field:
            return self.global_assignment(field[0].module, field[1], name, state)
        if cls.ancestry[1]:
            return lib(f"{cls.ancestry[1][0]}.{name}")
        return UNKNOWN

    def _object_attribute(self, atom: Ref, name: str, state: State) -> Value:
        cell = state.cell(atom.oid)
        if cell.kind == "super":
            return self.attribute(cell.fields["#self"], name, state)
        if name in cell.fields:
            return cell.fields[name]
        if cell.cls is not None:
            method = cell.cls.method(name)
            if method is not None:
                return self._bound(method, ref(atom.oid), state)
            field = cell.cls.field(name)
            if field is not None:
                value = self.global_assignment(field[0].module, field[1], name, state)
                state.heap[atom.oid] = state.cell(atom.oid).with_field(name, value)
                return value
        if name == "layers" and cell.cache is not None and not cell.denied:
            return self.layers_of_cache(atom.oid, state)
        if cell.kind in ("layer", "tensor") or (name == "shape" and OF_CACHE in cell.fields):
            value = self.layer_attribute(atom.oid, cell, name, state)
            state.heap[atom.oid] = state.cell(atom.oid).with_field(name, value)
            return value
        special = self.method_value(ref(atom.oid), name, state)
        if special is not None:
            return special
        if cell.kind in ("list", "dict", "tuple"):
            return Value((Method(ref(atom.oid), name),))
        if name == "config" and cell.kind == "model":
            value = self.config_of(atom.oid, cell, state)
        elif name == "text_config" and cell.kind == "config":
            return ref(atom.oid)
        else:
            value = self.fresh(state, name)
        state.heap[atom.oid] = state.cell(atom.oid).with_field(name, value)
        return value

    def _bound(self, method: Function, receiver: Value, state: State) -> Value:
        if method.is_property:
            return self.call_function(Func(method, 0, receiver), [], {}, self.unit.tree, state)
        if method.is_static:
            return Value((Func(method, 0),))
        return Value((Func(method, 0, receiver),))

    def path(self, node: cst.BaseExpression) -> str:
        """The dotted name of a name or attribute, empty for anything else."""
        return dotted(node)

    def read_item(self, node: cst.Subscript, state: State) -> Value:
        receiver = self.eval(node.value, state)
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
            for element in node.slice:
                self._eval_slice(element.slice, node.value, state)
            return self._sliced(node, receiver, state)
        index = self.eval(node.slice[0].slice.value, state)
        if not isinstance(index.const(), str):
            for atom in receiver.refs():
                self.taken(atom.oid, "subscript", node, state)
        key = index.const()
        for atom in receiver.refs():
            self.shape_read(state.cell(atom.oid), key, node, state)
        value = self.item(receiver, index, state)
        if isinstance(key, str):
            return self.as_cache(key, value, state, node)
        return value

    def _eval_slice(self, piece: cst.BaseSlice, of: cst.BaseExpression, state: State) -> None:
        if isinstance(piece, cst.Index):
            self.eval(piece.value, state)
        elif isinstance(piece, cst.Slice):
            for part in (piece.lower, piece.upper, piece.step):
                number = self.eval(part, state).single if part is not None else None
                if part is not None and isinstance(number, Num) and _OF_TOKENS.search(self.path(of)):
                    self.counted(number.form, part, state)

    def _sliced(self, node: cst.Subscript, receiver: Value, state: State) -> Value:
        atom = receiver.single
        if isinstance(atom, Version):
            piece = node.slice[0].slice
            if isinstance(piece, cst.Slice) and piece.lower is None and piece.upper is not None:
                width = self.eval(piece.upper, state).const()
                if isinstance(width, int) and width > 0:
                    return Value((Version(width=width),))
        if isinstance(atom, Ref):
            cell = state.cell(atom.oid)
            if cell.kind == "tensor" and OF_CACHE in cell.fields:
                return self.sliced_tensor(cell, state)
        return self.fresh(state)

    def item(self, receiver: Value, index: Value, state: State) -> Value:
        """The value of `receiver[index]`."""
        key = index.const()
        value = UNKNOWN
        for atom in receiver.atoms:
            value = value.union(self._item(atom, key, state))
        return value if value.atoms else self.fresh(state)

    def _item(self, atom: object, key: object, state: State) -> Value:
        if isinstance(atom, Tup):
            if isinstance(key, int) and -len(atom.items) <= key < len(atom.items):
                return atom.items[key]
            joined = UNKNOWN
            for item in atom.items:
                joined = joined.union(item)
            return joined
        if isinstance(atom, Version) and isinstance(key, int) and key >= 0:
            return Value((Version(part=key),))
        if not isinstance(atom, Ref):
            return UNKNOWN
        cell = state.cell(atom.oid)
        if key is not ...:
            field: Key = ("item", key)
            if field in cell.fields:
                return cell.fields[field]
            if cell.kind == "output" and isinstance(key, str):
                return self.attribute(ref(atom.oid), key, state)
        return self._unknown_item(atom, cell, key, state)

    def _unknown_item(self, atom: Ref, cell: Cell, key: object, state: State) -> Value:
        if key is ... or cell.kind in ("list", "dict"):
            joined = UNKNOWN
            for field, value in cell.fields.items():
                if isinstance(field, tuple) and field[0] == "item" and (key is ... or field == ANY_ITEM):
                    joined = joined.union(value)
            if joined.atoms:
                return joined
            if key is ...:
                return self.fresh(state)
        within = DIMENSION if cell.name == "shape" else None
        value = self.fresh(state, f"{cell.name}[{key!r}]" if cell.name else "", within)
        state.heap[atom.oid] = state.cell(atom.oid).with_field(("item", key), value)
        return value

    # Operators

    def binary(self, node: cst.BinaryOperation, state: State) -> Value:
        left = self.eval(node.left, state)
        right = self.eval(node.right, state)
        if isinstance(node.operator, cst.Multiply):
            for value, side in ((left, node.left), (right, node.right)):
                if isinstance(side, (cst.List, cst.Tuple)):
                    self.repeated(self.element(value, state), node, state)
                    return value
        return self.arithmetic(type(node.operator).__name__, left, right, node, state)

    def arithmetic(self, operator: str, left: Value, right: Value, node: cst.CSTNode, state: State) -> Value:
        """The value of a binary operation on values, by the name of its libcst operator."""
        if isinstance(left.single, Tup) and isinstance(right.single, Tup) and operator.startswith("Add"):
            return Value((Tup(left.single.items + right.single.items),))
        if operator in ("BitOr", "Or"):
            return left.union(right)
        x, y = self.num(left, state), self.num(right, state)
        if x is None and y is None:
            return self.fresh(state)
        if self.numbering.counts and x is not None and y is not None:
            self.counted_beside(x.form, (y.form,), node, state)
            self.counted_beside(y.form, (x.form,), node, state)
        # Beside a number there is a number, though nothing more is known of it.
        x, y = x or self.any_number(state), y or self.any_number(state)
        operator = operator.removesuffix("Assign")
        trail = x.trail or y.trail
        if operator == "Add":
            return number(x.form + y.form, negated=x.negated and y.negated, trail=trail)
        if operator == "Subtract":
            negated = x.form.constant == 0 or (x.negated and not y.negated)
            return number(x.form - y.form, negated=negated, trail=trail)
        if operator == "Multiply":
            return self._product(x, y, trail, state)
        return self._other_arithmetic(operator, x, y, state)

    def any_number(self, state: State) -> Num:
        """A number of which nothing is known; as everywhere, it is taken for a count."""
        return Num(Linear.of(self.symbol()))

    def _product(self, x: Num, y: Num, trail: Any, state: State) -> Value:
        for known, other in ((x, y), (y, x)):
            factor = known.form.constant
            if factor is not None:
                return number(other.form.times(factor), negated=other.negated ^ (factor < 0), trail=trail)
        a, b = state.range(x.form), state.range(y.form)
        if a.lo is not None and b.lo is not None and a.lo >= 0 and b.lo >= 0:
            return self.count(state, Range(a.lo * b.lo, None, a.zero or b.zero))
        return self.count(state, Range(None, None))

    def _other_arithmetic(self, operator: str, x: Num, y: Num, state: State) -> Value:
        a, b = state.range(x.form), state.range(y.form)
        positive = a.lo is not None and a.lo >= 0 and b.lo is not None and b.lo >= 0
        if operator == "FloorDivide" and positive:
            return self.count(state, Range(0, a.hi))
        if operator == "Modulo" and b.lo is not None and b.lo >= 0:
            return self.count(state, Range(0, None if b.hi is None else max(b.hi - 1, 0), zero=True))
        if operator in ("Divide", "Power") and positive:
            return self.fresh(state, within=Range(0, None))
        return self.fresh(state)

    def unary(self, node: cst.UnaryOperation, state: State) -> Value:
        value = self.eval(node.expression, state)
        if isinstance(node.operator, cst.Minus):
            operand = self.num(value, state) or self.any_number(state)
            return number(-operand.form, negated=not operand.negated, trail=operand.trail)
        if isinstance(node.operator, cst.Not):
            self.tested(value, node.expression, state)
            return self.negate(value)
        if isinstance(node.operator, cst.Plus):
            return value
        return self.fresh(state)

    def negate(self, value: Value) -> Value:
        """The value of `not value`."""
        raise NotImplementedError

    def boolean(self, node: cst.BooleanOperation, state: State) -> Value:
        left = self.eval(node.left, state)
        true, false = self.split(left, node.left, state)
        onward = true if isinstance(node.operator, cst.And) else false
        skipped = false if isinstance(node.operator, cst.And) else true
        if onward is None:
            become(state, skipped or state)
            return left
        right = self.eval(node.right, onward)
        if isinstance(node.operator, cst.Or) and self.caches(right, onward):
            # What stands in for a cache where it is false is one itself.
            self.reveal(left, node.left, onward)
            self.tested(left, node.left, onward)
        become(state, self.join(onward, skipped) or onward)
        if isinstance(node.operator, cst.Or):
            left = left.without((Const(None), Const(False)))
        return self.merge(left, right, state)

    def conditional(self, node: cst.IfExp, state: State) -> Value:
        true, false = self.branch(node.test, state)
        if true is None or false is None:
            only = true or false
            value = self.eval(node.body if true is not None else node.orelse, only or state)
            become(state, only or state)
            return value
        first = self.eval(node.body, true)
        second = self.eval(node.orelse, false)
        true.frames[-1] = {"#": first}
        false.frames[-1] = {"#": second}
        joined = self.join(true, false)
        assert joined is not None
        value = joined.frames.pop(-1)["#"]
        become(state, joined)
        return value

    def merge(self, a: Value, b: Value, state: State) -> Value:
        """Either of two values in one state."""
        x, y = self.num(a, state), self.num(b, state)
        if x is not None and y is not None and len(a.atoms) == len(b.atoms) == 1 and x.form != y.form:
            if not (isinstance(a.single, Num) or isinstance(b.single, Num)):
                return a.union(b)
            return self.count(state, state.range(x.form).join(state.range(y.form)))
        return a.union(b)

    # Displays

    def tuple_display(self, node: cst.Tuple, state: State) -> Value:
        if any(isinstance(element, cst.StarredElement) for element in node.elements):
            return self._list(node, node.elements, "tuple", state)
        return Value((Tup(tuple(self.eval(element.value, state) for element in node.elements)),))

    def list_display(self, node: cst.List | cst.Set, state: State) -> Value:
        return self._list(node, node.elements, "list", state)

    def _list(self, node: cst.CSTNode, elements: Sequence[cst.BaseElement], kind: str, state: State) -> Value:
        fields: dict[Key, Value] = {}
        starred = False
        for index, element in enumerate(elements):
            value = self.eval(element.value, state)
            if isinstance(element, cst.StarredElement):
                starred = True
                value = self.element(value, state)
            key: Key = ANY_ITEM if starred else ("item", index)
            fields[key] = fields[key].union(value) if key in fields else value
        oid = self.place(self.site(node))
        state.heap[oid] = Cell(kind=kind, fields=fields)
        return ref(oid)

    def dict_display(self, node: cst.Dict, state: State) -> Value:
        fields: dict[Key, Value] = {}
        for element in node.elements:
            value = self.eval(element.value, state)
            if isinstance(element, cst.DictElement):
                key = self.eval(element.key, state).const()
                fields[("item", key)] = value
            else:
                for atom in value.refs():
                    fields.update(state.cell(atom.oid).fields)
        oid = self.place(self.site(node))
        state.heap[oid] = Cell(kind="dict", fields=fields)
        return ref(oid)

    def element(self, value: Value, state: State) -> Value:
        """Any one element of an iterable."""
        found = UNKNOWN
        for atom in value.atoms:
            if isinstance(atom, Tup):
                for item in atom.items:
                    found = found.union(item)
            elif isinstance(atom, Ref) and state.heap.get(atom.oid, Cell()).kind not in ("", "dict"):
                found = found.union(self.item(Value((atom,)), UNKNOWN, state))
        return found if found.atoms else self.fresh(state)

    def string(self, node: cst.SimpleString | cst.Integer | cst.Float, state: State) -> Value:
        try:
            return constant(node.evaluated_value)
        except (ValueError, SyntaxError):
            return self.fresh(state)

    def joined_string(self, node: cst.ConcatenatedString, state: State) -> Value:
        text = node.evaluated_value
        return constant(text) if isinstance(text, str) else self.fresh(state)

    def formatted(self, node: cst.FormattedString, state: State) -> Value:
        for part in node.parts:
            if isinstance(part, cst.FormattedStringExpression):
                self.eval(part.expression, state)
        return self.fresh(state)

    # Scopes

    def walrus(self, node: cst.NamedExpr, state: State) -> Value:
        value = self.eval(node.value, state)
        self.bind(node.target, value, state)
        return value

    def bind(self, target: cst.BaseExpression, value: Value, state: State) -> None:
        """Assign to a target of any form."""
        raise NotImplementedError

    def closure(self, node: cst.Lambda, state: State) -> Value:
        function = LocalFunction(self.unit, node, "<lambda>", self.frame.cls)
        return Value((Func(self.local(function, node), self.frame.number),))

    def local(self, function: LocalFunction, node: cst.CSTNode) -> Function:
        """The one `Function` for a node that is met again and again."""
        return self.locals.setdefault(node, function)

    def comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp, state: State) -> Value:
        names = dict(state.frames[self.frame.number])
        before = state.copy()
        value = self._element_of(node, state)
        if _fed(before, state):
            # What the first turn did to a cache, the second one meets.
            state.frames[self.frame.number] = dict(names)
            value = self._element_of(node, state)
        # The targets are the comprehension's own; a walrus in it is rare enough to be let go.
        state.frames[self.frame.number] = names
        oid = self.place(self.site(node))
        kind = "dict" if isinstance(node, cst.DictComp) else "list"
        state.heap[oid] = Cell(kind=kind, fields={ANY_ITEM: value})
        return ref(oid)

    def _element_of(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp, state: State) -> Value:
        """Any one element of a comprehension, with what making it does."""
        inner = self._comprehend(node.for_in, state)
        if isinstance(node, cst.DictComp):
            self.eval(node.key, inner)
            value = self.eval(node.value, inner)
        else:
            value = self.eval(node.elt, inner)
            if isinstance(node.elt, (cst.Name, cst.Attribute)) and not self._binds(node.for_in, node.elt):
                self.repeated(value, node, state)
        joined = self.join(state, inner)
        assert joined is not None
        become(state, joined)
        return value

    def _binds(self, loop: cst.CompFor, node: cst.BaseExpression) -> bool:
        """Whether the loops of a comprehension bind what a name begins with."""
        root = self.path(node).partition(".")[0]
        clause: cst.CompFor | None = loop
        while clause is not None:
            if root in {name.partition(".")[0] for name in names_in(clause.target)}:
                return True
            clause = clause.inner_for_in
        return False

    def _comprehend(self, loop: cst.CompFor, state: State) -> State:
        inner = state.copy()
        clause: cst.CompFor | None = loop
        while clause is not None:
            self.bind(clause.target, self.iterate(clause.iter, clause.target, inner), inner)
            for condition in clause.ifs:
                true, _ = self.branch(condition.test, inner)
                inner = true or inner
            clause = clause.inner_for_in
        return inner

    def iterate(self, node: cst.BaseExpression, target: cst.BaseExpression, state: State) -> Value:
        """Any one element of what an expression gives, which is bound to `target`."""
        value = self.eval(node, state)
        if is_pair(target):
            for atom in value.refs():
                self.taken(atom.oid, "iterate", node, state)
        return self.element(value, state)

    def awaited(self, node: cst.Await, state: State) -> Value:
        return self.eval(node.expression, state)

    def yielded(self, node: cst.Yield, state: State) -> Value:
        if isinstance(node.value, cst.From):
            self.eval(node.value.item, state)
        elif node.value is not None:
            self.frame.yields.append(self.eval(node.value, state))
        # Whoever takes the value runs before this goes on, and may fill the caches meanwhile.
        for oid in self.reachable(state.frames[self.frame.number].values(), state):
            cache = state.cell(oid).cache
            if cache is not None:
                length = cache.length + self.length_form(state, name="new tokens")
                self.set_cache(state, oid, replace(cache, length=length))
        return self.fresh(state)


def is_pair(target: cst.BaseExpression) -> bool:
    """Whether a target takes just two things; more of them, or a starred one, take triples as well."""
    if not isinstance(target, (cst.Tuple, cst.List)) or len(target.elements) != 2:
        return False
    return not any(isinstance(element, cst.StarredElement) for element in target.elements)


def _fed(before: State, after: State) -> bool:
    """Whether a cache that was there before has been fed since."""
    return any(
        cell.cache is not None and (now := after.cell(oid).cache) is not None and now.fed != cell.cache.fed
        for oid, cell in before.heap.items()
    )


def become(state: State, other: State) -> None:
    """Make `state` the same as `other`."""
    state.frames, state.heap, state.ranges = other.frames, other.heap, other.ranges
    state.facts, state.releases = other.facts, other.releases


def _version_attribute(version: Version, name: str) -> Value:
    if name in ("release", "base_version", "public", "split"):
        return Value((version,))
    part = {"major": 0, "minor": 1, "micro": 2}.get(name)
    return Value((Version(part=part),)) if part is not None else UNKNOWN


_HANDLERS: dict[type[cst.CSTNode], Callable[[Any, Any, State], Value]] = {
    cst.Name: Expressions.read_name,
    cst.Attribute: Expressions.read_attribute,
    cst.Subscript: Expressions.read_item,
    cst.BinaryOperation: Expressions.binary,
    cst.UnaryOperation: Expressions.unary,
    cst.BooleanOperation: Expressions.boolean,
    cst.Comparison: lambda machine, node, state: machine.compare(node, state),
    cst.Call: lambda machine, node, state: machine.invoke(node, state),
    cst.IfExp: Expressions.conditional,
    cst.Tuple: Expressions.tuple_display,
    cst.List: Expressions.list_display,
    cst.Set: Expressions.list_display,
    cst.Dict: Expressions.dict_display,
    cst.SimpleString: Expressions.string,
    cst.Integer: Expressions.string,
    cst.Float: Expressions.string,
    cst.ConcatenatedString: Expressions.joined_string,
    cst.FormattedString: Expressions.formatted,
    cst.NamedExpr: Expressions.walrus,
    cst.Lambda: Expressions.closure,
    cst.ListComp: Expressions.comprehension,
    cst.SetComp: Expressions.comprehension,
    cst.GeneratorExp: Expressions.comprehension,
    cst.DictComp: Expressions.comprehension,
    cst.Await: Expressions.awaited,
    cst.Yield: Expressions.yielded,
}
