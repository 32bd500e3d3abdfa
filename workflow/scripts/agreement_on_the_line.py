"""Agreement on the line: estimates for each target from all models together."""

import numpy as np
import polars as pl

from stamp.core.artifacts import write_table
from stamp.core.errors import run
from stamp.metrics.agreement_on_the_line import LINES, line_table
from stamp.metrics.decisions import read_decisions
from stamp.metrics.inputs import OutputSettings, TargetDomains, columns_of


def main(smk):
    params, files, study = smk.params, smk.input, smk.wildcards.study
    classes, tables = params.classes, [pl.DataFrame(schema=LINES)]
    every = OutputSettings(classes, np.ones(len(classes), dtype=bool), params.task, 1.0)
    for view, file in zip(params.targets, files.views, strict=True):
        scored = params.scored[view]
        columns = columns_of(scored, every.merging(scored["merge"]), file)
        domains = pl.read_parquet(file, columns=["domain"])["domain"]
        decisions = (
            (model, read_decisions(found, view, model=model, study=study))
            for model, found in zip(params.models, files.decisions, strict=True)
        )
        kinds = len(classes) if params.task == "multiclass" else 2
        tables.append(line_table(view, TargetDomains(domains, columns), decisions, kinds))
    write_table(smk.output[0], pl.concat(tables), {"study": study})


if __name__ == "__main__":
    run(main, snakemake)  # noqa: F821
