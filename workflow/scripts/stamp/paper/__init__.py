"""What the paper prints, recomputed from what the paper prints; no image is read."""
