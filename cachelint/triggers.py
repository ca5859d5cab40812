"""What in a file's bytes asks for it: the words and patterns without which no rule finds anything."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from cachelint.config import Settings
from cachelint.rule import Rule

# Without one of these words nothing in a file can be taken for one of the library's caches.
_BEARS_A_CACHE = (
    b"past_key_value",
    b"transformers",
    b"Cache",
    b"crop",
    b"get_seq_length",
    b"use_cache",
    b"cache_implementation",
    b"attention_cache",
    b"get_usable_length",
    b"get_max_",
    b"seen_tokens",
    b"key_cache",
    b"cachelint",
    b"noqa",
)


class Triggers:
    """The triggers of a set of rules.

    A word is found many times faster than a pattern, and most files hold none of a rule's words; so the patterns
    are searched by groups of the same words.
    """

    def __init__(self, rules: Iterable[Rule], settings: Settings) -> None:
        groups: dict[tuple[str, ...], set[str]] = {}
        for rule in rules:
            if rule.triggers:
                groups.setdefault(rule.words, set()).update(rule.triggers)
            if rule.asked_triggers and settings.asks_for(rule.code):
                groups.setdefault((), set()).update(rule.asked_triggers)
        self._groups = [
            (frozenset(word.encode() for word in words), "|".join(sorted(patterns)))
            for words, patterns in groups.items()
        ]
        self._words = sorted({word for words, _ in self._groups for word in words})

    def ask(self, data: bytes) -> bool:
        """Whether some byte of a file asks for it."""
        return any(_compiled(pattern).search(data) for pattern in self._near(data))

    def within(self, data: bytes) -> str:
        """The patterns that a file holds, as one; empty where it holds none."""
        return "|".join(pattern for pattern in self._near(data) if _compiled(pattern).search(data))

    def _near(self, data: bytes) -> Iterable[str]:
        """The patterns that a file can hold by its words."""
        if not any(word in data for word in _BEARS_A_CACHE):
            return ()
        there = {word for word in self._words if word in data}
        return (pattern for words, pattern in self._groups if not words or there & words)


@cache
def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())
