"""What happens to a KV cache: made, filled, recorded, cropped, given away."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from cachelint.flow.arguments import Arguments
from cachelint.flow.configs import OWNER, KnownLayers
from cachelint.flow.events import Amount, Crop, Made, Member, Recorded, Reset, Taken, UsedAfterFailure
from cachelint.flow.library import CACHE_CLASSES
from cachelint.flow.lives import Lives
from cachelint.flow.numbers import Linear, Range
from cachelint.flow.state import Cache, Cell, Key, State
from cachelint.flow.values import NONE, UNKNOWN, Method, Num, Ref, Value, ref

CACHE_METHODS = frozenset(
    [
        "crop",
        "get_seq_length",
        "activate_past_recording",
        "reset",
        "update",
        "reorder_cache",
        "get_max_length",
        "get_max_cache_shape",
        "get_usable_length",
        "to_legacy_cache",
        "batch_repeat_interleave",
        "batch_select_indices",
        "batch_split",
        "get_mask_sizes",
    ]
)
ANY_RECORDING = frozenset({"no", "before", "late"})


class Caches(Lives):
    """Transfer functions of the library's caches."""

    # Made

    def make_cache(self, oid: int, name: str, args: Arguments, node: cst.CSTNode, state: State) -> None:
        """Put a cache that the constructor of class `name` makes at `oid`."""
        known = CACHE_CLASSES[name]
        config = args.keywords.get("config")
        layers, sure, made = known.layers, True, f"`{name}()` makes the cache"
        window: Linear | None = None
        if known.with_config is not None and (args.hidden or (config is not None and config.const() is not None)):
            told = self.layers_of_config(config, state) if config is not None else KnownLayers()
            layers, sure, window = told.kinds, told.sure, told.window
            made = f"`{name}(config=…)` makes a layer for each of the model's layer types"
        told_config = known.with_config is not None and config is not None and config.const() is not None
        halves = [cache for value in args.args for _, cache in self.caches(value, state)]
        if name == "EncoderDecoderCache" and halves:
            layers, sure = halves[0].layers, halves[0].sure
        filled = bool(args.args) and name != "EncoderDecoderCache" and "static" not in layers
        cache = Cache(
            classes=frozenset({name}) if name != "Cache" else frozenset(),
            layers=layers,
            sure=sure,
            seen=bool(layers),
            window=window,
            length=self.length_form(state) if filled or args.hidden else Linear(),
            configured=told_config or args.hidden or "static" in layers,
            origin=self._owner_of(config or (args.args[0] if args.args else UNKNOWN), state),
            capacity=self._capacity(args, state) if "static" in layers else None,
            trail=self.step(node, made),
        )
        fields: dict[Key, Value] = {}
        if name == "EncoderDecoderCache":
            fields.update(zip(("self_attention_cache", "cross_attention_cache"), args.args, strict=False))
        state.heap[oid] = Cell(name=name, cache=cache, fields=fields)

    def cache_from_library(self, name: str, last: str, args: Arguments, node: cst.Call, state: State) -> Value:
        """The value of calling a cache class or one of its class methods."""
        oid = self.place(self.site(node))
        if last == name:
            self.make_cache(oid, name, args, node, state)
            self._tell_made(name, args, node, state)
            return ref(oid)
        if last in CACHE_METHODS and args.args:
            return self._unbound_method(last, args, node, state)
        if last not in ("from_legacy_cache", "from_batch_splits"):
            return self.fresh(state)
        known = CACHE_CLASSES[name]
        cache = Cache(
            frozenset({name}),
            known.layers,
            sure=True,
            seen=True,
            length=self.length_form(state),
            trail=self.step(node, f"`{name}.{last}()` makes the cache"),
        )
        state.heap[oid] = Cell(name=name, cache=cache)
        self.member(oid, last, node, state)
        return ref(oid)

    @staticmethod
    def _owner_of(config: Value, state: State) -> int | None:
        """The model whose configuration it is."""
        atom = config.single
        owner = state.cell(atom.oid).fields.get(OWNER) if isinstance(atom, Ref) else None
        model = owner.single if owner is not None else None
        return model.oid if isinstance(model, Ref) else None

    def _capacity(self, args: Arguments, state: State) -> Linear | None:
        """How many tokens a static cache takes; None where that is not told by name."""
        value = args.keywords.get("max_cache_len")
        number = self.num(value, state) if value is not None else None
        return number.form if number is not None else None

    def _tell_made(self, name: str, args: Arguments, node: cst.Call, state: State) -> None:
        first = args.args[0] if args.args and not args.hidden else UNKNOWN
        named = [value for value in args.args if self._says_config(value, state)]
        config = args.keywords.get("config", named[0] if named else UNKNOWN)
        told = self.layers_of_config(config, state) if self._says_config(config, state) else KnownLayers(frozenset())
        by_position = ""
        if self._says_config(first, state):
            by_position = "config"
        elif isinstance(first.single, Num) or self._says_number(first, state):
            by_position = "number"
        elif first.atoms and first.const() is not None:
            by_position = "data"
        event = Made(
            self.unit,
            node,
            self.calls,
            state.releases,
            name,
            by_position,
            tuple(args.args),
            dict(args.keywords),
            args.hidden,
            told.kinds,
            told.sure,
        )
        self.emit(event, name)

    @staticmethod
    def _says_number(value: Value, state: State) -> bool:
        """Whether a value is called a number, as of layers, which one release took first."""
        names = [state.cell(atom.oid).name for atom in value.refs()]
        return any(name.startswith(("num_", "n_")) for name in names)

    @staticmethod
    def _says_config(value: Value, state: State) -> bool:
        """Whether a value is a configuration, or called one."""
        cells = [state.cell(atom.oid) for atom in value.refs()]
        return any(cell.kind == "config" or cell.name.lower().endswith(("config", "cfg")) for cell in cells)

    def _unbound_method(self, name: str, args: Arguments, node: cst.Call, state: State) -> Value:
        """`DynamicCache.crop(cache, n)`: what is passed first is a KV cache."""
        receiver = args.args[0]
        self.reveal(receiver, node, state)
        rest = Arguments(args.args[1:], args.keywords, args.nodes[1:], args.hidden, args.extra)
        caches = self.caches(receiver, state)
        return self.cache_method(caches[0][0], name, rest, node, state) if caches else self.fresh(state)

    # Filled

    def reveal(self, given: Value, node: cst.CSTNode, state: State) -> None:
        """Whatever is passed as `past_key_values` is a KV cache."""
        for atom in given.refs():
            cell = state.cell(atom.oid)
            if cell.cache is None and not cell.denied and cell.kind == "":
                cache = Cache(
                    length=self.length_form(state),
                    recording=ANY_RECORDING,
                    trail=self.step(node, "is taken for a KV cache"),
                )
                state.heap[atom.oid] = replace(cell, cache=cache)

    def give_away(self, oid: int, node: cst.CSTNode, state: State) -> None:
        """Something unseen gets the cache: its length and recording are no longer known."""
        cell = state.cell(oid)
        assert cell.cache is not None
        cache = replace(
            cell.cache,
            length=self.length_form(state),
            recording=ANY_RECORDING,
            compacted=False,
            cropped=True,
            fed=frozenset(),
            served=frozenset(),
            graded=False,
            encoder=None,
        )
        state.heap[oid] = replace(cell, cache=cache)

    # Methods

    def method_value(self, receiver: Value, name: str, state: State) -> Value | None:
        """A cache's method, not yet called."""
        if name in CACHE_METHODS and self.caches(receiver, state):
            return Value((Method(receiver, name),))
        return None

    def cache_method(self, oid: int, name: str, args: Arguments, node: cst.Call, state: State) -> Value:
        """The value of calling a method that the library defines on caches."""
        cache = state.cell(oid).cache
        assert cache is not None
        if name == "get_seq_length":
            static = bool(cache.classes) and cache.is_static
            live = (oid, node) if static else None
            return Value((Num(cache.length, live=live, trail=self.step(node, "the length of the cache here")),))
        if name in ("get_max_length", "get_max_cache_shape"):
            return self.maximum(state)
        if name == "crop":
            self.used(oid, node, state)
            self.crop(oid, args, node, state)
            return NONE
        if name == "activate_past_recording":
            empty = state.range(cache.length).hi == 0
            event = Recorded(self.unit, node, self.calls, state.releases, cache, state.range(cache.length))
            self.emit(event, oid, "recorded")
            recorded = replace(cache, recording=frozenset({"before" if empty else "late"}))
            state.heap[oid] = replace(state.cell(oid), cache=recorded)
            return NONE
        if name == "reset":
            told = Reset(self.unit, node, self.calls, state.releases, cache, state.range(cache.length))
            self.emit(told, oid, "reset")
            begun = frozenset({self.place(("reset", self.site(node)))})
            new = replace(cache, length=Linear(), failed=False, fed=begun, served=frozenset(), encoder=None)
            state.heap[oid] = replace(state.cell(oid), cache=new)
            return NONE
        if name == "batch_repeat_interleave":
            self.set_cache(state, oid, replace(cache, repeated=True))
            return NONE
        if name == "update":
            self.used(oid, node, state)
            form = cache.length + self.length_form(state, name="new tokens")
            self.set_cache(state, oid, replace(cache, length=form, compacted=False))
            return self.fresh(state)
        if name == "to_legacy_cache":
            return self.fresh(state, "legacy cache", denied=True)
        for other in self.reachable(args.all(), state):
            if other != oid and state.cell(other).cache is not None:
                self.give_away(other, node, state)
        return self.fresh(state, name)

    def used(self, oid: int, node: cst.CSTNode, state: State) -> None:
        """A use of a cache; it is told where a crop of it may have failed half way."""
        cache = state.cell(oid).cache
        if cache is not None and cache.failed:
            event = UsedAfterFailure(self.unit, node, self.calls, state.releases, cache)
            self.emit(event, oid, "failed")

    def member(self, oid: int, name: str, node: cst.CSTNode, state: State, *, stored: bool = False) -> None:
        """A member of a cache is named; what a guard, a handler or a class of the project answers for is let go."""
        cell = state.cell(oid)
        if cell.cache is None or cell.denied or ("#", f"has {name}") in cell.fields:
            return
        if not stored and any(caught & {"AttributeError", "Exception", "BaseException"} for caught in self.caught):
            return
        if cell.cls is not None and cell.cls.defines(name):
            return
        if any(frame.function is not None and frame.function.name == name for frame in self.stack):
            # A method that hands on to the one of its name has the contract of whatever stands behind it.
            return
        if name in cell.fields and not stored:
            return
        unseen = not (cell.cache.classes or cell.cache.seen)
        if unseen and self.frame.module.has_cache_with(name):
            return
        event = Member(self.unit, node, self.calls, state.releases, cell.cache, name, stored)
        self.emit(event, oid, name)

    def taken(self, oid: int, how: str, node: cst.CSTNode, state: State) -> None:
        """A cache is taken for a tuple of pairs."""
        cell = state.cell(oid)
        known = cell.cache is not None and not cell.denied and (cell.cache.classes or cell.cache.seen)
        guarded = any(caught & {"TypeError", "ValueError", "Exception"} for caught in self.caught)
        guarded = guarded or ("#", "may be something else") in cell.fields
        if known and not guarded and cell.cls is None and cell.cache is not None:
            self.emit(Taken(self.unit, node, self.calls, state.releases, cell.cache, how), oid, how)

    # Cropped

    def crop(self, oid: int, args: Arguments, node: cst.Call, state: State) -> None:
        """A `crop`: the event for the rules, and the length that is left."""
        cache = state.cell(oid).cache
        assert cache is not None
        plain = len(args.nodes) == 1 and not args.nodes[0].star and not args.hidden
        value = args.args[0] if args.args else next(iter(args.keywords.values()), None)
        amount = self.amount(value, cache, state) if value is not None else None
        if not self._is_override(args):
            argument = args.nodes[0] if plain else None
            event = Crop(
                self.unit,
                node,
                self.calls,
                state.releases,
                cache,
                self._receiver_node(args, node),
                argument.value if argument else None,
                argument.keyword.value if argument and argument.keyword else None,
                amount,
                state.range(cache.length),
                self._over_window(cache, state),
                self._names(state),
            )
            self.emit(event, oid)
        length = self._cropped_length(cache, amount, state)
        fed = cache.fed | {self.place(("cropped", self.site(node)))}
        cropped = replace(cache, length=length, compacted=True, cropped=True, fed=fed, served=frozenset())
        self.set_cache(state, oid, cropped)

    @staticmethod
    def _over_window(cache: Cache, state: State) -> Range | None:
        """The length minus the window: by what is known of that, or by a test against something named so."""
        known = state.range(cache.length - cache.window) if cache.window is not None else None
        if known is not None and known.hi is not None and known.hi < 0:
            return known
        for fact in state.facts:
            rest = fact + cache.length
            if rest.terms and rest.const < 0 and all(f > 0 and "window" in s.name for s, f in rest.terms):
                return Range(None, rest.const)
        return known

    @staticmethod
    def _receiver_node(args: Arguments, node: cst.Call) -> cst.BaseExpression | None:
        """The expression that the method is called on, None where it is called in a roundabout way."""
        if (
            isinstance(node.func, cst.Attribute)
            and node.func.attr.value == "crop"
            and len(args.nodes) == len(node.args)
        ):
            return node.func.value
        return None

    def _is_override(self, args: Arguments) -> bool:
        """Whether a `crop` of the project's own hands its parameter on: it has the contract of the library's.

        Its callers are judged; without one in sight there is nothing to say.
        """
        root = self.stack[0].function
        if root is None or root.name != "crop":
            return False
        return all(arg.star or isinstance(arg.value, cst.Name) for arg in args.nodes)

    def amount(self, value: Value, cache: Cache, state: State) -> Amount | None:
        """What the argument of a crop can be; None where it is no number."""
        known = self.num(value, state)
        if known is None:
            numbers = [atom for atom in value.atoms if isinstance(atom, Num)]
            known = numbers[0] if len(numbers) == 1 else Num(Linear.of(self.symbol()))
        form, length = known.form, cache.length
        trail = known.trail
        if trail is None:
            trail = next((state.cell(a.oid).trail for a in value.refs() if a.oid in state.heap), None)
        # The new idiom takes a length away: this cache's as it is now, or what was some length at least.
        from_length = any(form.factor(symbol) * factor < 0 for symbol, factor in length.terms)
        from_length = from_length or any(factor < 0 and symbol in self.lengths for symbol, factor in form.terms)
        taken = length - form
        return Amount(form, state.range(form), known.negated, from_length, taken, state.range(taken), trail)

    def _names(self, state: State) -> dict[Linear, str]:
        """The local names that hold a number, by its form."""
        found: dict[Linear, str] = {}
        for name, value in state.frames.get(self.frame.number, {}).items():
            known = self.num(value, state) if name.isidentifier() and len(value.atoms) == 1 else None
            if known is not None and known.form.terms:
                found.setdefault(known.form, name)
        return found

    def _cropped_length(self, cache: Cache, amount: Amount | None, state: State) -> Linear:
        if amount is None:
            return self.length_form(state)
        if amount.is_zero:
            return self.length_form(state)
        if amount.removes:
            return cache.length + amount.form
        if amount.surely_positive and (amount.taken_range.lo or -1) >= 0:
            return amount.form
        form = self.length_form(state)
        state.assume(cache.length - form)
        if amount.surely_positive:
            state.assume(amount.form - form)
        return form
