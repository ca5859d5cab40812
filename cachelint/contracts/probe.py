"""Runs inside one release of transformers and prints, as JSON, what its caches really do.

Started by `cachelint.contracts.measure` in a process of its own, with that release on the path. Every model is tiny
and randomly initialised, with a window of 8; corruption is found by comparing the logits of the next forward with
those of a fresh run on the tokens that should have been kept.
"""

from __future__ import annotations

import inspect
import json
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from transformers import cache_utils

WINDOW = 8
TOLERANCE = 1e-3
FILLS = {"empty": 0, "below": 5, "at": 8, "above": 12}
RECORDINGS = ("no", "before", "between", "late")
VALUES = ("positive", "negative", "zero", "beyond", "over")
REMOVED = 3

_SMALL = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "max_position_embeddings": 128,
    # Weights large enough that a lost or stale state shows in the logits.
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "full": ("LlamaConfig", "LlamaForCausalLM", {}),
    "sliding": ("MistralConfig", "MistralForCausalLM", {"sliding_window": WINDOW}),
    "chunked": (
        "Llama4TextConfig",
        "Llama4ForCausalLM",
        {
            "attention_chunk_size": WINDOW,
            "head_dim": 8,
            "intermediate_size_mlp": 32,
            "num_local_experts": 2,
            "num_experts_per_tok": 1,
            "interleave_moe_layer_step": 2,
            "no_rope_layers": [1, 1],
            "layer_types": ["chunked_attention", "chunked_attention"],
        },
    ),
    "full and sliding": (
        "Qwen2Config",
        "Qwen2ForCausalLM",
        {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1},
    ),
    "linear": (
        "Qwen3NextConfig",
        "Qwen3NextForCausalLM",
        {
            "head_dim": 8,
            "linear_num_value_heads": 2,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 16,
            "layer_types": ["linear_attention", "full_attention"],
        },
    ),
    "convolution": (
        "Lfm2Config",
        "Lfm2ForCausalLM",
        {"block_ff_dim": 32, "layer_types": ["conv", "full_attention"], "full_attn_idxs": [1]},
    ),
}


class Absent(Exception):
    """The release does not have what a probe needs."""


class Deprecations(logging.Handler):
    """Collects deprecations that are logged; the library warns so more often than by `warnings`."""

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def emit(self, record: logging.LogRecord) -> None:
        """Note a record that speaks of deprecation or removal."""
        self.found = self.found or "deprecat" in record.getMessage() or "will be removed" in record.getMessage()


