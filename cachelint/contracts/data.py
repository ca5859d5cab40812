"""The measured data: read when it is first asked for, answered by release."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from packaging.version import Version

from cachelint.contracts.releases import releases


@dataclass(frozen=True, slots=True)
class Told:
    """What was measured on a set of releases (a bit mask); None where there was nothing to measure."""

    mask: int
    outcome: str | None


@cache
def _part(name: str) -> dict[str, Any]:
    text = resources.files("cachelint.contracts").joinpath("data", f"{name}.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def keys(part: str) -> frozenset[str]:
    """The keys of a part."""
    return frozenset(_part(part)["keys"])


def measured(part: str) -> tuple[str, ...]:
    """The releases that a part was measured on, oldest first."""
    return tuple(_part(part)["measured"])


@cache
def history(part: str, key: str) -> tuple[Told, ...]:
    """What a key's history says, one entry for each stretch of releases; nothing for an unknown key."""
    entries = _part(part)["keys"].get(key, ())
    found = []
    for index, (since, outcome) in enumerate(entries):
        until = Version(entries[index + 1][0]) if index + 1 < len(entries) else None
        first = Version(since)
        mask = 0
        for bit, release in enumerate(releases()):
            if release >= first and (until is None or release < until):
                mask |= 1 << bit
        found.append(Told(mask, outcome))
    return tuple(found)


@cache
def latest(part: str) -> dict[str, str]:
    """What the newest measured release says, by key; keys of which it says nothing are left out."""
    return {key: entries[-1][1] for key, entries in _part(part)["keys"].items() if entries[-1][1] is not None}
