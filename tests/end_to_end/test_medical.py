"""A miniature of the chest X-ray study: five official layouts, downloads, six kinds of model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from official import chexpert, mimic_cxr, nih, rsna, vindr
from project import ROOT, Project
from safetensors.numpy import load_file
from servers import Server
from sklearn.metrics import roc_auc_score

from stamp.config.registries.metrics import metrics_of
from stamp.core.artifacts import read_json
from stamp.data.label_tables import CLASSES

SIZE, SECRET = 64, "s3cr3t-of-the-user"
RESNET = {"layers": [1, 1, 1, 1], "channels": [8, 16, 24, 32]}
VIT = {"img_size": SIZE, "embed_dim": 32, "depth": 2, "num_heads": 2}
DINO = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 56,
    "patch_size": 14,
}
RECIPE = {
    "stage1": {"epochs": 1, "learning_rate": 0.01},
    "stage2": {"epochs": 2, "learning_rate": 0.01, "backbone_learning_rate": 0.003},
    "batch": 16,
}
SOME = ["Effusion", "Edema", "Cardiomegaly", "Pneumothorax", "Pneumonia"]
MODELS = ("resnet", "cbam", "published", "probe", "txv", "some")
PAPERS = ("published", "txv")  # of these, the models of the study by the paper's reading
GRAY = {"mean": [0.5], "std": [0.25]}


def weights(folder: Path) -> dict[str, Path]:
    """Weights files as their publishers make them, of small random networks."""
    import torch
    from safetensors.torch import save_file

    from stamp.models.torchvision_ops import timm

    torch.manual_seed(0)
    folder.mkdir(parents=True)
    made = {}

    def keep(name: str, module: Any) -> None:
        made[name] = folder / f"{name}.safetensors"
        save_file({key: part.contiguous() for key, part in module.state_dict().items()}, made[name])

    keep("resnet", timm.create_model("resnet18", num_classes=10, in_chans=1, **RESNET))
    keep("vit", timm.create_model("vit_tiny_patch16_224", num_classes=14, in_chans=1, **VIT))
    keep("some", timm.create_model("resnet18", num_classes=5, in_chans=1, **RESNET))
    import torchxrayvision
    import transformers

    keep("dino", transformers.Dinov2Model(transformers.Dinov2Config(**DINO)))
    keep("txv", torchxrayvision.models.DenseNet(num_classes=18, in_channels=1))
    return made


def zoo(files: dict[str, Path], url: str) -> dict[str, Any]:
    about = {
        "family": "small",
        "superfamily": "CNN",
        "objective": "CE-supervised",
        "regime": "NIH-CNN",
        "trained_on": ["train"],
    }
    tiny = {"source": "finetune", "arch": "resnet18", "arch_args": RESNET, "recipe": RECIPE, **GRAY}
    vit = {"source": "finetune", "arch": "vit_tiny_patch16_224", "arch_args": VIT, **GRAY}
    backbone = {"transformers": "Dinov2Model", "config": DINO, "file": str(files["dino"])}
    every = {"mean": [0.5] * 3, "std": [0.25] * 3}
    loads = {
        "resnet": {**tiny, "initial": {"none": True}},
        "cbam": {**tiny, "attention": "cbam", "initial": {"file": str(files["resnet"])}},
        "published": {**vit, "initial": {"none": True}, "checkpoint": {"url": url}},
        "probe": {
            "source": "probe",
            "backbone": {**backbone, **every},
            "preprocessing": {"size": 56},
        },
        "txv": {
            "source": "torchxrayvision",
            "weights": "densenet121-res224-nih",
            "file": str(files["txv"]),
            "preprocessing": {"crop": 1.0},
        },
        "some": {
            "source": "checkpoint",
            "arch": "resnet18",
            "arch_args": RESNET,
            "file": str(files["some"]),
            "outputs": SOME,
            **GRAY,
        },
    }
    entries: dict[str, Any] = {
        key: {"label": key.upper(), **about, "load": load} for key, load in loads.items()
    }
    entries["txv"] |= {"trained_on": ["train", "test"], "contamination": ["chexpert"]}
    shipped = yaml.safe_load((ROOT / "config/zoo/medical.yaml").read_text())
    entries["autoencoder"] = next(each for each in shipped.values() if "unavailable" in each)
    return entries


def study() -> dict[str, Any]:
    """The shipped study with fewer pairs and images, and smaller pictures."""
    document = yaml.safe_load((ROOT / "config/studies/medical.yaml").read_text())
    document["preprocessing"]["size"] = SIZE
    document["pairs"] |= {"max_pairs": 60, "n_pairs": 50, "also": {"labeled": 10, "changed": 10}}
    document["calibration"]["n_images"] = 20
    document["extra_outputs"] = {"images": 12}
    document["stress"]["images"] = 24
    document["zoo"] = ["mini"]
    document["statistics"] = {
        "permutations": 200,
        "resamples": 200,
        "minimum": 3,
        "selections": {"four": list(MODELS[:4])},
    }
    return document


def paper_study() -> dict[str, Any]:
    """The shipped study by the paper's reading, with two models and few analyses."""
    document = yaml.safe_load((ROOT / "config/studies/medical_paper.yaml").read_text())
    small = study()
    for key in ("preprocessing", "pairs", "calibration", "zoo", "statistics", "extra_outputs"):
        document[key] = small[key]
    shipped = yaml.safe_load((ROOT / "config/studies/medical_paper.yaml").read_text())["pairs"]
    document["pairs"] |= {key: shipped[key] for key in ("split", "mode", "order")}
    document["statistics"] = {**small["statistics"], "mixed": True}
    document |= {"models": list(PAPERS), "metrics": ["entropy"], "analyses": ["baselines"]}
    return document


