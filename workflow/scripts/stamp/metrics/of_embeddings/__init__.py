"""Measures of embeddings: their shape, their labels, their distance from another domain."""
