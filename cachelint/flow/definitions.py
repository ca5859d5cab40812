"""Definitions: methods of the library that are overridden or replaced, caches that are made once for all calls."""

from __future__ import annotations

import libcst as cst

from cachelint.flow.dependence import dotted
from cachelint.flow.events import Overridden, SharedDefault
from cachelint.flow.library import is_transformers
from cachelint.flow.project import Class, Function, LocalFunction
from cachelint.flow.state import State
from cachelint.flow.statements import Statements
from cachelint.flow.values import Func, Lib, Value

_METHODS = ("forward", "prepare_inputs_for_generation", "update")


class Definitions(Statements):
    """What definitions tell, whoever calls them."""

    # Overrides

    def class_defined(self, cls: Class, state: State) -> None:
        """The methods of a class of the project that stand in place of the library's."""
        bases = [base for base in cls.ancestry[1] if is_transformers(base)]
        if not bases:
            return
        own = [name for each in cls.ancestry[0] for name in each.skeleton.methods]
        for name in _METHODS:
            if name in cls.skeleton.methods:
                method = cls.module.function(cls.skeleton.methods[name], cls)
                unit, node = method.definition
                event = Overridden(
                    unit,
                    node.name,
                    None,
                    state.releases,
                    bases[0],
                    name,
                    _parameters(node.params),
                    unit.text(node),
                    frozenset(own),
                )
                self.emit(event, cls.name, name)
        unit = cls.module.unit(cls.skeleton.start, cls.skeleton.end)
        definition = next(node for node in unit.body if isinstance(node, cst.ClassDef))
        whole = Overridden(unit, definition.name, None, state.releases, bases[0], "", (), "", frozenset(own))
        self.emit(whole, cls.name)

    def replaced(self, receiver: Value, name: str, value: Value, node: cst.CSTNode, state: State) -> None:
        """`Class.forward = function` of a class of the library."""
        function = value.single
        if name not in _METHODS or not isinstance(function, Func):
            return
        owner = receiver.single
        if not isinstance(owner, Lib) or not is_transformers(owner.name):
            return
        base = owner.name
        definition = _definition(function.function)
        if isinstance(definition, cst.FunctionDef):
            parameters = _parameters(definition.params)
            text = function.function.text
            event = Overridden(self.unit, node, self.calls, state.releases, base, name, parameters, text)
            self.emit(event, base, name)

    # Made once

    def shared_parameter(self, param: cst.Param, state: State) -> None:
        """The default of a parameter, where it is a call."""
        if isinstance(param.default, cst.Call):
            self._made_once(param.default, "parameter", param.name.value, state)

    def shared_field(self, body: cst.CSTNode, state: State) -> None:
        """An assignment in the body of a class."""
        for node in body.body if isinstance(body, cst.SimpleStatementLine) else ():
            target: cst.BaseExpression | None = None
            if isinstance(node, cst.Assign):
                target = node.targets[0].target
            elif isinstance(node, cst.AnnAssign) and "ClassVar" not in self.unit.text(node.annotation.annotation):
                target = node.target
            value = node.value if isinstance(node, (cst.Assign, cst.AnnAssign)) else None
            if target is None or not isinstance(value, cst.Call):
                continue
            if dotted(value.func).rpartition(".")[2] in ("field", "Field"):
                default = next((a.value for a in value.args if a.keyword and a.keyword.value == "default"), None)
                value = default if isinstance(default, cst.Call) else None
            if value is not None:
                self._made_once(value, "class", dotted(target), state)

    def _made_once(self, node: cst.Call, how: str, name: str, state: State) -> None:
        for oid, cache in self.caches(self.eval(node, state), state):
            if cache.trail is not None and cache.trail.step.node is node:
                self.emit(SharedDefault(self.unit, node, self.calls, state.releases, cache, how, name), oid, "shared")


def _definition(function: Function) -> cst.CSTNode:
    return function.node if isinstance(function, LocalFunction) else function.definition[1]


def _parameters(params: cst.Parameters) -> tuple[str, ...]:
    """The names of a method's parameters without the receiver, with "*" and "**" where others are taken."""
    named = [p.name.value for p in (*params.posonly_params, *params.params)][1:]
    named += [p.name.value for p in params.kwonly_params]
    stars = ["*"] if isinstance(params.star_arg, cst.Param) else []
    return (*named, *stars, *(["**"] if params.star_kwarg is not None else []))
