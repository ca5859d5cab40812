"""Small programs over caches, run by `probe` inside one release: what each shows is the contract behind a rule.

A probe gets a function that makes a tiny model of a layer kind, and returns what it saw in a few words; what it
raises is an answer too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import transformers

if TYPE_CHECKING:
    from probe import Subject  # type: ignore[import-not-found]

Make = Callable[[str], "Subject"]
TOKENS = torch.arange(3, 9)
LONG = torch.arange(3, 15)


def _filled(make: Make, kind: str = "plain", model: str = "full", tokens: Any = TOKENS) -> tuple[Any, Any]:
    subject = make(model)
    cache = subject.cache(kind)
    subject.feed(cache, tokens)
    return subject, cache


def _pairs() -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.randn(1, 2, 4, 8), torch.randn(1, 2, 4, 8)) for _ in range(2)]


def _same(a: torch.Tensor, b: torch.Tensor) -> str:
    return "right" if torch.allclose(a, b, atol=1e-3, rtol=1e-3) else "wrong logits"


# Names, tuples


def iterate(make: Make) -> str:
    """`for item in cache`."""
    _, cache = _filled(make)
    return f"items of {len(next(iter(cache)))}"


def iterate_static(make: Make) -> str:
    """The same over a static cache."""
    _, cache = _filled(make, "static")
    return f"items of {len(next(iter(cache)))}"


def subscript(make: Make) -> str:
    """`cache[0]`."""
    _, cache = _filled(make)
    return f"items of {len(cache[0])}"


def to_legacy(make: Make) -> str:
    """`cache.to_legacy_cache()`."""
    _, cache = _filled(make)
    return type(cache.to_legacy_cache()).__name__


def from_legacy(make: Make) -> str:
    """`DynamicCache.from_legacy_cache(pairs)`."""
    return f"length {int(transformers.DynamicCache.from_legacy_cache(tuple(_pairs())).get_seq_length())}"


def data_by_position(make: Make) -> str:
    """`DynamicCache(pairs)`, four tokens in it."""
    return f"length {int(transformers.DynamicCache(_pairs()).get_seq_length())}"


def data_by_name(make: Make) -> str:
    """`DynamicCache(ddp_cache_data=pairs)`."""
    return f"length {int(transformers.DynamicCache(ddp_cache_data=_pairs()).get_seq_length())}"


def forward_takes_tuple(make: Make) -> str:
    """A legacy tuple passed to a forward."""
    subject = make("full")
    with torch.no_grad():
        subject.model(TOKENS[None, :1], use_cache=True, **{subject.keyword: tuple(_pairs())})
    return "accepted"


def generate_takes_tuple(make: Make) -> str:
    """A legacy tuple passed to `generate`."""
    subject = make("full")
    subject.model.generate(TOKENS[None], past_key_values=tuple(_pairs()), max_new_tokens=2, do_sample=False)
    return "accepted"


def return_legacy(make: Make) -> str:
    """`generate(return_legacy_cache=True)`."""
    subject = make("full")
    out = subject.model.generate(
        TOKENS[None], max_new_tokens=2, do_sample=False, return_legacy_cache=True, return_dict_in_generate=True
    )
    return type(out.past_key_values).__name__


def store_key_cache(make: Make) -> str:
    """`cache.key_cache = …`, cut to three tokens."""
    _, cache = _filled(make)
    cut = [torch.zeros(1, 2, 3, 8), torch.zeros(1, 2, 3, 8)]
    cache.key_cache, cache.value_cache = cut, cut
    return f"length {int(cache.get_seq_length())}"


def forward_named_cache(make: Make) -> str:
    """`model(ids, cache=cache)`."""
    subject = make("full")
    cache = subject.cache("plain")
    with torch.no_grad():
        subject.model(TOKENS[None], use_cache=True, cache=cache)
    return f"length {int(cache.get_seq_length())}"


def forward_named_past(make: Make) -> str:
    """`model(ids, past_key_values=cache)`."""
    subject = make("full")
    cache = subject.cache("plain")
    with torch.no_grad():
        subject.model(TOKENS[None], use_cache=True, past_key_values=cache)
    return f"length {int(cache.get_seq_length())}"


def generate_named_cache(make: Make) -> str:
    """`model.generate(ids, cache=cache)`."""
    subject = make("full")
    cache = subject.cache("plain")
    subject.model.generate(TOKENS[None], cache=cache, max_new_tokens=2, do_sample=False)
    return f"length {int(cache.get_seq_length())}"


def no_maximum(make: Make) -> str:
    """What `get_max_cache_shape()` (or `get_max_length()`) says where there is no maximum."""
    _, cache = _filled(make)
    name = "get_max_cache_shape" if hasattr(cache, "get_max_cache_shape") else "get_max_length"
    return f"{name} {getattr(cache, name)()}"


def closed_update(make: Make) -> str:
    """A subclass whose `update` takes no further arguments."""

    class Closed(transformers.DynamicCache):  # type: ignore[misc]
        def update(self, key_states: Any, value_states: Any, layer_idx: Any, cache_kwargs: Any = None) -> Any:
            return super().update(key_states, value_states, layer_idx, cache_kwargs)

    subject = make("full")
    cache = Closed()
    subject.feed(cache, TOKENS)
    return f"length {int(cache.get_seq_length())}"


# Life and aliasing


def truth_of_empty(make: Make) -> str:
    """`bool` of an empty `DynamicCache()`."""
    return str(bool(transformers.DynamicCache()))


def truth_of_empty_with_config(make: Make) -> str:
    """`bool` of an empty `DynamicCache(config=…)`."""
    return str(bool(make("full").cache("config")))


def length_of_builtin(make: Make) -> str:
    """`len(cache)`: two layers, six tokens."""
    _, cache = _filled(make)
    return str(len(cache))


def reset_dynamic(make: Make) -> str:
    """`reset()` of a dynamic cache."""
    _, cache = _filled(make)
    cache.reset()
    return f"length {int(cache.get_seq_length())}"


def no_cache_still_writes(make: Make) -> str:
    """A forward with `use_cache=False` and a cache."""
    subject, cache = _filled(make)
    with torch.no_grad():
        subject.model(TOKENS[None, :3], use_cache=False, **{subject.keyword: cache})
    return f"length {int(cache.get_seq_length())}"


def deepcopy_with_grad(make: Make) -> str:
    """`copy.deepcopy` of a cache that was filled with autograd on."""
    subject = make("full")
    cache = subject.cache("plain")
    subject.model(TOKENS[None], use_cache=True, **{subject.keyword: cache})
    copy.deepcopy(cache)
    return "copied"


def shallow_copy(make: Make) -> str:
    """Whether filling a `copy.copy` fills the original."""
    subject, cache = _filled(make)
    subject.feed(copy.copy(cache), TOKENS[:1])
    return f"length {int(cache.get_seq_length())}"


def second_prompt_shorter(make: Make) -> str:
    """`generate` with a cache that holds another, longer prompt."""
    return _second_prompt(make, TOKENS[:4] + 20)


def second_prompt_longer(make: Make) -> str:
    """`generate` with a cache that holds another, shorter prompt."""
    return _second_prompt(make, LONG + 20)


def _second_prompt(make: Make, ids: torch.Tensor) -> str:
    subject, cache = _filled(make)
    fresh = subject.model.generate(ids[None], max_new_tokens=4, do_sample=False)
    got = subject.model.generate(ids[None], max_new_tokens=4, do_sample=False, past_key_values=cache)
    return "right" if torch.equal(got, fresh) else "wrong text"


def static_not_reset(make: Make) -> str:
    """A static cache used for a second prompt without `reset()`."""
    subject, cache = _filled(make, "static")
    return _same(subject.feed(cache, LONG + 20), subject.feed(subject.cache("static"), LONG + 20))


def static_length_kept(make: Make) -> str:
    """A static cache's length kept across a forward."""
    subject, cache = _filled(make, "static")
    kept = cache.get_seq_length()
    subject.feed(cache, TOKENS[:1])
    return "moves" if int(kept) != len(TOKENS) else "stays"


