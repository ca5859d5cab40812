"""Models that are run: what goes in, what their caches hold afterwards, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

import libcst as cst

from cachelint.flow.arguments import Arguments
from cachelint.flow.caches import ANY_RECORDING, Caches
from cachelint.flow.configs import CHECKPOINT, KnownLayers
from cachelint.flow.dependence import Dependence, calls_in, dotted, names_in
from cachelint.flow.events import Implementation, Run
from cachelint.flow.machine import Chain
from cachelint.flow.numbers import DIMENSION, Linear, Range
from cachelint.flow.project import Class
from cachelint.flow.state import Cache, Cell, State
from cachelint.flow.values import NONE, UNKNOWN, Const, Ref, Tup, Value, ref

_CACHE_KEYWORDS = ("past_key_values", "past_key_value")
_INPUTS = ("input_ids", "inputs", "inputs_embeds", "input_features")
_ENCODER_INPUTS = ("encoder_outputs", "input_features", "input_ids", "inputs", "pixel_values")
# Names that tell two models apart where nothing else does.
_ROLE = re.compile(r"draft|target|assist|small|large|big|teacher|student|expert|amateur")
_TEXTS = re.compile(r"prompt|question|text|example|sample|quer|sentence|request|doc|input|batch|item")
# Calls that give something else each time.
_ASKS = re.compile(r"(?:^|[._])(?:pop|popleft|next|get|input|readline|recv|read|sample|choice)$")
_TOKENISES = re.compile(r"tok|processor|encode|chat_template", re.IGNORECASE)


class Running(Caches):
    """Transfer functions of forwards and of `generate`."""

    def forward(
        self, receiver: Value, args: Arguments, node: cst.Call, state: State, *, generates: bool = False
    ) -> Value:
        """A call that runs a model, or is taken for one because a cache is passed as one is to a model."""
        model = self._is_model(receiver, state)
        given, keyword = self._given(args, model, generates, state)
        self.reveal(given, node, state)
        number = self.place(("run", self.site(node)))
        self.numbering.runs[number] = self._chain(node)
        self._tell_run(receiver, given, keyword, number, args, node, state, generates=generates, known=model)
        self._fill(receiver, given, number, args, node, state, generates=generates)
        taken = {oid for oid, _ in self.caches(given, state)}
        for oid in self.reachable(args.all(), state):
            if oid not in taken and state.cell(oid).cache is not None:
                self.give_away(oid, node, state)
        output = self.place(self.site(node))
        cell = Cell(kind="output", name="output")
        if given.atoms and self.caches(given, state):
            cell = cell.with_field("past_key_values", given).with_field("cache", given)
        elif (model or generates) and not given.atoms and not args.hidden:
            made = self._made_by_model(receiver, number, node, state, generates=generates)
            cell = cell.with_field("past_key_values", made).with_field("cache", made)
        state.heap[output] = cell
        return ref(output)

    def _given(self, args: Arguments, model: bool, generates: bool, state: State) -> tuple[Value, str]:
        """What is passed as the cache, and under which name."""
        given, name = UNKNOWN, ""
        for keyword in (*_CACHE_KEYWORDS, *(("cache",) if model or generates else ())):
            if keyword in args.keywords:
                given, name = given.union(args.keywords[keyword]), keyword
        given = given.without((Const(None),))
        if model:
            for value in args.args:
                if self.caches(value, state):
                    given = given.union(value)
        return given, name

    @staticmethod
    def _is_model(receiver: Value, state: State) -> bool:
        return any(state.cell(atom.oid).kind == "model" for atom in receiver.refs() if atom.oid in state.heap)

    def _fill(
        self,
        receiver: Value,
        given: Value,
        number: int,
        args: Arguments,
        node: cst.Call,
        state: State,
        *,
        generates: bool = False,
    ) -> None:
        caches = self.caches(given, state)
        fed_by = frozenset({number})
        models = frozenset(atom.oid for atom in receiver.refs())
        for oid, cache in caches:
            self.used(oid, node, state)
            grown = self.symbol(name="new tokens")
            state.ranges[grown] = DIMENSION
            recording = frozenset("before" if r == "late" else r for r in cache.recording)
            if "assistant_model" in args.keywords:
                recording |= ANY_RECORDING
            filled = replace(
                cache,
                length=cache.length + Linear.of(grown),
                recording=recording,
                compacted=False,
                cropped=False,
                fed=cache.fed | fed_by,
                served=cache.served | fed_by if generates else cache.served,
                models=cache.models | models,
                graded=cache.graded or not (generates or self.no_grad),
                encoder=self._encoder_input(args) or cache.encoder,
                filled=self.step(node, "fills the cache"),
            )
            self.set_cache(state, oid, filled, weak=len(caches) > 1)

    def _made_by_model(self, receiver: Value, number: int, node: cst.Call, state: State, *, generates: bool) -> Value:
        oid = self.place((self.site(node), "made"))
        known = self._is_model(receiver, state)
        told = self.layers_of_model(receiver, state) if known else KnownLayers(frozenset())
        fed = frozenset({number})
        cache = Cache(
            layers=told.kinds,
            sure=told.sure,
            seen=known,
            window=told.window,
            length=self.length_form(state, least=1),
            fed=fed,
            served=fed if generates else frozenset(),
            models=frozenset(atom.oid for atom in receiver.refs()),
            graded=not (generates or self.no_grad),
            configured=True,
            trail=self.step(node, "the model makes and fills a cache of its own"),
        )
        state.heap[oid] = Cell(cache=cache)
        return ref(oid)

    # Told to the rules

    def _tell_run(
        self,
        receiver: Value,
        given: Value,
        keyword: str,
        number: int,
        args: Arguments,
        node: cst.Call,
        state: State,
        *,
        generates: bool,
        known: bool,
    ) -> None:
        options = {name: value.const() for name, value in args.keywords.items() if value.const() is not ...}
        caches = [cache for _, cache in self.caches(given, state)]
        told = self.layers_of_model(receiver, state) if known else KnownLayers(frozenset())
        about: set[str] = set()
        if len(caches) == 1:
            about.update(self._about(caches[0], receiver, number, args, node, state, generates=generates))
        named = next((a for a in args.nodes if a.keyword is not None and a.keyword.value == keyword), None)
        event = Run(
            self.unit,
            node,
            self.calls,
            state.releases,
            tuple(caches),
            keyword,
            generates,
            known,
            self._model_name(receiver, node, state),
            told.kinds,
            told.sure,
            "cache" if caches else "pairs" if self._is_pairs(given, state) else "",
            options,
            self._over_capacity(caches, options, state),
            frozenset(about),
            named,
        )
        self.emit(event, "run")
        chosen = args.keywords.get("cache_implementation")
        if generates and chosen is not None:
            self.implementation(chosen, node, state)

    def implementation(self, chosen: Value, node: cst.CSTNode, state: State) -> None:
        """A `cache_implementation` is chosen, by an argument of a call or by a store."""
        name = chosen.const()
        if not isinstance(name, str):
            return
        arguments = node.args if isinstance(node, cst.Call) else ()
        place = next((a for a in arguments if a.keyword and a.keyword.value == "cache_implementation"), None)
        where = place.value if place is not None else node
        self.emit(Implementation(self.unit, where, self.calls, state.releases, name), "implementation")

    def _model_name(self, receiver: Value, node: cst.Call, state: State) -> str:
        atom = receiver.single
        if isinstance(atom, Ref) and state.cell(atom.oid).kind == "model":
            return state.cell(atom.oid).name
        func = node.func
        if isinstance(func, cst.Attribute) and func.attr.value in ("generate", "forward"):
            func = func.value
        return dotted(func).rpartition(".")[2]

    @staticmethod
    def _is_pairs(given: Value, state: State) -> bool:
        """Whether a value is a tuple or list of pairs of tensors."""
        atom = given.single
        if isinstance(atom, Tup):
            return bool(atom.items)
        if isinstance(atom, Ref):
            cell = state.cell(atom.oid)
            if cell.name == "legacy cache":
                return True
            items = [value.single for key, value in cell.fields.items() if isinstance(key, tuple) and key[0] == "item"]
            return cell.kind in ("list", "tuple") and bool(items) and all(isinstance(item, Tup) for item in items)
        return False

    @staticmethod
    def _over_capacity(caches: list[Cache], options: Mapping[str, object], state: State) -> Range | None:
        """The tokens behind the call less those that a static cache holds."""
        if len(caches) != 1 or caches[0].capacity is None:
            return None
        new = options.get("max_new_tokens")
        # The last token that is generated is not fed.
        grown = Linear((), new if isinstance(new, int) and not isinstance(new, bool) else 1)
        return state.range(caches[0].length + grown - caches[0].capacity)

    def _about(
        self,
        cache: Cache,
        receiver: Value,
        number: int,
        args: Arguments,
        node: cst.Call,
        state: State,
        *,
        generates: bool,
    ) -> Iterator[str]:
        """What is wrong with running the model on this cache."""
        empty = state.range(cache.length).hi == 0
        recorded = bool(cache.recording) and cache.recording <= {"before", "late"}
        if number in cache.fed and recorded and not cache.cropped and not generates:
            yield "no crop"
        if not empty and not generates and cache.fed and not cache.cropped and self._grows(args):
            yield "grown ids"
        if not empty and generates and cache.served:
            yield from self._prompt(cache.served, args, node)
        if cache.is_static and not generates and number in cache.fed and self._new_text(args, number):
            yield "other prompt"
        if self._other_model(cache.models, receiver, state):
            yield "other model"
        if cache.origin is not None and self._other_model(frozenset({cache.origin}), receiver, state):
            yield "other config"
        encoder = self._encoder_input(args)
        known = cache.classes == {"EncoderDecoderCache"} and not empty
        if known and encoder is not None and cache.encoder is not None and encoder != cache.encoder:
            yield "other encoder input"

    @staticmethod
    def _encoder_input(args: Arguments) -> Value | None:
        found = next((args.keywords[name] for name in _ENCODER_INPUTS if name in args.keywords), None)
        return found if found is not None and found != NONE and found.atoms else None

    def _other_model(self, models: frozenset[int], receiver: Value, state: State) -> bool:
        """Whether one of the models is surely another one than the receiver."""
        atom = receiver.single
        if not isinstance(atom, Ref) or atom.oid in models:
            return False
        return any(_are_different(state.cell(other), state.cell(atom.oid)) for other in models)

    # Prompts

    def _chain(self, node: cst.CSTNode) -> Chain:
        """The bodies of the running functions with the call in each, outermost first; empty where that is not told."""
        sites: list[cst.CSTNode] = [node]
        trail = self.calls
        while trail is not None:
            sites.append(trail.step.node)
            trail = trail.before
        if len(sites) != len(self.stack):
            return ()
        return tuple((tuple(frame.body), site) for frame, site in zip(self.stack, reversed(sites), strict=True))

    def _dependence(self, body: tuple[cst.CSTNode, ...]) -> Dependence:
        if body not in self.dependences:
            self.dependences[body] = Dependence(*body)
        return self.dependences[body]

    def _prompt(self, served: frozenset[int], args: Arguments, node: cst.Call) -> Iterator[str]:
        """How the ids relate to what earlier generations with this cache gave: an answer goes on, or it does not."""
        inputs = self._inputs(args)
        chain = self._chain(node)
        if not inputs or not chain:
            return
        earlier = [self.numbering.runs[number] for number in sorted(served)]
        relations = [self._relation(chain, other, inputs) for other in earlier if other]
        if relations and all(relations):
            yield relations[0]

    def _relation(
        self,
        chain: Chain,
        other: Chain,
        inputs: list[cst.BaseExpression],
    ) -> str:
        """ "other prompt", "same prompt", or nothing where the ids go on from what the other call gave."""
        common = len(list(takewhile(lambda pair: pair[0][0][:1] == pair[1][0][:1], zip(chain, other, strict=False))))
        names = frozenset(name for node in inputs for name in names_in(node))
        varied = False
        for level in range(len(chain) - 1, -1, -1):
            body, call = chain[level]
            told = self._dependence(body)
            behind = told.behind(names)
            if level < common and behind & self._dependence(other[level][0]).outcomes(other[level][1]):
                return ""
            if self._asks_itself(behind, self.stack[level].cls):
                return ""
            varied = varied or bool(behind & told.loops) or (level < common and call is not other[level][1])
            asked = [dotted(c.func) for name in behind for node in told.values.get(name, ()) for c in calls_in(node)]
            varied = varied or any(_ASKS.search(path) for path in asked)
            if level:
                names = self._passed(body, behind, chain[level - 1][1])
        return "other prompt" if varied else "same prompt"

    @staticmethod
    def _asks_itself(names: frozenset[str], cls: Class | None) -> bool:
        """Whether the object itself, or a method of it, is among the names: it may remember the answers."""
        called = (name.partition(".")[2] for name in names if name.startswith(("self.", "cls.")))
        return not names.isdisjoint(("self", "cls")) or any(
            cls is not None and cls.method(name) is not None for name in called
        )

    @staticmethod
    def _passed(body: tuple[cst.CSTNode, ...], names: frozenset[str], call: cst.CSTNode) -> frozenset[str]:
        """The names that a call site passes for those of a function's parameters that are among `names`."""
        function = body[0]
        if not isinstance(function, cst.FunctionDef) or not isinstance(call, cst.Call):
            return frozenset()
        params = [p.name.value for p in (*function.params.posonly_params, *function.params.params)]
        if isinstance(call.func, cst.Attribute) and params[:1] in (["self"], ["cls"]):
            params = params[1:]
        found: set[str] = set()
        roots = {name.partition(".")[0] for name in names}
        for index, arg in enumerate(call.args):
            name = arg.keyword.value if arg.keyword else params[index] if index < len(params) else ""
            if arg.star or name in roots:
                found |= names_in(arg.value)
        return frozenset(found)

    @staticmethod
    def _inputs(args: Arguments) -> list[cst.BaseExpression]:
        """The expressions that hold what the model reads."""
        found = [arg.value for arg in args.nodes if arg.keyword is not None and arg.keyword.value in _INPUTS]
        first = args.nodes[0] if args.nodes else None
        if first is not None and first.keyword is None and not first.star:
            found.append(first.value)
        return found or [arg.value for arg in args.nodes if arg.star == "**"]

    def _grows(self, args: Arguments) -> bool:
        """Whether the ids are the whole of a sequence that the function extends."""
        named = [n for n in self._inputs(args) if dotted(n)]
        if not named or len(named) != len(self._inputs(args)):
            return False
        return dotted(named[0]) in self._dependence(tuple(self.frame.body)).grown

    def _new_text(self, args: Arguments, number: int) -> bool:
        """Whether a loop over texts tokenises another one for each turn."""
        told = self._dependence(tuple(self.frame.body))
        names = told.behind(frozenset(name for node in self._inputs(args) for name in names_in(node)))
        texts = any(_TEXTS.search(name) for name in names & told.loops)
        chain = self.numbering.runs[number]
        if not texts or not chain or names & told.outcomes(chain[-1][1]):
            return False
        made = [node for name in names for node in told.values.get(name, ())]
        return any(_TOKENISES.search(dotted(call.func)) for node in made for call in calls_in(node))


def _are_different(one: Cell, other: Cell) -> bool:
    if one.kind == other.kind == "model":
        names = [cell.fields[CHECKPOINT].const() for cell in (one, other) if CHECKPOINT in cell.fields]
        return len(names) == 2 and names[0] is not ... and names[1] is not ... and names[0] != names[1]
    words = [set(_ROLE.findall(cell.name.lower())) for cell in (one, other)]
    return words[0] != words[1] and bool(words[0] or words[1]) and bool(one.name and other.name)
