"""`full`: for people. A code frame, the evidence as steps, the releases as a strip, the fix as a diff."""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cachelint.contracts.releases import all_mask, members
from cachelint.diagnostics import Diagnostic, Fix, FlowStep
from cachelint.engine import localised
from cachelint.fixes import apply_edits
from cachelint.report.concise import printable, shown, where
from cachelint.sources import SourceError, decode, split_lines

_COLOURS = {
    "raises": "red",
    "wipes": "red",
    "corrupts": "red",
    "changes": "yellow",
    "slow": "yellow",
    "warns": "yellow",
    "unsupported": "bright_black",
}
_MARKS = {"raises": "x", "wipes": "x", "corrupts": "x", "changes": "~", "slow": "~", "warns": "!", "unsupported": "-"}


def render(diagnostics: Iterable[Diagnostic], *, colour: bool, width: int) -> str:
    """The report as text, with terminal colours where `colour` is set."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        width=width,
        soft_wrap=True,
        highlight=False,
        markup=False,
        emoji=False,
    )
    sources = Lines()
    for diagnostic in diagnostics:
        for piece in _diagnostic(diagnostic, sources):
            console.print(piece)
        console.print()
    return stream.getvalue()


class Lines:
    """The lines of the files that are shown."""

    def __init__(self) -> None:
        self._texts: dict[Path, str] = {}

    def text(self, path: Path) -> str:
        """The text of a file, empty where it cannot be read any more."""
        if path not in self._texts:
            try:
                self._texts[path] = decode(path, path.read_bytes()).text
            except (OSError, SourceError):
                self._texts[path] = ""
        return self._texts[path]

    def line(self, path: Path, row: int) -> str:
        """One line without its end, empty where there is none."""
        lines = split_lines(self.text(path))
        return lines[row - 1].rstrip("\r\n") if 0 < row <= len(lines) else ""


def _diagnostic(diagnostic: Diagnostic, sources: Lines) -> Iterable[Text]:
    place = where(localised([diagnostic])[0])
    colour = "red" if diagnostic.severity == "error" else "yellow"
    yield Text.assemble(
        (diagnostic.code, f"bold {colour}"),
        (f" {diagnostic.name}", "bold"),
        f": {printable(diagnostic.message)}",
    )
    yield from _frame(diagnostic, place, sources, colour)
    yield from _steps(diagnostic.flow, sources)
    yield from _releases(diagnostic)
    if diagnostic.fix is not None:
        yield from _fix(diagnostic.fix, diagnostic.path, sources)


def _frame(diagnostic: Diagnostic, place: str, sources: Lines, colour: str) -> Iterable[Text]:
    row, column = diagnostic.location.row, diagnostic.location.column
    yield Text.assemble(("  --> ", "cyan"), f"{shown(diagnostic.path)}:{place}")
    last = min(diagnostic.end_location.row, row + 4)
    gutter = len(str(last + 1))
    for number in range(max(1, row - 1), last + 1):
        line = sources.line(diagnostic.path, number)
        yield Text.assemble((f"{number:>{gutter + 1}} | ", "cyan"), printable(line.expandtabs(4)))
        if number == row and line:
            before = len(line[: column - 1].expandtabs(4))
            end = diagnostic.end_location.column - 1 if diagnostic.end_location.row == row else len(line)
            length = max(1, len(line[:end].expandtabs(4)) - before)
            yield Text.assemble((f"{'':>{gutter + 1}} | ", "cyan"), " " * before, ("^" * length, f"bold {colour}"))


def _steps(flow: tuple[FlowStep, ...], sources: Lines) -> Iterable[Text]:
    if len(flow) < 2:
        return
    yield Text("  how it comes to that:", "bold")
    for number, step in enumerate(flow, 1):
        line = sources.line(step.path, step.location.row).strip()
        place = f"{step.path.name}:{step.location.row}"
        yield Text.assemble(
            (f"  {number:>3}. ", "cyan"), f"{printable(step.message)}", ("  " + printable(place), "bright_black")
        )
        yield Text.assemble("       ", (printable(line if len(line) <= 96 else f"{line[:93]}…"), "bright_black"))


def _releases(diagnostic: Diagnostic) -> Iterable[Text]:
    if not diagnostic.releases:
        return
    yield Text("  on which releases of transformers:", "bold")
    yield _strip(diagnostic)
    wide = max(len(effect.range) for effect in diagnostic.releases)
    for effect in diagnostic.releases:
        yield Text.assemble(
            f"    {effect.range:<{wide}}  ", (f"{effect.effect:<9}", _COLOURS[effect.effect]), f" {effect.detail}"
        )


def _strip(diagnostic: Diagnostic) -> Text:
    """One sign a minor release, from the first known to the newest."""
    strip = Text("    ")
    minors: dict[tuple[int, ...], str] = {}
    for index, release in enumerate(members(all_mask())):
        for effect in diagnostic.releases:
            if effect.mask >> index & 1:
                minors[release.release[:2]] = effect.effect
        minors.setdefault(release.release[:2], "")
    first, last = next(iter(minors)), next(reversed(minors))
    strip.append(f"{first[0]}.{first[1]} ", "bright_black")
    for effect_name in minors.values():
        strip.append(_MARKS.get(effect_name, "."), _COLOURS.get(effect_name, "green"))
    strip.append(f" {last[0]}.{last[1]}", "bright_black")
    return strip


def _fix(fix: Fix, path: Path, sources: Lines) -> Iterable[Text]:
    kinds = {"safe": "fix", "unsafe": "unsafe fix", "display": "advice"}
    yield Text.assemble((f"  {kinds[fix.applicability]}: ", "bold green"), fix.message)
    before = sources.text(path)
    if not fix.edits or not before:
        return
    after = apply_edits(before, fix.edits)
    lines = difflib.unified_diff(split_lines(before), split_lines(after), n=1)
    for line in list(lines)[2:]:
        colours = {"+": "green", "-": "red", "@": "cyan"}
        yield Text("    " + printable(line.rstrip("\r\n").expandtabs(4)), colours.get(line[:1], ""))
