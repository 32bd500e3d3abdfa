"""The loaders, one per kind of model; every job that runs or trains a model comes by here."""

import gc

# Importing torch and timm makes some hundred thousand objects that live on; walking them again and
# again for garbage is a quarter of the start-up of every job that runs a model. No function for use
# from Python gets here: whoever imports `stamp` keeps their own thresholds.
gc.set_threshold(100_000, 50, 100)