def ids_fed_again(make: Make) -> str:
    """All ids fed to a forward with a cache that holds most of them."""
    subject, cache = _filled(make)
    subject.feed(cache, torch.cat([TOKENS, torch.tensor([40])]))
    return f"length {int(cache.get_seq_length())}"


def implementation_and_cache(make: Make) -> str:
    """`generate(cache_implementation=…, past_key_values=…)`."""
    subject = make("full")
    cache = subject.cache("plain")
    subject.model.generate(TOKENS[None], max_new_tokens=2, cache_implementation="static", past_key_values=cache)
    return "accepted"


def beams_on_filled_cache(make: Make) -> str:
    """`generate(num_beams=2)` with a cache filled for one."""
    subject, cache = _filled(make, tokens=TOKENS[:-1])
    subject.model.generate(TOKENS[None], max_new_tokens=2, num_beams=2, past_key_values=cache)
    return "accepted"


# Building


def config_as_data(make: Make) -> str:
    """`DynamicCache(model.config)`."""
    transformers.DynamicCache(make("full").config)
    return "accepted"


def static_by_position(make: Make) -> str:
    """`StaticCache(config, 1, 16)`."""
    cache = transformers.StaticCache(make("full").config, 1, 16, "cpu", torch.float32)
    return f"maximum {cache.get_max_cache_shape()}"


