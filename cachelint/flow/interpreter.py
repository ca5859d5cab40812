"""The interpreter as a whole: functions with their parameters, modules, globals, annotations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from cachelint.flow.definitions import Definitions
from cachelint.flow.expressions import become
from cachelint.flow.library import ANY_LAYERS, CACHE_CLASSES, cache_class, names_no_grad
from cachelint.flow.machine import Frame, Numbering
from cachelint.flow.naming import annotation_denies, makes_tracked, touches_tracked, used_as_cache
from cachelint.flow.numbers import Linear
from cachelint.flow.project import Class, Function, LocalFunction, Module, Project
from cachelint.flow.state import ANY_ITEM, Cache, Cell, Key, State
from cachelint.flow.units import Unit
from cachelint.flow.values import NONE, UNKNOWN, Const, Func, Num, Ref, Tup, Value, ref

_CONTAINER = re.compile(r"(?:\w+\.)*(list|sequence|iterable|iterator|tuple|dict|mapping|deque|set)\[", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_][\w.]*")


class Interpreter(Definitions):
    """One root function (or module) interpreted, with all that it calls."""

    def __init__(self, project: Project, releases: int, numbering: Numbering) -> None:
        super().__init__(project, releases, numbering)
        self._globals: set[tuple[Module, tuple[int, int]]] = set()
        self.inlined: set[Function] = set()

    # Roots

    def start(self) -> State:
        """The state before anything has run."""
        return State({0: {}}, {}, {}, frozenset(), self.releases)

    def run_function(self, function: Function, state: State, receiver: Value) -> State | None:
        """Interpret a function with parameters of which only their names, annotations and defaults speak.

        Returns the state behind it. Raises OutOfSteps, and libcst.ParserSyntaxError.
        """
        unit, node = function.definition
        frame = self._frame(function, unit, node, outer=None, receiver=receiver)
        self._enter(frame, state)
        self.no_grad = self._quiet(function)
        try:
            self._open_parameters(function, node, receiver, state)
            _, after = self._finish(frame, self.suite(node.body, state))
            if after is not None:
                self._run_unused_closures(after)
            return after
        finally:
            self.stack.pop()

    def run_module(self, module: Module, state: State) -> State | None:
        """Interpret the top level of a module in its order."""
        frame = Frame(self.place(("module", module.path)), None, module, None)
        frame.evidence = used_as_cache(module.source.text)
        self._enter(frame, state)
        after: State | None = state
        try:
            for start, end, bound in module.skeleton.statements:
                if after is None:
                    break
                if bound is not None and not isinstance(bound, tuple):
                    name = getattr(bound, "name", "")
                    found = self.global_value(module, name, after)
                    after.set_name(frame.number, name, _closing_over(found, frame.number))
                    continue
                frame.unit = module.unit(start, end)
                frame.body.append(frame.unit.tree)
                after = self.execute(frame.unit.body, after)
            return after
        finally:
            self.stack.pop()

    def _run_unused_closures(self, state: State) -> None:
        """Functions that were defined and handed to somebody unseen: they run some time, with anything."""
        for function, outer in list(self.defined.items()):
            if function in self.inlined or not touches_tracked(function.text):
                continue
            assert isinstance(function, LocalFunction)
            unit, node = function.unit, function.node
            if not isinstance(node, cst.FunctionDef):
                continue
            inner = state.copy()
            frame = self._frame(function, unit, node, outer=outer, receiver=self.frame.receiver)
            self._enter(frame, inner)
            self._open_parameters(function, node, None, inner)
            self.suite(node.body, inner)
            self.stack.pop()

    # Functions

    def _frame(
        self,
        function: Function,
        unit: Unit,
        node: cst.FunctionDef | cst.Lambda,
        *,
        outer: int | None,
        receiver: Value,
    ) -> Frame:
        number = self.place(("frame", self.context, node))
        frame = Frame(number, outer, function.module, unit, function.cls, function, receiver=receiver, body=[node])
        frame.evidence = self._evidence(function)
        if outer is not None and outer in self.frames:
            frame.evidence |= self.frames[outer].evidence
        return frame

    @staticmethod
    def _evidence(function: Function) -> frozenset[str]:
        if function.cls is None:
            return function.used_as_cache
        return function.used_as_cache | function.cls.used_as_cache

    def _enter(self, frame: Frame, state: State) -> None:
        frame.since = self.numbering.serial()
        self.frames[frame.number] = frame
        self.stack.append(frame)
        state.frames[frame.number] = {}

    def _quiet(self, function: Function) -> int:
        """1 where a decorator of the function turns autograd off, else 0."""
        return int(any(names_no_grad(name, name) for name in function.skeleton.decorators))

    def _finish(self, frame: Frame, end: State | None) -> tuple[Value, State | None]:
        """The value and the state of all ways out of a function."""
        ways = [*frame.returns, *([(end, NONE)] if end is not None else [])]
        for state, value in ways:
            state.frames[-1] = {"#": value}
        joined = self.join_all(state for state, _ in ways)
        if joined is None:
            return UNKNOWN, None
        return joined.frames.pop(-1)["#"], joined

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
        function = func.function
        try:
            unit, definition = self._definition(function)
        except cst.ParserSyntaxError:
            return self.fresh(state)
        self.inlined.add(function)
        outer = func.frame or None
        receiver = func.receiver if func.receiver is not None else UNKNOWN
        if isinstance(function, LocalFunction) and func.receiver is None and outer in self.frames:
            receiver = self.frames[outer].receiver
        frame = self._frame(function, unit, definition, outer=outer, receiver=receiver)
        passed = [*([func.receiver] if func.receiver is not None else []), *func.args, *args]
        defaults = self._defaults(definition.params, state)
        self._enter(frame, state)
        loops, self.loops = self.loops, []
        quiet = self._quiet(function)
        self.no_grad += quiet
        try:
            self._bind_parameters(definition.params, passed, keywords, defaults, hidden, state)
            if isinstance(definition, cst.Lambda):
                return self.eval(definition.body, state)
            value, after = self._finish(frame, self.suite(definition.body, state))
        finally:
            self.stack.pop()
            self.loops = loops
            self.no_grad -= quiet
        if after is not None:
            become(state, after)
        return self._result(function, frame, value, state)

    @staticmethod
    def _definition(function: Function) -> tuple[Unit, cst.FunctionDef | cst.Lambda]:
        if isinstance(function, LocalFunction):
            return function.unit, function.node
        return function.definition

    def _result(self, function: Function, frame: Frame, value: Value, state: State) -> Value:
        if not frame.yields:
            return value if value.atoms else self.fresh(state)
        element = UNKNOWN
        for item in frame.yields:
            element = element.union(item)
        if any(d.endswith("contextmanager") for d in function.skeleton.decorators):
            oid = self.place()
            state.heap[oid] = Cell(fields={("#", "entered"): element})
            return ref(oid)
        return self.list_of(element, state)

    def _defaults(self, params: cst.Parameters, state: State) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for param in (*params.posonly_params, *params.params, *params.kwonly_params):
            default = param.default
            if isinstance(default, (cst.Integer, cst.SimpleString, cst.UnaryOperation)) or (
                isinstance(default, cst.Name) and default.value in ("None", "True", "False")
            ):
                found[param.name.value] = self.eval(default, state)
        return found

    def _bind_parameters(
        self,
        params: cst.Parameters,
        passed: Sequence[Value],
        keywords: dict[str, Value],
        defaults: dict[str, Value],
        hidden: bool,
        state: State,
    ) -> None:
        names = state.frames[self.frame.number]
        positional = [*params.posonly_params, *params.params]
        rest = dict(keywords)
        for index, param in enumerate(positional):
            name = param.name.value
            if index < len(passed):
                names[name] = passed[index]
            elif name in rest:
                names[name] = rest.pop(name)
            else:
                names[name] = self._absent(param, defaults, hidden, state)
        for param in params.kwonly_params:
            name = param.name.value
            names[name] = rest.pop(name) if name in rest else self._absent(param, defaults, hidden, state)
        for param in (*positional, *params.kwonly_params):
            name = param.name.value
            if not names[name].atoms:
                names[name] = self.fresh(state, name)
            if param.annotation is not None:
                names[name] = self.annotate(names[name], param.annotation, state)
        self._bind_rest(params, list(passed[len(positional) :]), rest, hidden, state)

    def _absent(self, param: cst.Param, defaults: dict[str, Value], hidden: bool, state: State) -> Value:
        name = param.name.value
        if hidden or name not in defaults:
            value = self.fresh(state, name)
            return value.union(NONE) if defaults.get(name) == NONE else value
        return defaults[name]

    def _bind_rest(
        self, params: cst.Parameters, extra: list[Value], rest: dict[str, Value], hidden: bool, state: State
    ) -> None:
        names = state.frames[self.frame.number]
        if isinstance(params.star_arg, cst.Param):
            rest_value = Value((Tup(tuple(extra)),))
            if hidden:
                items: dict[Key, Value] = {("item", index): value for index, value in enumerate(extra)}
                items[ANY_ITEM] = UNKNOWN
                rest_value = self._container("list", items, params.star_arg, state)
            names[params.star_arg.name.value] = rest_value
        if params.star_kwarg is not None:
            known: dict[Key, Value] = {("item", key): value for key, value in rest.items()}
            kind = "" if hidden else "dict"
            names[params.star_kwarg.name.value] = self._container(kind, known, params.star_kwarg, state)

    def _container(self, kind: str, fields: dict[Key, Value], param: cst.Param, state: State) -> Value:
        oid = self.place()
        state.heap[oid] = Cell(kind, param.name.value, fields=fields)
        return ref(oid)

    def _open_parameters(self, function: Function, node: cst.FunctionDef, receiver: Value | None, state: State) -> None:
        """Bind a root's parameters: nobody calls it in sight."""
        names = state.frames[self.frame.number]
        params = node.params
        positional = [*params.posonly_params, *params.params]
        if receiver is not None and receiver.atoms and positional:
            names[positional.pop(0).name.value] = receiver
        for param in (*positional, *params.kwonly_params):
            self.shared_parameter(param, state)
        for param in (*positional, *params.kwonly_params):
            name = param.name.value
            value = self.fresh(state, name)
            if param.annotation is not None:
                value = self.annotate(value, param.annotation, state)
            if isinstance(param.default, cst.Name) and param.default.value == "None":
                value = value.union(NONE)
            elif isinstance(param.default, (cst.SimpleString, cst.ConcatenatedString)):
                value = value.union(self.eval(param.default, state))
            names[name] = value.union(self._option_default(node, name, state))
        for star in (params.star_arg, params.star_kwarg):
            if isinstance(star, cst.Param):
                names[star.name.value] = self.fresh(state, star.name.value)

    def _option_default(self, node: cst.FunctionDef, name: str, state: State) -> Value:
        """The default that a decorator such as `@click.option("--name", default=…)` gives a parameter."""
        for decorator in node.decorators:
            call = decorator.decorator
            if not isinstance(call, cst.Call) or not self.path(call.func).endswith("option"):
                continue
            flags = [
                a.value.evaluated_value for a in call.args if isinstance(a.value, cst.SimpleString) and not a.keyword
            ]
            default = [a.value for a in call.args if a.keyword is not None and a.keyword.value == "default"]
            if default and any(str(flag).lstrip("-").replace("-", "_") == name for flag in flags):
                return self.eval(default[0], state)
        return UNKNOWN

    # Annotations

    def annotate(self, value: Value, annotation: cst.Annotation, state: State) -> Value:
        """What an annotation says of a value of which nothing else is known."""
        text = self.unit.text(annotation.annotation)
        if (held := _CONTAINER.match(text)) is not None:
            return self._annotated_container(value, held[1].lower(), annotation, state)
        names = [self._annotated(word, state) for word in _WORD.findall(text)]
        classes = frozenset(name for name in names if isinstance(name, str))
        projects = [name for name in names if isinstance(name, Class)]
        for atom in value.refs():
            cell = state.cell(atom.oid)
            if cell.kind or cell.cache is not None:
                continue
            if classes:
                exact = classes - {"Cache"} if "Cache" not in classes else frozenset()
                cache = Cache(
                    exact,
                    self.layers_of_classes(exact),
                    length=self.length_form(state),
                    recording=frozenset({"no", "before", "late"}),
                    trail=self.step(annotation, f"is annotated as `{text}`"),
                )
                state.heap[atom.oid] = replace(cell, cache=cache)
            elif len(projects) == 1:
                self._annotate_project(atom, projects[0], state)
            elif annotation_denies(text):
                state.heap[atom.oid] = replace(cell, denied=True)
        return value

    def _annotated_container(self, value: Value, kind: str, annotation: cst.Annotation, state: State) -> Value:
        """What `list[DynamicCache]` and the like say: what is annotated holds caches, and is none."""
        inner = annotation.annotation
        last = inner.slice[-1].slice if isinstance(inner, cst.Subscript) else None
        for atom in value.refs():
            cell = state.cell(atom.oid)
            if cell.kind or cell.cache is not None or cell.denied:
                continue
            fields = dict(cell.fields)
            if isinstance(last, cst.Index):
                element = self.fresh(state, "")
                fields[ANY_ITEM] = self.annotate(element, cst.Annotation(last.value), state)
            kind = "dict" if kind in ("dict", "mapping") else "list"
            state.heap[atom.oid] = replace(cell, kind=kind, fields=fields)
        return value

    def _annotated(self, word: str, state: State) -> str | Class | None:
        for thing in self.project.resolve(self.frame.module, word):
            if isinstance(thing, str) and (name := cache_class(thing)):
                return name
            if isinstance(thing, Class):
                return thing
        return None

    def _annotate_project(self, atom: Ref, cls: Class, state: State) -> None:
        cell = state.cell(atom.oid)
        state.heap[atom.oid] = replace(cell, kind="instance", cls=cls)
        self.own_cache(atom.oid, cls, state)

    def own_cache(self, oid: int, cls: Class, state: State) -> None:
        """Make the instance a KV cache where its class derives from one of the library's."""
        names = [name for base in cls.ancestry[1] if (name := cache_class(base))]
        if not names:
            return
        known = CACHE_CLASSES[names[0]]
        cache = Cache(
            frozenset(names) if "Cache" not in names else frozenset(),
            known.with_config or known.layers or ANY_LAYERS,
            length=self.length_form(state),
            recording=frozenset({"no", "before", "late"}),
        )
        state.heap[oid] = replace(state.cell(oid), cache=cache)

    # Globals

    def run_fields(self, cls: Class, names: Sequence[str], state: State) -> None:
        """Interpret assignments in the body of a class."""
        frame = Frame(self.place(("class", cls.module.path, cls.skeleton.start)), None, cls.module, None)
        self._enter(frame, state)
        try:
            for name in names:
                frame.unit = cls.module.unit(*cls.skeleton.fields[name])
                for node in frame.unit.body:
                    self.shared_field(node, state)
        finally:
            self.stack.pop()

    def global_assignment(self, module: Module, lines: tuple[int, int], name: str, state: State) -> Value:
        """The value that an assignment at the top of a module (or of a class) gives a name."""
        key = (module, lines)
        text = module.text(*lines)
        if key in self._globals or not (len(text) < 400 or makes_tracked(text)):
            return self.fresh(state, name)
        self._globals.add(key)
        frame = Frame(self.place(("global", module.path, lines)), None, module, None)
        try:
            frame.unit = module.unit(*lines)
            self._enter(frame, state)
            try:
                return self._assigned_value(frame.unit.body, name, state)
            finally:
                self.stack.pop()
                state.frames.pop(frame.number, None)
        except cst.ParserSyntaxError:
            return self.fresh(state, name)
        finally:
            self._globals.discard(key)

    def _assigned_value(self, body: Sequence[cst.CSTNode], name: str, state: State) -> Value:
        for line in body:
            for node in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                if isinstance(node, cst.Assign) and any(_is_name(t.target, name) for t in node.targets):
                    value = self.eval(node.value, state)
                    return value if value.atoms else self.fresh(state, name)
                if isinstance(node, cst.AnnAssign) and _is_name(node.target, name):
                    return self._annotated_field(node, name, state)
        return self.fresh(state, name)

    def _annotated_field(self, node: cst.AnnAssign, name: str, state: State) -> Value:
        value = UNKNOWN
        if node.value is not None:
            value = self.eval(node.value, state)
        if not value.atoms or isinstance(node.value, cst.Call):
            # `field(default_factory=…)` says less than the annotation.
            value = self.annotate(self.fresh(state, name), node.annotation, state)
        elif value == NONE:
            value = value.union(self.annotate(self.fresh(state, name), node.annotation, state))
        return value


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _closing_over(value: Value, frame: int) -> Value:
    return Value(tuple(replace(atom, frame=frame) if isinstance(atom, Func) else atom for atom in value.atoms))