def datasets(free: str, gated: str) -> dict[str, Any]:
    """The shipped data sets, with loopback servers in the place of their hosts."""
    shipped = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())
    own = ("nih", "vindr", "chexpert", "rsna", "mimic_cxr")
    read = [key for key in shipped if key.endswith("_paper")]
    chosen = {key: shipped[key] for key in (*own, *read)}
    tables = ["Data_Entry_2017_v2020.csv", "train_val_list.txt", "test_list.txt"]
    archives = [{"name": f"images_00{part}.tar.gz", "unpack": True} for part in (1, 2)]
    chosen["nih"]["files"] = [*archives, *({"name": name} for name in tables)]
    chosen["nih"]["options"] = {"val": 0.2, "calibration": 0.2}
    for key, entry in chosen.items():
        url = f"{free if key == 'nih' else gated}/{key.removesuffix('_paper')}"
        entry["download"] = entry["access"] != "form"
        for file in entry.get("files", []):
            file.pop("md5", None)
            file["url"] = f"{url}/{file['name']}"
        if "images_url" in entry:
            entry["images_url"] = url
    return chosen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the hosts serve, freely or to those who sign in, and CheXpert as a user has it."""
    base = tmp_path_factory.mktemp("medical")
    free, gated = base / "free", base / "gated"
    nih.make(free / "nih", 110, 0, SIZE)
    nih.archives(free / "nih")
    vindr.make(gated / "vindr", 90, 1, SIZE)
    mimic_cxr.make(gated / "mimic_cxr", 60, 2, SIZE)
    chexpert.make(base / "chexpert", 60, 4, SIZE)
    rsna.make(base / "rsna", 80, 3, SIZE)
    tested = sorted((free / "nih/test_list.txt").read_text().split())
    trained = sorted((free / "nih/train_val_list.txt").read_text().split())
    mapping = rsna.mapping(base / "rsna", [*tested[:60], *trained[:20]])
    (gated / "rsna").mkdir()
    mapping.rename(gated / "rsna" / mapping.name)
    archive = gated / "rsna" / "rsna-pneumonia-detection-challenge"
    shutil.make_archive(str(archive), "zip", base / "rsna")
    return base


@dataclass(frozen=True)
class Done:
    """The finished miniature, what its run said, and the server that asks who one is."""

    project: Project
    text: str
    gated: Server

    def read(self, name: str) -> pl.DataFrame:
        path = self.project.result(f"medical/{name}")
        return (
            pl.read_csv(path, infer_schema_length=None)
            if path.suffix == ".csv"
            else (pl.read_parquet(path))
        )

    def logits(self, view: str, model: str) -> np.ndarray:
        file = self.project.result(f"medical/logits/{view}/{model}.safetensors")
        return load_file(file)["logits"]

    def ranks(self, view: str, model: str) -> np.ndarray:
        """Of a model's scores on a target, as they are kept for the agreement with others."""
        file = self.project.result(f"medical/decisions/{model}.safetensors")
        return load_file(file)[f"{view}/target_ranks"]


