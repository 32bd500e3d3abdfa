"""What a study can name: analyses, metrics, extra outputs, sources of models; text only."""
