"""Suppressions: comments that keep findings quiet, which of them are used, and new ones written."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cachelint.diagnostics import Diagnostic, Edit, Fix, Location, Severity
from cachelint.sources import Source

# Bytes that any suppression of ours needs; a blanket `noqa` counts only where something is found.
HINT = re.compile(r"#[^\n]*(?:\bnoqa\b|\bcachelint\s*:)", re.IGNORECASE)
_NOQA = re.compile(
    r"#\s*(?P<own>cachelint\s*:\s*)?noqa(?P<codes>\s*:\s*(?P<list>[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*))?", re.IGNORECASE
)
_IGNORE = re.compile(r"#\s*cachelint\s*:\s*ignore(?P<file>-file)?\b(?:\s*\[(?P<list>[^\]\n]*)\])?", re.IGNORECASE)
_CODE = re.compile(r"[A-Za-z]+\d+")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment that suppresses findings.

    rows: the rows of the statement that it stands on, None for the whole file. codes: those it names, or their
    beginnings; nothing where it suppresses all. column, end: where the comment's directive stands, in its row.
    own: it is written for cachelint alone.
    """

    row: int
    column: int
    end: int
    rows: tuple[int, int] | None
    codes: tuple[str, ...]
    own: bool

    def covers(self, diagnostic: Diagnostic) -> str | None:
        """The code (empty: a blanket) by which it suppresses a finding, None where it does not."""
        if diagnostic.code in ("KV900", "KV999"):
            return None
        row = diagnostic.noqa_row
        if self.rows is not None and not (row == self.row or (self.rows[0] <= row <= self.rows[1] and self._at_an_end)):
            return None
        if not self.codes:
            return ""
        return next((code for code in self.codes if diagnostic.code.startswith(code.upper())), None)

    @property
    def _at_an_end(self) -> bool:
        """Whether it stands on the first or last row of its statement, and so counts for all of it."""
        return self.rows is not None and self.row in self.rows


