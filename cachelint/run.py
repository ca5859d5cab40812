"""One run from paths to output: checking or fixing, printing, and the exit status."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cachelint.config import Settings
from cachelint.diagnostics import Diagnostic
from cachelint.discovery import Candidate, discover
from cachelint.engine import Checker, FileResult, Report, collect, localised
from cachelint.report import formats
from cachelint.report.concise import shown

if TYPE_CHECKING:
    from cachelint.fixes import Fixed

PROGRESS_AFTER = 1.0


@dataclass
class Run:
    """A run as the command line asks for it. Diagnostics go to standard output, all else to standard error."""

    paths: tuple[Path, ...]
    settings: Settings
    option: str | None
    jobs: int
    output_file: Path | None
    colour: bool
    width: int
    quiet: bool
    verbose: bool
    statistics: bool = False
    exit_zero: bool = False
    stdin_filename: Path | None = None
    ignore_noqa: bool = False
    baseline: Path | None = None
    diff_base: str | None = None
    cache: bool = False
    failures: list[str] = field(default_factory=list)

    # Checking

    def check(self) -> int:
        """Check and print. Returns the exit status. Raises ConfigError and MissingPath."""
        checker = Checker(self.settings, self.option, ignore_noqa=self.ignore_noqa)
        if self._reads_stdin:
            name = self.stdin_filename or Path("stdin.py")
            given = checker.check_bytes(name.absolute(), sys.stdin.buffer.read())
            report = self._narrowed(collect([given], self.settings))
        else:
            report = self._checked(checker, kept=self.cache)
        self._print(report.diagnostics)
        self._tell(report)
        if self.failures:
            return 2
        return 1 if report.diagnostics and not self.exit_zero else 0

    def _checked(self, checker: Checker, *, kept: bool = False) -> Report:
        """The report of all files; `kept`: that of an earlier run, where nothing has changed since."""
        candidates = self._candidates()
        # Who names files one by one is done soon, and the files beside them would have to be asked for as well.
        if not kept or all(candidate.named for candidate in candidates):
            return self._narrowed(self._collected(checker, candidates))
        from cachelint.results import Results, stamps_of

        folder = Path(self.settings.cache_dir)
        results = Results(folder, self.settings, self.option, ignore_noqa=self.ignore_noqa)
        report = results.read(candidates)
        if report is None:
            stamps = stamps_of(candidates)
            report = self._collected(checker, candidates)
            results.write(candidates, report, stamps)
        return self._narrowed(report)

    def _collected(self, checker: Checker, candidates: list[Candidate]) -> Report:
        return collect(self._progress(checker.check(candidates, self.jobs)), self.settings)

    def _narrowed(self, report: Report) -> Report:
        """The report without what the baseline knows, and what stands on lines that nobody changed."""
        if self.baseline is not None:
            from cachelint import baseline

            folder = self.baseline.absolute().parent
            report.diagnostics, gone = baseline.split(report.diagnostics, baseline.read(self.baseline), folder)
            for entry in gone if not self.quiet else ():
                click.echo(f"note: no longer found: {entry.path}: {entry.code} {entry.message}", err=True)
            if gone and not self.quiet:
                click.echo(f"note: `cachelint baseline --baseline {self.baseline}` takes these out", err=True)
        if self.diff_base is not None:
            from cachelint.changed import on_changed_lines

            report.diagnostics = on_changed_lines(report.diagnostics, self.diff_base)
        return report

    def write_baseline(self, path: Path) -> int:
        """Write all findings into a baseline. Returns the exit status."""
        from cachelint import baseline

        report = self._collected(Checker(self.settings, self.option), self._candidates())
        found = baseline.entries(report.diagnostics, path.absolute().parent)
        try:
            baseline.write(path, found)
        except OSError as error:
            self.failures.append(f"{path}: cannot be written: {error.strerror or error}")
        self._tell_failures(report)
        if not self.quiet:
            click.echo(f"{_number(len(found), 'finding')} in {path}.", err=True)
        return 2 if self.failures else 0

    def add_noqa(self) -> int:
        """Write a `# noqa` for each finding into its file. Returns the exit status."""
        from cachelint.fixes import Fixed, FixError
        from cachelint.fixes import write as write_file
        from cachelint.sources import SourceError, decode
        from cachelint.suppressions import with_noqa

        report = self._checked(Checker(self.settings, self.option))
        wanted = [d for d in report.diagnostics if d.code not in ("KV900", "KV999")]
        count = 0
        for path in dict.fromkeys(diagnostic.path for diagnostic in wanted):
            mine = [diagnostic for diagnostic in wanted if diagnostic.path == path]
            try:
                data = path.read_bytes()
                source = decode(path, data)
                write_file(Fixed(source, with_noqa(source, mine)), data)
                count += len({(d.noqa_row, d.code) for d in mine})
            except (SourceError, FixError, OSError) as error:
                self.failures.append(_naming(path, error))
        self._tell_failures(report)
        if not self.quiet:
            click.echo(f"Added {_number(count, 'noqa directive')}.", err=True)
        return 2 if self.failures else 0

    def show_settings(self) -> int:
        """Print the settings. Returns the exit status."""
        from cachelint.config import as_table

        click.echo(as_table(self.settings), nl=False)
        return 0

    def show_files(self) -> int:
        """Print the files that would be checked. Returns the exit status."""
        for candidate in self._candidates():
            click.echo(str(candidate.path))
        return 0

    @property
    def _reads_stdin(self) -> bool:
        return [str(path) for path in self.paths] == ["-"]

    def _candidates(self) -> list[Candidate]:
        exclude = (*self.settings.exclude, *self.settings.extend_exclude)
        found = list(
            discover(
                self.paths,
                exclude,
                include=self.settings.include,
                respect_gitignore=self.settings.respect_gitignore,
            )
        )
        if not found and not self.quiet:
            click.echo("warning: no Python file was found in the given paths", err=True)
        return found

    def _progress(self, results: Iterable[FileResult]) -> Iterator[FileResult]:
        """Pass the results on; on a terminal, show how far it is once that takes longer than a moment."""
        if self.quiet or not sys.stderr.isatty():
            yield from results
            return
        began, bar = time.monotonic(), None
        for done, result in enumerate(results, 1):
            if bar is None and time.monotonic() - began > PROGRESS_AFTER:
                from rich.console import Console

                bar = Console(stderr=True).status("checking …")
                bar.start()
            if bar is not None:
                bar.update(f"checked {done} files")
            yield result
        if bar is not None:
            bar.stop()

    def upgrade(self, form: str) -> int:
        """Print what happens at each release from the oldest supported one on. Returns the exit status."""
        from cachelint import upgrade
        from cachelint.contracts.releases import all_mask, releases

        start = self.paths[0].absolute()
        target = Checker(self.settings, self.option).targets.of(start / "x.py" if start.is_dir() else start)
        lowest = (target.mask & -target.mask).bit_length() - 1
        checker = Checker(self.settings, f">={releases()[lowest]}", ignore_noqa=True)
        report = self._collected(checker, self._candidates())
        drawn = upgrade.draw(report.diagnostics, all_mask() & ~((1 << lowest) - 1))
        text = {"text": upgrade.as_text, "json": upgrade.as_json, "html": upgrade.as_html}[form](drawn)
        if self.output_file is not None:
            self.output_file.write_text(text, encoding="utf-8")
        else:
            click.echo(text, nl=False)
        self._tell_failures(report)
        return 2 if self.failures else 0

    # Fixing

    def fix(self, *, write: bool, summary: bool = False, allow_dirty: bool = True) -> int:
        """Apply fixes (or show them) and print what is left. Returns the exit status.

        allow_dirty: also to files with changes that git has not committed.
        """
        from cachelint.fixes import FixError, diff, fix_source
        from cachelint.fixes import write as write_file
        from cachelint.sources import SourceError, decode

        checker = Checker(self.settings, self.option, ignore_noqa=self.ignore_noqa)
        report = self._checked(checker)
        left: list[Diagnostic] = []
        done: list[Fixed] = []
        by_file: dict[Path, list[Diagnostic]] = {}
        for diagnostic in report.diagnostics:
            by_file.setdefault(diagnostic.path, []).append(diagnostic)
        if write and not allow_dirty and self._refuses(by_file):
            return 2
        for path, diagnostics in by_file.items():
            if not any(d.fix and d.fix.edits for d in diagnostics):
                left += diagnostics
                continue
            try:
                data = path.read_bytes()
                fixed = fix_source(decode(path, data), checker.diagnose, unsafe=self.settings.unsafe_fixes)
                if fixed.changed and write:
                    write_file(fixed, data)
                elif fixed.changed:
                    click.echo(diff(fixed, shown(path)), nl=False)
            except (SourceError, FixError, OSError) as error:
                self.failures.append(_naming(path, error))
                left += diagnostics
                continue
            if fixed.reason is not None:
                self.failures.append(f"{path}: {fixed.reason}; the file is as it was before that pass")
            done.append(fixed)
            left += fixed.left
        if write:
            self._print(left)
        self._tell(report)
        self._summarise(done, left, write=write, always=summary)
        if self.failures:
            return 2
        changed = any(fixed.changed for fixed in done)
        return 1 if (left or (changed and not write)) and not self.exit_zero else 0

    def _refuses(self, by_file: dict[Path, list[Diagnostic]]) -> bool:
        """Whether a file that a fix would change has uncommitted changes, which is told."""
        from cachelint.changed import uncommitted

        wanted = ("safe", "unsafe") if self.settings.unsafe_fixes else ("safe",)
        paths = [p for p, found in by_file.items() if any(d.fix and d.fix.applicability in wanted for d in found)]
        dirty = uncommitted(paths)
        for path in dirty:
            click.echo(f"error: {shown(path)}: has uncommitted changes", err=True)
        if dirty:
            click.echo("Nothing was written. Commit or stash the changes, or pass --allow-dirty.", err=True)
        return bool(dirty)

    def _summarise(self, done: Sequence[Fixed], left: list[Diagnostic], *, write: bool, always: bool) -> None:
        if self.quiet:
            return
        files = [fixed for fixed in done if fixed.changed]
        count = sum(len(fixed.fixed) for fixed in files)
        verb = "Fixed" if write else "Would fix"
        if count or always:
            click.echo(f"{verb} {_number(count, 'finding')} in {_number(len(files), 'file')}.", err=True)
        if always:
            codes = Counter(d.code for fixed in files for d in fixed.fixed)
            for code, number in sorted(codes.items()):
                click.echo(f"  {code}  {number}", err=True)
            self._say_what_is_left(left)

    @staticmethod
    def _say_what_is_left(left: list[Diagnostic]) -> None:
        """Why findings were not fixed, and what to do next."""
        unsafe = sum(1 for d in left if d.fix and d.fix.applicability == "unsafe" and d.fix.edits)
        by_hand = len(left) - unsafe
        if left:
            click.echo(f"Left {_number(len(left), 'finding')}:", err=True)
        if unsafe:
            more = _number(unsafe, "more fix", "more fixes")
            click.echo(f"  {unsafe} whose rewrite may change the meaning: {more} with --unsafe-fixes.", err=True)
        if by_hand:
            click.echo(f"  {by_hand} that no rewrite can mend on the whole range: see the advice at each.", err=True)

    # Printing

    def _print(self, diagnostics: list[Diagnostic]) -> None:
        text = self._render(diagnostics)
        if self.output_file is not None:
            try:
                self.output_file.write_text(text, encoding="utf-8")
            except OSError as error:
                self.failures.append(f"{self.output_file}: cannot be written: {error.strerror or error}")
            if self.settings.output_format in formats.FOR_PROGRAMS and not self.quiet:
                click.echo(self._full(diagnostics, colour=self.colour), nl=False, color=self.colour)
        elif text:
            click.echo(text, nl=False, color=self.colour)

    def _render(self, diagnostics: list[Diagnostic]) -> str:
        if self.settings.output_format != "full":
            return formats.render(self.settings.output_format, localised(diagnostics))
        return self._full(diagnostics, colour=self.colour and self.output_file is None)

    def _full(self, diagnostics: list[Diagnostic], *, colour: bool) -> str:
        if not diagnostics:
            return ""
        from cachelint.report.full import render as render_full

        return render_full(diagnostics, colour=colour, width=self.width)

    def _tell_failures(self, report: Report) -> None:
        """What went wrong in the run itself, in `failures` from here on."""
        self.failures = [*dict.fromkeys(report.failures), *self.failures]
        for failure in self.failures:
            click.echo(f"error: {failure}", err=True)

    def _tell(self, report: Report) -> None:
        """Everything that is no finding: counts, what could not be read, where the analysis gave up."""
        self._tell_failures(report)
        if report.unfinished and self.verbose:
            for place in report.unfinished:
                click.echo(f"note: gave up on {place}; what happens in it is unknown", err=True)
        if self.quiet:
            return
        if self.statistics:
            for code, number in Counter(d.code for d in report.diagnostics).most_common():
                click.echo(f"{number:>5}  {code}", err=True)
        if self.verbose:
            click.echo(f"note: {_number(report.files, 'file')} looked at", err=True)
        if self.settings.output_format not in formats.FOR_PROGRAMS or self.output_file is not None:
            self._count(report.diagnostics)

    def _count(self, diagnostics: list[Diagnostic]) -> None:
        if not diagnostics:
            click.echo("All checks passed!", err=True)
            return
        errors = sum(d.severity == "error" for d in diagnostics)
        fixable = sum(bool(d.fix and d.fix.edits and d.fix.applicability == "safe") for d in diagnostics)
        split = f"{_number(errors, 'error')}, {_number(len(diagnostics) - errors, 'warning')}"
        click.echo(f"Found {_number(len(diagnostics), 'finding')} ({split}).", err=True)
        if fixable:
            click.echo(f"{fixable} fixable with --fix.", err=True)


def _naming(path: Path, error: Exception) -> str:
    """What went wrong with a file, which is named in it."""
    return str(error) if str(path) in str(error) else f"{path}: {error}"


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
