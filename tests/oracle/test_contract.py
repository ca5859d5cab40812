"""The shipped data against the real library: three releases are installed and measured again."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachelint.contracts import measure

pytest.importorskip("torch", reason="needs the `oracle` extra")

RELEASES = ("4.57.0", "5.15.0", "5.24.0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("releases")


@pytest.mark.parametrize("release", RELEASES)
def test_the_data_is_what_the_release_does(release: str, folder: Path) -> None:
    answers = measure.probe(measure.install(release, folder))
    found = [line for part in measure.PARTS for line in measure.differences(part, release, answers[part])]
    assert found == [], "\n".join(found[:40])


def test_the_newest_measured_release_is_among_them() -> None:
    for part in measure.PARTS:
        assert measure.read(part)[0][-1] == RELEASES[-1]
