"""More small programs over caches, as in `behaviours`: overrides, two models, encoder-decoders, costs, constructors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from behaviours import LONG, TOKENS, Make, _filled, _same  # type: ignore[import-not-found]

# Overrides


def _with_attention(make: Make, forward: Callable[..., Any]) -> str:
    """The length of a cache that went through a model whose attention's `forward` was replaced."""
    subject = make("full")
    attention = type(subject.model.model.layers[0].self_attn)
    original = attention.forward
    attention.forward = forward(original)
    try:
        cache = subject.cache("plain")
        subject.feed(cache, TOKENS)
        return f"length {int(cache.get_seq_length())}"
    finally:
        attention.forward = original


def attention_past_key_value(make: Make) -> str:
    """An attention's `forward(self, hidden_states, past_key_value=None, **kwargs)`."""

    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(self: Any, hidden_states: Any, *args: Any, past_key_value: Any = None, **kwargs: Any) -> Any:
            for other in ("past_key_values", "cache"):
                kwargs.pop(other, None)
            return _call(original, self, hidden_states, args, kwargs, past_key_value)

        return forward

    return _with_attention(make, replaced)


def attention_past_key_values(make: Make) -> str:
    """An attention's `forward(self, hidden_states, past_key_values=None, **kwargs)`."""

    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(self: Any, hidden_states: Any, *args: Any, past_key_values: Any = None, **kwargs: Any) -> Any:
            for other in ("past_key_value", "cache"):
                kwargs.pop(other, None)
            return _call(original, self, hidden_states, args, kwargs, past_key_values)

        return forward

    return _with_attention(make, replaced)


def attention_cache(make: Make) -> str:
    """An attention's `forward(self, hidden_states, cache=None, **kwargs)`."""

    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(self: Any, hidden_states: Any, *args: Any, cache: Any = None, **kwargs: Any) -> Any:
            for other in ("past_key_value", "past_key_values"):
                kwargs.pop(other, None)
            return _call(original, self, hidden_states, args, kwargs, cache)

        return forward

    return _with_attention(make, replaced)


def _call(original: Callable[..., Any], self: Any, hidden: Any, args: Any, kwargs: Any, cache: Any) -> Any:
    import inspect

    names = inspect.signature(original).parameters
    name = next(n for n in ("cache", "past_key_values", "past_key_value") if n in names)
    return original(self, hidden, *args, **{name: cache}, **kwargs)


def _with_model(make: Make, name: str) -> str:
    subject = make("full")
    model = type(subject.model)
    seen: list[bool] = []
    original = model.forward

    def past_key_values(self: Any, input_ids: Any = None, past_key_values: Any = None, **kwargs: Any) -> Any:
        seen.append(past_key_values is not None)
        kwargs.pop("cache", None)
        return original(self, input_ids, past_key_values=past_key_values, **kwargs)

    def cache(self: Any, input_ids: Any = None, cache: Any = None, **kwargs: Any) -> Any:
        seen.append(cache is not None)
        kwargs.pop("past_key_values", None)
        return original(self, input_ids, cache=cache, **kwargs)

    class Patched(model):  # type: ignore[misc, valid-type]
        forward = {"past_key_values": past_key_values, "cache": cache}[name]

    subject.model.__class__ = Patched
    subject.model.generate(TOKENS[None], max_new_tokens=3, do_sample=False)
    return "sees the cache" if seen[-1] else "sees None"


def model_forward_past_key_values(make: Make) -> str:
    """A model's `forward(self, input_ids, past_key_values=None, **kwargs)` under `generate`."""
    return _with_model(make, "past_key_values")


def model_forward_cache(make: Make) -> str:
    """A model's `forward(self, input_ids, cache=None, **kwargs)` under `generate`."""
    return _with_model(make, "cache")


def prepare_inputs_past_key_values(make: Make) -> str:
    """`prepare_inputs_for_generation(self, input_ids, past_key_values=None, **kwargs)` under `generate`."""
    subject = make("full")
    seen: list[bool] = []

    class Patched(type(subject.model)):  # type: ignore[misc]
        def prepare_inputs_for_generation(self, input_ids: Any, past_key_values: Any = None, **kwargs: Any) -> Any:
            seen.append(past_key_values is not None)
            if past_key_values is not None:
                kwargs["past_key_values"] = past_key_values
            return super().prepare_inputs_for_generation(input_ids, **kwargs)

    subject.model.__class__ = Patched
    subject.model.generate(TOKENS[None], max_new_tokens=3, do_sample=False)
    return "sees the cache" if seen[-1] else "sees None"


def abstract_methods(make: Make) -> str:
    """The methods that a layer class of one's own must have."""
    from transformers.cache_utils import CacheLayerMixin

    return ", ".join(sorted(CacheLayerMixin.__abstractmethods__))


def closed_layer_update(make: Make) -> str:
    """A layer class whose `update` takes no further arguments."""
    from transformers.cache_utils import DynamicLayer

    class Closed(DynamicLayer):  # type: ignore[misc]
        def update(self, key_states: Any, value_states: Any, cache_kwargs: Any = None) -> Any:
            return super().update(key_states, value_states)

    subject = make("full")
    cache = transformers.DynamicCache()
    cache.layers = [Closed(), Closed()]
    subject.feed(cache, TOKENS)
    return f"length {int(cache.get_seq_length())}"


