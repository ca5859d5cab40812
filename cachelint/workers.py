"""Processes that check files: a pool, work split by bytes, results in the order of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

from cachelint.config import Settings
from cachelint.discovery import Candidate

if TYPE_CHECKING:
    from cachelint.engine import Checker, FileResult

# One piece of work: large enough that sending it costs little, small enough that none waits long for the last.
CHUNK_BYTES = 400_000


def check_all(checker: Checker, work: Sequence[tuple[Candidate, int]], jobs: int) -> Iterator[FileResult]:
    """The result of each file with its size in bytes, in order, from a pool of `jobs` processes."""
    chunks = list(_chunks(work))
    arguments = (checker.settings, checker.option, checker.ignore_noqa)
    with ProcessPoolExecutor(min(jobs, len(chunks)), initializer=_start, initargs=arguments) as pool:
        for results in pool.map(_check, chunks):
            yield from results


def _chunks(work: Sequence[tuple[Candidate, int]]) -> Iterator[list[Candidate]]:
    chunk: list[Candidate] = []
    total = 0
    for candidate, size in work:
        chunk.append(candidate)
        total += size
        if total >= CHUNK_BYTES:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk


# What the process checks with: made once when it starts, since a pool hands nothing else to its tasks.
_checker: list[Checker] = []


def _start(settings: Settings, option: str | None, ignore_noqa: bool) -> None:
    from cachelint.engine import Checker

    _checker[:] = [Checker(settings, option, ignore_noqa=ignore_noqa)]


def _check(chunk: list[Candidate]) -> list[FileResult]:
    return [_checker[0].check_file(candidate) for candidate in chunk]
