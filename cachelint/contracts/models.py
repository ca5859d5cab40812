"""Which layers a model's cache holds: by model type (measured), and by the names of checkpoints (known).

A checkpoint's own configuration can differ from its type's default. Where a name tells which one it is, that is
said here, with the published configuration's window; where it does not, the layers stay unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from cachelint.contracts.data import latest


@dataclass(frozen=True, slots=True)
class Layers:
    """The layer kinds of a cache, and the smallest window in tokens where some layer has one."""

    kinds: frozenset[str]
    window: int | None = None


# Pattern of the name (of any owner, which uploads copies), the model type, and the window: a number, None for none,
# or "" for that of the type's default; "linear" where the default, unlike the published one, has no linear layer.
_CHECKPOINTS: tuple[tuple[str, str, int | str | None], ...] = (
    (r"gpt-oss-\d+b.*", "gpt_oss", ""),
    (r"mistral-7b(?:-instruct)?-v0\.1.*", "mistral", 4096),
    (r"mistral-7b(?:-instruct)?-v0\.[23].*", "mistral", None),
    (r"mistral-(?:nemo|small|large).*", "mistral", None),
    (r"zephyr-7b-(?:alpha|beta)", "mistral", 4096),
    (r"mixtral-8x\d+b.*", "mixtral", None),
    (r"ministral-8b-instruct-2410.*", "mistral", 32768),
    (r"(?:code)?gemma-(?:1\.1-)?[27]b.*", "gemma", None),
    (r"gemma-2-\d+b.*", "gemma2", 4096),
    (r"gemma-3-(?:270m|1b).*", "gemma3_text", 512),
    (r"gemma-3-(?:4b|12b|27b).*", "gemma3_text", 1024),
    (r"gemma-3n-.*", "gemma3n_text", 512),
    (r"(?:meta-)?llama-[23].*|llama-2-.*|tinyllama.*|(?:code)?llama-\d+b.*|vicuna-.*", "llama", None),
    (r"smollm2?-\d+.*", "llama", None),
    (r"(?:meta-)?llama-4-.*", "llama4_text", 8192),
    (r"qwen(?:1\.5|2|2\.5)-\d+(?:\.\d+)?b.*", "qwen2", None),
    (r"qwen2\.5-coder-.*|qwen2\.5-math-.*|qwq-32b.*|deepseek-r1-distill-qwen-.*", "qwen2", None),
    (r"qwen3-\d+(?:\.\d+)?b(?!-a\d).*", "qwen3", None),
    (r"qwen3-\d+b-a\d+b.*", "qwen3_moe", None),
    (r"qwen3-next-.*", "qwen3_next", ""),
    (r"deepseek-r1-distill-llama-.*", "llama", None),
    (r"phi-(?:1|1_5|2)", "phi", None),
    (r"phi-3-mini-4k-instruct.*", "phi3", 2047),
    (r"phi-3(?:\.5)?-mini(?:-128k)?-instruct.*", "phi3", 262144),
    (r"phi-4(?:-reasoning.*)?", "phi3", None),
    (r"starcoder2-\d+b.*", "starcoder2", 4096),
    (r"c4ai-command-r7b.*|command-a-.*|c4ai-command-a.*", "cohere2", 4096),
    (r"lfm2-\d+.*", "lfm2", "linear"),
    (r"falcon-h1-.*", "falcon_h1", ""),
    (r"mamba-\d+.*", "mamba", ""),
    (r"(?:distil)?gpt2(?:-medium|-large|-xl)?", "gpt2", None),
    (r"opt-\d+.*", "opt", None),
    (r"pythia-\d+.*", "gpt_neox", None),
    (r"bloomz?-\d+.*", "bloom", None),
)


@cache
def _by_class() -> dict[str, str]:
    """Configuration class names without `Config`, in lower case, to model types."""
    return {key.replace("_", "").replace("-", "").lower(): key for key in latest("families") if "?" not in key}


def model_type(class_name: str) -> str | None:
    """The model type of a configuration or model class, such as `MistralConfig` or `MistralForCausalLM`."""
    known = _by_class()
    stem = re.sub(r"(?:Config|For[A-Z]\w+|Model|LMHeadModel|PreTrainedModel)$", "", class_name).lower()
    return known.get(stem) or known.get(f"{stem}text") if stem else None


def of_type(name: str, variant: str = "") -> Layers | None:
    """The layers that a model type's configuration gives, None where that was not measured.

    variant: "" for the default, else one of the probe's, such as "sliding_window=None".
    """
    families = latest("families")
    told = families.get(f"{name}?{variant}") if variant else None
    told = told or families.get(name)
    return _parse(told) if told else None


def of_checkpoint(name: str) -> Layers | None:
    """The layers of a checkpoint by its name on the hub, None where the name does not tell."""
    short = name.rstrip("/").rsplit("/", 1)[-1].lower()
    for pattern, family, window in _CHECKPOINTS:
        if re.fullmatch(pattern, short):
            return _checkpoint(family, window)
    return None


def _checkpoint(family: str, window: int | str | None) -> Layers | None:
    known = of_type(family)
    if known is None or window == "":
        return known
    if window == "linear":
        return Layers(frozenset({"full", "linear"}))
    if window is None:
        kinds = known.kinds - {"sliding", "chunked"}
        return Layers(kinds or frozenset({"full"}))
    assert isinstance(window, int)
    kinds = known.kinds if known.window else (of_type(family, "sliding_window=8") or known).kinds
    return Layers(kinds, window)


def _parse(told: str) -> Layers:
    kinds: set[str] = set()
    windows: list[int] = []
    for part in told.split(", "):
        kind, _, window = part.partition(" ")
        kinds.add(kind)
        if window:
            windows.append(int(window))
    return Layers(frozenset(kinds), min(windows, default=None))
