"""Output formats, one module each; they know nothing but diagnostics."""
