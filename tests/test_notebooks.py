"""Notebooks: one module of all code cells, places in cells, and edits that change nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachelint.notebooks import cell_at, read
from cachelint.sources import SourceError, decode
from tests.test_cli import run

CELLS = [
    {"cell_type": "markdown", "metadata": {}, "source": ["# cache.crop(5)"]},
    {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "outputs": [],
        "source": [
            "%pip install transformers\n",
            "!ls\n",
            "from transformers import DynamicCache\n",
            "cache = DynamicCache()",
        ],
    },
    {"cell_type": "code", "metadata": {}, "outputs": [], "source": ["%%bash\n", "cache.crop(5)\n"]},
    {
        "cell_type": "code",
        "metadata": {},
        "outputs": [{"text": ["cache.crop(5) é"]}],
        "source": [
            "%%time\n",
            "files = !ls *.py\n",
            "model(x, past_key_values=cache)\n",
            "cache?\n",
            "cache.crop(5)\n",
        ],
    },
    {"cell_type": "code", "metadata": {}, "outputs": [], "source": "print('done')"},
]


def notebook(indent: int | None = 1) -> str:
    content = {"cells": CELLS, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=indent, ensure_ascii=False) + "\n"


def test_the_module_and_its_places() -> None:
    module, book = read(notebook())
    compile(module, "module", "exec")
    assert set(book.sources) == {2, 3, 4, 5}
    row = next(n for n, line in enumerate(module.split("\n"), 1) if line == "cache.crop(5)")
    assert cell_at(module, row) == (4, 5)


@pytest.mark.parametrize("indent", [1, 4, None])
def test_an_unchanged_module_gives_the_same_file(indent: int | None) -> None:
    raw = notebook(indent)
    module, book = read(raw)
    assert book.rewritten(module) == raw


@pytest.mark.parametrize("indent", [1, None])
def test_check_and_fix(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "book.ipynb"
    path.write_text(notebook(indent), encoding="utf-8")
    found = run("check", "--transformers", ">=5.20", "--output-format", "json", cwd=tmp_path)
    (entry,) = json.loads(found.stdout)
    assert (entry["code"], entry["cell"], entry["location"]) == ("KV101", 4, {"row": 5, "column": 1})
    concise = run("check", "--transformers", ">=5.20", "--output-format", "concise", cwd=tmp_path).stdout
    assert concise.startswith("book.ipynb:cell 4:5:1: KV101 [*]")
    assert "book.ipynb:cell 4:5:1" in run("check", "--transformers", ">=5.20", cwd=tmp_path).stdout
    assert run("fix", "--transformers", ">=5.20", cwd=tmp_path).returncode == 0
    changed = json.loads(path.read_text(encoding="utf-8"))
    assert changed["cells"][3]["source"] == [
        "%%time\n",
        "files = !ls *.py\n",
        "model(x, past_key_values=cache)\n",
        "cache?\n",
        "if (excess := cache.get_seq_length() - 5) > 0:\n",
        "    cache.crop(-excess)\n",
    ]
    changed["cells"][3]["source"] = CELLS[3]["source"]
    expected = json.loads(notebook(indent))
    assert changed == expected
    before, after = notebook(indent), path.read_text(encoding="utf-8")
    kept = before.index('"cache.crop(5)\\n"', before.index("cache?"))
    assert after[:kept] == before[:kept]
    assert after.endswith(before[kept + len('"cache.crop(5)\\n"') :])


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": 3}', "[" * 100_000])
def test_what_is_no_notebook(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match="notebook"):
        decode(tmp_path / "x.ipynb", text.encode())
