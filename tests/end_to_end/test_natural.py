"""A miniature of the natural-image study: six official layouts, streaming, six models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from official import dollar_street, imagenet, imagenet_a, imagenet_c, imagenet_r, objectnet
from PIL import Image
from project import ROOT, Project
from safetensors.numpy import load_file
from scipy.special import softmax
from scipy.stats import spearmanr
from servers import Server

from stamp.config.labels.imagenet_classes import classes as wnids
from stamp.config.labels.imagenet_classes import number_of
from stamp.config.registries.metrics import metrics_of
from stamp.core.artifacts import read_json

NAMES = {
    "resnet": "test_resnet",
    "vit": "test_vit",
    "convnext": "test_convnext",
    "efficientnet": "test_efficientnet",
    "nfnet": "test_nfnet",
}
KINDS = {
    "boat": ("Boat", ("canoe", "submarine, pigboat, sub, U-boat")),
    "umbrella": ("Umbrella", ("umbrella",)),
    "tractor_toy": ("Tractor", ("tractor",)),
    "tape": ("Tape / duct tape", ()),
}
TOPICS = {
    ("boats",): ("canoe",),
    ("trams",): ("streetcar, tram, tramcar, trolley, trolley car",),
    ("umbrellas",): ("umbrella", "fountain"),
    ("family snapshots",): (),
}
CORRUPTIONS = ["contrast", "defocus_blur"]


def learn(folder: Path) -> dict[str, Path]:
    """Small networks, each trained a little on pictures of the miniature's classes."""
    import torch
    from safetensors.torch import save_file

    from stamp.models.torchvision_ops import timm

    folder.mkdir(parents=True)
    number, made = number_of(), {}
    targets = [number[wnid] for wnid in imagenet.CLASSES]
    pictures = [
        imagenet.picture(target, np.random.default_rng([7, turn]), 64).resize((64, 64))
        for turn in range(6)
        for target in targets
    ]
    pixels = np.stack([np.asarray(picture.convert("RGB")) for picture in pictures])
    images = (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.5
    labels = torch.tensor(targets * 6)
    for turn, (key, name) in enumerate(NAMES.items()):
        torch.manual_seed(turn)
        arguments = {"img_size": 64} if "vit" in name else {}
        network = timm.create_model(name, num_classes=1000, **arguments)
        optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
        for _ in range(2 + 3 * turn):
            loss = torch.nn.functional.cross_entropy(network(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        made[key] = folder / f"{key}.safetensors"
        state = {name: part.contiguous() for name, part in network.state_dict().items()}
        save_file(state, made[key])
    return made


def zoo(files: dict[str, Path]) -> dict[str, Any]:
    about = {"objective": "supervised", "regime": "IN-1k", "trained_on": []}
    pixels = {"size": 64, "channels": 3, "interpolation": "bicubic", "crop": 0.9}
    half = {"mean": [0.5] * 3, "std": [0.5] * 3}
    found: dict[str, Any] = {}
    for key, file in files.items():
        load = {
            "source": "timm",
            "name": NAMES[key],
            "file": str(file),
            "preprocessing": pixels,
            **half,
        }
        family = "ViT" if key == "vit" else "CNN" if key in ("resnet", "nfnet") else key
        found[key] = {"label": key, "family": family, **about, "load": load}
    headless = {**found["vit"]["load"], "head": "random"}
    found["headless"] = {**found["vit"], "label": "headless", "load": headless}
    found["headless"] |= {"objective": "SSL", "regime": "no head"}
    return found


def study() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "config/studies/natural.yaml").read_text())
    document["pairs"] |= {"max_pairs": 60, "n_pairs": 50, "n_pairs_sweep": [20, 40, 60]}
    document["calibration"]["n_images"] = 24
    document["extra_outputs"] = {"images": 12}
    document["stress"]["images"] = 12
    document["zoo"] = ["mini"]
    document["statistics"] = {"permutations": 200, "resamples": 200}
    return document


def datasets(url: str, homes: dict[str, Path]) -> dict[str, Any]:
    """The shipped data sets, the open ones from a loopback server, the others in their folders."""
    shipped = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())
    names = ("imagenet", "objectnet", "dollar_street", "imagenet_a", "imagenet_r", "imagenet_c")
    chosen = {key: shipped[key] for key in names}
    for key in ("imagenet", "imagenet_a", "imagenet_r", "imagenet_c"):
        chosen[key]["options"] = {"partial": True}
    chosen["imagenet_c"]["options"] |= {"corruptions": CORRUPTIONS, "images": 24}
    served = {"blur.tar", "digital.tar"}
    chosen["imagenet_c"]["files"] = [
        {"name": name, "unpack": True}
        for name in sorted(served)
        if (homes["served"] / "imagenet_c" / name).is_file()
    ]
    chosen["objectnet"]["download"] = True
    for key, entry in chosen.items():
        for file in entry.get("files", []):
            file.pop("md5", None)
            file["url"] = f"{url}/{key}/{file['name']}"
        if key in homes:
            entry["root"] = str(homes[key])
    return chosen