def generalise(interpreter: Interpreter, cls: Class, oid: int, kept: frozenset[str], state: State) -> State:
    """What stays true of an instance between any two of its methods' calls.

    Only the attributes `kept` stay; a cache keeps its class but may have any length; a number may be any other
    that is no smaller than 0 (or than nothing); constants are forgotten, since anybody can set them.
    """
    cell = state.cell(oid)
    fields: dict[Key, Value] = {}
    for key, value in cell.fields.items():
        if isinstance(key, str) and key in kept:
            fields[key] = _general_value(interpreter, cls, key, value, state)
    state.heap[oid] = replace(cell, fields=fields)
    alive = interpreter.reachable([ref(oid)], state)
    for other in alive:
        found = state.cell(other)
        if found.cache is not None:
            symbol = interpreter.symbol(("any length", other), "length")
            interpreter.lengths.add(symbol)
            state.heap[other] = replace(found, cache=replace(found.cache, length=Linear.of(symbol)))
    state.heap = {other: state.cell(other) for other in alive}
    state.frames = {0: {}}
    state.facts = frozenset()
    return state


def _general_value(interpreter: Interpreter, cls: Class, key: str, value: Value, state: State) -> Value:
    atoms = [a for a in value.atoms if not (isinstance(a, Const) and a.value is not None)]
    known = [a for a in atoms if isinstance(a, Num)]
    atoms = [a for a in atoms if not isinstance(a, Num)]
    if known:
        span = state.range(known[0].form)
        symbol = interpreter.symbol(("attribute", cls.module.path, cls.name, key), key)
        low = span.lo if span.lo is None or span.lo < 0 else 0
        state.ranges[symbol] = replace(span, lo=None if low != 0 else 0, hi=None)
        atoms.append(Num(Linear.of(symbol)))
    if not atoms or all(isinstance(a, Const) for a in atoms):
        oid = interpreter.place(("attribute", cls.module.path, cls.name, key))
        state.heap.setdefault(oid, Cell(name=key))
        atoms.append(Ref(oid))
    return Value(tuple(atoms))