# Two models, encoder-decoders


def two_models(make: Make) -> str:
    """One cache fed by two models of one shape."""
    first, second = make("full"), make("full")
    cache = first.cache("plain")
    first.feed(cache, TOKENS)
    second.feed(cache, TOKENS)
    return f"length {int(cache.get_seq_length())}"


def length_of_config_built(make: Make) -> str:
    """`len` of an empty `DynamicCache(config=…)`."""
    return str(len(make("full").cache("config")))


def _translator() -> Any:
    config = transformers.T5Config(
        vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0, pad_token_id=0
    )
    torch.manual_seed(0)
    model = transformers.T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)
    return model


def _translate(model: Any, source: torch.Tensor, target: torch.Tensor, cache: Any) -> torch.Tensor:
    import inspect

    name = "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"
    with torch.no_grad():
        out = model(input_ids=source[None], decoder_input_ids=target[None], use_cache=True, **{name: cache})
    logits: torch.Tensor = out.logits[0, -1]
    return logits


def plain_for_encoder_decoder(make: Make) -> str:
    """`DynamicCache()` passed to an encoder-decoder model, two steps."""
    model, cache = _translator(), transformers.DynamicCache()
    fresh = _translate(model, TOKENS, torch.tensor([0, 5]), None)
    _translate(model, TOKENS, torch.tensor([0]), cache)
    return str(_same(_translate(model, TOKENS, torch.tensor([5]), cache), fresh))


def encoder_decoder_reused(make: Make) -> str:
    """An encoder-decoder cache that answered one input, used with another one."""
    model = _translator()
    cache = transformers.EncoderDecoderCache(transformers.DynamicCache(), transformers.DynamicCache())
    _translate(model, TOKENS, torch.tensor([0]), cache)
    fresh = _translate(model, TOKENS + 20, torch.tensor([0, 5]), None)
    return str(_same(_translate(model, TOKENS + 20, torch.tensor([5]), cache), fresh))


# Cost, constructors


def recording_before_prefill(make: Make) -> str:
    """Recording turned on before a prefill of twelve tokens, with a window of eight."""
    subject = make("sliding")
    cache = subject.cache("config")
    cache.activate_past_recording()
    subject.feed(cache, LONG)
    return f"keeps {cache.layers[0].keys.shape[-2]} of 12"


def quantised_for_sliding(make: Make) -> str:
    """A quantised cache made for a sliding model; of the backend only its names are needed."""
    import sys
    from types import ModuleType

    backend = ModuleType("optimum.quanto")
    vars(backend).update({"MaxOptimizer": object, "qint2": 2, "qint4": 4})
    sys.modules.setdefault("optimum.quanto", backend)
    for name in ("is_optimum_quanto_available", "is_quanto_greater"):
        if hasattr(transformers.cache_utils, name):
            setattr(transformers.cache_utils, name, lambda *_, **__: True)
    transformers.QuantizedCache(backend="quanto", config=make("sliding").config)
    return "accepted"


def cut_by_hand_static(make: Make) -> str:
    """The tensors of a static layer cut by hand."""
    subject, cache = _filled(make, "static", tokens=LONG)
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[:, :, :10], layer.values[:, :, :10]
    subject.feed(cache, TOKENS[:1])
    return f"length {int(cache.get_seq_length())}"


def static_length_from_shape(make: Make) -> str:
    """`keys.shape[-2]` of a static layer of 64 that has seen six tokens."""
    _, cache = _filled(make, "static")
    return str(cache.layers[0].keys.shape[-2])


def no_cache_generate(make: Make) -> str:
    """`generate(use_cache=False, past_key_values=…)` with a filled cache."""
    subject, cache = _filled(make, tokens=TOKENS[:-1])
    fresh = subject.model.generate(TOKENS[None], max_new_tokens=3, do_sample=False)
    got = subject.model.generate(
        TOKENS[None], max_new_tokens=3, do_sample=False, use_cache=False, past_key_values=cache
    )
    return "right" if torch.equal(got, fresh) else "wrong text"


def sequences_on_filled_cache(make: Make) -> str:
    """`generate(num_return_sequences=2)` with a cache filled for one."""
    subject, cache = _filled(make, tokens=TOKENS[:-1])
    subject.model.generate(
        TOKENS[None], max_new_tokens=2, do_sample=True, num_return_sequences=2, past_key_values=cache
    )
    return "accepted"


def same_prompt_again(make: Make) -> str:
    """`generate` with ids all of which the cache already holds."""
    subject, cache = _filled(make)
    fresh = subject.model.generate(TOKENS[None], max_new_tokens=4, do_sample=False)
    got = subject.model.generate(TOKENS[None], max_new_tokens=4, do_sample=False, past_key_values=cache)
    return "right" if torch.equal(got, fresh) else "wrong text"


PROBES: dict[str, Callable[[Make], str]] = {
    name: thing
    for name, thing in list(globals().items())
    if callable(thing) and not name.startswith("_") and getattr(thing, "__module__", "") == __name__
}
