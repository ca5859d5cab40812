"""What the flow knows of libraries by name: the cache classes of transformers, models, configs, and pure calls.

Only names and what they build stand here; what a release does with them is `cachelint.contracts`' to know.
"""

from __future__ import annotations

from dataclasses import dataclass

FULL = frozenset({"full"})
ANY_LAYERS = frozenset({"full", "sliding", "chunked", "linear"})


@dataclass(frozen=True, slots=True)
class CacheClass:
    """A cache class: the layers it holds, and those it holds when it is given a config that nobody sees."""

    layers: frozenset[str]
    with_config: frozenset[str] | None = None


CACHE_CLASSES = {
    "Cache": CacheClass(frozenset(), ANY_LAYERS),
    "DynamicCache": CacheClass(FULL, ANY_LAYERS),
    "OffloadedCache": CacheClass(FULL),
    "SinkCache": CacheClass(frozenset({"sink"})),
    "StaticCache": CacheClass(frozenset({"static"})),
    "OffloadedStaticCache": CacheClass(frozenset({"static"})),
    "SlidingWindowCache": CacheClass(frozenset({"static", "static sliding"})),
    "HybridCache": CacheClass(frozenset({"static", "static sliding"})),
    "HybridChunkedCache": CacheClass(frozenset({"static", "static sliding"})),
    "OffloadedHybridCache": CacheClass(frozenset({"static", "static sliding"})),
    "QuantizedCache": CacheClass(frozenset({"quantised"})),
    "QuantoQuantizedCache": CacheClass(frozenset({"quantised"})),
    "HQQQuantizedCache": CacheClass(frozenset({"quantised"})),
    "MambaCache": CacheClass(frozenset({"linear"})),
    "EncoderDecoderCache": CacheClass(FULL),
}

_MODEL_ENDS = (
    "ForCausalLM",
    "ForConditionalGeneration",
    "ForSeq2SeqLM",
    "ForImageTextToText",
    "ForVision2Seq",
    "ForSpeechSeq2Seq",
    "LMHeadModel",
    "PreTrainedModel",
    "AutoModel",
)

# Calls that neither change nor keep what they are given.
PURE = frozenset(
    [
        "print",
        "len",
        "repr",
        "str",
        "format",
        "id",
        "hash",
        "type",
        "isinstance",
        "hasattr",
        "callable",
        "sorted",
        "sum",
        "max",
        "min",
        "abs",
        "any",
        "all",
        "bool",
        "int",
        "float",
        "round",
        "range",
        "enumerate",
        "zip",
        "map",
        "filter",
        "reversed",
        "iter",
        "next",
        "list",
        "tuple",
        "set",
        "dict",
        "frozenset",
        "vars",
        "dir",
    ]
)
PURE_MODULES = (
    "torch.",
    "numpy.",
    "math.",
    "operator.",
    "itertools.",
    "logging.",
    "time.",
    "warnings.",
    "os.",
    "sys.",
    "re.",
    "json.",
)
# Libraries whose things are never a KV cache, however the code calls them later.
_OTHER_LIBRARIES = frozenset(
    "PIL cv2 numpy mne skimage torchvision torchaudio moviepy pandas shapely geopandas rioxarray xarray albumentations "
    "imageio kornia monai pydub soundfile rasterio matplotlib".split()
)
VERSION_PARSERS = frozenset(
    {
        "packaging.version.parse",
        "packaging.version.Version",
        "pkg_resources.parse_version",
        "distutils.version.LooseVersion",
        "packaging.version.LegacyVersion",
    }
)
VERSION_READERS = frozenset(
    {"importlib.metadata.version", "importlib_metadata.version", "pkg_resources.get_distribution"}
)


def names_no_grad(name: str, text: str) -> bool:
    """Whether a context manager or decorator of this name, written so, turns autograd off."""
    last = name.rsplit(".", 1)[-1]
    return last in ("no_grad", "inference_mode") or (last == "set_grad_enabled" and "False" in text)


def is_transformers(name: str) -> bool:
    """Whether a library name belongs to transformers."""
    return name.split(".", 1)[0] == "transformers"


def cache_class(name: str) -> str | None:
    """The cache class that a library name means, from `transformers` or any of its modules."""
    last = name.rsplit(".", 1)[-1]
    return last if is_transformers(name) and last in CACHE_CLASSES else None


def is_model_class(name: str) -> bool:
    """Whether a library name is a model class of transformers (or one of the wrappers that load the same)."""
    last = name.rsplit(".", 1)[-1]
    root = name.split(".", 1)[0]
    return root in ("transformers", "unsloth", "peft", "optimum") and last.endswith(_MODEL_ENDS)


def is_config_class(name: str) -> bool:
    """Whether a library name is a configuration class of transformers."""
    last = name.rsplit(".", 1)[-1]
    return is_transformers(name) and last.endswith("Config") and last != "GenerationConfig"


def is_other_library(name: str) -> bool:
    """Whether what a library's call gives is certainly no KV cache."""
    return name.split(".", 1)[0] in _OTHER_LIBRARIES


def is_pure(name: str) -> bool:
    """Whether a library's call leaves what it is given as it was."""
    return name.startswith(PURE_MODULES) or name.removeprefix("builtins.") in PURE
