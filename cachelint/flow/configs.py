"""Models and configurations: which layers a cache gets that is made from one."""

from __future__ import annotations

from dataclasses import dataclass

from cachelint.contracts import models
from cachelint.flow.library import ANY_LAYERS
from cachelint.flow.narrowing import Narrowing
from cachelint.flow.numbers import Linear
from cachelint.flow.state import Cell, Key, State
from cachelint.flow.values import Const, Value, ref

CHECKPOINT: Key = ("#", "checkpoint")
# The model that a configuration belongs to.
OWNER: Key = ("#", "owner")


@dataclass(frozen=True, slots=True)
class KnownLayers:
    """The layer kinds that a cache may hold, whether that is certain, and the window where one is known."""

    kinds: frozenset[str] = ANY_LAYERS
    sure: bool = False
    window: Linear | None = None


class Configs(Narrowing):
    """What configurations and models say of the layers of their caches."""

    def layers_of_config(self, config: Value, state: State) -> KnownLayers:
        """The layers of a cache that is made from a configuration."""
        cells = [state.cell(atom.oid) for atom in config.refs()]
        if len(cells) != 1 or len(config.atoms) != 1 or cells[0].kind not in ("config", ""):
            return KnownLayers()
        cell = cells[0]
        known, sure = self._published(cell)
        window = Linear((), known.window) if known is not None and known.window is not None else None
        kinds = known.kinds if known is not None else ANY_LAYERS
        stored = cell.fields.get("sliding_window")
        if stored is not None:
            kinds, window = self._with_window(cell, stored, kinds, window, state)
        elif window is None and kinds & {"sliding", "chunked"}:
            number = self.num(self.attribute(config, "sliding_window", state), state)
            window = number.form if number is not None else None
        return KnownLayers(kinds, sure and known is not None, window)

    def layers_of_model(self, model: Value, state: State) -> KnownLayers:
        """The layers of the cache that a model makes for itself."""
        return self.layers_of_config(self.attribute(model, "config", state), state)

    def _published(self, cell: Cell) -> tuple[models.Layers | None, bool]:
        """What the class or the checkpoint's name tells; and whether nothing else is possible."""
        checkpoint = cell.fields.get(CHECKPOINT)
        if checkpoint is None:
            family = models.model_type(cell.name)
            variant = "use_sliding_window" if _is_true(cell.fields.get("use_sliding_window")) else ""
            return (models.of_type(family, variant), True) if family else (None, False)
        names = [a.value for a in checkpoint.atoms if isinstance(a, Const) and isinstance(a.value, str)]
        found = [models.of_checkpoint(name) for name in names]
        if len(found) != 1 or found[0] is None:
            return None, False
        return found[0], len(checkpoint.atoms) == 1

    def _with_window(
        self, cell: Cell, stored: Value, kinds: frozenset[str], window: Linear | None, state: State
    ) -> tuple[frozenset[str], Linear | None]:
        """The layers with a `sliding_window` that the code sets itself."""
        if stored.const() is None:
            return (kinds - {"sliding", "chunked"}) or frozenset({"full"}), None
        number = self.num(stored, state)
        if number is None:
            return kinds, window
        family = models.model_type(cell.name)
        slides = models.of_type(family, "sliding_window=8") if family and not kinds & {"sliding"} else None
        if slides is not None:
            kinds = slides.kinds
        return kinds, number.form if kinds & {"sliding", "chunked"} else window

    def config_of(self, oid: int, cell: Cell, state: State) -> Value:
        """The `config` attribute of a model that was not given one."""
        fields = {OWNER: ref(oid)}
        if CHECKPOINT in cell.fields:
            fields[CHECKPOINT] = cell.fields[CHECKPOINT]
        place = self.place(("config of", oid))
        state.heap[place] = Cell(kind="config", name=cell.name, fields=fields)
        return ref(place)


def _is_true(value: Value | None) -> bool:
    return value is not None and value.const() is True
