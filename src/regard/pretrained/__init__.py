"""Readers of other libraries' checkpoints: their weights under our names."""
