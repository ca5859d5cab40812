"""Where the release range comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachelint.config import ConfigError, Settings
from cachelint.target import Targets

FILES = {
    "uv.lock": (
        '[[package]]\nname = "torch"\nversion = "2.1"\n\n[[package]]\nname = "transformers"\nversion = "4.57.1"\n',
        "==4.57.1",
        6,
    ),
    "poetry.lock": ('[[package]]\nname = "transformers"\nversion = "4.50.0"\n', "==4.50.0", 2),
    "pdm.lock": ('[[package]]\nname = "transformers"\nversion = "5.20.0"\n', "==5.20.0", 2),
    "requirements.txt": ("# transformers\nnumpy\ntransformers[torch] >= 4.50, < 6  # models\n", "<6,>=4.50", 3),
    "requirements-dev.txt": ("transformers==4.57.3 \\\n    --hash=sha256:abc\n", "==4.57.3", 1),
    "setup.cfg": ("[options]\ninstall_requires =\n    torch\n    transformers>=5\n", ">=5", 4),
    "environment.yml": ("dependencies:\n  - python=3.11\n  - pip:\n    - transformers>=4.56\n", ">=4.56", 4),
}  # fmt: skip


def target(folder: Path, text: str | None = None) -> tuple[str, int | None]:
    found = Targets(Settings()).of(folder / "x.py", text)
    return found.specifier, found.row


@pytest.mark.parametrize("name", FILES)
def test_each_kind_of_file(tmp_path: Path, name: str) -> None:
    text, specifier, row = FILES[name]
    (tmp_path / name).write_text(text)
    assert target(tmp_path) == (specifier, row)


@pytest.mark.parametrize(
    ("text", "specifier"),
    [
        ("[project]\ndependencies = ['transformers>=4.50,<5']\n", "<5,>=4.50"),
        ("[project]\ndependencies = []\n[project.optional-dependencies]\nhf = ['transformers==5.*']\n", "==5.*"),
        ("[dependency-groups]\ndev = ['transformers>=5.20']\n", ">=5.20"),
        ("[tool.poetry.dependencies]\ntransformers = '^4.50'\n", ">=4.50,<5"),
        ("[tool.poetry.dependencies]\ntransformers = {version = '~4.50', extras = ['torch']}\n", ">=4.50,<4.51"),
        ("[tool.poetry.group.dev.dependencies]\ntransformers = '4.57.1'\n", "==4.57.1"),
    ],
)
def test_pyproject(tmp_path: Path, text: str, specifier: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert target(tmp_path)[0] == specifier


def test_script_metadata_comes_first(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("transformers<5\n")
    script = "#!/usr/bin/env python\n# /// script\n# dependencies = [\n#   'transformers>=5.20',\n# ]\n# ///\n"
    assert target(tmp_path, script) == (">=5.20", 2)
    assert target(tmp_path, "print()\n") == ("<5", 1)


def test_a_lock_file_comes_before_requirements_and_the_nearest_folder_first(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(FILES["uv.lock"][0])
    (tmp_path / "requirements.txt").write_text("transformers>=5\n")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert target(inner)[0] == "==4.57.1"
    (tmp_path / "a" / "requirements.txt").write_text("-r more.txt\n")
    (tmp_path / "a" / "more.txt").write_text("transformers>=5.20\n")
    assert target(inner) == (">=5.20", 1)


def test_nothing_means_all_known_releases(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    found = Targets(Settings()).of(tmp_path / "x.py")
    assert str(found) == "any release: 4.36+, from nothing: all known releases"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("requirements.txt", "numpy\ntransformers>=nonsense\n", "requirements.txt:2"),
        ("requirements.txt", "transformers<4\n", "requirements.txt:1: no release"),
        ("pyproject.toml", "[project\n", "no valid TOML"),
    ],
)
def test_a_bad_range_is_named_with_its_place(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=words):
        Targets(Settings()).of(tmp_path / "x.py")
