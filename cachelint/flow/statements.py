"""Statements: assignment, branches, loops, exceptions, functions and classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from cachelint.flow.calls import Calls
from cachelint.flow.events import Crop, Event
from cachelint.flow.expressions import is_pair
from cachelint.flow.library import names_no_grad
from cachelint.flow.machine import Loop
from cachelint.flow.numbers import Linear
from cachelint.flow.project import LocalFunction
from cachelint.flow.state import ANY_ITEM, Key, State
from cachelint.flow.values import NONE, UNKNOWN, Cls, Func, Num, Ref, Tup, Value

MAX_ROUNDS = 5
# Names of a number of tokens.
_OF_TOKENS = re.compile(
    r"(?:past|seq|sequence|cached?|kv|prefix|prompt|context)_?(?:len|length)$|num_tokens|n_tokens|start_pos|offset$"
)


class Statements(Calls):
    """Execution. A method takes a node and a state and returns the state behind it, None where none is."""

    def execute(self, body: Sequence[cst.CSTNode], state: State | None) -> State | None:
        """The state behind a sequence of statements."""
        for node in body:
            if state is None:
                return None
            self.tick()
            self.frame.statement = self.numbering.serial()
            self.frame.touched.clear()
            handler = _STATEMENTS.get(type(node))
            if handler is not None:
                state = handler(self, node, state)
            if state is not None and len(state.heap) + len(state.ranges) > self.collect_at:
                self.collect(state)
        return state

    def suite(self, node: cst.BaseSuite, state: State | None) -> State | None:
        """The state behind an indented block or the statements on one line."""
        return self.execute(node.body, state)

    def line(self, node: cst.SimpleStatementLine, state: State) -> State | None:
        return self.execute(node.body, state)

    # Simple statements

    def expression(self, node: cst.Expr, state: State) -> State | None:
        value = self.eval(node.value, state)
        return None if self._never_returns(node.value, value) else state

    def _never_returns(self, node: cst.BaseExpression, value: Value) -> bool:
        if not isinstance(node, cst.Call):
            return False
        return self.path(node.func) in ("sys.exit", "exit", "quit", "os._exit", "pytest.skip", "pytest.fail")

    def assign(self, node: cst.Assign, state: State) -> State | None:
        value = self.eval(node.value, state)
        for target in node.targets:
            self.bind(target.target, value, state, node)
        self.aliased(node.targets[0].target, node.value, value, state)
        return state

    def annotated(self, node: cst.AnnAssign, state: State) -> State | None:
        value = self.eval(node.value, state) if node.value is not None else self.fresh(state)
        value = self.annotate(value, node.annotation, state)
        if node.value is not None:
            self.bind(node.target, value, state, node)
        return state

    def augmented(self, node: cst.AugAssign, state: State) -> State | None:
        left = self.eval(node.target, state)
        right = self.eval(node.value, state)
        value = self.arithmetic(type(node.operator).__name__, left, right, node, state)
        self.bind(node.target, value, state, node)
        return state

    def bind(
        self,
        target: cst.BaseExpression,
        value: Value,
        state: State,
        node: cst.CSTNode | None = None,
    ) -> None:
        """Assign to a target of any form; `node` is the statement, which becomes a step of the evidence."""
        if isinstance(target, cst.Name):
            number = self.frame.elsewhere.get(target.value, self.frame.number)
            value = self._traced(target.value, value, node, state)
            state.set_name(number, target.value, value)
        elif isinstance(target, cst.Attribute):
            receiver = self.eval(target.value, state)
            self.store_attribute(receiver, target.attr.value, value, state, target)
            if target.attr.value == "cache_implementation":
                self.implementation(value, target, state)
        elif isinstance(target, cst.Subscript):
            self._store_item(target, value, state)
        elif isinstance(target, (cst.Tuple, cst.List)):
            self._unpack(target.elements, value, state, node)
        elif isinstance(target, cst.StarredElement):
            self.bind(target.value, value, state, node)

    def _traced(self, name: str, value: Value, node: cst.CSTNode | None, state: State) -> Value:
        if node is None:
            return value
        atom = value.single
        if isinstance(atom, Num):
            if isinstance(node, (cst.Assign, cst.AnnAssign)) and node.value is not None:
                if self.numbering.counts and isinstance(node.value, cst.Call) and _OF_TOKENS.search(name):
                    self.counted(atom.form, node.value, state)
                trail = self.step(node, f"`{name}` is", atom.trail, node.value)
                return Value((replace(atom, trail=trail),))
        elif isinstance(atom, Ref) and self.is_open(atom, state) and isinstance(node, cst.Assign):
            cell = state.cell(atom.oid)
            if cell.trail is None:
                state.heap[atom.oid] = replace(cell, trail=self.step(node, f"`{name}` is", None, node.value))
        return value

    def _unpack(
        self, elements: Sequence[cst.BaseElement], value: Value, state: State, node: cst.CSTNode | None
    ) -> None:
        atom = value.single
        plain = not any(isinstance(element, cst.StarredElement) for element in elements)
        if isinstance(atom, Tup) and plain and len(atom.items) == len(elements):
            for element, item in zip(elements, atom.items, strict=True):
                self.bind(element.value, item if item.atoms else self.fresh(state), state)
            return
        for index, element in enumerate(elements):
            if isinstance(element, cst.StarredElement):
                self.bind(element.value, self.fresh(state), state)
            else:
                key = Value((Num(Linear((), index)),)) if plain else UNKNOWN
                self.bind(element.value, self.item(value, key, state), state)

    def store_attribute(
        self, receiver: Value, name: str, value: Value, state: State, node: cst.CSTNode | None = None
    ) -> None:
        """The effect of `receiver.name = value`: certain where the receiver is one thing."""
        refs = receiver.refs()
        for atom in refs:
            if node is not None:
                self.member(atom.oid, name, node, state, stored=True)
            cell = state.cell(atom.oid)
            if node is not None:
                self.layer_stored(cell, name, value, node, state)
                if name == "layers" and cell.cache is not None:
                    self.layer_added(self.element(value, state), node, state)
            if len(refs) > 1 and name in cell.fields:
                value = cell.fields[name].union(value)
            state.heap[atom.oid] = cell.with_field(name, value)
            self.stored(atom.oid, name, value, state)
        if node is not None:
            self.replaced(receiver, name, value, node, state)
        klass = receiver.single
        if isinstance(klass, Cls):
            self.stored_on_class(klass.cls, name, value, state)

    def replaced(self, receiver: Value, name: str, value: Value, node: cst.CSTNode, state: State) -> None:
        """An attribute is replaced by something, which can be a function."""

    def shared_parameter(self, param: cst.Param, state: State) -> None:
        """The default of a parameter."""

    def stored(self, oid: int, name: str, value: Value, state: State) -> None:
        """Called after each store to an attribute."""

    def stored_on_class(self, cls: object, name: str, value: Value, state: State) -> None:
        """Called for a store to an attribute of a class."""

    def _store_item(self, target: cst.Subscript, value: Value, state: State) -> None:
        receiver = self.eval(target.value, state)
        index = target.slice[0].slice
        key: object = ...
        if len(target.slice) == 1 and isinstance(index, cst.Index):
            key = self.eval(index.value, state).const()
        field: Key = ANY_ITEM if key is ... else ("item", key)
        for atom in receiver.refs():
            cell = state.cell(atom.oid)
            if field == ANY_ITEM or len(receiver.refs()) > 1:
                value = cell.fields.get(field, UNKNOWN).union(value)
            if field != ANY_ITEM or cell.kind in ("list", "dict"):
                state.heap[atom.oid] = cell.with_field(field, value)

    def delete(self, node: cst.Del, state: State) -> State | None:
        if isinstance(node.target, cst.Name):
            state.forget_name(self.frame.number, node.target.value)
        return state

    def returned(self, node: cst.Return, state: State) -> State | None:
        value = NONE if node.value is None else self.eval(node.value, state)
        self.frame.returns.append((state, value))
        return None

    def raised(self, node: cst.Raise, state: State) -> State | None:
        if node.exc is not None:
            self.eval(node.exc, state)
        return None

    def asserted(self, node: cst.Assert, state: State) -> State | None:
        true, _ = self.branch(node.test, state)
        return true

    def broken(self, node: cst.Break, state: State) -> State | None:
        if self.loops:
            self.loops[-1].breaks.append(state)
        return None

    def continued(self, node: cst.Continue, state: State) -> State | None:
        if self.loops:
            self.loops[-1].continues.append(state)
        return None

    def declared_global(self, node: cst.Global, state: State) -> State | None:
        for item in node.names:
            self.frame.elsewhere[item.name.value] = self.globals_of(self.frame.module)
        return state

    def declared_nonlocal(self, node: cst.Nonlocal, state: State) -> State | None:
        for item in node.names:
            outer = self.frame.outer
            while outer is not None and item.name.value not in state.frames.get(outer, {}):
                outer = self.frames[outer].outer
            if outer is not None:
                self.frame.elsewhere[item.name.value] = outer
        return state

    def imported(self, node: cst.Import, state: State) -> State | None:
        for alias in node.names:
            name = self.path(alias.name) if isinstance(alias.name, cst.Attribute) else alias.name.value
            bound = alias.evaluated_alias or str(name).split(".")[0]
            module = str(name) if alias.evaluated_alias else bound
            self._bind_import(bound, module, None, 0, state)
        return state

    def imported_from(self, node: cst.ImportFrom, state: State) -> State | None:
        module = self.path(node.module) if node.module is not None else ""
        if isinstance(node.names, cst.ImportStar):
            return state
        for alias in node.names:
            name = alias.evaluated_name
            if not node.relative:
                self.library_named(f"{module}.{name}", alias, state)
            self._bind_import(alias.evaluated_alias or name, module, name, len(node.relative), state)
        return state

    def _bind_import(self, bound: str, module: str, name: str | None, level: int, state: State) -> None:
        found = self.project.imported(self.frame.module, module, name, level)
        value = UNKNOWN
        for thing in found:
            value = value.union(self.resolved(thing, bound, state))
        number = self.frame.elsewhere.get(bound, self.frame.number)
        state.set_name(number, bound, value if value.atoms else self.fresh(state, bound))

    # Compound statements

    def conditional_statement(self, node: cst.If, state: State) -> State | None:
        true, false = self.branch(node.test, state)
        if true is not None:
            true = self.suite(node.body, true)
        if false is not None and node.orelse is not None:
            if isinstance(node.orelse, cst.If):
                false = self.conditional_statement(node.orelse, false)
            else:
                false = self.suite(node.orelse.body, false)
        return self.join(true, false)

    def while_loop(self, node: cst.While, state: State) -> State | None:
        def enter(head: State) -> tuple[State | None, State | None]:
            return self.branch(node.test, head)

        return self._loop(node, node.body, node.orelse, enter, state)

    def for_loop(self, node: cst.For, state: State) -> State | None:
        iterable = self.eval(node.iter, state)
        if is_pair(node.target):
            for atom in iterable.refs():
                self.taken(atom.oid, "iterate", node.iter, state)
        held = f"#{id(node)}"
        state.set_name(self.frame.number, held, iterable)

        def enter(head: State) -> tuple[State | None, State | None]:
            done = head.copy()
            self.bind(node.target, self.element(iterable, head), head)
            return head, done

        after = self._loop(node, node.body, node.orelse, enter, state)
        if after is not None:
            after.forget_name(self.frame.number, held)
        return after

    def _loop(
        self,
        node: cst.CSTNode,
        body: cst.BaseSuite,
        orelse: cst.Else | None,
        enter: Callable[[State], tuple[State | None, State | None]],
        state: State,
    ) -> State | None:
        """Run a loop to its fixpoint: the head is joined with what comes back until nothing new does."""
        head = state
        tag = self.site(node)
        loop = Loop()
        done: State | None = None
        for _ in range(MAX_ROUNDS):
            loop = Loop()
            self.loops.append(loop)
            inside, done = enter(head.copy())
            end = self.suite(body, inside)
            self.loops.pop()
            back = self.join_all([end, *loop.continues])
            if back is None:
                break
            joined = self.join(head, self._settled(back, head), tag, widen=True)
            assert joined is not None
            if _same(joined, head):
                break
            head = joined
        if orelse is not None and done is not None:
            done = self.suite(orelse.body, done)
        return self.join_all([done, *loop.breaks])

    @staticmethod
    def _settled(back: State, head: State) -> State:
        """What comes back to the head, without the numbers of the round that has ended."""
        back.frames = {number: names for number, names in back.frames.items() if number in head.frames}
        return back

    def with_block(self, node: cst.With, state: State) -> State | None:
        swallows = False
        quiet = sum(self._turns_autograd_off(item.item) for item in node.items)
        for item in node.items:
            value = self.eval(item.item, state)
            if isinstance(item.item, cst.Call):
                swallows = swallows or self.path(item.item.func).split(".")[-1] == "suppress"
            if item.asname is not None:
                entered = self._entered(value, item.item, state)
                self.bind(item.asname.name, entered, state)
        self.no_grad += quiet
        try:
            return self._inside(node, state) if swallows else self.suite(node.body, state)
        finally:
            self.no_grad -= quiet

    def _inside(self, node: cst.With, state: State) -> State | None:
        """The body of a block that swallows what it raises."""
        known = dict(self.events)
        before = state.copy()
        failed = self.join(self.suite(node.body, state), before)
        if failed is not None:
            self._fail(self._cropped_since(known), failed)
        return failed

    def _turns_autograd_off(self, node: cst.BaseExpression) -> bool:
        if not isinstance(node, cst.Call):
            return False
        return names_no_grad(self.path(node.func), self.unit.text(node))

    def _entered(self, value: Value, node: cst.BaseExpression, state: State) -> Value:
        atom = value.single
        if isinstance(atom, Ref):
            cell = state.cell(atom.oid)
            method = cell.cls.method("__enter__") if cell.cls is not None else None
            if method is not None:
                return self.call_function(Func(method, 0, value), [], {}, node, state)
            if ("#", "entered") in cell.fields:
                return cell.fields[("#", "entered")]
        return value

    def try_block(self, node: cst.Try | cst.TryStar, state: State) -> State | None:
        points = [state.copy()]
        before = dict(self.events)
        after: State | None = state
        self.caught.append(self._caught_by(node))
        for statement in node.body.body:
            after = self.execute([statement], after)
            if after is None:
                break
            points.append(after.copy())
        self.caught.pop()
        failed = self.join_all(points)
        cropped = self._cropped_since(before)
        if after is not None and node.orelse is not None:
            after = self.suite(node.orelse.body, after)
        ends = [after]
        for handler in node.handlers:
            if failed is None:
                break
            caught = failed.copy()
            self._fail(cropped, caught)
            if handler.name is not None:
                self.bind(handler.name.name, self.fresh(caught), caught)
            ends.append(self._absolved(cropped, self.suite(handler.body, caught)))
        joined = self.join_all(ends)
        if node.finalbody is None:
            return joined
        if joined is None and failed is not None:
            # Only an exception (or a return) goes on; the block still runs, but nothing behind it does.
            self.suite(node.finalbody.body, failed)
            return None
        return self.suite(node.finalbody.body, joined) if joined is not None else None

    def _caught_by(self, node: cst.Try | cst.TryStar) -> frozenset[str]:
        """The names of the exceptions that the handlers catch; a bare `except` catches `Exception`."""
        found: set[str] = set()
        for handler in node.handlers:
            kind = handler.type
            parts = [element.value for element in kind.elements] if isinstance(kind, cst.Tuple) else [kind]
            found.update(self.path(part).split(".")[-1] if part is not None else "Exception" for part in parts)
        return frozenset(found)

    def _cropped_since(self, before: dict[Hashable, Event]) -> list[int]:
        """The caches of which a crop was told that is not in `before`."""
        return [
            oid
            for key, event in self.events.items()
            if isinstance(event, Crop) and before.get(key) is not event
            for oid in (key[-1],)  # type: ignore[index]
            if isinstance(oid, int)
        ]

    def _absolved(self, cropped: list[int], state: State | None) -> State | None:
        """The state behind a handler; a cache that it dropped cannot be used any more."""
        if state is not None and cropped:
            held = self.reachable([v for names in state.frames.values() for v in names.values()], state)
            for oid in cropped:
                cache = state.cell(oid).cache
                if cache is not None and oid not in held:
                    self.set_cache(state, oid, replace(cache, failed=False))
        return state

    def _fail(self, cropped: list[int], state: State) -> None:
        """A crop of each of the caches may have raised half way."""
        for oid in cropped:
            cache = state.cell(oid).cache
            if cache is not None:
                self.set_cache(state, oid, replace(cache, failed=True))

    def match_block(self, node: cst.Match, state: State) -> State | None:
        self.eval(node.subject, state)
        ends: list[State | None] = [state.copy()]
        for case in node.cases:
            inside: State | None = state.copy()
            assert inside is not None
            for name in _captured(case.pattern):
                inside.set_name(self.frame.number, name, self.fresh(inside, name))
            if case.guard is not None:
                inside, _ = self.branch(case.guard, inside)
            if isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None and case.guard is None:
                ends[0] = None
            ends.append(self.suite(case.body, inside) if inside is not None else None)
        return self.join_all(ends)

    # Definitions

    def function(self, node: cst.FunctionDef, state: State) -> State | None:
        function = self.local(LocalFunction(self.unit, node, node.name.value, self.frame.cls), node)
        value = Value((Func(function, self.frame.number),))
        for param in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params):
            self.shared_parameter(param, state)
        for decorator in reversed(node.decorators):
            value = self._decorated(value, decorator.decorator, state)
        self.defined.setdefault(function, self.frame.number)
        state.set_name(self.frame.number, node.name.value, value)
        return state

    def _decorated(self, value: Value, node: cst.BaseExpression, state: State) -> Value:
        # A decorator from a library keeps the function; one of the project can put anything in its place,
        # and most often wraps it.
        return value

    def definition_of_class(self, node: cst.ClassDef, state: State) -> State | None:
        found = self.project.resolve(self.frame.module, node.name.value)
        value = UNKNOWN
        for thing in found:
            value = value.union(self.resolved(thing, node.name.value, state))
        if not any(isinstance(atom, Cls) for atom in value.atoms):
            value = self.fresh(state, node.name.value)
        state.set_name(self.frame.number, node.name.value, value)
        return state


def _captured(pattern: cst.MatchPattern) -> list[str]:
    found: list[str] = []
    pending: list[cst.CSTNode] = [pattern]
    while pending:
        node = pending.pop()
        if isinstance(node, (cst.MatchAs, cst.MatchStar)) and node.name is not None:
            found.append(node.name.value)
        pending.extend(child for child in node.children if not isinstance(child, cst.BaseExpression))
    return found


def _same(joined: State, head: State) -> bool:
    """Whether the join brought nothing new to what the head knew; what only one round made does not count."""
    return (
        joined.frames == head.frames
        and joined.releases == head.releases
        and joined.facts == head.facts
        and all((now := joined.heap.get(oid)) is cell or now == cell for oid, cell in head.heap.items())
        and all((here := joined.ranges.get(symbol)) is span or here == span for symbol, span in head.ranges.items())
    )


_STATEMENTS: dict[type[cst.CSTNode], Callable[[Any, Any, State], State | None]] = {
    cst.SimpleStatementLine: Statements.line,
    cst.Expr: Statements.expression,
    cst.Assign: Statements.assign,
    cst.AnnAssign: Statements.annotated,
    cst.AugAssign: Statements.augmented,
    cst.Del: Statements.delete,
    cst.Return: Statements.returned,
    cst.Raise: Statements.raised,
    cst.Assert: Statements.asserted,
    cst.Break: Statements.broken,
    cst.Continue: Statements.continued,
    cst.Global: Statements.declared_global,
    cst.Nonlocal: Statements.declared_nonlocal,
    cst.Import: Statements.imported,
    cst.ImportFrom: Statements.imported_from,
    cst.If: Statements.conditional_statement,
    cst.While: Statements.while_loop,
    cst.For: Statements.for_loop,
    cst.With: Statements.with_block,
    cst.Try: Statements.try_block,
    cst.TryStar: Statements.try_block,
    cst.Match: Statements.match_block,
    cst.FunctionDef: Statements.function,
    cst.ClassDef: Statements.definition_of_class,
}
