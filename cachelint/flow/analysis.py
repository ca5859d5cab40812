"""One module analysed: which functions matter, in which order they are interpreted, and what they tell."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import libcst as cst

from cachelint.flow.events import Crop, Event
from cachelint.flow.interpreter import Interpreter, generalise
from cachelint.flow.machine import Numbering, OutOfSteps
from cachelint.flow.naming import bears_a_cache, makes_tracked
from cachelint.flow.project import Class, Function, Module, Project
from cachelint.flow.state import Cell, State
from cachelint.flow.values import UNKNOWN, Value, ref

MAX_CALLER_LEVELS = 3
MAX_MODULE_STEPS = 100_000
# A function that only calls one that matters is worth less, and so is one that only sets attributes.
MAX_CALLER_STEPS = 12_000
MAX_ROOTS = 200
MAX_METHODS = 24
CLASS_ROUNDS = 3
MAX_CLASS_STEPS = 24_000
MAX_NAME_STEPS = 4_000
MAX_NAMES_STEPS = 40_000
_CROPS = re.compile(r"\bcrop\b")
_OWN_ATTRIBUTE = re.compile(r"\bself\.(\w+)")


@dataclass(slots=True)
class Findings:
    """What the flow found in a module.

    events: each with the root function that led to it (None: the module's top level). calls: each root with the
    functions that were interpreted as its callees. open: the roots that a caller in another file can tell more
    of. unfinished: where the analysis had to give up, and why. faults: where it failed by its own fault.
    """

    events: list[tuple[Function | None, Event]] = field(default_factory=list)
    calls: list[tuple[Function | None, frozenset[Function]]] = field(default_factory=list)
    open: list[Function] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class Analysis:
    """The analysis of one module for events that the pattern `triggers` hints at.

    callers_of_all: follow the callers of whatever holds a trigger, not only of what crops.
    """

    def __init__(
        self,
        project: Project,
        module: Module,
        releases: int,
        triggers: re.Pattern[str],
        *,
        callers_of_all: bool = False,
    ) -> None:
        self.project = project
        self.callers_of_all = callers_of_all
        self.module = module
        self.releases = releases
        self.triggers = triggers
        self.numbering = Numbering()
        self.findings = Findings()
        self._steps = 0
        self._classes: dict[Class, State | None] = {}
        self._made: dict[Class, State | None] = {}

    def run(self) -> Findings:
        """Interpret what matters and give the events."""
        if not self.module.may_hold_caches:
            # No cache can come into being here, but one can be handed in.
            for function in self.module.roots():
                if self.triggers.search(function.text) and function.takes_arguments:
                    self.findings.open.append(function)
            return self.findings
        roots = self._roots()
        for function in roots:
            self._run_function(function)
        for skeleton in self.module.skeleton.classes:
            self._run_class(self.module.cls(skeleton))
        if self._top_level_matters(roots):
            self._run_module()
        return self.findings

    # What matters

    def _roots(self) -> list[Function]:
        """The functions that hold a trigger, and those that call them, in source order."""
        every = list(self.module.roots())
        chosen = [function for function in every if self._holds_trigger(function)]
        # What is done to a cache depends on what the callers pass; what it is called does not.
        names = {_called_as(function) for function in chosen if self._hands_on(function.text)}
        for _ in range(MAX_CALLER_LEVELS):
            if not names:
                break
            pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b\s*[(,)]")
            names = set()
            for function in every:
                if function not in chosen and pattern.search(function.text):
                    chosen.append(function)
                    names.add(_called_as(function))
        chosen.sort(key=lambda function: function.skeleton.start)
        return chosen[:MAX_ROOTS]

    def _holds_trigger(self, function: Function) -> bool:
        """Whether an event can come from the function: it holds a trigger, and it or its class tells of a cache."""
        text = function.text
        if not self.triggers.search(text):
            return False
        if self.callers_of_all or bears_a_cache(text):
            return True
        cls = function.cls
        return cls is not None and cls.bears_a_cache

    def _hands_on(self, text: str) -> bool:
        return self.callers_of_all or _CROPS.search(text) is not None

    def _top_level_matters(self, roots: list[Function]) -> bool:
        """Whether the statements outside of functions hold a trigger, or call a function that matters."""
        names = "|".join(sorted(re.escape(function.name) for function in roots))
        called = re.compile(rf"\b(?:{names})\(") if names else None
        for start, end, bound in self.module.skeleton.statements:
            if bound is None or isinstance(bound, tuple):
                text = self.module.text(start, end)
                if self.triggers.search(text) or (called is not None and called.search(text)):
                    return True
        return False

    # Running

    def _interpreter(self) -> Interpreter:
        """A new interpreter, which may take as many steps as are left for the module."""
        interpreter = Interpreter(self.project, self.releases, self.numbering)
        interpreter.max_steps = min(interpreter.max_steps, max(0, MAX_MODULE_STEPS - self._steps))
        return interpreter

    def _run_function(self, function: Function) -> None:
        interpreter = self._interpreter()
        if not self.triggers.search(function.text):
            interpreter.max_steps = min(interpreter.max_steps, MAX_CALLER_STEPS)
        if self._hands_on(function.text) or not self.triggers.search(function.text):
            state = self._entry(function, interpreter)
        else:
            # What a cache is called is said near by: the function itself has to do.
            interpreter.max_steps = min(interpreter.max_steps, MAX_NAME_STEPS, max(0, MAX_NAMES_STEPS - self._steps))
            known = self._made_state(function)
            state = known.copy() if known is not None else interpreter.start()
        receiver = self._receiver(function, state)
        self._attempt(interpreter, function, state, receiver)
        self._take(interpreter, function)

    def _attempt(self, interpreter: Interpreter, function: Function, state: State, receiver: Value) -> State | None:
        try:
            return interpreter.run_function(function, state, receiver)
        except Exception as error:
            self._give_up(f"{function.module.path}:{function.skeleton.start}: `{function.name}`", error)
            return None
        finally:
            self._steps += interpreter.steps

    def _give_up(self, place: str, error: Exception) -> None:
        """Note that something stays unknown. A fault of the analysis itself must not cost the other findings."""
        known = {OutOfSteps: "too many steps", RecursionError: "nested too deep", cst.ParserSyntaxError: "not parsed"}
        if type(error) not in known:
            self.findings.faults.append(f"{place}: internal error, please report it: {type(error).__name__}: {error}")
        elif f"{place} ({known[type(error)]})" not in self.findings.unfinished:
            self.findings.unfinished.append(f"{place} ({known[type(error)]})")

    def _run_module(self) -> None:
        interpreter = self._interpreter()
        try:
            interpreter.run_module(self.module, interpreter.start())
        except Exception as error:
            self._give_up(f"{self.module.path}: the top level", error)
        self._take(interpreter, None)

    def _run_class(self, cls: Class) -> None:
        """What the class says by its definition."""
        if not self.triggers.search(self.module.text(cls.skeleton.start, cls.skeleton.end)):
            return
        interpreter = self._interpreter()
        state = interpreter.start()
        fields = [n for n, lines in cls.skeleton.fields.items() if self.triggers.search(self.module.text(*lines))]
        try:
            interpreter.class_defined(cls, state)
            interpreter.run_fields(cls, fields, state)
        except Exception as error:
            self._give_up(f"{self.module.path}:{cls.skeleton.start}: `{cls.name}`", error)
        self._take(interpreter, None)

    def _take(self, interpreter: Interpreter, root: Function | None) -> None:
        self.findings.calls.append((root, frozenset(interpreter.inlined - {root})))
        crops = interpreter.crops_open or any(isinstance(event, Crop) for event in interpreter.events.values())
        if root is not None and crops and root.takes_arguments:
            self.findings.open.append(root)
        self.findings.events.extend((root, event) for event in interpreter.events.values())

    # Classes

    def _entry(self, function: Function, interpreter: Interpreter) -> State:
        if function.cls is None or function.is_static or function.is_class_method:
            return interpreter.start()
        known = self._class_state(function.cls, function)
        return known.copy() if known is not None else interpreter.start()

    def _receiver(self, function: Function, state: State) -> Value:
        if function.cls is None or function.is_static or function.is_class_method:
            return UNKNOWN
        oid = self._self(function.cls)
        if oid not in state.heap:
            state.heap[oid] = Cell(kind="instance", name="self", cls=function.cls)
            self._interpreter().own_cache(oid, function.cls, state)
        return ref(oid)

    def _self(self, cls: Class) -> int:
        key = ("self", cls.module.path, cls.skeleton.start)
        return self.numbering.objects.setdefault(key, self.numbering.serial())

    def _made_state(self, function: Function) -> State | None:
        """What the constructor of a method's class leaves in its attributes, None where it makes nothing."""
        cls = function.cls
        if cls is None or function.is_static or function.is_class_method or function.name == "__init__":
            return None
        if cls not in self._made:
            self._made[cls] = None
            init = cls.method("__init__")
            if init is not None and makes_tracked(init.text):
                self._made[cls] = self._after_method(cls, init, self._attributes_that_matter(cls), None, widen=False)
        return self._made[cls]

    def _class_state(self, cls: Class, root: Function) -> State | None:
        """What the attributes of an instance can hold before any of its methods: a fixpoint over those."""
        if cls in self._classes:
            return self._classes[cls]
        self._classes[cls] = None
        kept = self._attributes_that_matter(cls)
        methods = self._methods_that_store(cls, kept)
        summary: State | None = None
        began = self._steps
        for round_number in range(CLASS_ROUNDS):
            before = summary
            for method in methods:
                if self._steps - began > MAX_CLASS_STEPS:
                    self._classes[cls] = summary
                    return summary
                summary = self._after_method(cls, method, kept, summary, widen=round_number > 0)
            self._classes[cls] = summary
            if summary is None or (before is not None and before.heap == summary.heap):
                break
        return summary

    def _after_method(
        self, cls: Class, method: Function, kept: frozenset[str], summary: State | None, *, widen: bool
    ) -> State | None:
        interpreter = self._interpreter()
        interpreter.max_steps = min(interpreter.max_steps, MAX_CALLER_STEPS)
        state = summary.copy() if summary is not None else interpreter.start()
        receiver = self._receiver(method, state) if method.cls is cls else ref(self._self(cls))
        if self._self(cls) not in state.heap:
            state.heap[self._self(cls)] = Cell(kind="instance", name="self", cls=cls)
        after = self._attempt(interpreter, method, state, receiver)
        if after is None:
            return summary
        after.releases = self.releases
        left = generalise(interpreter, cls, self._self(cls), kept, after)
        return interpreter.join(summary, left, ("class", cls.module.path, cls.name), widen=widen)

    def _attributes_that_matter(self, cls: Class) -> frozenset[str]:
        texts = {
            name: each.module.text(method.start, method.end)
            for each in reversed(cls.ancestry[0])
            for name, method in each.skeleton.methods.items()
        }
        pending = [text for text in texts.values() if self.triggers.search(text)]
        found: set[str] = set()
        while pending:
            for name in _OWN_ATTRIBUTE.findall(pending.pop()):
                if name not in found and name in texts:
                    # What a method or property reads matters as well.
                    pending.append(texts[name])
                found.add(name)
        return frozenset(found)

    def _methods_that_store(self, cls: Class, kept: frozenset[str]) -> list[Function]:
        if not kept:
            return []
        names = "|".join(map(re.escape, sorted(kept)))
        stores = re.compile(
            rf"\bself\.(?:{names})\b\s*(?:[-+*/%&|^]?=(?!=)|:|,)|\bsetattr\("
            rf"|\bself\.(?:{names})\.(?:activate_past_recording|reset)\b|past_key_values?\s*=\s*self\.(?:{names})\b"
        )
        found: list[Function] = []
        for each in cls.ancestry[0]:
            for skeleton in each.skeleton.methods.values():
                function = each.module.function(skeleton, each)
                if stores.search(function.text) and not (function.is_static or function.is_class_method):
                    found.append(function)
        found.sort(key=lambda function: function.name != "__init__")
        return found[:MAX_METHODS]


def _called_as(function: Function) -> str:
    """The name under which a function is called: that of its class for `__init__`, `__call__` and the like."""
    special = function.name.startswith("__") and function.cls is not None
    return function.cls.name if special and function.cls is not None else function.name
