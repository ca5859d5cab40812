"""Work is bounded by steps: what is made to be slow comes to an end, and what was given up is told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cachelint.config import Settings
from cachelint.engine import Checker, FileResult
from cachelint.sources import Source

HEAD = "from transformers import DynamicCache\n\n\n"


def chain(length: int) -> str:
    steps = "".join(f"def f{i}(cache, k):\n    return f{i + 1}(cache, k + 1)\n\n\n" for i in range(length))
    end = f"def f{length}(cache, k):\n    cache.crop(k)\n\n\n"
    return f"{HEAD}{steps}{end}def main():\n    f0(DynamicCache(), 1)\n"


def mutual(count: int) -> str:
    bodies = "".join(
        f"def g{i}(cache, k):\n    if k > {i}:\n        g{(i * 7 + 1) % count}(cache, k - 1)\n"
        f"    else:\n        g{(i * 11 + 3) % count}(cache, k)\n    cache.crop(k)\n\n\n"
        for i in range(count)
    )
    return f"{HEAD}{bodies}def main():\n    g0(DynamicCache(), 5)\n"


def branches(count: int) -> str:
    ifs = "".join(f"    if x == {i}:\n        n = {i}\n        y{i % 50} = n\n" for i in range(count))
    return f"{HEAD}def main(model, x):\n    cache = DynamicCache()\n    n = 0\n{ifs}    cache.crop(n + 1)\n"


def nested_loops(depth: int) -> str:
    loops = "".join(f"{'    ' * (i + 1)}for i{i} in range(3):\n" for i in range(depth))
    inside = "    " * (depth + 1)
    body = "".join(f"{inside}n{j} = n{j} + i{j % depth}\n" for j in range(20))
    names = "".join(f"    n{j} = 0\n" for j in range(20))
    return f"{HEAD}def main():\n    cache = DynamicCache()\n{names}{loops}{body}    cache.crop(n0)\n"


def check(text: str) -> FileResult:
    return Checker(Settings(), ">=5.20").check_source(Source(Path("/nowhere/x.py"), text))


@pytest.mark.parametrize(
    "text",
    [chain(2000), mutual(200), branches(5000), nested_loops(12)],
    ids=["a chain of 2,000", "200 that call each other", "5,000 branches", "12 nested loops"],
)
def test_it_ends_and_ends_the_same_way(text: str) -> None:
    began = time.monotonic()
    first = check(text)
    assert time.monotonic() - began < 30, "ten seconds on a quiet machine"
    second = check(text)
    assert first.unfinished == second.unfinished
    assert [j.diagnostic for j in first.judged] == [j.diagnostic for j in second.judged]
    assert first.failures == []


def test_five_thousand_branches_are_followed_to_the_end() -> None:
    result = check(branches(5000))
    assert [judged.diagnostic.code for judged in result.judged] == ["KV101"]
    assert result.unfinished == []


def test_what_is_given_up_is_told() -> None:
    result = check(mutual(200))
    assert any("too many steps" in place for place in result.unfinished)


def test_deep_expressions_are_no_crash() -> None:
    deep = "x.crop(" + "(" * 90 + "1" + ")" * 90 + ")\n" + "y = " + "a." * 900 + "b\n"
    result = check(f"{HEAD}def f(past_key_values):\n    past_key_values.crop(5)\n\n\n{deep}")
    assert [judged.diagnostic.code for judged in result.judged] == ["KV101"]
    assert result.failures == []
