"""What depends on what inside one function, by names alone: whether a prompt continues an earlier answer.

The interpreter forgets how tensors and texts were made; here only the names in assignments and calls are read,
without regard to their order, so that "depends" is said rather too often than too seldom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

# Calls that put two sequences together; a name that such a call extends holds a growing sequence.
_JOINS = frozenset({"cat", "concat", "concatenate", "hstack", "append"})


class Dependence:
    """The dependences between the dotted names of one function (or of a piece of a module)."""

    def __init__(self, *bodies: cst.CSTNode) -> None:
        self._on: dict[str, set[str]] = {}
        self._holders: dict[cst.CSTNode, frozenset[str]] = {}
        self.grown: set[str] = set()
        self.values: dict[str, list[cst.CSTNode]] = {}
        self._targets: set[str] = set()
        for body in bodies:
            self._read(body, ())

    @property
    def loops(self) -> frozenset[str]:
        """The names that a loop binds anew each turn."""
        return frozenset(self._targets)

    def outcomes(self, call: cst.CSTNode) -> frozenset[str]:
        """The names that the statement around `call` binds or extends."""
        return self._holders.get(call, frozenset())

    def behind(self, names: frozenset[str]) -> frozenset[str]:
        """The names that the given ones depend on, themselves included."""
        found: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name in found:
                continue
            found.add(name)
            pending.extend(self._on.get(name, ()))
            # What is done to the whole is done to its parts.
            whole = name.rpartition(".")[0]
            if whole in self._on:
                pending.append(whole)
        return frozenset(found)

    def _bind(self, targets: frozenset[str], node: cst.CSTNode) -> None:
        sources = names_in(node)
        for target in targets:
            self._on.setdefault(target, set()).update(sources)
            self.values.setdefault(target, []).append(node)

    def _read(self, node: cst.CSTNode, around: tuple[frozenset[str], ...]) -> None:
        bound: frozenset[str] = frozenset()
        if isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign)) and node.value is not None:
            targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
            bound = frozenset(name for target in targets for name in names_in(target))
            self._bind(bound, node.value)
            self._note_growth(node.value, targets)
        elif isinstance(node, cst.NamedExpr):
            bound = names_in(node.target)
            self._bind(bound, node.value)
        elif isinstance(node, (cst.For, cst.CompFor)):
            bound = names_in(node.target)
            self._bind(bound, node.iter)
            self._targets |= bound
        elif isinstance(node, cst.WithItem) and node.asname is not None:
            self._bind(names_in(node.asname.name), node.item)
        elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call) and not _only_tells(node.value):
            bound = self._mutated(node.value)
        if isinstance(node, cst.Call):
            self._holders[node] = frozenset(name for names in around for name in names)
        inner = around if isinstance(node, (cst.For, cst.CompFor)) or not bound else (*around, bound)
        for child in node.children:
            self._read(child, inner)

    def _mutated(self, call: cst.Call) -> frozenset[str]:
        """A call for its effect: `a.append(b)` makes `a` depend on `b`, `f(a, b)` each on the other."""
        arguments = frozenset(name for arg in call.args for name in names_in(arg.value))
        changed = names_in(call.func.value) if isinstance(call.func, cst.Attribute) else arguments
        for arg in call.args:
            self._bind(changed, arg.value)
        return changed

    def _note_growth(self, call: cst.BaseExpression, targets: Sequence[cst.BaseExpression]) -> None:
        if not isinstance(call, cst.Call) or dotted(call.func).rpartition(".")[2] not in _JOINS:
            return
        parts: list[cst.BaseExpression] = []
        for arg in call.args:
            value = arg.value
            parts += [e.value for e in value.elements] if isinstance(value, (cst.List, cst.Tuple)) else [value]
        for target in targets:
            name = dotted(target)
            if name and any(dotted(part) == name for part in parts):
                self.grown.add(name)


def _only_tells(call: cst.Call) -> bool:
    """Whether a call shows its arguments to somebody and changes none of them."""
    path = dotted(call.func)
    return path.partition(".")[0] in ("print", "logger", "logging", "log", "warnings", "pprint")


def dotted(node: cst.CSTNode) -> str:
    """`a.b.c` of a name or attribute, empty for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr.value}" if base else ""
    return ""


def names_in(node: cst.CSTNode) -> frozenset[str]:
    """The dotted names that stand in an expression; of a method call, the receiver, or the method of `self`."""
    return frozenset(_names(node))


def _names(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.Call):
        path = dotted(node.func)
        if path.startswith(("self.", "cls.")) and path.count(".") == 1:
            # What a method gives can depend on all that the object holds.
            yield path
        elif isinstance(node.func, cst.Attribute):
            yield from _names(node.func.value)
        elif not isinstance(node.func, cst.Name):
            yield from _names(node.func)
        for arg in node.args:
            yield from _names(arg.value)
        return
    path = dotted(node)
    if path:
        yield path
        return
    for child in node.children:
        yield from _names(child)


def calls_in(node: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls in an expression, outermost first."""
    if isinstance(node, cst.Call):
        yield node
    for child in node.children:
        yield from calls_in(child)
