"""Fixes: choosing edits that do not overlap, applying them, verifying the result, writing it whole."""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from cachelint.diagnostics import Diagnostic, Edit, Fix, Location
from cachelint.sources import Source, SourceError, split_lines

MAX_PASSES = 10
Check = Callable[[Source], list[Diagnostic]]


class FixError(Exception):
    """A file whose fixes could not be applied; it stays as it is."""


@dataclass(slots=True)
class Fixed:
    """What became of one file. left: what is still found. fixed: what was mended. reason: why it stopped."""

    source: Source
    text: str
    fixed: list[Diagnostic] = field(default_factory=list)
    left: list[Diagnostic] = field(default_factory=list)
    reason: str | None = None

    @property
    def changed(self) -> bool:
        """Whether the text is another."""
        return self.text != self.source.text


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits made; they must not overlap."""
    starts = [0]
    for line in split_lines(text):
        starts.append(starts[-1] + len(line))

    def offset(location: Location) -> int:
        return starts[location.row - 1] + location.column - 1

    spans = sorted(((offset(e.location), offset(e.end_location), e.content) for e in edits), reverse=True)
    for start, end, content in spans:
        text = text[:start] + content + text[end:]
    return text


def wanted(fix: Fix | None, *, unsafe: bool) -> bool:
    """Whether a fix is applied: it has edits and is safe, or unsafe ones are asked for."""
    if fix is None or not fix.edits:
        return False
    return fix.applicability == "safe" or (unsafe and fix.applicability == "unsafe")


def choose(diagnostics: Iterable[Diagnostic], *, unsafe: bool) -> list[Diagnostic]:
    """The diagnostics whose fixes are applied in one pass: errors first, and no two that touch each other."""
    chosen: list[Diagnostic] = []
    spans: list[tuple[Location, Location]] = []
    ordered = sorted(diagnostics, key=lambda d: (d.severity != "error", d.sort_key))
    for diagnostic in ordered:
        if not wanted(diagnostic.fix, unsafe=unsafe):
            continue
        assert diagnostic.fix is not None
        mine = [(edit.location, edit.end_location) for edit in diagnostic.fix.edits]
        if not any((a < end and start < b) or (a, b) == (start, end) for a, b in mine for start, end in spans):
            chosen.append(diagnostic)
            spans += mine
    return chosen


def fix_source(source: Source, check: Check, *, unsafe: bool) -> Fixed:
    """Apply fixes pass by pass until nothing changes; each pass is verified before the next.

    check: gives the diagnostics of a source, and raises SourceError where it cannot be parsed.
    """
    text = source.text
    result = Fixed(source, text, left=check(source))
    for _ in range(MAX_PASSES):
        chosen = choose(result.left, unsafe=unsafe)
        if not chosen:
            return result
        edits = [edit for diagnostic in chosen if diagnostic.fix for edit in diagnostic.fix.edits]
        text = apply_edits(result.text, edits)
        after = replace(source, text=text)
        reason, left = _verify(after, check, result.left)
        if reason is not None:
            result.reason = reason
            return result
        result.fixed += _gone(result.left, left)
        result.text, result.left = text, left
    result.reason = f"the fixes did not come to an end in {MAX_PASSES} passes"
    return result


def _verify(after: Source, check: Check, before: list[Diagnostic]) -> tuple[str | None, list[Diagnostic]]:
    """Why the new text must not be written, None where it may be; and what is found in it."""
    try:
        after.encode(after.text)
        left = check(after)
    except SourceError as error:
        return f"a fix would break the syntax: {error.reason}", []
    except UnicodeEncodeError as error:
        return f"a fix cannot be written in {after.encoding}: {error.reason}", []
    allowed = {(d.code, d.severity) for d in before} | {(d.code, "warning") for d in before}
    new = sorted({d.code for d in left if (d.code, d.severity) not in allowed})
    if new or len(left) > len(before):
        return f"a fix would bring in {', '.join(new) or 'new findings'}", []
    if [_key(d) for d in left] == [_key(d) for d in before]:
        return "a fix leaves its finding in place", []
    return None, left


def _key(diagnostic: Diagnostic) -> tuple[str, Location, str]:
    return diagnostic.code, diagnostic.location, diagnostic.message


def _gone(before: list[Diagnostic], left: list[Diagnostic]) -> list[Diagnostic]:
    still = Counter((d.code, d.message) for d in left)
    gone = []
    for diagnostic in before:
        key = (diagnostic.code, diagnostic.message)
        if still[key]:
            still[key] -= 1
        else:
            gone.append(diagnostic)
    return gone


def diff(fixed: Fixed, name: str) -> str:
    """The change of one file as a patch that `git apply` takes."""
    before, after = split_lines(fixed.source.text), split_lines(fixed.text)
    if fixed.source.notebook is not None:
        # A patch is of the file, not of the module that its cells make.
        before = split_lines(fixed.source.notebook.raw)
        after = split_lines(fixed.source.notebook.rewritten(fixed.text))
    lines: list[str] = []
    for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"):
        lines.append(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines)


def write(fixed: Fixed, read: bytes) -> None:
    """Write a file whole: a temporary one beside it is renamed over it, with its mode and owner kept.

    read: the bytes that the fix was made from.

    Raises:
        FixError: the file has changed meanwhile, is read-only, or cannot be written; it is as it was.
    """
    path = Path(os.path.realpath(fixed.source.path))
    temporary: str | None = None
    try:
        data = fixed.source.encode(fixed.text)
        status = path.stat()
        if not status.st_mode & stat.S_IWUSR or not os.access(path, os.W_OK):
            raise FixError(f"{path}: is read-only")
        handle, temporary = tempfile.mkstemp(prefix=".cachelint-", suffix=".tmp", dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
        if hasattr(os, "chown") and os.geteuid() == 0:
            os.chown(temporary, status.st_uid, status.st_gid)
        if path.read_bytes() != read:
            raise FixError(f"{path}: has changed since it was read")
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise FixError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            os.unlink(temporary)
