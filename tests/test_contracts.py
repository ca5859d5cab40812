"""The measured data: its form, and what it answers. The facts themselves are checked by tests/oracle."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import time

import pytest
from packaging.version import Version

from cachelint.contracts import crop, data, measure, models
from cachelint.contracts.releases import all_mask, describe, members, parse_range, releases
from tests.conftest import ROOT

OUTCOME = re.compile(
    r"(right|wipes|nothing|leaves -?\d+ of \d+)(, deprecated)?|wrong logits(, deprecated)?"
    r"|raises \w+: .*|then the next forward raises \w+(, deprecated)?"
)


@pytest.mark.parametrize("part", measure.PARTS)
def test_the_form_of_the_data(part: str) -> None:
    text = (measure.DATA / f"{part}.json").read_text(encoding="utf-8")
    content = json.loads(text)
    assert set(content) == {"measured", "keys"}
    measured = [Version(release) for release in content["measured"]]
    assert measured == sorted(measured)
    assert {f"{r.major}.{r.minor}" for r in releases()} == {f"{r.major}.{r.minor}" for r in measured}
    assert list(content["keys"]) == sorted(content["keys"])
    assert text.count("\n") == len(content["keys"]) + 3
    for key, history in content["keys"].items():
        since = [Version(release) for release, _ in history]
        assert since == sorted(set(since)) and set(since) <= set(measured), key
        outcomes = [outcome for _, outcome in history]
        assert all(a != b for a, b in itertools.pairwise(outcomes)), key
        if part in ("crop", "keywords"):
            assert all(outcome is None or OUTCOME.fullmatch(outcome) for outcome in outcomes), key


def test_no_stretch_of_a_history_overlaps_another() -> None:
    for key in data.keys("crop"):
        seen = 0
        for told in data.history("crop", key):
            assert not seen & told.mask, key
            seen |= told.mask


def shown(pieces: tuple[crop.Piece, ...]) -> list[tuple[str, str]]:
    return [(describe(piece.mask), piece.effect) for piece in pieces]


def test_what_a_crop_does_by_release() -> None:
    every = all_mask()
    assert shown(crop.crop("full", "positive", every)) == [
        ("4.36–4.41", "unsupported"),
        ("5.15–5.19", "warns"),
        ("5.20+", "raises"),
    ]
    assert shown(crop.crop("full", "negative", every)) == [("4.36–4.41", "unsupported")]
    assert shown(crop.crop("full", "zero", every))[1:] == [("4.42–5.13", "wipes"), ("5.14+", "changes")]
    assert shown(crop.crop("sliding", "negative", every, fill="below")) == []
    assert shown(crop.crop("sliding", "negative", every, fill="at")) == [("4.56–5.14", "raises"), ("5.15+", "raises")]
    assert shown(crop.crop("sliding", "negative", every, recording="before")) == [("5.14", "raises")]
    assert shown(crop.crop("sliding", "negative", every, recording="late")) == [
        ("5.14", "raises"),
        ("5.15+", "corrupts"),
    ]
    assert shown(crop.never_on_a_full_window(every)) == [("4.56–5.14", "raises")]


def test_what_a_keyword_does_by_release() -> None:
    nobody: frozenset[str] = frozenset()
    assert shown(crop.keyword("max_length", nobody, parse_range(">=4.50"))) == [("5.15+", "raises")]
    assert shown(crop.keyword("tokens_to_remove", nobody, parse_range(">=4.54"))) == [("4.54–5.14", "raises")]
    both = frozenset({"EncoderDecoderCache"})
    assert shown(crop.keyword("maximum_length", both, all_mask())) == [("5.15–5.17", "warns"), ("5.19+", "raises")]


@pytest.mark.parametrize(
    ("name", "kinds", "window"),
    [
        ("openai/gpt-oss-20b", {"full", "sliding"}, 128),
        ("mistralai/Mistral-7B-v0.1", {"sliding"}, 4096),
        ("mistralai/Mistral-7B-Instruct-v0.3", {"full"}, None),
        ("google/gemma-2-9b-it", {"full", "sliding"}, 4096),
        ("google/gemma-3-1b-it", {"full", "sliding"}, 512),
        ("meta-llama/Llama-3.1-8B-Instruct", {"full"}, None),
        ("Qwen/Qwen2.5-7B-Instruct", {"full"}, None),
        ("microsoft/Phi-3-mini-4k-instruct", {"sliding"}, 2047),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", {"full", "linear"}, None),
    ],
)
def test_known_checkpoints(name: str, kinds: set[str], window: int | None) -> None:
    layers = models.of_checkpoint(name)
    assert layers is not None
    assert (set(layers.kinds), layers.window) == (kinds, window)


@pytest.mark.parametrize("name", ["someone/my-model", "./checkpoints/last", "", "gpt-oss"])
def test_what_a_name_does_not_tell_stays_unknown(name: str) -> None:
    assert models.of_checkpoint(name) is None


def test_every_checkpoint_has_a_measured_model_type() -> None:
    for pattern, family, _ in models._CHECKPOINTS:
        assert models.of_type(family) is not None, pattern


def test_model_types_by_class() -> None:
    assert models.model_type("MistralConfig") == "mistral"
    assert models.model_type("GptOssForCausalLM") == "gpt_oss"
    assert models.model_type("Llama4TextConfig") == "llama4_text"
    assert models.model_type("AutoConfig") is None


def test_loading_takes_a_moment_and_only_where_it_is_asked_for() -> None:
    code = (
        "import sys, cachelint.contracts.crop as c, cachelint.contracts.data as d, time\n"
        "assert d._part.cache_info().currsize == 0\n"
        "began = time.perf_counter(); d._part('crop'); print(time.perf_counter() - began)"
    )
    best = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3))
    assert best < 0.01
    assert time.perf_counter() > 0


def test_no_release_number_outside_the_contract() -> None:
    """Rules and flow ask; only the contract knows. Documentation may of course name releases."""
    number = re.compile(r"\b[45]\.\d{1,2}\b")
    for path in [*(ROOT / "cachelint" / "flow").glob("*.py"), *(ROOT / "rules").glob("*.py")]:
        code = path.read_text(encoding="utf-8")
        if path.parent.name == "rules":
            code = code.split('"""', 2)[-1]
        lines = [line for line in code.splitlines() if number.search(line.split("#")[0])]
        assert lines == [], path
    assert len(list(members(all_mask()))) == len(releases())


def test_a_tampered_entry_shows_as_a_difference() -> None:
    _, histories = measure.read("crop")
    answers = {key: measure.answer_at(history, "5.24.0") for key, history in histories.items()}
    told = {key: answer for key, answer in answers.items() if answer is not None}
    assert list(measure.differences("crop", "5.24.0", told)) == []
    told["plain/negative/above/no"] = "wipes"
    (line,) = measure.differences("crop", "5.24.0", told)
    assert line == "crop: plain/negative/above/no on 5.24.0: the data says 'right', measured 'wipes'"
