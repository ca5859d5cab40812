"""What a rule is: a code, its documentation, the events that it judges, and the findings it makes of them."""

from __future__ import annotations

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
from cachelint.flow.units import Span
from cachelint.flow.values import Step


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A fix in terms of the event's unit: the text of each span is replaced. Without spans it is advice."""

    applicability: Applicability
    message: str
    edits: tuple[tuple[Span, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule finds in an event: how bad, in which words, on which releases, and what would mend it."""

    severity: Severity
    message: str
    pieces: tuple[Piece, ...]
    rewrite: Rewrite | None = None
    steps: tuple[Step, ...] = ()


class Rule(ABC):
    """One rule. Its module's docstring is its documentation, with ruff's headings."""

    code: ClassVar[str]
    name: ClassVar[str]
    # Patterns of which a file must hold one before an event for this rule can come from it.
    triggers: ClassVar[tuple[str, ...]] = ()
    judges: ClassVar[tuple[type[Event], ...]] = ()

    @abstractmethod
    def check(self, event: Event, releases: int) -> Iterator[Finding]:
        """The findings in one event; `releases` are those that the project supports and that reach it."""

    @classmethod
    def documentation(cls) -> str:
        """The rule's page, in Markdown."""
        return inspect.cleandoc(inspect.getmodule(cls).__doc__ or "")


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