@pytest.fixture(scope="module")
def done(folder: Path) -> Iterator[Done]:
    """The miniature, run once by real Snakemake against real servers."""
    files = weights(folder / "free" / "weights")
    (folder / "home").mkdir()
    netrc = folder / "home" / ".netrc"
    settings = {
        "HOME": str(folder / "home"),
        "TORCH_HOME": str(folder / "torch"),
        "KAGGLE_USERNAME": "user",
        "KAGGLE_KEY": SECRET,
        "STAMP_CHEXPERT_ROOT": str(folder / "chexpert"),
    }
    with (
        Server(folder / "free") as free,
        Server(folder / "gated", auth=("user", SECRET)) as gated,
        pytest.MonkeyPatch.context() as patch,
    ):
        netrc.write_text(f"machine 127.0.0.1 login user password {SECRET}\n")
        netrc.chmod(0o600)
        for name, value in settings.items():
            patch.setenv(name, value)
        studies = {"medical": study(), "medical_paper": paper_study()}
        project = Project.create(folder / "project", studies)
        addresses = [server.url("").rstrip("/") for server in (free, gated)]
        project.write("zoo/mini.yaml", zoo(files, f"{addresses[0]}/weights/vit.safetensors"))
        project.write("datasets.yaml", datasets(*addresses))
        yield Done(project, project.finish().text, gated)


def test_every_model_is_ranked_and_the_one_without_a_classifier_is_listed(done: Done) -> None:
    board = done.read("leaderboard.csv")
    assert sorted(board["model"]) == sorted([*MODELS, "autoencoder"])
    scored = board.filter(pl.col("model") != "autoencoder")
    assert scored["stamp"].null_count() == 0
    assert {"stamp_labeled", "stamp_changed", "matched:vindr", "matched:rsna"} <= set(board.columns)
    gone = board.filter(pl.col("model") == "autoencoder").row(0, named=True)
    assert gone["stamp"] is None and gone["flags"].startswith("not available: ")
    flags = dict(board.select("model", "flags").iter_rows())
    assert "leakage" in flags["txv"] and "trained or selected on chexpert" in flags["txv"]
    assert "leakage" not in (flags["resnet"] or "")
    assert "no output for Atelectasis, Consolidation, Emphysema" in flags["some"]


def test_a_score_is_what_a_loop_over_its_pairs_gives(done: Done) -> None:
    view, pairs = done.read("views/source.parquet"), done.read("pairs.parquet")
    row = {image: number for number, image in enumerate(view["image"])}
    for model in ("probe", "some"):
        z = done.logits("source", model).astype(float)
        p = 1 / (1 + np.exp(-z[:, ~np.isnan(z).all(axis=0)]))
        mean = {}
        for kind in ("temporal", "random"):
            first = pairs.filter(pl.col("kind") == kind).head(50)
            gaps = [p[row[a]] - p[row[b]] for a, b in first.select("a", "b").iter_rows()]
            mean[kind] = np.mean([gap @ gap for gap in gaps])
        found = done.read("leaderboard.csv").filter(pl.col("model") == model)["sampled_stamp"][0]
        assert found == pytest.approx(1 - mean["temporal"] / (mean["random"] + 1e-8), abs=1e-9)


def test_pairs_are_consecutive_visits_of_test_patients(done: Done) -> None:
    pairs = done.read("pairs.parquet").filter(pl.col("kind") == "temporal")
    index = pl.read_parquet(done.project.result("datasets/nih/index.parquet"))
    where = {row["image"]: row for row in index.iter_rows(named=True)}
    for a, b in pairs.select("a", "b").iter_rows():
        first, second = where[a], where[b]
        assert first["group"] == second["group"]
        assert second["order"] - first["order"] == 1
        assert first["split"] == second["split"] == "test"


