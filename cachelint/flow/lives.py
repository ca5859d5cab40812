"""The life of a cache under its names: aliases, tests of its truth, lengths that move, names of the library."""

from __future__ import annotations

import re

import libcst as cst

from cachelint.flow.dependence import dotted
from cachelint.flow.events import Aliased, LengthMoved, MaximumTested, Named, Tested
from cachelint.flow.layers import Layers
from cachelint.flow.library import is_transformers
from cachelint.flow.state import Key, State
from cachelint.flow.values import TRUE, Const, Num, Ref, Tup, Value

# Names that say that what they hold is to stay as it is.
_KEPT = re.compile(
    r"(?:^|_)(?:saved?|snap(?:shot)?s?|backups?|checkpoint|orig(?:inal)?|before|old|initial|base|copy|copied|clean"
    r"|pristine|template|frozen|stash|restore|prefix)(?:_|$)"
)
_MAXIMUM: Key = ("#", "maximum")


class Lives(Layers):
    """What happens to a cache between its making and its end, apart from being filled and cropped."""

    # Aliases

    def aliased(self, target: cst.BaseExpression, node: cst.BaseExpression, value: Value, state: State) -> None:
        """A name was bound to a value that `node` gave; of a cache it is kept how it was then."""
        path = dotted(target)
        caches = self.caches(value, state)
        if not path or len(caches) != 1 or len(value.atoms) != 1:
            return
        oid, cache = caches[0]
        source = dotted(node)
        how = "name" if source else "copy" if isinstance(node, cst.Call) and self._copies(node) else ""
        record = self._record(source, state) if source else None
        if record is not None and record[3] == path and record[0] == oid and not cache.fed <= record[1]:
            self._tell_alias(oid, "name", source, record[4], node, state)
        if not how:
            return
        told = (Value((Ref(oid),)), *(Value((Const(each),)) for each in (cache.fed, how, source, node)))
        self.numbering.kept.add(path)
        state.set_name(self.frame.number, f"#kept {path}", Value((Tup(told),)))

    def _copies(self, node: cst.Call) -> bool:
        return self.path(node.func) in ("copy.copy", "copy") or (
            isinstance(node.func, cst.Attribute) and node.func.attr.value == "copy" and not node.args
        )

    def _record(self, path: str, state: State) -> tuple[int, frozenset[int], str, str, cst.CSTNode] | None:
        """The place of the cache that a name was bound to, what had fed it, how, from which name, where."""
        found = state.frames.get(self.frame.number, {}).get(f"#kept {path}")
        told = found.single if found is not None else None
        if not isinstance(told, Tup):
            return None
        place, *rest = (item.single for item in told.items)
        if not isinstance(place, Ref) or not all(isinstance(each, Const) for each in rest):
            return None
        fed, how, source, node = (each.value for each in rest if isinstance(each, Const))
        assert isinstance(fed, frozenset) and isinstance(node, cst.CSTNode)
        return place.oid, fed, str(how), str(source), node

    def name_read(self, name: str, value: Value, node: cst.CSTNode, state: State) -> None:
        """A name is read: a kept cache may have changed, a length may have moved."""
        atom = value.single
        if isinstance(atom, Num) and atom.live is not None:
            oid, asked = atom.live
            cache = state.cell(oid).cache
            if cache is not None and cache.length != atom.form:
                event = LengthMoved(self.unit, node, self.calls, state.releases, cache, asked)
                self.emit(event, oid, "moved")
        if name in self.numbering.kept and isinstance(atom, Ref):
            self._kept_read(name, atom.oid, node, state)

    def _kept_read(self, name: str, oid: int, node: cst.CSTNode, state: State) -> None:
        record = self._record(name, state)
        cache = state.cell(oid).cache
        if record is None or cache is None or record[0] != oid:
            return
        if cache.fed <= record[1]:
            # Whatever changes it now does so under this name.
            state.forget_name(self.frame.number, f"#kept {name}")
        elif record[2] == "copy" or _KEPT.search(name.rpartition(".")[2]):
            self._tell_alias(oid, record[2], name, record[4], node, state)

    def _tell_alias(self, oid: int, how: str, name: str, bound: cst.CSTNode, node: cst.CSTNode, state: State) -> None:
        cache = state.cell(oid).cache
        assert cache is not None
        event = Aliased(self.unit, node, self.calls, state.releases, cache, how, name, bound)
        self.emit(event, oid, "alias")

    def repeated(self, value: Value, node: cst.CSTNode, state: State) -> None:
        """One cache is put several times into a list."""
        for oid, _ in self.caches(value, state):
            self._tell_alias(oid, "repeat", "", node, node, state)

    # Truth

    def tested(self, value: Value, node: cst.BaseExpression, state: State) -> None:
        """The truth of a value is asked for: of a cache, or of a maximum."""
        for atom in value.refs():
            cell = state.cell(atom.oid)
            if _MAXIMUM in cell.fields:
                self.maximum_tested(value, node, "truth", state)
            if cell.cache is None or cell.denied or ("#", "may be something else") in cell.fields:
                continue
            if cell.cls is not None and (cell.cls.defines("__bool__") or cell.cls.defines("__len__")):
                continue
            least = state.range(cell.cache.length).lo
            if least is not None and least > 0:
                continue
            maybe = "None" if Const(None) in value.atoms or not cell.cache.seen else ""
            event = Tested(self.unit, node, self.calls, state.releases, cell.cache, maybe)
            self.emit(event, atom.oid, "truth")

    def maximum(self, state: State) -> Value:
        """What `get_max_length()` gives."""
        value = self.fresh(state, "maximum")
        atom = value.single
        assert isinstance(atom, Ref)
        state.heap[atom.oid] = state.cell(atom.oid).with_field(_MAXIMUM, TRUE)
        return value

    def maximum_tested(self, value: Value, node: cst.BaseExpression, how: str, state: State) -> None:
        """A value is tested as to whether it is something at all; of a maximum that is told."""
        if not any(_MAXIMUM in state.cell(atom.oid).fields for atom in value.refs()):
            return
        operand = node.left if isinstance(node, cst.Comparison) else node
        event = MaximumTested(self.unit, node, self.calls, state.releases, how, operand)
        self.emit(event, "maximum")

    # Names of the library

    def library_named(self, name: str, node: cst.CSTNode, state: State) -> None:
        """A thing of a library is imported or used by its dotted name, and no handler stands by."""
        if not is_transformers(name) or "." not in name:
            return
        if any(caught & _IMPORT_ERRORS for caught in self.caught):
            return
        module, _, last = name.rpartition(".")
        self.emit(Named(self.unit, node, self.calls, state.releases, last, module), name)


_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"})
