"""The order of a run: files, triggers, skeletons, flow, rules, diagnostics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, overload

from cachelint import suppressions
from cachelint.config import Settings
from cachelint.diagnostics import Diagnostic, Edit, Fix, Location
from cachelint.discovery import Candidate, PerFileIgnores, discover
from cachelint.rule import all_rules
from cachelint.sources import Source, SourceError, decode
from cachelint.suppressions import Suppression
from cachelint.target import Targets
from cachelint.triggers import Triggers

if TYPE_CHECKING:
    from cachelint.flow.project import Function, Project

# From here on a second process saves more than its start costs.
PARALLEL_BYTES = 1_500_000
CALLER_LEVELS = 3
MAX_CALLING_FILES = 64
MAY_PASS_A_CACHE = re.compile(rb"[Cc]ache|past_key_value|\bkv")
Place = tuple[Path, int]
# A function that callers are looked for: its name, that of its class or nothing, and its file.
Sought = tuple[str, str, Path]


@dataclass(slots=True)
class Report:
    """What a run found.

    files: how many were looked at. unfinished: functions that the analysis gave up on. failures: what went
    wrong in the run itself, such as files that could not be read. read: the files that flows led into.
    """

    diagnostics: list[Diagnostic] = field(default_factory=list)
    files: int = 0
    unfinished: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    read: set[Path] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Judged:
    """A diagnostic, and the root function that led to it (file and first row), None for a module's top level."""

    diagnostic: Diagnostic
    root: Place | None


@dataclass(slots=True)
class FileResult:
    """What the analysis of one file tells.

    calls: each root with the functions that were judged as its callees. sought: functions of which a caller in
    another file can tell more. suppressed: the suppressions in the file, where there are any. read: the files
    that flows led into.
    """

    judged: list[Judged] = field(default_factory=list)
    calls: list[tuple[Place | None, frozenset[Place]]] = field(default_factory=list)
    sought: frozenset[Sought] = frozenset()
    suppressed: tuple[Source, tuple[Suppression, ...]] | None = None
    unfinished: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    read: frozenset[Path] = frozenset()


class Checker:
    """Checks files with one set of settings."""

    def __init__(self, settings: Settings, option: str | None = None, *, ignore_noqa: bool = False) -> None:
        self.settings = settings
        self.ignore_noqa = ignore_noqa
        self.option = option
        self.targets = Targets(settings, option)
        self.rules = [rule for rule in all_rules() if settings.enables(rule.code)]
        self._triggers = Triggers(self.rules, settings)
        self._sources: dict[Path, Source] = {}
        self._project: Project | None = None
        self._pool: list[Path] = []
        self._asked: frozenset[Path] | None = None

    def check(self, candidates: Iterable[Candidate], jobs: int = 1) -> Iterator[FileResult]:
        """The result of each file, in order, then those of the files that call what was found open.

        Raises ConfigError where a file's release range is none.
        """
        work = [(candidate, _size(candidate)) for candidate in candidates]
        self._pool = [candidate.path for candidate, _ in work]
        self._asked = frozenset(self._pool)
        sought: set[Sought] = set()
        if jobs > 1 and len(work) > 1 and sum(size for _, size in work) > PARALLEL_BYTES:
            from cachelint.workers import check_all

            results = check_all(self, work, jobs)
        else:
            results = (self.check_file(candidate) for candidate, _ in work)
        for result in results:
            sought |= result.sought
            yield result
        if sought and all(candidate.named for candidate, _ in work):
            self._pool = _project_files(self._pool, self.settings)
        yield from self._callers(frozenset(sought))

    def _callers(self, sought: frozenset[Sought]) -> Iterator[FileResult]:
        """The results of the files that may call a sought function, and of their callers, to a few levels."""
        known = sought
        for _ in range(CALLER_LEVELS):
            if not sought:
                return
            found: set[Sought] = set()
            for path, names in _mentioning(sought, self._pool, self._sources):
                try:
                    source = self._sources.get(path) or decode(path, path.read_bytes())
                    result = self._analyse(source, _calls_of(names), callers_of_all=True)
                except (SourceError, OSError):
                    continue
                found |= result.sought
                if self._asked is not None:
                    # What the callers do in files of their own nobody has asked for.
                    result.judged = [each for each in result.judged if each.diagnostic.path in self._asked]
                    result.suppressed = None if path not in self._asked else result.suppressed
                yield result
            sought = frozenset(found - known)
            known |= sought

    def check_file(self, candidate: Candidate) -> FileResult:
        """The result of one file; one that the user did not name is parsed only where its bytes ask for it."""
        try:
            data = candidate.path.read_bytes()
        except OSError as error:
            return FileResult(failures=[f"{candidate.path}: cannot be read: {error.strerror or error}"])
        if not candidate.named and not self._triggers.ask(data):
            return FileResult()
        return self.check_bytes(candidate.path, data)

    def check_bytes(self, path: Path, data: bytes) -> FileResult:
        """The result of a file's content; what cannot be parsed is a finding."""
        try:
            return self.check_source(decode(path, data))
        except SourceError as error:
            if not self.settings.enables("KV999"):
                return FileResult()
            return FileResult([Judged(_syntax_error(path, error), None)])

    def diagnose(self, source: Source) -> list[Diagnostic]:
        """What is found in one source, as a report has it. Raises SourceError where it cannot be parsed.

        Files that were checked before are looked through for callers.
        """
        self._sources = {source.path: source}
        first = self.check_source(source)
        results = [first, *self._callers(first.sought)]
        self._sources, self._project = {}, None
        return [
            diagnostic for diagnostic in collect(results, self.settings).diagnostics if diagnostic.path == source.path
        ]

    def check_source(self, source: Source) -> FileResult:
        """The result of a source. Raises SourceError where it cannot be parsed."""
        pattern = self._triggers.within(source.text.encode("utf-8", "replace"))
        if not pattern:
            from cachelint.flow.skeleton import parse

            parse(source.text)
            return FileResult()
        return self._analyse(source, pattern)

    def _analyse(self, source: Source, pattern: str, *, callers_of_all: bool = False) -> FileResult:
        from cachelint.flow.analysis import Analysis
        from cachelint.flow.project import Hints, Project
        from cachelint.judging import judge

        if self._project is None or self._sources:
            hints = Hints(
                frozenset(self.settings.cache_names),
                frozenset(self.settings.cache_types),
                frozenset(self.settings.trusted_calls),
            )
            self._project = Project(self._sources, hints)
        project = self._project
        module = project.add(source)
        releases = self.targets.of(source.path, source.text).mask
        triggers = re.compile(pattern)
        findings = Analysis(project, module, releases, triggers, callers_of_all=callers_of_all).run()
        result = FileResult(unfinished=findings.unfinished, failures=findings.faults)
        if not self.ignore_noqa and (found := suppressions.read(source)):
            result.suppressed = (source, found)
        result.calls = [(_place(root), frozenset(map(_place, called))) for root, called in findings.calls]
        # Who calls a `crop` of the project's own is looked at anyway.
        result.sought = frozenset(
            (f.name, f.cls.name if f.cls else "", f.module.path) for f in findings.open if f.name != "crop"
        )
        for root, event in findings.events:
            for diagnostic in judge(event, self.rules, releases, self.settings.asks_for):
                result.judged.append(Judged(diagnostic, _place(root) if root else None))
        result.read = project.loaded()
        project.forget_trees()
        return result


