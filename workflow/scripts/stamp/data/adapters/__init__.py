"""One adapter module a data set: from its own layout to the index."""
