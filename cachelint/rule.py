"""What a rule is: a code, its documentation, the events that it judges, and the findings it makes of them."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from cachelint.contracts.crop import Piece
from cachelint.diagnostics import Applicability, Severity
from cachelint.flow.events import Event
from cachelint.flow.spans import Span
from cachelint.flow.values import Step

# The trigger of every rule that judges a `crop`: a call, a method taken as a value, or its name in a string.
CROP_CALL = (r"\.crop\b|[\"']crop[\"']",)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A fix in terms of the event's unit: the text of each span is replaced. Without spans it is advice."""

    applicability: Applicability
    message: str
    edits: tuple[tuple[Span, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule finds in an event: how bad, in which words, on which releases, and what would mend it.

    asked: it is told only where the rule is selected by its own code.
    """

    severity: Severity
    message: str
    pieces: tuple[Piece, ...]
    rewrite: Rewrite | None = None
    steps: tuple[Step, ...] = ()
    asked: bool = False


class Rule(ABC):
    """One rule. Its module's docstring is its documentation, with ruff's headings."""

    code: ClassVar[str]
    name: ClassVar[str]
    # Words of which a file must hold one for any of the triggers to be there; without words it can be any file.
    words: ClassVar[tuple[str, ...]] = ()
    # Patterns of which a file must hold one before an event for this rule can come from it.
    triggers: ClassVar[tuple[str, ...]] = ()
    # Those that count besides where the rule is selected by its own code.
    asked_triggers: ClassVar[tuple[str, ...]] = ()
    judges: ClassVar[tuple[type[Event], ...]] = ()
    # The measurements that the rule rests on: what they show, the part of the data, and the key.
    facts: ClassVar[tuple[tuple[str, str, str], ...]] = ()

    @abstractmethod
    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """The findings in one event; `releases` are those that the project supports and that reach it."""

    @classmethod
    def documentation(cls) -> str:
        """The rule's page, in Markdown."""
        return inspect.cleandoc(inspect.getmodule(cls).__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        """What the rule does, in its first sentence."""
        text = cls.documentation().split("## Why is this bad")[0].removeprefix("## What it does").strip()
        return " ".join(text.split(". ")[0].split()).rstrip(".") + "."


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of `cachelint.rules` and of the entry-point group of that name, by code."""
    package = importlib.import_module("cachelint.rules")
    found: dict[str, Rule] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"cachelint.rules.{info.name}")
        for thing in vars(module).values():
            if inspect.isclass(thing) and issubclass(thing, Rule) and thing.__module__ == module.__name__:
                found[thing.code] = thing()
    return tuple(found[code] for code in sorted(found))


def find_rule(wanted: str) -> Rule | None:
    """The rule of a code or name, None where there is none."""
    return next((rule for rule in all_rules() if wanted.upper() == rule.code or wanted == rule.name), None)


def unknown_code(code: str) -> str | None:
    """What is wrong with a code or the beginning of one, None where some rule has it."""
    codes = [rule.code for rule in all_rules()]
    if code == "ALL" or any(known.startswith(code) for known in codes):
        return None
    near = difflib.get_close_matches(code, codes, 1, 0.5)
    return f"no rule has the code {code!r}" + (f"; did you mean {near[0]!r}?" if near else "; see `cachelint rules`")
