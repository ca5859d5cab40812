"""The order of a run: files, triggers, skeletons, flow, rules, diagnostics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from cachelint.config import Settings
from cachelint.diagnostics import Diagnostic, Fix, Location
from cachelint.discovery import Candidate
from cachelint.rule import all_rules
from cachelint.sources import Source, SourceError, decode
from cachelint.target import Targets

PARALLEL_BYTES = 300_000


@dataclass(slots=True)
class Report:
    """What a run found.

    files: how many were looked at. unfinished: functions that the analysis gave up on. failures: what went
    wrong in the run itself, such as files that could not be read.
    """

    diagnostics: list[Diagnostic] = field(default_factory=list)
    files: int = 0
    unfinished: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Judged:
    """A diagnostic, and the function that was judged without a caller to come to it (file and first row)."""

    diagnostic: Diagnostic
    root: tuple[Path, int] | None


@dataclass(slots=True)
class FileResult:
    """What the analysis of one file tells: findings, functions judged by their callers, functions given up."""

    judged: list[Judged] = field(default_factory=list)
    called: set[tuple[Path, int]] = field(default_factory=set)
    unfinished: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class Checker:
    """Checks files with one set of settings."""

    def __init__(self, settings: Settings, option: str | None = None) -> None:
        self.settings = settings
        self.option = option
        self.targets = Targets(settings, option)
        self.rules = [rule for rule in all_rules() if settings.enables(rule.code)]
        self._patterns = sorted({pattern for rule in self.rules for pattern in rule.triggers})
        self._triggers = re.compile("|".join(self._patterns).encode()) if self._patterns else None

    def check(self, candidates: Iterable[Candidate], jobs: int = 1) -> Iterator[FileResult]:
        """The result of each file, in order. Raises ConfigError where a file's release range is none."""
        work = [(candidate, self._weight(candidate)) for candidate in candidates]
        if jobs > 1 and sum(weight for _, weight in work) > PARALLEL_BYTES:
            yield from _in_processes(self.settings, self.option, work, jobs)
        else:
            for candidate, weight in work:
                yield self.check_file(candidate) if weight else FileResult()

    def _weight(self, candidate: Candidate) -> int:
        """How many bytes there are to analyse: 0 where no byte of the file asks for it."""
        if candidate.named:
            return 1
        try:
            data = candidate.path.read_bytes()
        except OSError:
            return 1
        return len(data) if self._triggers is not None and self._triggers.search(data) else 0

    def check_file(self, candidate: Candidate) -> FileResult:
        """The result of one file."""
        try:
            data = candidate.path.read_bytes()
        except OSError as error:
            return FileResult(failures=[f"{candidate.path}: cannot be read: {error.strerror or error}"])
        return self.check_bytes(candidate.path, data)

    def check_bytes(self, path: Path, data: bytes) -> FileResult:
        """The result of a file's content; what cannot be parsed is a finding."""
        try:
            return self.check_source(decode(path, data))
        except SourceError as error:
            if not self.settings.enables("KV999"):
                return FileResult()
            return FileResult([Judged(self._syntax_error(path, error), None)])

    def diagnose(self, source: Source) -> list[Diagnostic]:
        """What is found in one source, as a report has it. Raises SourceError where it cannot be parsed."""
        found = collect([self.check_source(source)]).diagnostics
        return [diagnostic for diagnostic in found if diagnostic.path == source.path]

    def check_source(self, source: Source) -> FileResult:
        """The result of a source. Raises SourceError where it cannot be parsed."""
        if self._triggers is None or not self._triggers.search(source.text.encode("utf-8", "replace")):
            from cachelint.flow.skeleton import parse

            parse(source.text)
            return FileResult()
        return self._analyse(source)

    def _analyse(self, source: Source) -> FileResult:
        from cachelint.flow.analysis import Analysis
        from cachelint.flow.project import Project
        from cachelint.judging import judge

        project = Project()
        module = project.add(source)
        releases = self.targets.of(source.path, source.text).mask
        triggers = re.compile("|".join(self._patterns))
        findings = Analysis(project, module, releases, triggers).run()
        result = FileResult(unfinished=findings.unfinished, failures=findings.faults)
        result.called = {(function.module.path, function.skeleton.start) for function in findings.called}
        for root, event in findings.events:
            place = (root.module.path, root.skeleton.start) if root and event.calls is None else None
            for diagnostic in judge(event, self.rules, releases):
                result.judged.append(Judged(diagnostic, place))
        return result

    def _syntax_error(self, path: Path, error: SourceError) -> Diagnostic:
        place = Location(error.row, error.column)
        return Diagnostic("KV999", "syntax-error", "error", error.reason, path, place, place, noqa_row=error.row)


def _in_processes(
    settings: Settings, option: str | None, work: list[tuple[Candidate, int]], jobs: int
) -> Iterator[FileResult]:
    from concurrent.futures import ProcessPoolExecutor

    heavy = sorted((item for item in work if item[1]), key=lambda item: -item[1])
    with ProcessPoolExecutor(min(jobs, len(heavy)), initializer=_start_worker, initargs=(settings, option)) as pool:
        futures = {candidate.path: pool.submit(_work, candidate) for candidate, _ in heavy}
        for candidate, weight in work:
            yield futures[candidate.path].result() if weight else FileResult()


_worker: list[Checker] = []


def _start_worker(settings: Settings, option: str | None) -> None:
    _worker[:] = [Checker(settings, option)]


def _work(candidate: Candidate) -> FileResult:
    return _worker[0].check_file(candidate)


def collect(results: Iterable[FileResult]) -> Report:
    """One report of all files: a function called in sight is judged by its callers, each place told once."""
    report = Report()
    judged: list[Judged] = []
    called: set[tuple[Path, int]] = set()
    for result in results:
        report.files += 1
        judged += result.judged
        called |= result.called
        report.unfinished += result.unfinished
        report.failures += result.failures
    kept = [each.diagnostic for each in judged if each.root not in called]
    report.diagnostics = _most_urgent(_merged(kept))
    return report


def _merged(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    found: dict[tuple[object, ...], Diagnostic] = {}
    for diagnostic in diagnostics:
        key = (diagnostic.path, diagnostic.location, diagnostic.code)
        other = found.get(key)
        if other is None or (other.severity == "warning" and diagnostic.severity == "error"):
            found[key] = diagnostic
        elif other.fix != diagnostic.fix and other.fix is not None and diagnostic.fix is not None:
            found[key] = replace(other, fix=_more_careful(other.fix, diagnostic.fix))
    return sorted(found.values(), key=lambda diagnostic: diagnostic.sort_key)


def _more_careful(a: Fix, b: Fix) -> Fix:
    """Of two ways that lead to one place, the rewrite that claims less."""
    order = ("safe", "unsafe", "display")
    return max(a, b, key=lambda fix: order.index(fix.applicability))


def _most_urgent(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Without those that tell of the same place what another already tells for the same releases."""
    found: list[Diagnostic] = []
    for diagnostic in diagnostics:
        same = [d for d in found if d.path == diagnostic.path and d.location == diagnostic.location]
        if not any(d.effects == diagnostic.effects and d.effects for d in same):
            found.append(diagnostic)
    return found
