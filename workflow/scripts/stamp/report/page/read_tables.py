"""The files of a finished study, read for its page."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from stamp import __version__
from stamp.core.artifacts import check_metadata, read_json, read_table
from stamp.report.analyses.baselines import table as baselines
from stamp.report.analyses.regret import table as regret
from stamp.report.analyses.robustness import table as robustness
from stamp.report.card import Scoring
from stamp.report.page.study_page import StudyFacts, StudyTables

PACKAGES = ("numpy", "polars", "scipy", "snakemake")


def read_tables(files: Any, study: str, params: Any) -> StudyTables:
    """The tables that a job's inputs name; those that the study does not have are left out."""
    names, pairs = {"model": pl.String}, {}
    for model, path in zip(params.models, files.pairs, strict=True):
        record = read_json(path)
        check_metadata(path, record, {"model": model, "study": study})
        pairs[model] = record
    return StudyTables(
        leaderboard=read_table(files.leaderboard, study=study),
        scores=read_table(files.scores, study=study),
        outcomes=read_table(files.outcomes, study=study),
        correlations=pl.read_csv(files.correlations, infer_schema_length=None),
        outranks=pl.read_csv(files.outranks, infer_schema_length=None, schema_overrides=names),
        baselines=pl.read_csv(files.baselines, schema=baselines.TABLE) if files.baselines else None,
        robustness=(
            pl.read_csv(files.robustness, schema=robustness.MODELS) if files.robustness else None
        ),
        regret=pl.read_csv(files.regret, schema=regret.TABLE) if files.regret else None,
        training=dict(zip(params.trained, map(read_json, files.training), strict=True)),
        pairs=pairs,
        thumbnails=read_table(files.thumbnails, study=study) if files.thumbnails else None,
        sentences={
            name: Path(path).read_text().strip()
            for name, path in zip(params.analyses, files.analyses, strict=True)
        },
        metadata={model: record.pop("made_with") for model, record in pairs.items()},
    )


def study_facts(params: Any, results: Path) -> StudyFacts:
    """What the page says of how the study was made, with the versions at hand."""
    facts = params.facts
    name, seed = facts["study"], params.seed
    return StudyFacts(
        study=name,
        texts=facts["texts"],
        configuration=yaml.safe_dump(facts["configuration"], sort_keys=False, allow_unicode=True),
        command=f"snakemake --cores 8 --resources gpu=1 --config 'studies=[{name}]' seed={seed}",
        seed=seed,
        versions={"stamp": __version__, **{package: version(package) for package in PACKAGES}},
        made_images=facts["made_images"],
        frozen=facts["frozen"],
        scoring=Scoring(seed=seed, **facts["scoring"]),
        results=str(results),
        index="../index.html",
    )
