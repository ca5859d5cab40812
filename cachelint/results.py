"""The results of whole runs, kept so that a run over files that have not changed since costs next to nothing.

One file holds the last run with one set of paths and settings. It counts only while every file that was read for it
(those looked at, those that flows led into, and those that name the supported releases) has its size and time of
change. What cannot be read or understood is no result; nothing in it is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cachelint import __version__
from cachelint.config import Settings
from cachelint.diagnostics import Diagnostic, Edit, Fix, FlowStep, Location, ReleaseEffect
from cachelint.discovery import Candidate
from cachelint.engine import Report
from cachelint.files import write_whole

# Files that can name the releases that a project supports.
_DECLARING = (".toml", ".txt", ".lock", ".cfg", ".yml", ".yaml", "setup.py")
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of cachelint.\n"


class Results:
    """The kept results of runs with one set of settings, in one folder."""

    def __init__(self, folder: Path, settings: Settings, option: str | None, *, ignore_noqa: bool) -> None:
        self._folder = folder
        self._key = [__version__, _own_stamp(), sys.version, repr(settings), option, ignore_noqa, os.getcwd()]

    def _path(self, candidates: Sequence[Candidate]) -> Path:
        tops = sorted({os.path.dirname(candidate.path) for candidate in candidates})
        text = json.dumps([*self._key, tops[:1], tops[-1:]])
        return self._folder / f"{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[:24]}.json"

    def read(self, candidates: Sequence[Candidate]) -> Report | None:
        """The report of the last run, None where there is none or something has changed."""
        try:
            data = json.loads(self._path(candidates).read_text(encoding="utf-8", errors="surrogateescape"))
            if data["key"] != self._key or data["looked_at"] != [str(c.path) for c in candidates]:
                return None
            known: dict[str, list[int]] = data["stamps"]
            declaring = _declaring(candidates)
            if data["declaring"] != declaring or any(_stamp(path) != stamp for path, stamp in known.items()):
                return None
            found = [_diagnostic(each) for each in data["diagnostics"]]
            return Report(found, data["files"], data["unfinished"])
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
            return None

    def write(self, candidates: Sequence[Candidate], report: Report, stamps: dict[str, list[int]]) -> None:
        """Keep a report, with the stamps that the files had before they were read; failures are not kept."""
        if report.failures:
            return
        data = {
            "key": self._key,
            "looked_at": [str(candidate.path) for candidate in candidates],
            "stamps": {**{str(path): _stamp(str(path)) for path in report.read}, **stamps},
            "declaring": _declaring(candidates),
            "files": report.files,
            "unfinished": report.unfinished,
            "diagnostics": [_as_object(each) for each in report.diagnostics],
        }
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for name, text in (("CACHEDIR.TAG", _TAG), (".gitignore", "*\n")):
                if not (self._folder / name).exists():
                    (self._folder / name).write_text(text, encoding="utf-8")
            write_whole(self._path(candidates), json.dumps(data))
        except OSError:
            # A folder that cannot be written to costs time, no results.
            return


def stamps_of(candidates: Iterable[Candidate]) -> dict[str, list[int]]:
    """The size and time of change of each file."""
    return {str(candidate.path): _stamp(str(candidate.path)) for candidate in candidates}


def _stamp(path: str) -> list[int]:
    try:
        status = os.stat(path)
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]


def _own_stamp() -> list[int]:
    """What changes when cachelint itself is worked on, in an installation that is edited in place."""
    here = Path(__file__).parent
    folders = (here, here / "flow", here / "contracts", here / "contracts" / "data", here.parent / "rules")
    return [max((e.stat().st_mtime_ns for e in os.scandir(f) if e.is_file()), default=0) for f in folders if f.is_dir()]


def _declaring(candidates: Iterable[Candidate]) -> dict[str, list[int]]:
    """The stamps of the files that can name releases, in the folders of the candidates and in those above."""
    folders: set[Path] = set()
    for folder in {candidate.path.parent for candidate in candidates}:
        while folder not in folders:
            folders.add(folder)
            if (folder / ".git").exists():
                break
            folder = folder.parent
    found: dict[str, list[int]] = {}
    for folder in sorted(folders):
        try:
            with os.scandir(folder) as entries:
                named = [e for e in entries if e.name.endswith(_DECLARING)]
                found.update({e.path: _stamp(e.path) for e in named})
        except OSError:
            continue
    return found


def _as_object(each: Diagnostic) -> list[Any]:
    fix = None
    if each.fix is not None:
        edits = [[e.content, *_pair(e.location), *_pair(e.end_location)] for e in each.fix.edits]
        fix = [each.fix.applicability, each.fix.message, edits]
    return [
        [each.code, each.name, each.severity, each.message, str(each.path)],
        [*_pair(each.location), *_pair(each.end_location)],
        fix,
        [[r.range, r.effect, r.detail, r.mask] for r in each.releases],
        [[str(s.path), *_pair(s.location), s.message] for s in each.flow],
        [each.noqa_row, each.cell, each.url],
    ]


def _pair(place: Location) -> tuple[int, int]:
    return place.row, place.column


def _diagnostic(data: list[Any]) -> Diagnostic:
    (code, name, severity, message, path), place, fix, releases, flow, (noqa_row, cell, url) = data
    mended = None
    if fix is not None:
        applicability, said, edits = fix
        mended = Fix(applicability, said, tuple(Edit(t, Location(a, b), Location(c, d)) for t, a, b, c, d in edits))
    return Diagnostic(
        code,
        name,
        severity,
        message,
        Path(path),
        Location(*place[:2]),
        Location(*place[2:]),
        mended,
        tuple(ReleaseEffect(*each) for each in releases),
        tuple(FlowStep(Path(where), Location(row, column), text) for where, row, column, text in flow),
        noqa_row,
        cell,
        url,
    )
