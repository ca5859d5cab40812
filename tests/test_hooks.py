"""The pre-commit hooks, run by the real pre-commit on a real repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_cli import CRASH, MENDED


def git(*args: str, cwd: Path) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *args], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def hook_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project as it stands in the working tree, as a repository of its own."""
    copy = tmp_path_factory.mktemp("hooks") / "cachelint"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, copy / name)
    for name in ("cachelint", "rules"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    git("init", "-q", cwd=copy)
    git("add", "-A", cwd=copy)
    git("commit", "-qm", "snapshot", cwd=copy)
    return copy


def test_both_hooks(hook_repository: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    revision = git("rev-parse", "HEAD", cwd=hook_repository)
    user = tmp_path / "user"
    user.mkdir()
    (user / "bad.py").write_text(CRASH)
    (user / "notes.txt").write_text("cache.crop(5)\n")
    (user / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {hook_repository.as_uri()}\n    rev: {revision}\n"
        "    hooks:\n      - id: cachelint\n      - id: cachelint-fix\n"
    )
    git("init", "-q", cwd=user)
    git("add", "-A", cwd=user)
    home = tmp_path_factory.mktemp("pre-commit")

    def commit(hook: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", hook, "--all-files"],
            cwd=user,
            capture_output=True,
            text=True,
            env={**os.environ, "PRE_COMMIT_HOME": str(home)},
            timeout=600,
        )

    checked = commit("cachelint")
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "KV101 positive-crop" in checked.stdout
    assert (user / "bad.py").read_text() == CRASH
    fixed = commit("cachelint-fix")
    assert fixed.returncode == 1, fixed.stdout + fixed.stderr
    assert (user / "bad.py").read_text() == MENDED
    git("add", "-A", cwd=user)
    assert commit("cachelint").returncode == 0