@contextmanager
def deprecations() -> Iterator[Deprecations]:
    """Whether anything is said to be deprecated meanwhile, in the log or as a warning."""
    handler = Deprecations()
    root = logging.getLogger("transformers")
    for cached in ("warning_once", "info_once"):
        function = getattr(logging.Logger, cached, None)
        if hasattr(function, "cache_clear"):
            function.cache_clear()  # type: ignore[union-attr]
    root.addHandler(handler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield handler
        handler.found = handler.found or any(issubclass(w.category, FutureWarning) for w in caught)
    root.removeHandler(handler)


def name_of(error: BaseException) -> str:
    """An exception as one short line: its first sentence, without the numbers of this run."""
    text = re.sub(r" \(`?-?\d+`?\)", "", " ".join(str(error).split()))
    return f"{type(error).__name__}: {re.split(r'[.;] | [(]|[.]$', text)[0][:150]}"


class Subject:
    """A tiny model of one layer kind, and how it is fed."""

    def __init__(self, kind: str) -> None:
        config_name, model_name, extra = _MODELS[kind]
        config_class = getattr(transformers, config_name, None)
        model_class = getattr(transformers, model_name, None)
        if config_class is None or model_class is None:
            raise Absent(f"no {config_name}")
        torch.manual_seed(0)
        self.config = config_class(**{**_SMALL, **extra})
        self.model = model_class(self.config).eval()
        self.keyword = "cache" if "cache" in inspect.signature(model_class.forward).parameters else "past_key_values"

    def feed(self, cache: Any, tokens: torch.Tensor) -> torch.Tensor:
        """The logits behind the last of `tokens` (shape [vocabulary]); the cache takes them up."""
        cache = getattr(cache, "self_attention_cache", cache)
        with torch.no_grad():
            out = self.model(tokens[None], use_cache=True, **{self.keyword: cache})
        logits: torch.Tensor = out.logits[0, -1]
        return logits

    def cache(self, kind: str) -> Any:
        """A new cache of a kind."""
        if kind == "plain":
            return transformers.DynamicCache()
        if kind == "static":
            return transformers.StaticCache(
                config=self.config, max_batch_size=1, max_cache_len=64, device="cpu", dtype=torch.float32
            )
        if kind == "encoder-decoder":
            halves = (transformers.DynamicCache(), transformers.DynamicCache())
            return transformers.EncoderDecoderCache(*halves)
        if kind == "quantised":
            try:
                return transformers.QuantizedCache("fp8", self.config)
            except Exception as error:
                raise Absent(name_of(error)) from None
        try:
            return transformers.DynamicCache(config=self.config)
        except TypeError as error:
            raise Absent(name_of(error)) from None


def length_of(cache: Any) -> int | None:
    """The tokens seen, None where the cache cannot tell."""
    try:
        return int(cache.get_seq_length())
    except Exception:
        return None


def crop_outcome(subject: Subject, kind: str, value: str, fill: str, recording: str) -> str:
    """What one crop does: "right", "wipes", "nothing", "wrong", "raises …" or "then raises …"."""
    count = FILLS[fill]
    tokens = torch.arange(3, 3 + count)
    cache = subject.cache(kind)
    if recording != "no" and not hasattr(cache, "activate_past_recording"):
        raise Absent("no recording")
    try:
        _prefill(subject, cache, tokens, recording)
    except Exception as error:
        # The model takes a cache class of its own on this release.
        raise Absent(name_of(error)) from None
    argument = {
        "positive": max(1, count - REMOVED),
        "negative": -REMOVED,
        "zero": 0,
        "beyond": 100,
        "over": -100,
    }[value]
    before = _lengths(cache)
    with deprecations() as said:
        try:
            cache.crop(argument)
        except Exception as error:
            changed = ", the cache is changed" if _lengths(cache) != before else ""
            return f"raises {name_of(error)}{changed}"
    outcome = _compare(subject, kind, cache, tokens, argument, value)
    return f"{outcome}, deprecated" if said.found else outcome


def _prefill(subject: Subject, cache: Any, tokens: torch.Tensor, recording: str) -> None:
    """Feed the tokens, with recording turned on at the wanted point."""
    if recording == "before":
        cache.activate_past_recording()
    split = max(0, len(tokens) - REMOVED)
    if len(tokens) and recording == "between":
        if split:
            subject.feed(cache, tokens[:split])
        cache.activate_past_recording()
        subject.feed(cache, tokens[split:])
    elif len(tokens):
        subject.feed(cache, tokens)
    if recording == "late":
        cache.activate_past_recording()


def _lengths(cache: Any) -> list[Any]:
    try:
        return [int(layer.keys.shape[-2]) if layer.keys is not None else 0 for layer in cache.layers]
    except Exception:
        return [length_of(cache)]


def _compare(subject: Subject, kind: str, cache: Any, tokens: torch.Tensor, argument: int, value: str) -> str:
    count = len(tokens)
    kept = {"positive": min(argument, count), "negative": max(0, count - REMOVED), "beyond": count, "over": 0}
    length = length_of(cache)
    if value == "zero":
        name = "wipes" if length == 0 and count else "nothing"
        expected = 0 if name == "wipes" else count
    else:
        name, expected = "right", kept[value]
        if length is not None and length != expected:
            name = "nothing" if length == count else f"leaves {length} of {count}"
            expected = count if length == count else expected
    fresh = subject.cache(kind)
    if expected > 0:
        subject.feed(fresh, tokens[:expected])
    # One token, as decoding feeds: a longer piece makes some linear layers begin anew.
    following = torch.tensor([50])
    try:
        got = subject.feed(cache, following)
    except Exception as error:
        return f"then the next forward raises {type(error).__name__}"
    right = torch.allclose(got, subject.feed(fresh, following), atol=TOLERANCE, rtol=TOLERANCE)
    return name if right else "wrong logits"


def measure_crop() -> dict[str, str]:
    """`layer/value/fill/recording` to what happens."""
    found: dict[str, str] = {}
    kinds = [(kind, "config") for kind in _MODELS]
    kinds += [("full", "plain"), ("full", "static"), ("sliding", "static"), ("full", "encoder-decoder")]
    kinds += [("full", "quantised")]
    for model, kind in kinds:
        layer = {"config": model, "plain": "plain", "static": f"static {model}"}.get(kind, kind)
        for recording in RECORDINGS:
            for fill in FILLS:
                for value in VALUES:
                    key = f"{layer}/{value}/{fill}/{recording}"
                    try:
                        outcome = crop_outcome(Subject(model), kind, value, fill, recording)
                    except Absent:
                        outcome = "absent"
                    except Exception as error:
                        outcome = f"not measured: {name_of(error)}"
                    found[key] = outcome
    return found


def measure_keywords() -> dict[str, str]:
    """What passing the argument of `crop` by a keyword does, by class."""
    found = {}
    for owner, kind in (("Cache", "plain"), ("EncoderDecoderCache", "encoder-decoder")):
        for keyword in ("max_length", "maximum_length", "tokens_to_remove"):
            subject = Subject("full")
            try:
                cache = subject.cache(kind)
                subject.feed(cache.self_attention_cache if kind == "encoder-decoder" else cache, torch.arange(3, 8))
                with deprecations() as said:
                    cache.crop(**{keyword: -2})
                outcome = "right, deprecated" if said.found else "right"
            except Exception as error:
                outcome = f"raises {name_of(error)}"
            found[f"{owner}/{keyword}"] = outcome
    return found


CLASSES = (
    "Cache DynamicCache StaticCache SinkCache SlidingWindowCache HybridCache HybridChunkedCache "
    "OffloadedCache OffloadedStaticCache OffloadedHybridCache QuantizedCache QuantoQuantizedCache "
    "HQQQuantizedCache MambaCache EncoderDecoderCache CacheConfig QuantizedCacheConfig StaticCacheConfig "
    "DynamicLayer StaticLayer DynamicSlidingWindowLayer StaticSlidingWindowLayer CacheLayerMixin "
    "LinearAttentionLayer "
).split()
MEMBERS = (
    "crop reset update reorder_cache get_seq_length get_usable_length get_max_length get_max_cache_shape "
    "get_mask_sizes to_legacy_cache from_legacy_cache batch_split from_batch_splits "
    "batch_repeat_interleave batch_select_indices seen_tokens _seen_tokens key_cache value_cache layers "
    "activate_past_recording is_croppable is_recording_past max_cache_len max_batch_size batch_size "
    "is_compileable is_sliding "
).split()
IMPLEMENTATIONS = (
    "dynamic dynamic_full static sliding_window hybrid hybrid_chunked offloaded offloaded_static "
    "offloaded_hybrid offloaded_hybrid_chunked quantized mamba paged sink "
).split()


def measure_surface() -> dict[str, str]:
    """Which classes, members, parameters, names and implementations there are."""
    found: dict[str, str] = {}
    for name in CLASSES:
        places = [p for p, m in (("transformers", transformers), ("cache_utils", cache_utils)) if hasattr(m, name)]
        found[f"class/{name}"] = " and ".join(places) or "absent"
    for owner in ("DynamicCache", "StaticCache", "EncoderDecoderCache"):
        for member in MEMBERS:
            found[f"member/{owner}.{member}"] = _member(owner, member)
    for owner in ("DynamicCache", "StaticCache", "EncoderDecoderCache", "QuantizedCache"):
        cls = getattr(transformers, owner, None)
        if cls is not None:
            found[f"parameters/{owner}"] = ", ".join(list(inspect.signature(cls.__init__).parameters)[1:])
    for value in IMPLEMENTATIONS:
        found[f"implementation/{value}"] = _implementation(value)
    found.update({f"encoder-decoder/{model_type}": "yes" for model_type in _encoder_decoders()})
    found["argument/model"] = _argument(transformers.LlamaForCausalLM.forward)
    attention = transformers.models.llama.modeling_llama.LlamaAttention
    found["argument/attention"] = _argument(attention.forward)
    return found


def _member(owner: str, member: str) -> str:
    cls = getattr(transformers, owner, None)
    if cls is None:
        return "absent"
    try:
        subject = Subject("full")
        kind = {"DynamicCache": "plain", "StaticCache": "static"}.get(owner, "encoder-decoder")
        cache = subject.cache(kind)
        if owner != "EncoderDecoderCache":
            subject.feed(cache, torch.arange(3, 8))
        with deprecations() as said:
            getattr(cache, member)
        return "there, deprecated" if said.found else "there"
    except AttributeError:
        return "absent"
    except Exception as error:
        return f"raises {type(error).__name__}"


def _implementation(value: str) -> str:
    try:
        with deprecations() as said:
            transformers.GenerationConfig(cache_implementation=value).validate()
        return "accepted, deprecated" if said.found else "accepted"
    except Exception as error:
        return f"raises {type(error).__name__}"


def _encoder_decoders() -> Iterator[str]:
    """The model types whose configuration says by default that there is an encoder and a decoder."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    for model_type in sorted(CONFIG_MAPPING.keys()):
        try:
            if CONFIG_MAPPING[model_type]().is_encoder_decoder is True:
                yield model_type
        except Exception:
            continue


def _argument(function: Callable[..., Any]) -> str:
    names = inspect.signature(function).parameters
    wanted = [name for name in ("past_key_value", "past_key_values", "cache") if name in names]
    return ", ".join(wanted) or "none"


# How a checkpoint's configuration can differ from the default in what decides the layers.
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "sliding_window=None": {"sliding_window": None},
    "sliding_window=8": {"sliding_window": 8},
    "use_sliding_window": {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
}


def measure_families() -> dict[str, str]:
    """For each model type and variant of its configuration, the layers of the cache that it gives.

    A variant is told only where it gives other layers than the default.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    found: dict[str, str] = {}
    for model_type in list(CONFIG_MAPPING.keys()):
        for variant, changes in VARIANTS.items():
            try:
                outcome = _family(CONFIG_MAPPING[model_type], changes)
            except Exception as error:
                outcome = f"not measured: {type(error).__name__}"
            if not variant:
                found[model_type] = outcome
            elif outcome != found[model_type] and not outcome.startswith("not measured"):
                found[f"{model_type}?{variant}"] = outcome
    return found


def _family(config_class: Any, changes: dict[str, Any]) -> str:
    config = config_class()
    text = config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config
    if text is config and all(key in config.to_dict() for key in changes):
        config = text = config_class(**changes)
    elif changes:
        raise Absent("no such setting")
    if not getattr(text, "num_hidden_layers", None):
        raise Absent("no layers")
    return _layers(transformers.DynamicCache(config=config), text)


def _layers(cache: Any, config: Any) -> str:
    kinds: set[str] = set()
    for layer in cache.layers:
        name = type(layer).__name__
        window = getattr(layer, "sliding_window", None)
        if "Linear" in name:
            kinds.add("linear")
        if window is not None and window > 0:
            chunk = config.to_dict().get("attention_chunk_size") == window
            kinds.add(f"{'chunked' if chunk else 'sliding'} {window}")
        elif "Linear" not in name:
            kinds.add("full" if name == "DynamicLayer" else name)
    return ", ".join(sorted(kinds))


def measure_behaviour() -> dict[str, str]:
    """What each small program shows."""
    import behaviours  # type: ignore[import-not-found]
    import misuses  # type: ignore[import-not-found]

    found = {}
    for name, program in {**behaviours.PROBES, **misuses.PROBES}.items():
        torch.manual_seed(0)
        try:
            with deprecations() as said:
                outcome = program(Subject)
            found[name] = f"{outcome}, deprecated" if said.found else outcome
        except Absent:
            found[name] = "absent"
        except Exception as error:
            found[name] = f"raises {name_of(error)}"
    return found


def main() -> None:
    """Measure the parts named on the command line (all by default) and print them as one JSON object."""
    logging.getLogger("transformers").setLevel(logging.WARNING)
    torch.set_num_threads(1)
    parts: dict[str, Callable[[], dict[str, str]]] = {
        "crop": measure_crop,
        "keywords": measure_keywords,
        "surface": measure_surface,
        "families": measure_families,
        "behaviour": measure_behaviour,
    }
    wanted = sys.argv[1:] or list(parts)
    result = {part: parts[part]() for part in wanted}
    sys.stdout.write("\n" + json.dumps({"release": transformers.__version__, **result}) + "\n")


if __name__ == "__main__":
    main()
