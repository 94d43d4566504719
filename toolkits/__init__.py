"""Kernels and devices: one file a toolkit, `core/` holds types, judge, processes and profilers."""
