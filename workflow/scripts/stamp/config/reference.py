"""What is written from the declarations: schemas for editors, the tables of config/README.md.

After a change of a declaration: ``python -m stamp.config.reference``.
"""

from __future__ import annotations

import json
import re
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from stamp.config import datasets, load_blocks, plan, study_file, zoo
from stamp.config.documents import Section
from stamp.config.registries import stress_changes
from stamp.core.shipped import ROOT

README = ROOT / "config" / "README.md"
SCHEMAS = ROOT / "workflow" / "schemas"

FILES: dict[str, type[BaseModel]] = {
    "config": plan.ConfigFile,
    "datasets": datasets.DatasetsFile,
    "study": study_file.StudyFile,
    "zoo": zoo.ZooFile,
}
SOURCES: dict[str, type[Section]] = {
    get_args(one.model_fields["source"].annotation)[0]: one
    for one in get_args(get_args(load_blocks.LoadBlock)[0])
}
TABLES: dict[str, type[Section]] = {
    "config": plan.ConfigFile,
    "inference": plan.InferenceSettings,
    "study": study_file.StudyFile,
    "source": study_file.SourceSettings,
    "preprocessing": load_blocks.PreprocessingBlock,
    "pairs": study_file.PairSettings,
    "calibration": study_file.CalibrationSettings,
    "extra_outputs": study_file.ExtraOutputSettings,
    "stress": study_file.StressSettings,
    "statistics": study_file.StatisticsSettings,
    "target": study_file.TargetSettings,
    "model": zoo.ZooEntry,
    "weights": load_blocks.PublishedWeights,
    "recipe": load_blocks.FinetuneRecipe,
    "dataset": datasets.DatasetEntry,
    "file": datasets.RemoteFile,
}
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def schema(name: str) -> str:
    """The JSON Schema of one kind of file.

    Without defaults: Snakemake's own validation would write them into the configuration.
    """
    found = _tidied(FILES[name].model_json_schema())
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _tidied(node: Any) -> Any:
    """A schema without what editors have no use for: defaults, titles, `null` of optional keys."""
    if isinstance(node, list):
        return [_tidied(one) for one in node]
    if not isinstance(node, dict):
        return node
    kinds = [one for one in node.get("anyOf", []) if one != {"type": "null"}]
    if len(kinds) == 1:
        node = {**kinds[0], **{key: value for key, value in node.items() if key != "anyOf"}}
    if "patternProperties" in node:
        node = {**node, "additionalProperties": False}
    dropped = {"default", "absent", "discriminator"}
    dropped |= {key for key in ("dependentRequired", "minProperties") if not node.get(key)}
    if isinstance(node.get("title"), str):
        dropped.add("title")
    return {key: _tidied(value) for key, value in node.items() if key not in dropped}


def readme(text: str) -> str:
    """The README with its marked tables written anew."""
    return MARKED.sub(lambda found: found[1] + table(found[2]) + found[3], text)


def table(name: str) -> str:
    """A Markdown table of keys, what they mean, and what holds where they are absent."""
    if name == "sources":
        return "".join(_source_table(source, block) for source, block in SOURCES.items())
    if name == "changes":
        rows = [f"| `{change}` | {what} |" for change, what in stress_changes.changes().items()]
        return "\n".join(["| change | what it does |", "| --- | --- |", *rows, ""])
    return _table(TABLES[name])


def _table(declaration: type[BaseModel], without: tuple[str, ...] = ()) -> str:
    rows = ["| key | meaning | when absent |", "| --- | --- | --- |"]
    for key, field in declaration.model_fields.items():
        if key not in without:
            rows.append(f"| `{key}` | {field.description} | {_absent(field)} |")
    return "\n".join([*rows, ""])


def _source_table(source: str, block: type[Section]) -> str:
    """The keys of one kind of model; those that say where weights are from have their own table."""
    shared = issubclass(block, load_blocks.PublishedWeights)
    weights = tuple(load_blocks.PublishedWeights.model_fields) if shared else ()
    more = " Its weights: see below." if shared else ""
    title = (block.__doc__ or "").strip()
    rows = _table(block, ("source", "preprocessing", *weights))
    return f"\n#### `source: {source}`\n\n{title}{more}\n\n{rows}"


def _absent(field: FieldInfo) -> str:
    """What holds where a key is absent, in words."""
    if field.is_required():
        return "required"
    extra = field.json_schema_extra
    if isinstance(extra, dict) and "absent" in extra:
        return str(extra["absent"])
    value = field.default
    if value is None or value in ("", [], {}):
        return "none" if value is not None else ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else f"`{value}`"


def main() -> None:
    """Write the schemas and the README's tables."""
    for name in FILES:
        (SCHEMAS / f"{name}.schema.json").write_text(schema(name))
    README.write_text(readme(README.read_text()))


if __name__ == "__main__":
    main()
