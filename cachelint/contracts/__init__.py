"""What each release of transformers does: looked up by release range, never by user code."""
