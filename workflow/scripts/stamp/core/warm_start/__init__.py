"""Jobs of one run on one CPU machine, forked from a process that has imported the large packages.

Starting torch, polars or matplotlib takes seconds, most jobs of a small study take less.
:mod:`parent` is the process that forks, :mod:`scripts` lets Snakemake start its scripts there.
"""
