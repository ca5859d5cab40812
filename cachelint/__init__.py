"""cachelint: a linter and codemod for code that uses the KV cache of Hugging Face transformers."""

__version__ = "0.1.0"