@dataclass(frozen=True)
class Done:
    """The finished miniature."""

    project: Project
    server: Server

    def read(self, name: str) -> pl.DataFrame:
        path = self.project.result(f"natural/{name}")
        if path.suffix == ".csv":
            return pl.read_csv(path, infer_schema_length=None)
        return pl.read_parquet(path)

    def logits(self, view: str, model: str) -> np.ndarray:
        return load_file(self.project.result(f"natural/logits/{view}/{model}.safetensors"))[
            "logits"
        ]

    def accuracy(self, view: str, model: str, name: str = "top1", domain: str = "all") -> float:
        table = self.read("statistics/evaluations.csv")
        rows = table.filter(
            (pl.col("view") == view)
            & (pl.col("model") == model)
            & (pl.col("class") == name)
            & (pl.col("domain") == domain)
        )
        return rows["value"][0]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    base = tmp_path_factory.mktemp("natural")
    served = base / "served"
    homes = {key: base / key for key in ("imagenet", "dollar_street")}
    imagenet.make(homes["imagenet"], 8, 0, 96)
    dollar_street.make(homes["dollar_street"], 60, 1, 96, TOPICS)
    objectnet.make(served / "objectnet", 5, 2, 96, KINDS)
    imagenet_a.make(served / "imagenet_a", 4, 0, 96)
    imagenet_r.make(served / "imagenet_r", 4, 0, 96)
    imagenet_c.make(served / "imagenet_c", 3, 0, 96, CORRUPTIONS, (1, 2, 3, 4, 5))
    for maker, key in (
        (objectnet, "objectnet"),
        (imagenet_a, "imagenet_a"),
        (imagenet_r, "imagenet_r"),
        (imagenet_c, "imagenet_c"),
    ):
        maker.archives(served / key)
    files = learn(base / "weights")
    with Server(served) as server:
        project = Project.create(base / "project", {"natural": study()})
        project.write("zoo/mini.yaml", zoo(files))
        url = server.url("").rstrip("/")
        project.write("datasets.yaml", datasets(url, {**homes, "served": served}))
        project.finish()
        yield Done(project, server)


def test_predictions_on_objectnet_are_right_within_their_set_and_without_the_border(
    done: Done,
) -> None:
    view = done.read("views/objectnet.parquet")
    accepted = view["accepted"].to_list()
    among = sorted({number for each in accepted for number in each})
    assert len(among) == 4  # canoe, submarine, umbrella, tractor; tape is no ImageNet class
    z = done.logits("objectnet", "nfnet")
    right = [among[row[among].argmax()] in each for row, each in zip(z, accepted, strict=True)]
    assert done.accuracy("objectnet", "nfnet") == pytest.approx(np.mean(right))
    every = [row.argmax() in each for row, each in zip(z, accepted, strict=True)]
    assert done.accuracy("objectnet", "nfnet", "top1_of_all") == pytest.approx(np.mean(every))
    pixels = np.load(next(done.project.result("natural/pixels/objectnet").glob("*.npy")))
    raw = np.asarray(Image.open(done.project.folder / view["path"][0]).convert("RGB"))
    assert (raw[0] == (255, 0, 0)).all()
    assert not (pixels[0].reshape(-1, 3) == (255, 0, 0)).all(axis=1).any()