def test_nodules_and_masses_are_one_class_of_vindr(done: Done) -> None:
    view = done.read("views/vindr.parquet")
    table = done.read("statistics/evaluations.csv")
    for model in ("resnet", "some"):
        rows = table.filter((pl.col("model") == model) & (pl.col("view") == "vindr"))
        values = {row["class"]: row for row in rows.iter_rows(named=True)}
        assert values["Mass"]["reason"] == "not labeled"
        if model == "some":  # neither part is among its outputs
            assert values["Nodule/Mass"]["reason"] == "the model has no output for it"
            assert (done.ranks("vindr", model)[:, -1] == 0).all()
            continue
        z = done.logits("vindr", model)[
            :, [list(CLASSES).index(name) for name in ("Mass", "Nodule")]
        ]
        truth = view["Nodule/Mass"].to_numpy()
        assert values["Nodule/Mass"]["value"] == pytest.approx(roc_auc_score(truth, z.max(axis=1)))
        # it has a part in the agreement with other models, too
        expected = np.unique(z.max(axis=1), return_inverse=True)[1] + 1
        np.testing.assert_array_equal(done.ranks("vindr", model)[:, -1], expected)


def test_the_paper_s_targets_are_other_labels_of_the_same_pictures(done: Done) -> None:
    found = {
        key: pl.read_parquet(done.project.result(f"medical_paper/views/{key}.parquet"))
        for key in ("vindr", "chexpert", "mimic")
    }
    assert set(found["chexpert"]["split"]) == {"train"}
    seven = found["chexpert"].select(set(CLASSES) & set(found["chexpert"].columns))
    assert not any(0 < seven[name].null_count() < len(seven) for name in seven.columns)
    vindr = found["vindr"]
    labeled = [name for name in (*CLASSES, "Nodule/Mass") if vindr[name].null_count() < len(vindr)]
    seen = vindr.select(pl.any_horizontal(pl.col(labeled) == 1)).to_series()
    assert set(vindr["split"]) == {"train", "test"}
    assert seen.filter(vindr["split"] == "train").all()
    assert not seen.filter(vindr["split"] == "test").all()
    table = pl.read_csv(
        done.project.result("medical_paper/statistics/evaluations.csv"), infer_schema_length=None
    )
    rows = table.filter((pl.col("view") == "mimic") & (pl.col("model") == "published"))
    known = set(rows.drop_nulls("value")["class"]) - {"macro"}
    assert known and "Effusion" not in known
    board = pl.read_csv(done.project.result("medical_paper/leaderboard.csv"))
    flags = dict(board.select("model", "flags").iter_rows())
    assert "trained or selected on chexpert" in flags["txv"], "though its labels are others"
    baselines = pl.read_csv(done.project.result("medical_paper/analyses/baselines.csv"))
    assert "mixed" in baselines["models"]


def test_the_paper_s_groups_and_checks_come_out_of_a_run(done: Done) -> None:
    groups = done.read("analyses/identifiability.csv")
    assert set(groups.drop_nulls("group")["group"]) == {"family", "superfamily"}
    assert "stamp_labeled" in groups["outcome"]
    selected = done.read("analyses/backbones.csv").filter(pl.col("backbone") == "four")
    assert set(selected.filter(pl.col("models") == "all")["n"]) == {4}
    cosines = done.read("analyses/cosines_models.csv")
    assert cosines["delta"].null_count() == 0 and set(cosines["model"]) == set(MODELS)
    row = done.read("analyses/cosines.csv").row(0, named=True)
    assert row["n"] == 6 and row["count"] == (cosines["difference"] > 0).sum()


