"""Flows through several files, and what must not depend on the order of things."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachelint.config import Settings
from cachelint.diagnostics import Diagnostic
from cachelint.discovery import Candidate, discover
from cachelint.engine import Checker, collect
from cachelint.report.json import render


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def check(root: Path, spec: str = ">=5.20", jobs: int = 1) -> list[Diagnostic]:
    checker = Checker(Settings(), spec)
    return collect(checker.check(list(discover([root], Settings().exclude)), jobs)).diagnostics


def places(diagnostics: list[Diagnostic]) -> list[tuple[str, int, str, str]]:
    return [(d.path.name, d.location.row, d.code, d.severity) for d in diagnostics]


THREE = {
    "pkg/__init__.py": "",
    "pkg/make.py": "from transformers import DynamicCache\n\n\ndef fresh():\n    return DynamicCache()\n",
    "pkg/session.py": (
        "from .make import fresh\nfrom .utils import rollback\n\n\n"
        "class Session:\n"
        "    def __init__(self):\n        self.cache = fresh()\n\n"
        "    def undo(self):\n        rollback(self.cache, 7)\n"
    ),
    "pkg/utils/__init__.py": "from ._kv import rollback\n",
    "pkg/utils/_kv.py": "def rollback(thing, n):\n    thing.crop(n)\n",
}


def test_made_here_stored_there_cropped_elsewhere_through_a_re_export(tmp_path: Path) -> None:
    write(tmp_path, THREE)
    (found,) = check(tmp_path)
    assert places([found]) == [("_kv.py", 2, "KV101", "error")]
    assert [step.path.name for step in found.flow] == ["make.py", "session.py", "_kv.py"]


def test_a_helper_in_another_file_is_judged_by_its_callers(tmp_path: Path) -> None:
    helper = "def rollback(past_key_values, n):\n    past_key_values.crop(n)\n"
    write(tmp_path, {"helper.py": helper})
    assert places(check(tmp_path)) == [("helper.py", 2, "KV101", "warning")]
    caller = "from helper import rollback\n\n\ndef main(past_key_values):\n    rollback(past_key_values, -2)\n"
    write(tmp_path, {"caller.py": caller})
    assert check(tmp_path) == []
    write(tmp_path, {"other.py": caller.replace("-2", "2")})
    assert places(check(tmp_path)) == [("helper.py", 2, "KV101", "error")]


def test_a_method_of_another_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "engine.py": (
                "class Engine:\n    def __init__(self, kv):\n        self.kv = kv\n\n"
                "    def back(self, n):\n        self.kv.crop(n)\n"
            ),
            "main.py": (
                "from engine import Engine\nfrom transformers import DynamicCache\n\n\n"
                "def run():\n    engine = Engine(DynamicCache())\n    engine.back(3)\n"
            ),
        },
    )
    assert places(check(tmp_path)) == [("engine.py", 6, "KV101", "error")]


@pytest.mark.parametrize(
    ("importing", "used"),
    [
        ("from lib.kv import make", "make()"),
        ("import lib.kv", "lib.kv.make()"),
        ("import lib.kv as kv", "kv.make()"),
        ("from lib import kv", "kv.make()"),
        ("from lib import *", "make_again()"),
        ("from lib import make_again", "make_again()"),
        ("try:\n    from lib.kv import make\nexcept ImportError:\n    make = None", "make()"),
        ("import typing\nif typing.TYPE_CHECKING:\n    from lib.kv import make", "make()"),
    ],
)
def test_import_forms(tmp_path: Path, importing: str, used: str) -> None:
    write(
        tmp_path,
        {
            "lib/__init__.py": "from .kv import make as make_again\n",
            "lib/kv.py": "import transformers\n\n\ndef make():\n    return transformers.DynamicCache()\n",
            "main.py": f"{importing}\n\n\ndef f():\n    cache = {used}\n    cache.crop(3)\n",
        },
    )
    assert [(d.path.name, d.code) for d in check(tmp_path)] == [("main.py", "KV101")]


def test_src_layout_namespace_package_and_a_cycle_of_imports(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "src/space/one.py": "from space.two import cut\nfrom transformers import DynamicCache\n\n\n"
            "def f():\n    cut(DynamicCache())\n",
            "src/space/two.py": "import space.one\n\n\ndef cut(c):\n    c.crop(4)\n",
        },
    )
    assert places(check(tmp_path)) == [("two.py", 5, "KV101", "error")]


def test_a_subclass_in_another_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "base.py": "from transformers import DynamicCache\n\n\nclass Base(DynamicCache):\n    pass\n",
            "own.py": "from base import Base\n\n\nclass Own(Base):\n    def crop(self, keep):\n        pass\n",
            "main.py": "from base import Base\nfrom own import Own\n\n\n"
            "def f():\n    Base().crop(3)\n    Own().crop(3)\n",
        },
    )
    assert places(check(tmp_path)) == [("main.py", 6, "KV101", "error")]


def test_the_same_bytes_whatever_the_order_and_the_number_of_jobs(tmp_path: Path) -> None:
    write(tmp_path, THREE)
    write(tmp_path, {f"more{i}.py": "def f(past_key_values, n):\n    past_key_values.crop(n)\n" for i in range(5)})
    files = list(discover([tmp_path], Settings().exclude))
    outputs = set()
    for order in (files, files[::-1], files[3:] + files[:3]):
        outputs.add(render(collect(Checker(Settings(), ">=5").check(order)).diagnostics))
    import cachelint.engine as engine

    before, engine.PARALLEL_BYTES = engine.PARALLEL_BYTES, 0
    try:
        outputs.add(render(collect(Checker(Settings(), ">=5").check(files, 2)).diagnostics))
    finally:
        engine.PARALLEL_BYTES = before
    (output,) = outputs
    assert len(json.loads(output)) == 6


def test_nothing_of_the_project_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "MARK"
    write(
        tmp_path,
        {
            "evil.py": f"open({str(mark)!r}, 'w')\n\n\ndef make():\n    pass\n",
            "sitecustomize.py": f"open({str(mark)!r}, 'w')\n",
            "main.py": "from evil import make\n\n\ndef f(past_key_values):\n    make()\n    past_key_values.crop(3)\n",
        },
    )
    assert places(check(tmp_path)) == [("main.py", 6, "KV101", "error")]
    assert not mark.exists()


def test_a_named_file_is_all_that_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    head = "from transformers import DynamicCache\n\n"
    (tmp_path / "a.py").write_text(head + "def decode(model, ids):\n    cache = DynamicCache()\n    cache.crop(5)\n")
    other = (
        head
        + "from a import decode\n\ndef f(tok, ids):\n    cache = DynamicCache()\n    cache.crop(6)\n    decode(1, 2)\n"
    )
    (tmp_path / "b.py").write_text(other)
    checker = Checker(Settings(transformers="==5.20.*"))
    found = collect(checker.check([Candidate(tmp_path / "a.py", True)])).diagnostics
    assert [(d.path.name, d.location.row) for d in found] == [("a.py", 5)]
