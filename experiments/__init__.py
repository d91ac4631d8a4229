"""Experiments: what takes hours and writes docs/results.md or data/runs."""
