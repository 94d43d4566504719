"""Readers of profiler output: pure functions from recorded text to a ProfileReport."""
