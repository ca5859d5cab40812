"""The known releases of transformers, and sets of them as bit masks (bit i is the i-th release)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

_PATCHES = {
    "4.36": "0 1 2", "4.37": "0 1 2", "4.38": "0 1 2", "4.39": "0 1 2 3", "4.40": "0 1 2", "4.41": "0 1 2",
    "4.42": "0 1 2 3 4", "4.43": "0 1 2 3 4", "4.44": "0 1 2", "4.45": "0 1 2", "4.46": "0 1 2 3", "4.47": "0 1",
    "4.48": "0 1 2 3", "4.49": "0", "4.50": "0 1 2 3", "4.51": "0 1 2 3", "4.52": "1 2 3 4", "4.53": "0 1 2 3",
    "4.54": "0 1", "4.55": "0 1 2 3 4", "4.56": "0 1 2", "4.57": "0 1 2 3 4 5 6", "5.0": "0", "5.1": "0",
    "5.2": "0", "5.3": "0", "5.4": "0", "5.5": "0 1 2 3 4", "5.6": "0 1 2", "5.7": "0", "5.8": "0 1", "5.9": "0",
    "5.10": "1 2 4", "5.11": "0", "5.12": "0 1", "5.13": "0 1", "5.14": "0 1", "5.15": "0 1", "5.16": "0 1",
    "5.17": "0", "5.18": "0", "5.19": "0", "5.20": "0 1 2", "5.21": "0 1", "5.22": "0 1 2", "5.23": "0", "5.24": "0",
}  # fmt: skip


class RangeError(ValueError):
    """A release range that is no specifier, or holds no known release."""


@cache
def releases() -> tuple[Version, ...]:
    """All known releases, oldest first: every final release from 4.36.0 on."""
    return tuple(Version(f"{minor}.{patch}") for minor, patches in _PATCHES.items() for patch in patches.split())


@cache
def all_mask() -> int:
    """The set of all known releases."""
    return (1 << len(releases())) - 1


def mask_of(members: Iterable[Version]) -> int:
    """The set of the given known releases."""
    wanted = set(members)
    return sum(1 << index for index, release in enumerate(releases()) if release in wanted)


@cache
def between(first: str, last: str = "") -> int:
    """The set of releases from `first` on, up to the whole minor (or patch) `last` where that is given."""
    low = Version(first)
    found = 0
    for index, release in enumerate(releases()):
        up_to = not last or release.release[: len(Version(last).release)] <= Version(last).release
        if release >= low and up_to:
            found |= 1 << index
    return found


def parse_range(text: str) -> int:
    """The set of known releases in a specifier such as `>=4.50,<6`.

    Raises:
        RangeError: the text is no specifier, or no known release is in it.
    """
    try:
        specifiers = SpecifierSet(text)
    except InvalidSpecifier:
        raise RangeError(
            f"{text!r} is no version specifier; write it as in a requirements file, such as '>=4.50,<6' or '==5.20.*'"
        ) from None
    found = mask_of(release for release in releases() if specifiers.contains(release))
    if not found:
        known = f"{releases()[0]} to {releases()[-1]}"
        raise RangeError(f"no release of transformers that cachelint knows ({known}) is in {text!r}")
    return found


@cache
def comparing(operator: str, other: str, width: int = 0) -> int:
    """The set of releases for which `release OP other` holds; with `width`, only so many parts are compared.

    Raises:
        ValueError: `other` is no version, or the operator none of < <= == != >= >.
    """
    try:
        right = Version(other)
    except InvalidVersion:
        raise ValueError(f"{other!r} is no version") from None
    found = 0
    for index, release in enumerate(releases()):
        left: Version | tuple[int, ...] = release
        limit: Version | tuple[int, ...] = right
        if width:
            left, limit = release.release[:width], right.release
        holds = {
            "<": left < limit,  # type: ignore[operator]
            "<=": left <= limit,  # type: ignore[operator]
            "==": left == limit,
            "!=": left != limit,
            ">=": left >= limit,  # type: ignore[operator]
            ">": left > limit,  # type: ignore[operator]
        }
        if operator not in holds:
            raise ValueError(f"{operator!r} does not compare versions")
        found |= holds[operator] << index
    return found


def part_comparing(part: int, operator: str, number: int) -> int:
    """The set of releases whose `part` (0 the major, 1 the minor) compares so with a number."""
    tests = {
        "<": int.__lt__, "<=": int.__le__, "==": int.__eq__, "!=": int.__ne__, ">=": int.__ge__, ">": int.__gt__
    }  # fmt: skip
    test = tests[operator]
    return sum(bool(test(r.release[part], number)) << index for index, r in enumerate(releases()))


def members(mask: int) -> Iterator[Version]:
    """The releases of the set, oldest first."""
    for index, release in enumerate(releases()):
        if mask >> index & 1:
            yield release


def describe(mask: int) -> str:
    """The set for a person: `4.50–5.13, 5.20+`, by minors, with patches where a minor is cut."""
    runs: list[tuple[int, int]] = []
    for index in range(len(releases())):
        if mask >> index & 1:
            if runs and runs[-1][1] == index - 1:
                runs[-1] = (runs[-1][0], index)
            else:
                runs.append((index, index))
    return ", ".join(_run(first, last) for first, last in runs)


def _run(first: int, last: int) -> str:
    known = releases()
    start, end = known[first], known[last]
    whole_start = first == 0 or known[first - 1].release[:2] != start.release[:2]
    whole_end = last == len(known) - 1 or known[last + 1].release[:2] != end.release[:2]
    low = _minor(start) if whole_start else str(start)
    high = _minor(end) if whole_end else str(end)
    if last == len(known) - 1 and low != high:
        return f"{low}+"
    if low == high or (first == last):
        return low if whole_end or first != last else str(start)
    return f"{low}–{high}"


def _minor(version: Version) -> str:
    return f"{version.major}.{version.minor}"
