"""Jupyter notebooks: their code cells as one module, and a changed module back into the cells.

Each cell stands under a comment line of its own, `#: cell 3`. What is not Python (magics, shell lines, help) stays
in the text behind `#: `, so that it can be put back; the notebook's file is changed in the cells' strings only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cachelint.sources import SourceError

_CELL = re.compile(r"^#: cell (\d+)\n", re.MULTILINE)
_MAGIC = re.compile(r"^(\s*)([%!?].*|[\w.\[\]]+\?{1,2}\s*)$")
_CAPTURED = re.compile(r"^(\s*[\w, ]+=\s*)([%!].*)$")
_KEPT = re.compile(r"^(\s*)pass  #: (.*)$")
_KEPT_VALUE = re.compile(r"^(\s*[\w, ]+=\s*)None  #: (.*)$")
_PYTHON_CELL_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')


@dataclass(frozen=True)
class Notebook:
    """A notebook's file as text, and where in it each code cell's source stands (offsets), by its number from 1."""

    raw: str
    sources: dict[int, tuple[int, int]]

    def rewritten(self, module: str) -> str:
        """The file with the cells' sources taken from the module text; all else is the same to the character."""
        texts = dict(_split(module))
        raw = self.raw
        for number, (start, end) in sorted(self.sources.items(), reverse=True):
            old = json.loads(raw[start:end])
            new = "\n".join(_restored(line) for line in texts[number].split("\n"))
            if new != ("".join(old) if isinstance(old, list) else old):
                raw = raw[:start] + _encoded(new, raw[start:end]) + raw[end:]
        return raw


def read(raw: str) -> tuple[str, Notebook]:
    """The module text of a notebook's file, and the notebook.

    Raises:
        SourceError: the file is no JSON, nests too deep, or is no notebook of Python.
    """
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"the notebook is no valid JSON: {error}", getattr(error, "lineno", 1)) from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise SourceError("the notebook has no list of cells")
    language = content.get("metadata", {}).get("kernelspec", {}).get("language", "python")
    if language != "python":
        return "", Notebook(raw, {})
    code = {n for n, cell in enumerate(cells, 1) if isinstance(cell, dict) and cell.get("cell_type") == "code"}
    sources = {number: span for number, span in _source_spans(raw) if number in code}
    module = []
    for number, (start, end) in sorted(sources.items()):
        value = json.loads(raw[start:end])
        text = "".join(value) if isinstance(value, list) else str(value)
        module.append(f"#: cell {number}\n{_as_python(text)}\n")
    return "".join(module), Notebook(raw, sources)


def cell_at(module: str, row: int) -> tuple[int, int]:
    """The cell's number and the row in it (both from 1) of a row of the module text."""
    number, first = 0, 0
    for match in _CELL.finditer(module):
        start = module.count("\n", 0, match.end())
        if start >= row:
            break
        number, first = int(match[1]), start
    return number, row - first


def _split(module: str) -> Iterator[tuple[int, str]]:
    parts = _CELL.split(module)
    for number, text in zip(parts[1::2], parts[2::2], strict=True):
        yield int(number), text.removesuffix("\n")


def _as_python(text: str) -> str:
    lines = text.split("\n")
    first = lines[0].strip()
    if first.startswith("%%") and not first.startswith(_PYTHON_CELL_MAGICS):
        return "\n".join(f"#: {line}" for line in lines)
    return "\n".join(_line_as_python(line) for line in lines)


def _line_as_python(line: str) -> str:
    if match := _MAGIC.match(line):
        return f"{match[1]}pass  #: {match[2]}"
    if match := _CAPTURED.match(line):
        return f"{match[1]}None  #: {match[2]}"
    return line


def _restored(line: str) -> str:
    if line.startswith("#: "):
        return line.removeprefix("#: ")
    for pattern in (_KEPT, _KEPT_VALUE):
        if match := pattern.match(line):
            return match[1] + match[2]
    return line


def _encoded(text: str, before: str) -> str:
    """The JSON of a cell's source in the form (list or string, indentation, escapes) that stood there before."""
    ascii_only = before.isascii()
    if not before.startswith("["):
        return json.dumps(text, ensure_ascii=ascii_only)
    lines = text.split("\n")
    pieces = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    separator = re.match(r"\[(\s*)", before)
    space = separator[1] if separator else ""
    closing = re.search(r"(\s*)\]$", before)
    items = f",{space or ' '}".join(json.dumps(piece, ensure_ascii=ascii_only) for piece in pieces)
    return f"[{space}{items}{closing[1] if closing else ''}]"


def _source_spans(raw: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """The number of each cell that has a `source`, with the offsets of that value."""
    path: list[str | int] = []
    key: str | None = None
    expects_key = False
    start: int | None = None
    for match in _TOKEN.finditer(raw):
        token = match[0]
        if token in "{[":
            if _at_source(path):
                start = match.start()
            path.append(0 if token == "[" else "")
            expects_key = token == "{"
        elif token in "}]":
            path.pop()
            if start is not None and _at_source(path):
                yield int(path[1]) + 1, (start, match.end())
                start = None
            expects_key = False
        elif token == ",":
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else ""
            expects_key = isinstance(last, str)
        elif expects_key and token.startswith('"'):
            key = json.loads(token)
            path[-1] = str(key)
            expects_key = False
        elif token.startswith('"') and _at_source(path):
            yield int(path[1]) + 1, match.span()


def _at_source(path: list[str | int]) -> bool:
    return len(path) == 3 and path[0] == "cells" and path[2] == "source"
