"""What names say: which ones mean a KV cache without more, and which uses give a thing away as one."""

from __future__ import annotations

import re

_UNMISTAKABLE = re.compile(r"(?:^|_)past_key_values?(?:_|$)|^(?:self|cross)_attention_cache$")
# Names of a flag, a number or a name that has to do with a cache.
_ABOUT_A_CACHE = re.compile(
    r"^(?:update|use|using|return|returns|has|have|is|should|num|n|supports?|output|reset|enable|skip|no|with|len|max|min"
    r"|clear|allow|needs?|requires?|keep|log|test|get|set|make|build|create|prepare|init)_"
    r"|_(?:length|len|lengths|size|shape|shapes|mask|format|dtype|device|num|count|names?|index|idx|tokens?|seq\w*|class"
    r"|cls|type|path|dir|file|key|step|offset|position|bytes)$"
)
# Attributes that only KV caches have, and keywords that only KV caches are passed by.
_USED_AS_CACHE = re.compile(
    r"\b([A-Za-z_][\w.]*)\.(?:get_seq_length|get_usable_length|get_max_cache_shape|reorder_cache|to_legacy_cache"
    r"|activate_past_recording|is_croppable|batch_repeat_interleave|batch_select_indices)\b"
    r"|\bpast_key_values?\s*=\s*([A-Za-z_][\w.]*)(?=\s*[,)\n])"
)
_NOT_A_CACHE = re.compile(r"\b(?:[Tt]uple|[Ll]ist|Sequence|FloatTensor|Tensor|ndarray|Image|str|int|float|dict|Dict)\b")


# What a module must name for one of its functions to hold a KV cache of its own accord.
_SPEAKS_OF_CACHES = re.compile(r"[Cc]ache|past_key_value|\bkv|transformers")
_SPEAKS_OF_TRANSFORMERS = re.compile(rb"\btransformers\b|past_key_value")
# What a function, or its class, names that can hold one of the library's caches under whatever name.
_BEARS_A_CACHE = re.compile(
    r"past_key_value|\b(?:[A-Z]\w*)?Cache\b|get_seq_length|use_cache|cache_implementation|legacy_cache"
    r"|attention_cache|activate_past|get_usable_length|get_max_|seen_tokens|key_cache|value_cache|\bcrop\b"
    r"|\b[A-Z]\w*(?:Layer\(|(?:Attention|ForCausalLM)\b)"
)
_CLASS_BEARS_A_CACHE = re.compile(
    r"past_key_value|get_seq_length|\b(?:[A-Z]\w*)?Cache(?:\(|\b\s*[|=\]])|:\s*(?:[A-Z]\w*)?Cache\b"
)
# What brings a tracked thing into being, and what may change one that is at hand.
_MAKES = re.compile(r"Cache\w*\(|\.from_pretrained\(|\.generate\(|__version__|\bversion\b|\bcrop\b")
_TOUCHES = re.compile(r"[Cc]ache|past_key_value|\bcrop\b|\bkv\b|\bpast\b")


def speaks_of_caches(text: str) -> bool:
    """Whether a module's text can have to do with KV caches at all."""
    return _SPEAKS_OF_CACHES.search(text) is not None


def bears_a_cache(text: str) -> bool:
    """Whether code names anything that tells of one of the library's caches."""
    return _BEARS_A_CACHE.search(text) is not None


def class_bears_a_cache(text: str) -> bool:
    """Whether a class makes, annotates or uses what can be one of the library's caches."""
    return _CLASS_BEARS_A_CACHE.search(text) is not None


def speaks_of_transformers(data: bytes) -> bool:
    """Whether a file's bytes can have to do with the library itself."""
    return _SPEAKS_OF_TRANSFORMERS.search(data) is not None


def makes_tracked(text: str) -> bool:
    """Whether code may bring something into being that the flow tracks."""
    return _MAKES.search(text) is not None


def touches_tracked(text: str) -> bool:
    """Whether code may do something to a cache that it is not given but finds on an object."""
    return _TOUCHES.search(text) is not None


def is_cache_name(name: str) -> bool:
    """Whether a parameter, attribute or key of this name is taken for a KV cache unless something contradicts."""
    return _UNMISTAKABLE.search(name) is not None and _ABOUT_A_CACHE.search(name) is None


def used_as_cache(text: str) -> frozenset[str]:
    """The dotted names that some use in `text` gives away as KV caches."""
    return frozenset(found[1] or found[2] for found in _USED_AS_CACHE.finditer(text))


def annotation_denies(text: str) -> bool:
    """Whether an annotation that names no cache class says that the thing is something else."""
    return _NOT_A_CACHE.search(text) is not None