def test_restricted_targets_are_scored_on_their_classes_and_so_is_the_source(done: Done) -> None:
    number = {wnid: place for place, wnid in enumerate(wnids())}
    listed = (ROOT / "resources/classes/imagenet_a.csv").read_text().split()[1:]
    among = np.array([number[wnid] for wnid in listed])
    labels = done.read("views/imagenet_a.parquet")["label"].to_numpy()
    z = done.logits("imagenet_a", "convnext")
    expected = np.mean(among[z[:, among].argmax(axis=1)] == labels)
    assert done.accuracy("imagenet_a", "convnext") == pytest.approx(expected)

    parts, truth = [], []
    for view in ("source", "id"):
        rows = done.read(f"views/{view}.parquet")
        keep = (rows["split"] == "test").to_numpy()
        parts.append(done.logits(view, "convnext")[keep])
        truth.append(rows["label"].to_numpy()[keep])
    z, labels = np.concatenate(parts), np.concatenate(truth)
    member = np.isin(labels, among)
    expected = np.mean(among[z[member][:, among].argmax(axis=1)] == labels[member])
    found = done.accuracy("source", "convnext", domain="among:imagenet_a")
    assert found == pytest.approx(expected)
    accepted = done.read("views/objectnet.parquet")["accepted"].explode().unique().drop_nulls()
    few = np.sort(accepted.to_numpy())
    member = np.isin(labels, few)
    expected = np.mean(few[z[member][:, few].argmax(axis=1)] == labels[member])
    found = done.accuracy("source", "convnext", domain="among:objectnet")
    assert found == pytest.approx(expected, nan_ok=True)

    outcomes = done.read("statistics/outcomes.parquet")
    models = outcomes["model"].unique(maintain_order=True).to_list()
    wide = {
        name: [part.filter(pl.col("model") == model)["value"][0] for model in models]
        for (name,), part in outcomes.group_by("outcome")
    }
    table = done.read("statistics/correlations.csv")
    row = table.filter(
        (pl.col("filter") == "all")
        & (pl.col("outcome") == "imagenet_a")
        & (pl.col("predictor") == "source_matched")
    )
    expected = spearmanr(wide["source:imagenet_a"], wide["imagenet_a"])[0]
    assert row["rho"][0] == pytest.approx(expected, nan_ok=True)


def test_imagenet_c_is_streamed_with_one_prediction_per_image(done: Done) -> None:
    folder = done.project.result("natural")
    assert not (folder / "pixels/imagenet_c").exists()
    assert not (folder / "logits/imagenet_c").exists()
    view = done.read("views/imagenet_c.parquet")
    assert len(view) == 2 * 5 * 24
    predictions = load_file(folder / "predictions/imagenet_c/resnet.safetensors")["predictions"]
    assert predictions.nbytes == 16 * len(view)
    right = predictions[:, 0] == view["label"].to_numpy()
    assert done.accuracy("imagenet_c", "resnet") == pytest.approx(right.mean())
    hard = (view["domain"] == "contrast-5").to_numpy()
    found = done.accuracy("imagenet_c", "resnet", domain="contrast-5")
    assert found == pytest.approx(right[hard].mean())