@overload
def _place(function: Function) -> Place: ...
@overload
def _place(function: Function | None) -> Place | None: ...
def _place(function: Function | None) -> Place | None:
    return (function.module.path, function.skeleton.start) if function is not None else None


def _syntax_error(path: Path, error: SourceError) -> Diagnostic:
    place = Location(error.row, error.column)
    return Diagnostic("KV999", "syntax-error", "error", error.reason, path, place, place, noqa_row=error.row)


def _calls_of(names: Iterable[str]) -> str:
    return rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b(?=\s*[(,)])"


def _mentioning(
    sought: frozenset[Sought], pool: Iterable[Path], sources: Mapping[Path, Source]
) -> list[tuple[Path, set[str]]]:
    """The files that call sought functions, with their names.

    Where one is a method, the file also makes, or is given, an instance of its class.
    """
    names = "|".join(re.escape(name) for name in sorted({name for name, _, _ in sought}))
    word = re.compile(rf"\b({names})\b\s*[(,)]".encode())
    owners = {
        owner: re.compile(rf"\b{re.escape(owner)}\s*\(|(?::|->)\s*[\"']?{re.escape(owner)}\b".encode())
        for _, owner, _ in sought
        if owner
    }
    found: list[tuple[Path, set[str]]] = []
    for path in pool:
        try:
            data = sources[path].text.encode("utf-8", "replace") if path in sources else path.read_bytes()
        except OSError:
            continue
        called = {match.decode() for match in word.findall(data)} if MAY_PASS_A_CACHE.search(data) else set()
        # Callers in the same file were met when that was analysed.
        others = [(n, owner) for n, owner, home in sought if home != path and n in called]
        called = {n for n, owner in others if not owner or owners[owner].search(data)}
        if called:
            found.append((path, called))
    return found[:MAX_CALLING_FILES]


def _project_files(named: list[Path], settings: Settings) -> list[Path]:
    """The files of the projects that the named files belong to, so that their callers are in sight."""
    roots: dict[Path, None] = {}
    for path in named:
        for folder in path.parents:
            if any((folder / name).exists() for name in ("pyproject.toml", "setup.py", "setup.cfg", ".git")):
                roots[folder] = None
                break
    found = discover(roots, (*settings.exclude, *settings.extend_exclude))
    return list(dict.fromkeys([*named, *(candidate.path for candidate in found)]))


def _size(candidate: Candidate) -> int:
    try:
        return candidate.path.stat().st_size
    except OSError:
        return 0


