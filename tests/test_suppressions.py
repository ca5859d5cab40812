"""Suppressions: comments, settings for files, unused ones, and writing new ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from cachelint.cli import cli
from cachelint.config import Settings
from cachelint.engine import Checker
from cachelint.fixes import fix_source
from cachelint.sources import Source

HEAD = "from transformers import DynamicCache\ncache = DynamicCache()\n"
LONG = "cache.crop(\n    5,\n)\n"
SETTINGS = Settings(transformers="==5.20.*", select=("KV1", "KV9"))


def codes(text: str, settings: Settings = SETTINGS, **options: bool) -> list[tuple[str, int]]:
    checker = Checker(settings, **options)
    found = checker.diagnose(Source(Path("/nowhere/x.py"), HEAD + text))
    return [(d.code, d.location.row - 2) for d in found]


@pytest.mark.parametrize(
    "line",
    [
        "cache.crop(5)  # noqa",
        "cache.crop(5)  # NOQA",
        "cache.crop(5)  # noqa: KV101",
        "cache.crop(5)  # noqa: E501, KV101",
        "cache.crop(5)  # noqa:E501 KV101",
        "cache.crop(5)  # noqa: KV1",
        "cache.crop(5)  # type: ignore  # noqa: KV101",
        "cache.crop(5)  # cachelint: ignore",
        "cache.crop(5)  # cachelint: ignore[KV101]",
        "cache.crop(5)  # cachelint:ignore[KV105,KV101] the reason",
        "# cachelint: ignore-file\ncache.crop(5)",
        "# cachelint: ignore-file[KV101]\ncache.crop(5)",
        "# cachelint: noqa\ncache.crop(5)",
        "cache.crop(  # noqa: KV101\n    5,\n)",
        "cache.crop(\n    5,\n)  # noqa: KV101",
        "x = [\n    1,\n    cache.crop(5),  # noqa: KV101\n]",
        "x = [  # cachelint: ignore[KV101]\n    1,\n    cache.crop(5),\n]",
    ],
)
def test_suppressed(line: str) -> None:
    assert [found for found in codes(line + "\n") if found[0] == "KV101"] == []


@pytest.mark.parametrize(
    "line",
    [
        "cache.crop(5)  # noqa: E501",
        "cache.crop(5)  # noqa: KV103",
        "cache.crop(5)  # cachelint: ignore[KV2]",
        "cache.crop(5, '# noqa')",
        "x = '''\n# cachelint: ignore-file\n'''\ncache.crop(5)",
        "# noqa: KV101\ncache.crop(5)",
        "cache.crop(5)\nx = 1  # noqa: KV101",
        "x = [\n    1,  # noqa: KV101\n    cache.crop(5),\n]",
        "cache.crop(5)  # please noqa-not",
    ],
)
def test_not_suppressed(line: str) -> None:
    text = line.replace(", '# noqa'", "") if "'# noqa'" in line else line
    assert "KV101" in [code for code, _ in codes(text + "\n")]


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("x = 1  # noqa: KV101", "x = 1"),
        ("x = 1  # noqa: KV101, E501", "x = 1  # noqa: E501"),
        ("x = 1  # noqa: E501,KV101 KV102", "x = 1  # noqa: E501"),
        ("x = 1  # cachelint: ignore", "x = 1"),
        ("x = 1  # cachelint: ignore[KV101] why", "x = 1  # why"),
        ("x = 1  # noqa: KV101  # type: ignore", "x = 1  # type: ignore"),
        ("# cachelint: ignore-file[KV105]\nx = 1", "x = 1"),
        ("x = 1  # noqa: KV777", "x = 1"),
    ],
)
def test_unused(line: str, fixed: str) -> None:
    source = Source(Path("/nowhere/x.py"), HEAD + line + "\n")
    checker = Checker(SETTINGS)
    assert [d.code for d in checker.diagnose(source)] == ["KV900"]
    assert fix_source(source, checker.diagnose, unsafe=False).text == HEAD + fixed + "\n"


@pytest.mark.parametrize(
    "line", ["x = 1  # noqa", "x = 1  # noqa: E501", "x = 1  # noqa: KV201", "x = 1  # noqa: KV", "x = '# noqa: KV101'"]
)
def test_what_is_not_ours_or_did_not_run_is_not_unused(line: str) -> None:
    assert codes(line + "\n") == []


def test_ignoring_noqa() -> None:
    assert codes("cache.crop(5)  # noqa\n", ignore_noqa=True) == [("KV101", 1)]


@pytest.mark.parametrize(
    ("pattern", "ignored"),
    [("x.py", True), ("*.py", True), ("/nowhere/*.py", False), ("y.py", False), ("!x.py", False), ("!tests/**", True)],
)
def test_per_file_ignores(pattern: str, ignored: bool) -> None:
    settings = Settings(transformers="==5.20.*", per_file_ignores=((pattern, ("KV101",)),))
    assert (codes("cache.crop(5)\n", settings) == []) is ignored


def test_a_suppressed_finding_is_not_fixed() -> None:
    source = Source(Path("/nowhere/x.py"), HEAD + "cache.crop(5)  # noqa: KV101\n")
    assert not fix_source(source, Checker(SETTINGS).diagnose, unsafe=True).changed


def test_adding_noqa(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    text = HEAD + LONG + "cache.crop(7)  # noqa: E501\r\ncache.crop(\\\n    8)\n"
    path.write_bytes(text.encode())
    run = CliRunner().invoke(cli, ["check", "--isolated", "--transformers", "==5.20.*", "--add-noqa", str(path)])
    assert run.exit_code == 0, run.output
    assert "Added 3 noqa directives." in run.output
    expected = HEAD + "cache.crop(  # noqa: KV101\n    5,\n)\n"
    expected += "cache.crop(7)  # noqa: E501, KV101\r\ncache.crop(\\\n    8)  # noqa: KV101\n"
    assert path.read_bytes().decode() == expected
    again = CliRunner().invoke(cli, ["check", "--isolated", "--transformers", "==5.20.*", str(path)])
    assert again.exit_code == 0, again.output
