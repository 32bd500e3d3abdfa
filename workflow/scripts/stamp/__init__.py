"""STAMP: rank image classifiers from source images alone."""

__version__ = "0.1.0"
