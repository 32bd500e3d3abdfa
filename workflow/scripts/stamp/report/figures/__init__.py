"""Figures of a study: a module each, with ``draw(data) -> (Figure, its table)``."""
