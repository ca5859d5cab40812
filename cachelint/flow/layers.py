"""The layers of a cache and their tensors: cut by hand, measured by their shape, or put together by hand."""

from __future__ import annotations

import re

import libcst as cst

from cachelint.flow.configs import Configs
from cachelint.flow.events import Assembled, Cut, LayersCounted, ShapeRead
from cachelint.flow.numbers import Linear
from cachelint.flow.state import ANY_ITEM, OF_CACHE, Cell, State
from cachelint.flow.values import TRUE, Num, Ref, Value, ref

_TENSORS = ("keys", "values")
LAYER_CLASSES = frozenset(
    {"DynamicLayer", "DynamicSlidingWindowLayer", "StaticLayer", "StaticSlidingWindowLayer", "QuantizedLayer"}
)
# Names of numbers of tokens, beside which a number of layers is out of place.
TOKEN_WORDS = frozenset("seq tokens token ids pos position length len shape past offset kept keep".split())


class Layers(Configs):
    """What code does to a cache's layers behind the cache's back."""

    def layers_of_cache(self, oid: int, state: State) -> Value:
        """`cache.layers`: a list of any number of layers."""
        listed, layer = self.place(("layers", oid)), self.place(("layer", oid))
        state.heap[layer] = Cell(kind="layer", name="layer", fields={OF_CACHE: ref(oid)})
        state.heap[listed] = Cell(kind="list", name="layers", fields={ANY_ITEM: ref(layer), OF_CACHE: ref(oid)})
        return ref(listed)

    def layer_attribute(self, oid: int, cell: Cell, name: str, state: State) -> Value:
        """An attribute of a layer, or of one of its tensors."""
        value = self.fresh(state, name)
        atom = value.single
        assert isinstance(atom, Ref)
        if (cell.kind == "layer" and name in _TENSORS) or name == "shape":
            fields = {OF_CACHE: cell.fields[OF_CACHE]} if OF_CACHE in cell.fields else {}
            kind = "tensor" if name in _TENSORS else ""
            state.heap[atom.oid] = Cell(kind=kind, name=name, fields=fields)
        return value

    def sliced_tensor(self, cell: Cell, state: State) -> Value:
        """A slice of a layer's tensor."""
        value = self.fresh(state, cell.name)
        atom = value.single
        assert isinstance(atom, Ref)
        state.heap[atom.oid] = state.cell(atom.oid).with_field(("#", "cut of"), cell.fields[OF_CACHE])
        return value

    def shape_read(self, cell: Cell, key: object, node: cst.CSTNode, state: State) -> None:
        """One dimension of a shape: that of the tokens tells no length."""
        if key in (-2, 2) and cell.name == "shape" and OF_CACHE in cell.fields:
            for oid, cache in self.caches(cell.fields[OF_CACHE], state):
                self.emit(ShapeRead(self.unit, node, self.calls, state.releases, cache), oid, "shape")

    def layer_stored(self, cell: Cell, name: str, value: Value, node: cst.CSTNode, state: State) -> None:
        """A store to an attribute of a layer."""
        if cell.kind != "layer" or name not in _TENSORS:
            return
        for atom in value.refs():
            source = state.cell(atom.oid).fields.get(("#", "cut of"))
            for oid, cache in self.caches(source, state) if source is not None else ():
                event = Cut(self.unit, node, self.calls, state.releases, cache, name)
                self.emit(event, oid, "cut", id(node))

    def layer_made(self, name: str, node: cst.Call, state: State) -> Value:
        """A layer class is called."""
        oid = self.place(self.site(node))
        state.heap[oid] = Cell(kind="layer", name=name, fields={("#", "made"): TRUE})
        return ref(oid)

    def layer_added(self, value: Value, node: cst.CSTNode, state: State) -> None:
        """A layer is put among those of a cache."""
        for atom in value.refs():
            cell = state.cell(atom.oid)
            built = cell.kind == "layer" and ("#", "made") in cell.fields
            if built and "keys" in cell.fields and "is_initialized" not in cell.fields:
                self.emit(Assembled(self.unit, node, self.calls, state.releases), "assembled")

    # The number of layers

    def layer_count(self, oid: int, state: State) -> Value:
        """`len(cache)`."""
        value = self.count(state, name="layers")
        number = value.single
        assert isinstance(number, Num)
        symbol = number.form.symbol
        assert symbol is not None
        self.numbering.counts[symbol] = oid
        return value

    def counted_beside(self, form: Linear, others: tuple[Linear, ...], node: cst.CSTNode, state: State) -> None:
        """A number that meets others in arithmetic or a comparison; a count of layers among tokens is told."""
        names = {symbol.name for other in others for symbol, _ in other.terms}
        lengths = any(symbol in self.lengths for other in others for symbol, _ in other.terms)
        if lengths or any(_is_of_tokens(name) for name in names):
            self.counted(form, node, state)

    def counted(self, form: Linear, node: cst.CSTNode, state: State) -> None:
        """A number is used as one of tokens; where it is one of layers that is told."""
        for symbol, _ in form.terms:
            oid = self.numbering.counts.get(symbol)
            cache = state.cell(oid).cache if oid is not None else None
            if cache is not None:
                self.emit(LayersCounted(self.unit, node, self.calls, state.releases, cache), oid, "layers counted")


def _is_of_tokens(name: str) -> bool:
    words = set(re.split(r"[\W_]+", name.lower()))
    return bool(words & TOKEN_WORDS) and not words & {"layers", "layer"}
