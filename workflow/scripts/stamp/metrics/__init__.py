"""Metrics that STAMP is compared with, one module for each kind of input that they need."""
