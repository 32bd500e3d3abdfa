"""STAMP: rank image classifiers from source images alone."""

import gc

__version__ = "0.1.0"

# Importing torch and timm makes some hundred thousand objects that live on; walking them again and
# again for garbage is a quarter of the start-up of every job that runs a model.
gc.set_threshold(100_000, 50, 100)