def collect(results: Iterable[FileResult], settings: Settings | None = None) -> Report:
    """One report of all files: a function called in sight is judged by its callers, each place told once.

    What a comment, or the settings for its file, suppress is left out; settings also say which rules ran.
    """
    report = Report()
    judged: list[Judged] = []
    calls: dict[Place | None, set[Place]] = {}
    suppressed: dict[Path, tuple[Source, tuple[Suppression, ...]]] = {}
    for result in results:
        report.files += 1
        if result.suppressed is not None:
            suppressed[result.suppressed[0].path] = result.suppressed
        judged += result.judged
        for root, called in result.calls:
            calls.setdefault(root, set()).update(called)
        report.unfinished += [place for place in result.unfinished if place not in report.unfinished]
        report.failures += result.failures
        report.read |= result.read
    covered = {
        place for root, called in calls.items() for place in called if root is None or root not in calls.get(place, ())
    }
    kept = [each.diagnostic for each in judged if each.root is None or each.root not in covered]
    found = _most_urgent(_merged(kept))
    report.diagnostics = _unsuppressed(found, suppressed, settings or Settings())
    return report


def _unsuppressed(
    found: list[Diagnostic], suppressed: Mapping[Path, tuple[Source, tuple[Suppression, ...]]], settings: Settings
) -> list[Diagnostic]:
    left = [diagnostic for diagnostic in found if diagnostic.path not in suppressed]
    ran = [rule.code for rule in all_rules() if settings.enables(rule.code)]
    for path, (source, comments) in suppressed.items():
        mine = [diagnostic for diagnostic in found if diagnostic.path == path]
        rest, used = suppressions.apply(mine, comments)
        left += rest
        if settings.enables("KV900"):
            left += suppressions.unused(source, used, ran)
    ignored = PerFileIgnores(settings)
    kept = [d if settings.fixes(d.code) else _unfixable(d) for d in left if not ignored.ignores(d.path, d.code)]
    return sorted(kept, key=lambda d: d.sort_key)


def _unfixable(diagnostic: Diagnostic) -> Diagnostic:
    """A finding whose fix the settings do not want applied: it is still shown."""
    fix = diagnostic.fix
    return replace(diagnostic, fix=replace(fix, applicability="display")) if fix is not None else diagnostic


def localised(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics for a report: those in notebooks with the cell, and their rows counted in it."""
    texts: dict[Path, str | None] = {}
    return [_localised(diagnostic, texts) for diagnostic in diagnostics]


def _localised(diagnostic: Diagnostic, texts: dict[Path, str | None]) -> Diagnostic:
    if diagnostic.path.suffix != ".ipynb" or diagnostic.code == "KV999":
        return diagnostic
    from cachelint.notebooks import cell_at

    def module_of(path: Path) -> str | None:
        if path not in texts:
            texts[path] = decode(path, path.read_bytes()).text if path.suffix == ".ipynb" else None
        return texts[path]

    def moved(path: Path, place: Location) -> Location:
        text = module_of(path)
        return place if text is None else Location(cell_at(text, place.row)[1], place.column)

    text, path = module_of(diagnostic.path), diagnostic.path
    assert text is not None
    fix = diagnostic.fix
    if fix is not None:
        edits = [Edit(e.content, moved(path, e.location), moved(path, e.end_location)) for e in fix.edits]
        fix = replace(fix, edits=tuple(edits))
    return replace(
        diagnostic,
        cell=cell_at(text, diagnostic.location.row)[0],
        location=moved(path, diagnostic.location),
        end_location=moved(path, diagnostic.end_location),
        noqa_row=moved(path, diagnostic.location).row,
        flow=tuple(replace(step, location=moved(step.path, step.location)) for step in diagnostic.flow),
        fix=fix,
    )


def _merged(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    found: dict[tuple[object, ...], Diagnostic] = {}
    for diagnostic in sorted(diagnostics, key=lambda d: (d.sort_key, d.severity, d.message)):
        key = (diagnostic.path, diagnostic.location, diagnostic.code)
        other = found.get(key)
        if other is None:
            found[key] = diagnostic
        elif other.fix != diagnostic.fix and other.fix is not None and diagnostic.fix is not None:
            found[key] = replace(other, fix=_more_careful(other.fix, diagnostic.fix))
    return list(found.values())


def _more_careful(a: Fix, b: Fix) -> Fix:
    """Of two ways that lead to one place, the rewrite that claims less."""
    order = ("safe", "unsafe", "display")
    return max(a, b, key=lambda fix: (order.index(fix.applicability), len(fix.edits), str(fix.edits)))


def _most_urgent(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Without those that tell of the same place what another already tells for the same releases."""
    found: list[Diagnostic] = []
    for diagnostic in diagnostics:
        same = [d for d in found if d.path == diagnostic.path and d.location == diagnostic.location]
        if not any(d.effects == diagnostic.effects and d.effects for d in same):
            found.append(diagnostic)
    return found
