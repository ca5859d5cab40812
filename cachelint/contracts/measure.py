"""Measures what releases of transformers do, and writes it as the contract's data. For developers.

    python -m cachelint.contracts.measure --releases 5.25.0

takes a release from the package index into a folder of its own, runs `probe` in it, merges the answers into
`data/`, and prints what differs from the release before. It needs PyTorch (`pip install cachelint[oracle]`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.version import Version

DATA = Path(__file__).parent / "data"
PARTS = ("crop", "keywords", "surface", "families", "behaviour")
Answers = dict[str, dict[str, str]]
# A key's history: the release from which on, and what happens; None where there is nothing to measure.
History = list[tuple[str, str | None]]


def install(release: str, folder: Path) -> Path:
    """Put a release and what it needs (but PyTorch) into a folder of its own; returns that."""
    place = folder / release
    done = place / ".installed"
    if not done.exists():
        wanted = [f"transformers=={release}", "numpy<2.3"]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(place), *wanted]
        subprocess.run(command, check=True)
        done.touch()
    return place


def probe(place: Path, parts: Iterable[str] = PARTS) -> Answers:
    """What the release in `place` answers. Raises RuntimeError with the end of its output where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(place), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "warning"}
    script = Path(__file__).with_name("probe.py")
    done = subprocess.run(
        [sys.executable, str(script), *parts], env=environment, cwd=place, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{place}: the probe failed: {done.stderr[-2000:]}")
    answers: Answers = json.loads(done.stdout.strip().splitlines()[-1])
    answers.pop("release", None)
    return answers


def read(part: str) -> tuple[list[str], dict[str, History]]:
    """The measured releases and the history of each key, as shipped."""
    path = DATA / f"{part}.json"
    if not path.exists():
        return [], {}
    data = json.loads(path.read_text(encoding="utf-8"))
    return data["measured"], {key: [(since, what) for since, what in history] for key, history in data["keys"].items()}


def answer_at(history: History, release: str) -> str | None:
    """What a history says for a release."""
    found = None
    for since, what in history:
        if Version(since) <= Version(release):
            found = what
    return found


def merge(part: str, release: str, answers: dict[str, str]) -> None:
    """Write the answers of one release into the data."""
    measured, histories = read(part)
    ordered = sorted({*measured, release}, key=Version)
    keys: dict[str, History] = {}
    for key in sorted({*histories, *answers}):
        told = {known: answer_at(histories.get(key, []), known) for known in measured}
        told[release] = _told(answers.get(key))
        history = list(_changes(ordered, told))
        if history:
            keys[key] = history
    write(part, ordered, keys)


def write(part: str, measured: list[str], keys: dict[str, History]) -> None:
    """Write a part of the data, a line a key, so that a difference can be read."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(keys[key], ensure_ascii=False)}" for key in sorted(keys))
    DATA.mkdir(exist_ok=True)
    text = f'{{"measured": {json.dumps(measured)},\n"keys": {{\n{lines}\n}}}}\n'
    (DATA / f"{part}.json").write_text(text, encoding="utf-8")


def _told(answer: str | None) -> str | None:
    return None if answer is None or answer == "absent" or answer.startswith("not measured") else answer


def _changes(releases: list[str], told: dict[str, str | None]) -> Iterator[tuple[str, str | None]]:
    last: str | None = None
    for release in releases:
        if told[release] != last:
            last = told[release]
            yield release, last


def differences(part: str, release: str, answers: dict[str, str]) -> Iterator[str]:
    """Where the answers differ from what the data says of that release, a line each."""
    _, histories = read(part)
    for key in sorted({*histories, *answers}):
        shipped, measured = answer_at(histories.get(key, []), release), _told(answers.get(key))
        if shipped != measured:
            yield f"{part}: {key} on {release}: the data says {shipped!r}, measured {measured!r}"


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m cachelint.contracts.measure", description=__doc__)
    parser.add_argument("--releases", nargs="+", required=True, help="releases such as 5.24.0")
    parser.add_argument("--folder", type=Path, help="where releases are installed and kept (default: a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = options.folder or Path(temporary)
        for release in options.releases:
            answers: dict[str, Any] = probe(install(release, folder))
            for part in PARTS:
                for line in differences(part, release, answers[part]):
                    print(line)
                merge(part, release, answers[part])


if __name__ == "__main__":
    main()
