"""Calls: project functions by their bodies, library calls by what is known of them, the rest by caution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import libcst as cst

from cachelint.flow.arguments import Arguments
from cachelint.flow.builtins import LIBRARY, Builtins
from cachelint.flow.caches import CACHE_METHODS
from cachelint.flow.configs import CHECKPOINT
from cachelint.flow.expressions import become
from cachelint.flow.layers import LAYER_CLASSES
from cachelint.flow.library import (
    VERSION_PARSERS,
    VERSION_READERS,
    cache_class,
    is_config_class,
    is_model_class,
    is_other_library,
    is_pure,
    is_transformers,
)
from cachelint.flow.machine import MAX_DEPTH
from cachelint.flow.narrowing import releases_tested
from cachelint.flow.project import Class
from cachelint.flow.state import ANY_ITEM, OF_CACHE, Cell, Key, State
from cachelint.flow.values import (
    NONE,
    UNKNOWN,
    Atom,
    Cls,
    Const,
    Func,
    Lib,
    Method,
    Num,
    Partial,
    Ref,
    Step,
    Trail,
    Tup,
    Value,
    Version,
    ref,
)

_SAME_THING = frozenset("to eval train cuda cpu half float bfloat16 requires_grad_ compile get_text_config".split())


class Calls(Builtins):
    """Evaluation of calls."""

    def invoke(self, node: cst.Call, state: State) -> Value:
        """The value of a call, with what it does to its arguments done to the state."""
        if isinstance(node.func, cst.Name) and node.func.value == "super":
            return self._super(node, state)
        if isinstance(node.func, cst.Attribute):
            receiver = self.eval(node.func.value, state)
            name = node.func.attr.value
            path = self.path(node.func.value)
            if path:
                receiver = self.as_cache(path, receiver, state, node.func.value)
            args = self.arguments(node, state)
            return self.call_methods(receiver, name, args, node, state)
        callee = self.eval(node.func, state)
        args = self.arguments(node, state)
        if self.path(node.func) == "is_transformers_version" and (tested := releases_tested(args.args)) is not None:
            return tested
        return self.call(callee, args, node, state)

    def arguments(self, node: cst.Call, state: State) -> Arguments:
        """The arguments, evaluated in their order."""
        found = Arguments(nodes=list(node.args))
        for arg in node.args:
            value = self.eval(arg.value, state)
            if arg.star == "*":
                self._spread(value, found)
            elif arg.star == "**":
                self._spread_keywords(value, found, state)
            elif arg.keyword is not None:
                found.keywords[arg.keyword.value] = value
            elif found.hidden:
                found.extra.append(value)
            else:
                found.args.append(value)
        return found

    @staticmethod
    def _spread(value: Value, found: Arguments) -> None:
        atom = value.single
        if isinstance(atom, Tup) and not found.hidden:
            found.args.extend(atom.items)
        else:
            found.hidden = True
            found.extra.append(value)

    @staticmethod
    def _spread_keywords(value: Value, found: Arguments, state: State) -> None:
        found.extra.append(value)
        atom = value.single
        known = isinstance(atom, Ref) and state.cell(atom.oid).kind == "dict"
        found.hidden = found.hidden or not known
        if isinstance(atom, Ref):
            for key, item in state.cell(atom.oid).fields.items():
                if isinstance(key, tuple) and key[0] == "item" and isinstance(key[1], str):
                    found.keywords.setdefault(key[1], item)
                found.hidden = found.hidden or key == ANY_ITEM

    def call(self, callee: Value, args: Arguments, node: cst.Call, state: State) -> Value:
        """The value of calling any of the things that `callee` can be."""
        atoms = [atom for atom in callee.atoms if not isinstance(atom, Const)]
        if not atoms:
            return self.unknown_call(args, node, state)
        return self._any_of([partial(self._call_atom, atom, args, node) for atom in atoms], state)

    def _any_of(self, ways: list[Callable[[State], Value]], state: State) -> Value:
        """One of several things happens: the states are joined, the values united."""
        if len(ways) == 1:
            return ways[0](state)
        ends: list[State] = []
        for way in ways:
            other = state.copy()
            other.frames[-1] = {"#": way(other)}
            ends.append(other)
        joined = self.join_all(ends)
        assert joined is not None
        become(state, joined)
        return state.frames.pop(-1)["#"]

    def _call_atom(self, atom: Atom, args: Arguments, node: cst.Call, state: State) -> Value:
        if isinstance(atom, Func):
            return self._call_project(atom, args, node, state)
        if isinstance(atom, Cls):
            return self.construct(atom.cls, args, node, state)
        if isinstance(atom, Lib):
            return self.call_library(atom.name, args, node, state)
        if isinstance(atom, Method):
            return self.call_methods(atom.receiver, atom.name, args, node, state)
        if isinstance(atom, Partial):
            joined = Arguments(
                [*atom.args, *args.args], {**dict(atom.keywords), **args.keywords}, args.nodes, args.hidden
            )
            return self.call(atom.callee, joined, node, state)
        if isinstance(atom, Ref):
            cls = state.cell(atom.oid).cls
            for name in ("__call__", "forward"):
                method = cls.method(name) if cls else None
                if method is not None:
                    return self._call_project(Func(method, 0, ref(atom.oid)), args, node, state)
            return self.forward(ref(atom.oid), args, node, state)
        return self.unknown_call(args, node, state)

    # Methods

    def call_methods(self, receiver: Value, name: str, args: Arguments, node: cst.Call, state: State) -> Value:
        """The value of `receiver.name(…)`."""
        atoms = [atom for atom in receiver.atoms if not isinstance(atom, Const) or isinstance(atom.value, str)]
        if not atoms:
            return self.unknown_call(args, node, state, receiver)
        if name in CACHE_METHODS and self.caches(receiver, state):
            # What is not known beside a cache is taken for the cache that it stands for.
            atoms = [atom for atom in atoms if not (isinstance(atom, Ref) and self.is_open(atom, state))]
        return self._any_of(
            [partial(self._call_method, atom, name, args, node) for atom in atoms],
            state,
        )

    def _call_method(self, atom: Atom, name: str, args: Arguments, node: cst.Call, state: State) -> Value:
        if isinstance(atom, Version):
            return self._version_method(atom, name)
        if isinstance(atom, Ref):
            return self._call_on_object(atom, name, args, node, state)
        if isinstance(atom, Const):
            return self.fresh(state)
        if isinstance(atom, Lib):
            self.library_named(f"{atom.name}.{name}", node.func, state)
        value = self._attribute(atom, Value((atom,)), name, state)
        if value.atoms and not isinstance(value.single, Method):
            return self.call(value, args, node, state)
        return self.unknown_call(args, node, state, Value((atom,)))

    def _call_on_object(self, atom: Ref, name: str, args: Arguments, node: cst.Call, state: State) -> Value:
        cell = state.cell(atom.oid)
        if cell.kind == "super":
            return self._call_on_super(cell, name, args, node, state)
        if name in cell.fields and cell.fields[name].atoms:
            return self.call(cell.fields[name], args, node, state)
        method = cell.cls.method(name) if cell.cls is not None else None
        if method is not None and not method.is_property:
            receiver = None if method.is_static else ref(atom.oid)
            return self._call_project(Func(method, 0, receiver), args, node, state)
        if cell.cache is not None and not cell.denied:
            self.member(atom.oid, name, node.func, state)
            return self.cache_method(atom.oid, name, args, node, state)
        if cell.kind in ("list", "dict", "tuple"):
            return self._container_method(atom, cell, name, args, node, state)
        if name == "crop" and len(args.args) == 1 and self.num(args.args[0], state) is not None:
            self.crops_open = True
        if name in ("add_argument", "parse_args"):
            return self._parsed_arguments(atom, name, args, state)
        if name in ("get", "pop") and args.args and isinstance(args.args[0].const(), str):
            return self._looked_up(atom, str(args.args[0].const()), args, node, state)
        if name == "generate":
            return self.forward(ref(atom.oid), args, node, state, generates=True)
        if cell.kind in ("model", "config") and name in _SAME_THING:
            return ref(atom.oid)
        if name == "size" and len(args.args) == 1:
            shape = self.attribute(ref(atom.oid), "shape", state)
            for each in shape.refs():
                self.shape_read(state.cell(each.oid), args.args[0].const(), node, state)
            return self.item(shape, args.args[0], state)
        if name == "forward" or "past_key_values" in args.keywords:
            inner = name not in ("forward", "__call__") and cell.kind != "model"
            receiver = self.attribute(ref(atom.oid), name, state) if inner else ref(atom.oid)
            return self.forward(receiver, args, node, state)
        return self.unknown_call(args, node, state, ref(atom.oid))

    def _call_on_super(self, cell: Cell, name: str, args: Arguments, node: cst.Call, state: State) -> Value:
        """`super().name(…)`: a parent's method, or the library's, on the instance itself."""
        receiver = cell.fields["#self"]
        method = cell.cls.method(name) if cell.cls is not None else None
        if method is not None:
            return self._call_project(Func(method, 0, receiver), args, node, state)
        caches = self.caches(receiver, state)
        if not caches:
            if name == "__init__":
                return NONE
            return self.unknown_call(args, node, state, receiver)
        oid = caches[0][0]
        if name == "crop":
            self.crop(oid, args, node, state)
            return NONE
        if name == "__init__":
            self.make_cache(oid, next(iter(caches[0][1].classes), "Cache"), args, node, state)
            state.heap[oid] = replace(state.cell(oid), cls=self.frame.cls, kind="instance")
            return NONE
        return self.cache_method(oid, name, args, node, state)

    def _looked_up(self, atom: Ref, key: str, args: Arguments, node: cst.Call, state: State) -> Value:
        """`mapping.get("key")` of something that nobody sees made."""
        value = self.item(ref(atom.oid), args.args[0], state)
        value = self.as_cache(key, value, state, node)
        return value.union(args.args[1] if len(args.args) > 1 else NONE)

    def _parsed_arguments(self, atom: Ref, name: str, args: Arguments, state: State) -> Value:
        """argparse: what `parse_args` gives has each argument's default, or anything else."""
        place = self.place(("arguments of", atom.oid))
        if place not in state.heap:
            state.heap[place] = Cell(name="args")
        flags = [value.const() for value in args.args]
        longest = max((flag for flag in flags if isinstance(flag, str)), key=len, default="")
        if name == "add_argument" and longest:
            attribute = longest.lstrip("-").replace("-", "_")
            value = self.fresh(state, attribute).union(args.keywords.get("default", UNKNOWN))
            state.heap[place] = state.cell(place).with_field(attribute, value)
        return ref(place)

    @staticmethod
    def _version_method(version: Version, name: str) -> Value:
        return Value((version,)) if name in ("split", "strip", "public") else UNKNOWN

    def _container_method(
        self, atom: Ref, cell: Cell, name: str, args: Arguments, node: cst.Call, state: State
    ) -> Value:
        receiver = ref(atom.oid)
        if name in ("append", "insert", "extend") and OF_CACHE in cell.fields and args.args:
            self.layer_added(args.args[-1], node, state)
        if name in ("append", "add", "appendleft") and args.args:
            self._store_any(atom.oid, args.args[0], state)
            return NONE
        if name in ("extend", "update") and args.args:
            self._store_any(atom.oid, self.element(args.args[0], state), state)
            return NONE
        if name in ("get", "pop", "setdefault") and args.args and cell.kind == "dict":
            value = self.item(receiver, args.args[0], state)
            if isinstance(args.args[0].const(), str):
                value = self.as_cache(str(args.args[0].const()), value, state, node)
            known = ("item", args.args[0].const()) in cell.fields
            return value if known or len(args.args) < 2 else value.union(args.args[1])
        if name == "copy":
            oid = self.place()
            state.heap[oid] = replace(cell)
            return ref(oid)
        if name in ("values", "pop", "popleft", "__iter__"):
            found = self.item(receiver, UNKNOWN, state)
            if name != "values":
                return found
            return self.list_of(found, state)
        if name == "items":
            return self.list_of(Value((Tup((UNKNOWN, self.item(receiver, UNKNOWN, state))),)), state)
        return self.fresh(state)

    def _store_any(self, oid: int, value: Value, state: State) -> None:
        cell = state.cell(oid)
        held = cell.fields.get(ANY_ITEM, UNKNOWN)
        state.heap[oid] = cell.with_field(ANY_ITEM, held.union(value))

    # Project functions and classes

    def _call_project(self, func: Func, args: Arguments, node: cst.Call, state: State) -> Value:
        if not self._matters(func, args, state):
            return self.fresh(state)
        if len(self.stack) >= MAX_DEPTH or any(f.function is func.function for f in self.stack):
            return self.unknown_call(args, node, state)
        keywords = {**dict(func.keywords), **args.keywords}
        func = replace(func, keywords=())
        outer_calls, outer_context = self.calls, self.context
        self.calls = Trail(Step(self.unit, node, f"calls `{func.function.name}`"), outer_calls)
        self.context = (*outer_context, id(node))
        try:
            return self.call_function(func, args.args, keywords, node, state, hidden=args.hidden)
        finally:
            self.calls, self.context = outer_calls, outer_context

    def _matters(self, func: Func, args: Arguments, state: State) -> bool:
        """Whether the body has to be looked at: something tracked goes in, or can come out."""
        function = func.function
        if func.frame or function.name == "__init__" or function.is_short or function.makes_tracked:
            return True
        passed = args.all()
        if any(isinstance(atom, (Func, Method, Partial)) for value in passed for atom in value.atoms):
            return True
        if any(state.cell(oid).cache for oid in self.reachable(passed, state)):
            return True
        if func.receiver is None or not function.touches_tracked:
            return False
        return any(state.cell(oid).cache for oid in self.reachable([func.receiver], state))

    def construct(self, cls: Class, args: Arguments, node: cst.Call, state: State) -> Value:
        """A new instance of a project class, its `__init__` run."""
        oid = self.place(self.site(node))
        state.heap[oid] = Cell(kind="instance", name=cls.name, cls=cls)
        for base in cls.ancestry[1]:
            name = cache_class(base)
            if name is not None:
                self.make_cache(oid, name, args, node, state)
                state.heap[oid] = replace(state.cell(oid), cls=cls, kind="instance")
                break
        init = cls.method("__init__")
        if init is not None:
            self._call_project(Func(init, 0, ref(oid)), args, node, state)
        elif any(d.split(".")[-1] == "dataclass" for d in cls.skeleton.decorators) or (
            "NamedTuple" in " ".join(cls.skeleton.bases)
        ):
            self._fill_fields(oid, cls, args, state)
        return ref(oid)

    def _fill_fields(self, oid: int, cls: Class, args: Arguments, state: State) -> None:
        names = list(cls.skeleton.fields)
        given = {**dict(zip(names, args.args, strict=False)), **args.keywords}
        for name, value in given.items():
            state.heap[oid] = state.cell(oid).with_field(name, value)

    def _super(self, node: cst.Call, state: State) -> Value:
        receiver, cls = self.frame.receiver, self.frame.cls
        atom = receiver.single
        if cls is None or not isinstance(atom, Ref):
            return self.fresh(state)
        oid = self.place((self.site(node), atom.oid))
        parents = [thing for base in cls.skeleton.bases for thing in self.project.resolve(cls.module, base)]
        parent = next((thing for thing in parents if isinstance(thing, Class)), None)
        state.heap[oid] = Cell(kind="super", cls=parent, fields={"#self": receiver})
        return ref(oid)

    # Library calls

    def call_library(self, name: str, args: Arguments, node: cst.Call, state: State) -> Value:
        """The value of calling a library's thing."""
        handler = LIBRARY.get(name.removeprefix("builtins."))
        if handler is not None:
            value: Value | None = handler(self, args, node, state)
            if value is not None:
                return value
        last = name.rsplit(".", 1)[-1]
        cache_name = cache_class(name) or (cache_class(name.rsplit(".", 1)[0]) if "." in name else None)
        if cache_name is not None:
            return self.cache_from_library(cache_name, last, args, node, state)
        owner = name.rsplit(".", 1)[0]
        loads = last in ("from_pretrained", "from_config", "from_dict")
        cls = owner if loads else name
        if is_model_class(cls):
            return self._made("model", cls, last, args, node, state)
        if is_config_class(cls):
            return self._made("config", cls, last, args, node, state)
        if is_transformers(name) and last in LAYER_CLASSES:
            return self.layer_made(last, node, state)
        if last == "GenerationConfig" and "cache_implementation" in args.keywords:
            self.implementation(args.keywords["cache_implementation"], node, state)
        if name in VERSION_PARSERS and args.args:
            return args.args[0]
        if name in VERSION_READERS and args.args and args.args[0].const() == "transformers":
            return Value((Version(),))
        if is_pure(name) or is_other_library(name):
            return self.fresh(state, denied=is_other_library(name))
        return self.unknown_call(args, node, state)

    def _made(self, kind: str, name: str, last: str, args: Arguments, node: cst.Call, state: State) -> Value:
        """A model or a configuration: from a checkpoint by name, from a configuration, or from arguments."""
        oid = self.place(self.site(node))
        fields: dict[Key, Value] = {}
        for key, value in args.keywords.items():
            if kind == "config" or key == "config":
                fields[key] = value
        first = args.get(0, "pretrained_model_name_or_path")
        if last == "from_pretrained":
            fields[CHECKPOINT] = first if first is not None and first.atoms else UNKNOWN
        elif kind == "model" and first is not None:
            fields["config"] = first
        state.heap[oid] = Cell(kind=kind, name=name.rsplit(".", 1)[-1], fields=fields)
        return ref(oid)

    def unknown_call(self, args: Arguments, node: cst.Call, state: State, receiver: Value | None = None) -> Value:
        """A call of something that nobody sees: whatever reaches it may be changed, and anything comes back."""
        passed = args.all()
        if "past_key_values" in args.keywords or "past_key_value" in args.keywords:
            return self.forward(receiver or UNKNOWN, args, node, state)
        name = self.path(node.func)
        if self.project.hints.trusted & {name, name.rpartition(".")[2]}:
            return self.fresh(state)
        for oid in self.reachable(passed, state):
            cell = state.cell(oid)
            if cell.cache is not None:
                self.give_away(oid, node, state)
            elif cell.kind in ("instance", "list", "dict"):
                numbers = [k for k, v in cell.fields.items() if any(isinstance(a, Num) for a in v.atoms)]
                kept = {key: value for key, value in cell.fields.items() if key not in numbers}
                state.heap[oid] = replace(cell, fields=kept)
        return self.fresh(state, self.path(node.func).rsplit(".", 1)[-1])
