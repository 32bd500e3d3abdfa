"""Models: where each kind comes from, and how it becomes a module from pixels to logits."""
