"""Source files: bytes in, text out, with everything kept that is needed to write them back to the byte."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cachelint.notebooks import Notebook

MAX_BYTES = 4_000_000
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:[#\r\n]|$)")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class SourceError(Exception):
    """A file that is no readable Python source: `reason`, and the row where that is known."""

    def __init__(self, reason: str, row: int = 1, column: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row
        self.column = column


@dataclass(frozen=True)
class Source:
    """The text of one file.

    path: absolute. text: decoded, newlines as in the file, without the BOM. encoding: the codec that the
    bytes were read with. bom: whether a UTF-8 byte order mark stood in front. notebook: where the text is that of
    a notebook's code cells, the notebook.
    """

    path: Path
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    notebook: Notebook | None = None

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their ends; only `\\n`, `\\r\\n` and `\\r` end a line, as in Python's tokenizer."""
        return split_lines(self.text)

    @cached_property
    def newline(self) -> str:
        """The line end that the file uses first, `\\n` where it has none."""
        first = self.lines[0] if self.lines else ""
        return first[len(first.rstrip("\r\n")) :] or "\n"

    def encode(self, text: str) -> bytes:
        """The bytes of `text` in this file's encoding. Raises UnicodeEncodeError where that cannot hold it."""
        if self.notebook is not None:
            text = self.notebook.rewritten(text)
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)


def split_lines(text: str) -> list[str]:
    """Split `text` into lines with their ends, at `\\n`, `\\r\\n` and `\\r` only."""
    if "\r" in text:
        return _LINE.findall(text)
    lines = text.split("\n")
    last = lines.pop()
    kept = [line + "\n" for line in lines]
    return [*kept, last] if last else kept


def decode(path: Path, data: bytes) -> Source:
    """The source that `data` holds.

    Raises:
        SourceError: a NUL byte, more than MAX_BYTES, an unknown or wrong encoding.
    """
    if len(data) > MAX_BYTES:
        megabytes = len(data) / 1_000_000
        raise SourceError(f"the file has {megabytes:.1f} MB; nothing above {MAX_BYTES // 1_000_000} MB is read")
    if b"\0" in data:
        raise SourceError("the file holds a NUL byte", data[: data.index(b"\0")].count(b"\n") + 1)
    bom = data.startswith(codecs.BOM_UTF8)
    if bom:
        data = data[len(codecs.BOM_UTF8) :]
    encoding = "utf-8" if path.suffix == ".ipynb" else _declared_encoding(data)
    try:
        text = data.decode(encoding)
    except LookupError:
        raise SourceError(f"the declared encoding {encoding!r} is not known") from None
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n") + 1
        raise SourceError(f"the file is not valid {encoding}: {error.reason}", row) from None
    except Exception as error:
        # A declared codec such as `unicode_escape` or `rot13` can raise anything, or give no text.
        raise SourceError(f"the file cannot be read as {encoding}: {error}") from None
    if path.suffix == ".ipynb":
        from cachelint.notebooks import read

        module, notebook = read(text)
        return Source(path, module, encoding, bom, notebook)
    return Source(path, text, encoding, bom)


def _declared_encoding(data: bytes) -> str:
    for line in data.split(b"\n", 2)[:2]:
        match = _COOKIE.match(line)
        if match:
            return match[1].decode("ascii")
        if not _BLANK.match(line):
            break
    return "utf-8"
