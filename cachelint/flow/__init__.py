"""The abstract interpreter: what values user code can hold, and the events that rules judge."""