def test_a_streamed_target_has_estimates_at_the_temperature_and_lines(done: Done) -> None:
    folder, model = done.project.result("natural"), "nfnet"
    kept = load_file(folder / f"predictions/imagenet_c/{model}.safetensors")
    z = kept["top"] + kept["below"].astype(np.float32)
    assert len(z) == len(done.read("views/imagenet_c.parquet"))  # few images: all are in the sample
    t = read_json(folder / f"calibration/{model}.json")["value"]
    pool = done.read("views/source.parquet")["role"].to_numpy() == "pool"
    labels = done.read("views/source.parquet")["label"].to_numpy()[pool]
    p, q = (
        softmax(one.astype(float) / t, axis=1) for one in (done.logits("source", model)[pool], z)
    )
    right = p.argmax(axis=1) == labels
    found = done.read(f"metrics/{model}.parquet").filter(view="imagenet_c", domain="all")
    values = dict(found.select("metric", "value").iter_rows())
    doc = right.mean() + q.max(axis=1).mean() - p.max(axis=1).mean()
    assert t != 1 and values["doc"] == pytest.approx(doc, abs=1e-3)
    norm = np.linalg.norm(q, "nuc") / np.sqrt(min(q.shape) * len(q))
    assert values["nuclear_norm"] == pytest.approx(norm, rel=1e-3)
    reasons = dict(found.select("metric", "reason").iter_rows())
    assert "keeps no images" in reasons["dispersion"]
    decided = load_file(folder / f"decisions/{model}.safetensors")["imagenet_c/target"]
    assert (decided == kept["predictions"][:, 0]).all()
    lines = done.read("statistics/agreement_on_the_line.parquet").filter(view="imagenet_c")
    assert set(NAMES) <= set(lines["model"]) and "contrast-5" in set(lines["domain"])


def test_scores_are_of_the_temperature_scaled_softmax(done: Done) -> None:
    view, pairs = done.read("views/source.parquet"), done.read("pairs.parquet")
    row = {image: place for place, image in enumerate(view["image"])}
    board = done.read("leaderboard.csv").filter(pl.col("model") == "nfnet").row(0, named=True)
    p = softmax(done.logits("source", "nfnet").astype(float) / board["temperature"], axis=1)
    mean = {}
    for kind in ("class", "random"):
        first = pairs.filter(pl.col("kind") == kind).head(50).select("a", "b").iter_rows()
        mean[kind] = np.mean([np.sum((p[row[a]] - p[row[b]]) ** 2) for a, b in first])
    assert board["stamp"] == pytest.approx(1 - mean["class"] / (mean["random"] + 1e-8), abs=1e-9)


def test_a_model_without_a_head_is_excluded_by_accuracy_and_shown(done: Done) -> None:
    table = done.read("analyses/temperature_models.csv")
    row = table.filter(pl.col("model") == "headless").row(0, named=True)
    assert any("chance" in str(value) for value in row.values())
    assert "headless" in done.read("leaderboard.csv")["model"].to_list()


def test_every_analysis_has_its_table_and_sentence(done: Done) -> None:
    folder = done.project.result("natural/analyses")
    for name in study()["analyses"]:
        assert (folder / f"{name}.csv").is_file()
        assert (folder / f"{name}.txt").read_text().strip()
    kinds = set(done.read("analyses/corruptions.csv")["corruption"])
    assert {*CORRUPTIONS, "mean", "min", "max"} <= kinds


def test_every_kind_of_model_gives_all_extra_outputs_and_every_metric_has_a_row(
    done: Done,
) -> None:
    for model in NAMES:
        manifest = read_json(done.project.result(f"natural/extra_outputs/{model}.json"))[
            "extra_outputs"
        ]
        assert not [kind for kind, entry in manifest.items() if "reason" in entry], model
        table = done.read(f"metrics/{model}.parquet")
        wanted = metrics_of("multiclass")
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


def test_another_delta_runs_the_alarm_again_and_nothing_else(done: Done) -> None:
    delta = {"objectnet": 0.3}
    done.project.edit("studies/natural.yaml", lambda s: s["statistics"].update(delta=delta))
    jobs = done.project.plan()
    done.project.edit("studies/natural.yaml", lambda s: s["statistics"].pop("delta"))
    alarm = {"analysis natural alarm", "analysis_figure natural alarm"}
    assert set(jobs) == {*alarm, "page natural", "index_page"}
    assert not done.project.plan()


def test_more_pairs_to_score_at_need_no_forward_pass(done: Done) -> None:
    done.project.edit("studies/natural.yaml", lambda s: s["pairs"].update(n_pairs_sweep=[30, 60]))
    jobs = done.project.plan()
    done.project.edit(
        "studies/natural.yaml", lambda s: s["pairs"].update(n_pairs_sweep=[20, 40, 60])
    )
    assert jobs
    assert not [job for job in jobs if job.startswith(("logits", "predictions", "pixels", "pairs"))]
    assert not done.project.plan()