def test_the_source_metric_beside_a_target_is_over_the_targets_classes(done: Done) -> None:
    table, outcomes = (
        done.read("statistics/evaluations.csv"),
        done.read("statistics/outcomes.parquet"),
    )
    known = table.filter(pl.col("value").is_not_null() & (pl.col("class") != "macro"))
    for target in ("vindr", "rsna"):
        rows = outcomes.filter(pl.col("outcome") == f"source:{target}")
        for model, value in rows.select("model", "value").iter_rows():
            own = known.filter(pl.col("model") == model)
            classes = own.filter(pl.col("view") == target)["class"].to_list()
            source = own.filter((pl.col("view") == "source") & pl.col("class").is_in(classes))
            assert source["value"].mean() == (None if value is None else pytest.approx(value))
    merged = table.filter((pl.col("domain") == "merged:") & (pl.col("model") == "resnet"))
    assert merged["view"].to_list() == ["source"] and merged["class"].to_list() == ["Nodule/Mass"]


def test_rsna_has_no_training_image_and_is_not_in_the_mean(done: Done) -> None:
    index = pl.read_parquet(done.project.result("datasets/rsna/index.parquet"))
    assert len(index) == 60 and set(index["overlap"]) == {"test"}
    outcomes = done.read("statistics/outcomes.parquet").filter(pl.col("model") == "resnet")
    value = dict(outcomes.select("outcome", "value").iter_rows())
    others = [value[name] for name in ("vindr", "chexpert", "mimic")]
    assert value["mean"] == pytest.approx(np.mean(others))
    main = done.read("statistics/main.csv")
    notes = main.filter(pl.col("target") == "RSNA")["note"].to_list()
    assert all(note.startswith("the source's own images under other labels") for note in notes)
    assert "class-matched STAMP" in main.filter(pl.col("target") == "RSNA")["score"]
    assert "uncontaminated" in main["models"]


def test_fine_tuning_leaves_its_curve_and_no_checkpoint(done: Done) -> None:
    assert not list(done.project.result("medical/checkpoints").glob("*.pt"))
    curve = done.read("figures/training.csv")
    assert set(curve["label"]) == {"RESNET", "CBAM"}
    assert done.project.result("medical/figures/training.png").stat().st_size > 10_000


def test_every_kind_of_model_gives_all_extra_outputs_and_every_metric_has_a_row(
    done: Done,
) -> None:
    for model in MODELS:
        manifest = read_json(done.project.result(f"medical/extra_outputs/{model}.json"))[
            "extra_outputs"
        ]
        assert not [kind for kind, entry in manifest.items() if "reason" in entry], model
        table = done.read(f"metrics/{model}.parquet")
        wanted = metrics_of("multilabel")
        assert list(dict.fromkeys(table["metric"])) == [metric.name for metric in wanted]
        assert table.filter(pl.col("value").is_null() & pl.col("reason").is_null()).is_empty()
        known = set(table.drop_nulls("value")["metric"])
        assert {
            "aug_composite",
            "embedding_instability",
            "fd_frechet",
            "fd_target",
            "stress_metric",
            "stress_stability",
            "tta_multi",
        } <= known


def test_nothing_is_done_twice_and_a_new_model_runs_its_branch_alone(done: Done) -> None:
    asked = len(done.gated.requests)
    assert not done.project.plan()
    assert len(done.gated.requests) == asked
    zoo = done.project.read("zoo/mini.yaml")
    zoo["again"] = {**zoo["resnet"], "label": "AGAIN"}
    done.project.write("zoo/mini.yaml", zoo)
    jobs = done.project.plan()
    del zoo["again"]
    done.project.write("zoo/mini.yaml", zoo)
    views = ("source", "id", "vindr", "chexpert", "mimic", "rsna")
    assert {job for job in jobs if "again" in job and job.startswith(("fine", "logits"))} == {
        "finetune medical again",
        *(f"logits medical {view} again" for view in views),
    }
    apart = ("collect", "correlate", "main_table", "leaderboard", "figure", "training_figure")
    apart += (
        "timings",
        "agreement_on_the_line",
        "analysis",
        "pair_distances",
        "page",
        "index_page",
    )
    assert all("again" in job or job.startswith(apart) for job in jobs)


def test_the_user_s_secret_is_nowhere(done: Done) -> None:
    assert SECRET not in done.text
    for file in done.project.folder.rglob("*"):
        if file.is_file() and file.stat().st_size < 1_000_000:
            assert SECRET.encode() not in file.read_bytes(), file
