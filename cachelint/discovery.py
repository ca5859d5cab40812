"""Which files are looked at: the named ones, and those below the named folders that are not ignored."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pathspec

from cachelint.config import Settings

INCLUDE = ("*.py", "*.pyi", "*.ipynb")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file to look at. named: the user named it, as opposed to a folder above it."""

    path: Path
    named: bool


class MissingPath(Exception):
    """A path that does not exist, or that cannot be listed."""


def discover(
    paths: Iterable[Path],
    exclude: Iterable[str],
    *,
    include: Iterable[str] = INCLUDE,
    respect_gitignore: bool = True,
) -> Iterator[Candidate]:
    """The files to look at, absolute, each once, in the order of the paths and of the names below them.

    Raises:
        MissingPath: a path does not exist or a named folder cannot be listed.
    """
    seen: set[Path] = set()
    patterns = pathspec.GitIgnoreSpec.from_lines(exclude)
    wanted = _included(tuple(include))
    for given in paths:
        path = Path(os.path.abspath(given))
        if path.is_dir():
            rules = _rules_above(path) if respect_gitignore else []
            found: Iterator[Path] = _walk(path, path, patterns, wanted, rules, respect_gitignore)
            candidates = (Candidate(file, False) for file in found)
        elif path.exists():
            candidates = (Candidate(file, True) for file in (path,))
        else:
            raise MissingPath(f"{given}: no such file or folder")
        for candidate in candidates:
            if candidate.path not in seen:
                seen.add(candidate.path)
                yield candidate


def _included(patterns: tuple[str, ...]) -> Callable[[str, str], bool]:
    """Whether a file of a name and path is one to look at; most patterns are only about the end of the name."""
    endings = tuple(pattern[1:] for pattern in patterns if re.fullmatch(r"\*\.\w+", pattern))
    if len(endings) == len(patterns):
        return lambda name, _: name.endswith(endings)
    spec = pathspec.GitIgnoreSpec.from_lines(patterns)
    return lambda _, path: spec.match_file(path.lstrip("/"))


Rules = list[tuple[str, pathspec.GitIgnoreSpec]]


def _rules_above(folder: Path) -> Rules:
    """The gitignore rules of the folders above, up to the repository's root."""
    found: Rules = []
    if (folder / ".git").exists():
        return found
    for parent in folder.parents:
        rules = _rules_in(parent)
        if rules is not None:
            found.insert(0, (str(parent), rules))
        if (parent / ".git").exists():
            return found
    return []


def _rules_in(folder: Path) -> pathspec.GitIgnoreSpec | None:
    try:
        text = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return pathspec.GitIgnoreSpec.from_lines(text.splitlines())


def _walk(
    folder: Path,
    top: Path,
    exclude: pathspec.GitIgnoreSpec,
    include: Callable[[str, str], bool],
    rules: Rules,
    respect_gitignore: bool,
) -> Iterator[Path]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        if folder == top:
            raise MissingPath(f"{folder}: cannot be listed: {error.strerror}") from None
        return
    if respect_gitignore and any(entry.name == ".gitignore" for entry in entries):
        own = _rules_in(folder)
        rules = [*rules, (str(folder), own)] if own is not None else rules
    for entry in entries:
        is_folder = _is_folder(entry)
        if not is_folder and not include(entry.name, entry.path):
            continue
        relative = os.path.relpath(entry.path, top).replace(os.sep, "/") + ("/" if is_folder else "")
        if exclude.match_file(relative) or _ignored(entry.path, is_folder, rules):
            continue
        if is_folder:
            yield from _walk(Path(entry.path), top, exclude, include, rules, respect_gitignore)
        elif _is_file(entry):
            yield Path(entry.path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        # A link to a folder is not followed: it leads to what is met elsewhere, out of the tree, or in circles.
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _ignored(path: str, is_folder: bool, rules: Rules) -> bool:
    verdict = False
    for base, spec in rules:
        relative = os.path.relpath(path, base).replace(os.sep, "/") + ("/" if is_folder else "")
        found = spec.check_file(relative)
        if found.include is not None:
            verdict = found.include
    return verdict


class PerFileIgnores:
    """Which rules the settings ignore in which files; a pattern after `!` stands for all other files."""

    def __init__(self, settings: Settings) -> None:
        self._base = settings.source.parent if settings.source is not None else Path.cwd()
        self._specs = [
            (pathspec.GitIgnoreSpec.from_lines([pattern.removeprefix("!")]), pattern.startswith("!"), codes)
            for pattern, codes in settings.per_file_ignores
        ]

    def ignores(self, path: Path, code: str) -> bool:
        """Whether a rule's findings in a file are not wanted."""
        if not self._specs:
            return False
        relative = os.path.relpath(path, self._base).replace(os.sep, "/")
        if relative.startswith("../"):
            relative = path.name
        return any(
            spec.match_file(relative) is not negated
            for spec, negated, codes in self._specs
            if any(wanted == "ALL" or code.startswith(wanted) for wanted in codes)
        )