def read(source: Source) -> tuple[Suppression, ...]:
    """The suppressions in a source, in their order; nothing where it cannot be split into tokens."""
    if not HINT.search(source.text):
        return ()
    found: list[Suppression] = []
    pending: list[tokenize.TokenInfo] = []
    first = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT:
                pending.append(token)
            if token.type == tokenize.NEWLINE:
                found += _of_statement(pending, first or token.start[0], token.start[0])
                pending, first = [], 0
            elif not first and token.type in (tokenize.NL, tokenize.COMMENT):
                if token.type == tokenize.NL:
                    found += _of_statement(pending, token.start[0], token.start[0])
                    pending = []
            elif not first and token.type not in (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return ()
    return (*found, *_of_statement(pending, 0, 0))


def _of_statement(comments: Iterable[tokenize.TokenInfo], first: int, last: int) -> Iterator[Suppression]:
    for token in comments:
        row, column = token.start
        for match in (*_NOQA.finditer(token.string), *_IGNORE.finditer(token.string)):
            whole = bool(match["file"]) if match.re is _IGNORE else bool(match["own"])
            codes = tuple(_CODE.findall(match["list"] or ""))
            rows = None if whole else (first or row, last or row)
            own = match.re is _IGNORE or bool(match["own"])
            yield Suppression(row, column + match.start(), column + match.end(), rows, codes, own)


def apply(
    diagnostics: Iterable[Diagnostic], suppressions: Sequence[Suppression]
) -> tuple[list[Diagnostic], dict[Suppression, set[str]]]:
    """The findings of one file that are left, and by which codes each suppression was used."""
    used: dict[Suppression, set[str]] = {each: set() for each in suppressions}
    left = []
    for diagnostic in diagnostics:
        by = [(each, code) for each in suppressions if (code := each.covers(diagnostic)) is not None]
        for each, code in by:
            used[each].add(code)
        if not by:
            left.append(diagnostic)
    return left, used


def unused(source: Source, used: dict[Suppression, set[str]], enabled: Iterable[str]) -> Iterator[Diagnostic]:
    """KV900 for each suppression, or code of one, that suppressed nothing.

    enabled: the codes of the rules that ran; of others, and of other tools' codes, nothing can be said.
    """
    ran = tuple(enabled)
    for each, by in used.items():
        mine = [code for code in each.codes if code.upper().startswith("KV")]
        idle = [code for code in mine if code not in by and _is_known(code, ran)]
        unknown = [code for code in mine if not any(rule.startswith(code.upper()) for rule in _all_codes())]
        blanket = not each.codes and each.own and not by
        if not (idle or unknown or blanket):
            continue
        what = f"{', '.join(f'`{code}`' for code in (*idle, *unknown))} " if each.codes else ""
        reason = "no rule has the code" if unknown and not idle else "nothing is found there"
        place = Location(each.row, each.column + 1)
        end = Location(each.row, each.end + 1)
        rest = [code for code in each.codes if code not in idle and code not in unknown]
        severity: Severity = "warning"
        yield Diagnostic(
            "KV900",
            "unused-suppression",
            severity,
            f"unused suppression {what}({reason})",
            source.path,
            place,
            end,
            fix=_removal(source, each, rest),
            noqa_row=each.row,
        )


def _is_known(code: str, ran: Sequence[str]) -> bool:
    """Whether every rule that a code means has run."""
    meant = [rule for rule in _all_codes() if rule.startswith(code.upper())]
    return bool(meant) and all(rule in ran for rule in meant)


def _all_codes() -> tuple[str, ...]:
    from cachelint.rule import all_rules

    return tuple(rule.code for rule in all_rules())


def _removal(source: Source, each: Suppression, rest: list[str]) -> Fix:
    line = source.lines[each.row - 1]
    text = line[each.column : each.end]
    if rest:
        start = text.index(each.codes[0])
        end = text.rindex(each.codes[-1]) + len(each.codes[-1])
        kept = f"{text[:start]}{', '.join(rest)}{text[end:]}"
        edit = Edit(kept, Location(each.row, each.column + 1), Location(each.row, each.end + 1))
        return Fix("safe", "Take the unused codes out", (edit,))
    ending = line[len(line.rstrip("\r\n")) :]
    after = line[each.end : len(line) - len(ending)]
    start = len(line[: each.column].rstrip())
    if after.strip():
        # Another comment follows in the same line.
        start, end = each.column, each.end + len(after) - len(after.lstrip())
        if not after.lstrip().startswith("#"):
            edit = Edit("# ", Location(each.row, start + 1), Location(each.row, end + 1))
            return Fix("safe", "Remove the suppression", (edit,))
        edit = Edit("", Location(each.row, start + 1), Location(each.row, end + 1))
    elif start == 0 and each.row < len(source.lines):
        edit = Edit("", Location(each.row, 1), Location(each.row + 1, 1))
    else:
        edit = Edit("", Location(each.row, start + 1), Location(each.row, len(line) - len(ending) + 1))
    return Fix("safe", "Remove the suppression", (edit,))


def with_noqa(source: Source, diagnostics: Iterable[Diagnostic]) -> str:
    """The text with a `# noqa` for each finding, at the end of its row or of its statement's last row.

    A row that has a `# noqa` with codes gets the new ones added to those.
    """
    codes: dict[int, set[str]] = {}
    ends = _statement_ends(source)
    for diagnostic in diagnostics:
        row = diagnostic.noqa_row
        codes.setdefault(ends.get(row, row), set()).add(diagnostic.code)
    lines = list(source.lines)
    for row, found in codes.items():
        line = lines[row - 1]
        body = line.rstrip("\r\n")
        ending = line[len(body) :]
        known = next((m for m in _NOQA.finditer(body) if m["list"] and not m["own"]), None)
        if known is not None:
            added = sorted(found - {code.upper() for code in _CODE.findall(known["list"])})
            end = known.end("list")
            body = f"{body[:end]}{''.join(f', {code}' for code in added)}{body[end:]}"
        else:
            body = f"{body.rstrip()}  # noqa: {', '.join(sorted(found))}"
        lines[row - 1] = body + ending
    return "".join(lines)


def _statement_ends(source: Source) -> dict[int, int]:
    """For rows at whose end no comment can stand (in a string, or continued), the last row of the statement."""
    free: set[int] = set()
    found: dict[int, int] = {}
    first = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE):
                free.add(token.start[0])
            if token.type == tokenize.NEWLINE:
                rows = range(first or token.start[0], token.start[0] + 1)
                found.update({row: token.start[0] for row in rows if row not in free})
                first = 0
            elif not first and token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return {}
    return found
