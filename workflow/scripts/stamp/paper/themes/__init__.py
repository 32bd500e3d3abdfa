"""The claims of the paper by theme, one module each."""