def static_short_form(make: Make) -> str:
    """`StaticCache(config=…, max_cache_len=16)`."""
    transformers.StaticCache(config=make("full").config, max_cache_len=16)
    return "accepted"


def static_too_short(make: Make) -> str:
    """A static cache of 64 fed with 70 tokens."""
    _filled(make, "static", tokens=torch.arange(70) % 60)
    return "accepted"


def plain_for_linear(make: Make) -> str:
    """`DynamicCache()` for a model with linear layers."""
    _filled(make, "plain", "linear")
    return "accepted"


def hand_built_layer(make: Make) -> str:
    """A layer assembled by setting its tensors and appended."""
    from transformers.cache_utils import DynamicLayer

    layer = DynamicLayer()
    layer.keys, layer.values = _pairs()[0]
    cache = transformers.DynamicCache()
    cache.layers.append(layer)
    return f"length {int(cache.get_seq_length())}"


# Rolling back


def swallowed_failure(make: Make) -> str:
    """A failing crop of full and sliding layers, swallowed."""
    subject, cache = _filled(make, "config", "full and sliding", LONG)
    try:
        cache.crop(-2)
    except Exception:
        return _same(subject.feed(cache, TOKENS[:1]), _after(make, "full and sliding", LONG))
    return "did not fail"


def _after(make: Make, model: str, tokens: torch.Tensor) -> torch.Tensor:
    subject, cache = _filled(make, "config", model, tokens)
    logits: torch.Tensor = subject.feed(cache, TOKENS[:1])
    return logits


def two_crops(make: Make) -> str:
    """Two crops of a recorded full window with no forward between."""
    subject = make("sliding")
    cache = subject.cache("config")
    cache.activate_past_recording()
    subject.feed(cache, LONG)
    cache.crop(-2)
    cache.crop(-2)
    return _same(subject.feed(cache, TOKENS[:1]), _after(make, "sliding", LONG[:-4]))


def recorded_without_crop(make: Make) -> str:
    """Many one-token forwards on a recording cache, and no crop."""
    subject = make("sliding")
    cache = subject.cache("config")
    cache.activate_past_recording()
    for token in range(24):
        subject.feed(cache, torch.tensor([3 + token]))
    return f"keeps {cache.layers[0].keys.shape[-2]} of 24"


def croppable_full_window(make: Make) -> str:
    """`is_croppable` of a full window that does not record, and whose `crop` raises."""
    _, cache = _filled(make, "config", "sliding", LONG)
    return str(bool(cache.is_croppable))


def cut_by_hand(make: Make) -> str:
    """The tensors of a sliding layer cut by hand."""
    subject, cache = _filled(make, "config", "sliding", LONG)
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[:, :, :-2], layer.values[:, :, :-2]
    return _same(subject.feed(cache, TOKENS[:1]), _after(make, "sliding", LONG[:-2]))


def length_from_shape(make: Make) -> str:
    """`keys.shape[-2]` of a sliding layer that has seen twelve tokens."""
    _, cache = _filled(make, "config", "sliding", LONG)
    return str(cache.layers[0].keys.shape[-2])


def made_by_forward(make: Make) -> str:
    """The layers of the cache that a sliding model's forward makes."""
    subject = make("sliding")
    with torch.no_grad():
        out = subject.model(TOKENS[None], use_cache=True)
    return _kind(getattr(out, subject.keyword))


def made_by_generate(make: Make) -> str:
    """The layers of the cache that `generate` makes for a sliding model."""
    subject = make("sliding")
    out = subject.model.generate(TOKENS[None], max_new_tokens=2, do_sample=False, return_dict_in_generate=True)
    return _kind(getattr(out, subject.keyword))


def _kind(cache: Any) -> str:
    layers = sorted({type(layer).__name__ for layer in getattr(cache, "layers", ())})
    return f"{type(cache).__name__} of {', '.join(layers)}" if layers else type(cache).__name__


PROBES: dict[str, Callable[[Make], str]] = {
    name: thing
    for name, thing in list(globals().items())
    if callable(thing) and not name.startswith("_") and getattr(thing, "__module__", "") == __name__
}
