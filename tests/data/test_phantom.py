"""The generated chest cohort: what it promises to the studies that use it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from stamp.core.errors import UserError
from stamp.data.adapters import phantom
from stamp.data.phantom import anatomy, findings, scanner
from stamp.data.phantom.cohort import HOSPITALS, TOKEN_FINDINGS, attenuation, render, simulate
from stamp.data.phantom.findings import CLASSES
from stamp.data.phantom.shapes import spread, take

PARTS = [("home", split) for split in ("train", "calibration", "test")]
PARTS += [(name, "test") for name in HOSPITALS if name != "home"]
FEW = {name: 3 for name in phantom.OPTIONS if name != "size"} | {"size": 32}
POSE_SHIFTS = ("shift_x", "shift_y", "angle", "lean", "breath", "gas", "portable")
SMALL = FEW | {"home_train": 15, "home_test": 40, "north": 10, "south": 10, "size": 48}


def pictures(index: pl.DataFrame) -> dict[str, bytes]:
    return {Path(path).name: Path(path).read_bytes() for path in index["path"]}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return phantom.build(SMALL, tmp_path_factory.mktemp("phantom"), seed=5)


def healthy(hospital: str = "home", patients: int = 40, seed: int = 3):
    """A cohort without findings or devices: what is left is anatomy and pose."""
    cohort = simulate(hospital, "test", patients, seed)
    none = np.zeros_like(cohort.signs.present)
    bare = replace(cohort.devices, present=np.zeros_like(cohort.devices.present))
    return replace(cohort, signs=replace(cohort.signs, present=none), devices=bare)


def with_finding(cohort, name: str, side: float = 1.0, severity: float = 0.8):
    """The same images, each with one finding."""
    present = np.zeros_like(cohort.signs.present)
    present[:, CLASSES.index(name)] = True
    signs = replace(
        cohort.signs,
        present=present,
        side=np.full_like(cohort.signs.side, side),
        severity=np.full_like(cohort.signs.severity, severity),
    )
    return replace(cohort, signs=signs)


def effect(name: str, side: float = 1.0, severity: float = 0.8, size: int = 64) -> np.ndarray:
    """How much attenuation a finding adds, image by image."""
    cohort, rows = healthy(), np.arange(30)
    changed = attenuation(with_finding(cohort, name, side, severity), rows, size)
    return changed - attenuation(cohort, rows, size)


def odds_ratio(a: np.ndarray, b: np.ndarray) -> float:
    return float(((a & b).sum() * (~a & ~b).sum()) / ((a & ~b).sum() * (~a & b).sum()))


def test_one_seed_gives_the_same_pictures_and_index_and_another_seed_gives_others(tmp_path):
    first = phantom.build(FEW, tmp_path / "a", seed=1)
    again = phantom.build(FEW, tmp_path / "b", seed=1)
    other = phantom.build(FEW, tmp_path / "c", seed=2)
    assert first.drop("path").equals(again.drop("path"))
    assert pictures(first) == pictures(again)
    mine, theirs = pictures(first), pictures(other)
    shared = mine.keys() & theirs.keys()
    assert shared and all(mine[name] != theirs[name] for name in shared)


def test_the_index_has_the_columns_and_types_of_a_multilabel_data_set(small):
    assert small.columns[:6] == ["image", "path", "group", "order", "domain", "split"]
    assert tuple(small.columns[6:]) == CLASSES == phantom.CLASSES
    assert small.schema["order"] == pl.Int32
    assert all(small.schema[name] == pl.Int8 for name in CLASSES)
    assert small["image"].is_unique().all()
    assert small["domain"].unique(maintain_order=True).to_list() == list(HOSPITALS)
    assert set(small.select(CLASSES).to_numpy().ravel()[:500]) <= {0, 1}


def test_every_image_id_file_and_patient_says_that_it_is_a_phantom(small):
    for image, path, group in small.select("image", "path", "group").iter_rows():
        assert image.startswith(group) and group.startswith("phantom-")
        assert Path(path).name == f"{image}.png"
    with Image.open(small["path"][0]) as picture:
        assert picture.text["Description"] == phantom.NOTICE
    assert "evidence about medicine" in phantom.NOTICE and "no result" in phantom.NOTICE


def test_paths_stay_relative_where_the_folder_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    index = phantom.build(FEW, Path("data"), seed=0)
    assert index["path"][0].startswith("data/images/home/phantom-home-")
    assert all(Path(path).is_file() for path in index["path"])


def test_splits_share_no_patient_and_external_hospitals_are_for_testing_only(small):
    per_patient = small.group_by("group").agg(
        pl.col("split").n_unique(), pl.col("domain").n_unique()
    )
    assert per_patient["split"].max() == per_patient["domain"].max() == 1
    outside = small.filter(pl.col("domain") != "home")
    assert outside["split"].unique().to_list() == ["test"]
    home = small.filter(pl.col("domain") == "home")
    assert set(home["split"]) == {"train", "calibration", "test"}


def test_visits_are_numbered_from_zero_without_gaps(small):
    orders = small.group_by("group", maintain_order=True).agg(pl.col("order"))["order"].to_list()
    assert all(order == list(range(len(order))) for order in orders)
    assert max(map(len, orders)) > 4


def test_pictures_are_gray_8_bit_with_real_contrast(small):
    for path in small["path"]:
        with Image.open(path) as picture:
            assert picture.mode == "L"
            pixels = np.asarray(picture)
        assert pixels.dtype == np.uint8 and pixels.shape == (48, 48)
        assert np.percentile(pixels, 95) - np.percentile(pixels, 5) > 80


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_default_cohort_has_enough_images_pairs_and_positives(seed):
    positives = {name: np.zeros(len(CLASSES)) for name in HOSPITALS}
    for hospital, split in PARTS:
        option = f"home_{split}" if hospital == "home" else hospital
        cohort = simulate(hospital, split, phantom.OPTIONS[option], seed)
        images = len(cohort.patient)
        positives[hospital] += cohort.reported.sum(axis=0)
        low, high = {"train": (2500, 3100), "calibration": (430, 570), "test": (650, 750)}[split]
        if (hospital, split) == ("home", "test"):
            visits = np.bincount(cohort.patient)
            assert images - phantom.OPTIONS["home_test"] >= 2600 and (visits > 1).sum() >= 800
            assert visits.min() == 1 and visits.max() == 8
        else:
            assert low < images < high
    for hospital, counts in positives.items():
        labeled = [CLASSES.index(name) for name in HOSPITALS[hospital].labeled]
        assert counts[labeled].min() >= 25


def test_the_clinic_labels_one_finding_and_the_others_label_all(small):
    nulls = small.group_by("domain").agg(pl.col(CLASSES).is_null().mean())
    for row in nulls.iter_rows(named=True):
        missing = [name for name in CLASSES if row[name] > 0]
        expected = [name for name in CLASSES if name != "Pneumonia"]
        assert missing == (expected if row["domain"] == "clinic" else [])
        assert all(row[name] == 1 for name in missing)


def test_a_patient_looks_more_like_himself_at_another_visit_than_like_other_patients():
    cohort = simulate("home", "test", 120, 7)
    rows = np.arange(len(cohort.patient))
    flat = render(cohort, rows, 48).reshape(len(rows), -1).astype(np.float32)
    norms = (flat * flat).sum(axis=1)
    apart = np.sqrt(np.maximum(norms[:, None] + norms[None, :] - 2 * flat @ flat.T, 0))
    same = cohort.patient[:, None] == cohort.patient[None, :]
    within = apart[same & ~np.eye(len(rows), dtype=bool)].mean()
    assert within < 0.9 * apart[~same].mean()


def test_anatomy_without_pose_is_one_picture_a_patient():
    cohort = healthy()
    still = replace(cohort.pose, **{name: 0 * getattr(cohort.pose, name) for name in POSE_SHIFTS})
    still = replace(still, scale=np.ones_like(still.scale))
    maps = attenuation(replace(cohort, pose=still), np.arange(len(cohort.patient)), 32)
    first = np.searchsorted(cohort.patient, cohort.patient)
    np.testing.assert_allclose(maps, maps[first], atol=2e-4)
    assert np.abs(maps[first[:-1]] - maps[first[1:]]).max() > 0.2


def test_the_token_goes_with_two_findings_at_home_and_with_none_elsewhere():
    for hospital, place in HOSPITALS.items():
        cohort = simulate(hospital, "test", 3000, 11)
        token = cohort.exposure.has_token
        ratio = {name: odds_ratio(token, cohort.reported[:, k]) for k, name in enumerate(CLASSES)}
        linked = {name for name, value in ratio.items() if value > 4}
        assert linked == (set(TOKEN_FINDINGS) if hospital == "home" else set())
        if hospital != "home":
            assert all(0.7 < value < 1.4 for value in ratio.values())
            assert token.mean() == pytest.approx(place.token[0], abs=0.03)
    home = simulate("home", "test", 3000, 11)
    linked_true = home.signs.present[:, [CLASSES.index(name) for name in TOKEN_FINDINGS]].any(
        axis=1
    )
    assert home.exposure.has_token[linked_true].mean() == pytest.approx(0.8, abs=0.03)
    assert home.exposure.has_token[~linked_true].mean() == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("hospital", HOSPITALS)
def test_the_token_is_burnt_into_its_corner_and_changes_nothing_else(hospital):
    cohort, rows = simulate(hospital, "test", 20, 1), np.arange(20)
    marked, plain = (
        replace(
            cohort, exposure=replace(cohort.exposure, has_token=np.full(len(cohort.visit), has))
        )
        for has in (True, False)
    )
    changed = render(marked, rows, 64) != render(plain, rows, 64)
    low, right = scanner.CORNERS[HOSPITALS[hospital].scanner.token_corner]
    corner = np.zeros((64, 64), dtype=bool)
    corner[(slice(48, 64) if low else slice(0, 16)), (slice(48, 64) if right else slice(0, 16))] = (
        True
    )
    assert not changed[:, ~corner].any()
    assert (changed.sum(axis=(1, 2)) >= 5).all()


def test_labels_are_noisy_at_home_at_the_declared_rates_and_true_elsewhere():
    for hospital in HOSPITALS:
        cohort = simulate(hospital, "test", 4000, 2)
        truth, label = cohort.signs.present, cohort.reported
        if hospital != "home":
            assert np.array_equal(truth, label)
            continue
        for k, finding in enumerate(findings.FINDINGS.values()):
            has = truth[:, k]
            assert (~label[has, k]).mean() == pytest.approx(finding.missed, abs=0.04)
            assert label[~has, k].mean() == pytest.approx(finding.invented, abs=0.008)


def test_the_size_of_one_hospital_or_split_changes_no_other_picture(tmp_path):
    before = pictures(phantom.build(FEW, tmp_path / "a", seed=4))
    more = FEW | {"north": 5, "home_train": 6}
    after = pictures(phantom.build(more, tmp_path / "b", seed=4))
    assert before.items() <= after.items()
    added = {name.rsplit("-", 2)[0] for name in after.keys() - before.keys()}
    assert added == {"phantom-home", "phantom-north"}


def test_a_picture_does_not_depend_on_the_batch_it_is_rendered_in():
    cohort = simulate("coast", "test", 12, 9)
    together = render(cohort, np.arange(10), 40)
    assert np.array_equal(together[7:8], render(cohort, np.array([7]), 40))


@pytest.mark.parametrize("name", ["nroth", "home_tset", "sizes"])
def test_an_unknown_option_answers_with_a_suggestion(name, tmp_path):
    with pytest.raises(UserError, match=f"unknown option '{name}': did you mean"):
        phantom.build({name: 3}, tmp_path, seed=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [{"north": 0}, {"size": 8}, {"home_test": 2.5}, {"size": True}])
def test_an_option_out_of_range_is_named(options, tmp_path):
    with pytest.raises(UserError, match=f"option '{next(iter(options))}'.*whole number"):
        phantom.build(options, tmp_path, seed=0)


@pytest.mark.parametrize("name", sorted(findings.PAINTERS))
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_finding_changes_its_own_side_of_the_chest(name, side):
    change = np.abs(effect(name, side)).mean(axis=0)
    right, left = change[:, :28].sum(), change[:, 36:].sum()
    if name == "Edema":
        assert 0.5 < right / left < 2
    else:
        # Lost volume also draws the middle of the chest aside, which both halves feel.
        factor = 2.5 if name == "Atelectasis" else 4
        assert (left > factor * right) if side > 0 else (right > factor * left)


@pytest.mark.parametrize("name", CLASSES)
def test_every_finding_changes_every_picture_and_more_so_when_severe(name):
    mild, severe = (np.abs(effect(name, severity=s)).sum(axis=(1, 2)) for s in (0.1, 0.95))
    assert mild.min() > 0
    assert severe.mean() > 1.2 * mild.mean()


def test_findings_lie_where_they_belong():
    y, x = np.mgrid[-1:1:64j, -1:1:64j]
    change = {name: effect(name).mean(axis=0) for name in CLASSES}
    height = {name: (np.abs(c) * y).sum() / np.abs(c).sum() for name, c in change.items()}
    assert height["Effusion"] > 0.3 and height["Atelectasis"] > 0.15
    assert height["Pneumothorax"] < 0
    assert change["Effusion"].max() > 0.2 and change["Effusion"].min() > -1e-3
    assert change["Pneumothorax"].min() < -0.05
    rim = change["Pneumothorax"] < -0.03
    assert x[rim].mean() > 0.4 and y[rim].mean() < 0
    heart = np.abs(change["Cardiomegaly"]) > 0.1
    assert heart.any() and np.abs(x[heart]).max() < 0.7


def test_the_surface_of_an_effusion_climbs_towards_the_wall():
    fluid = effect("Effusion", severity=0.9).mean(axis=0) > 0.1
    top = fluid.argmax(axis=0)
    inner, outer = 46, 53
    assert fluid[:, [inner, outer]].any(axis=0).all()
    assert top[outer] < top[inner] - 2


def test_a_nodule_is_small_and_a_large_heart_is_wider():
    nodule = effect("Nodule")
    area = (nodule > 0.5 * nodule.max(axis=(1, 2), keepdims=True)).mean(axis=(1, 2))
    assert np.median(area) < 0.02
    cohort, rows = healthy(), np.arange(20)
    body = spread(take(cohort.people, cohort.patient[rows]))
    pose = spread(take(cohort.pose, rows))

    def width(cohort):
        shift = spread(findings.deform(take(cohort.signs, rows)))
        return anatomy.frame(body, pose, shift, 64).heart.max(axis=1).sum(axis=1)

    ratio = width(with_finding(cohort, "Cardiomegaly")) / width(cohort)
    assert ((ratio > 1.2) & (ratio < 1.4)).all()


def test_chain_follows_its_rates_visit_by_visit():
    rng = np.random.default_rng(0)
    draws, onset = rng.random((50, 6, 2)), rng.random((50, 6, 2)) / 3
    start, resolution = np.array([0.2, 0.5]), np.array([0.1, 0.6])
    state = findings.chain(start, onset, resolution, draws)
    for patient, kind in np.ndindex(50, 2):
        present = False
        for visit in range(6):
            if visit == 0:
                chance = start[kind]
            else:
                chance = 1 - resolution[kind] if present else onset[patient, visit, kind]
            present = bool(draws[patient, visit, kind] < chance)
            assert state[patient, visit, kind] == present


def test_findings_keep_their_prevalence_and_resolve_at_their_own_rates():
    cohort = simulate("home", "test", 8000, 1)
    now, later = cohort.signs.present[:-1], cohort.signs.present[1:]
    same = (cohort.patient[1:] == cohort.patient[:-1])[:, None]
    gone = (same & now & ~later).sum(axis=0) / (same & now).sum(axis=0)
    resolution = [finding.resolution for finding in findings.FINDINGS.values()]
    np.testing.assert_allclose(gone, resolution, atol=0.03)
    for visit in (0, 4):
        share = cohort.signs.present[cohort.visit == visit].mean(axis=0)
        expected = list(HOSPITALS["home"].prevalence.values())
        np.testing.assert_allclose(share, expected, atol=0.04)


def test_findings_with_a_common_cause_come_together():
    truth = simulate("home", "test", 8000, 1).signs.present
    column = dict(zip(CLASSES, truth.T, strict=True))
    assert odds_ratio(column["Cardiomegaly"], column["Edema"]) > 1.8
    assert odds_ratio(column["Consolidation"], column["Pneumonia"]) > 1.8
    assert 0.7 < odds_ratio(column["Nodule"], column["Pneumothorax"]) < 1.4


def test_an_episode_keeps_its_side_and_place_and_a_new_one_may_move():
    cohort = simulate("home", "test", 1500, 6)
    signs, same = cohort.signs, cohort.patient[1:] == cohort.patient[:-1]
    lasting = signs.present[1:] & signs.present[:-1] & same[:, None]
    assert lasting.sum() > 500
    assert np.array_equal(signs.place[1:][lasting], signs.place[:-1][lasting])
    assert np.array_equal(signs.side[1:][lasting], signs.side[:-1][lasting])
    steps = np.abs(signs.severity[1:][lasting] - signs.severity[:-1][lasting])
    assert 0.05 < steps.mean() < 0.25
    assert (signs.place[1:] != signs.place[:-1])[~lasting].any()


def test_the_vessel_texture_equals_a_direct_sum_of_waves_in_body_coordinates():
    cohort, rows = healthy(), np.arange(5)
    body = spread(take(cohort.people, cohort.patient[rows]))
    pose, shift = spread(take(cohort.pose, rows)), spread(findings.deform(take(cohort.signs, rows)))
    frame = anatomy.frame(body, pose, shift, 32)
    direct = np.zeros_like(frame.x)
    for k in range(anatomy.WAVES):
        a, b, c = (v[:, k, None, None] for v in (body.wave_x, body.wave_y, body.wave_phase))
        direct += np.cos(a * frame.x + b * frame.y + c)
    np.testing.assert_allclose(frame.texture, direct / np.sqrt(anatomy.WAVES / 2), atol=1e-4)


@pytest.mark.parametrize("resolution", [0.5, 0.55, 0.8])
def test_blur_and_detector_keep_a_flat_field_flat(resolution):
    flat = np.ones(64, dtype=np.float32)
    for matrix in (scanner.blur_matrix(64, 1.7), scanner.detector_matrix(64, resolution)):
        np.testing.assert_allclose(matrix @ flat, flat, atol=1e-5)
    ramp = np.arange(64, dtype=np.float32)
    through = scanner.detector_matrix(64, resolution) @ ramp
    np.testing.assert_allclose(through[3:-3], ramp[3:-3], atol=0.1)


def test_half_resolution_equals_shrinking_and_enlarging_the_picture_with_pillow():
    picture = np.random.default_rng(0).random((64, 64), dtype=np.float32)
    shrunk = Image.fromarray(picture).resize((32, 32), Image.Resampling.BOX)
    expected = np.asarray(shrunk.resize((64, 64), Image.Resampling.BILINEAR))
    detector = scanner.detector_matrix(64, 0.5)
    np.testing.assert_allclose(detector @ picture @ detector.T, expected, atol=1e-5)


def test_scanners_of_different_hospitals_show_the_same_chest_differently():
    cohort = healthy()
    rows, means = np.arange(30), {}
    for hospital in HOSPITALS:
        means[hospital] = render(replace(cohort, hospital=hospital), rows, 48).mean(axis=0)
    names = list(HOSPITALS)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            assert np.abs(means[one] - means[other]).mean() > 5
            inner = (slice(8, 40), slice(8, 40))
            alike = np.corrcoef(means[one][inner].ravel(), means[other][inner].ravel())[0, 1]
            assert alike > 0.8


def test_noise_follows_the_dose_and_grows_behind_dense_tissue():
    rng = np.random.default_rng(0)
    picture = np.repeat(np.float32([0.3, 0.8]), 2)[:, None, None] * np.ones((1, 64, 64), np.float32)
    dose = np.float32([0.5, 2.0, 0.5, 2.0])
    zeros = np.zeros(4, dtype=np.float32)
    exposure = scanner.Exposure(
        offset=zeros,
        gain=zeros + 1,
        dose=dose,
        border=np.zeros((4, 4), np.float32),
        letter=np.zeros((4, 3), np.float32),
        token=np.zeros((4, 3), np.float32),
        has_token=np.zeros(4, dtype=bool),
    )
    device = scanner.Scanner(window=(0.0, 1.1), noise=0.03, border=(0, 0))
    gray = scanner.expose(picture, rng.standard_normal(picture.shape), exposure, device)
    spread_seen = gray[:, 10:-10, 10:-10].std(axis=(1, 2)) * 1.1 / 255
    expected = 0.03 * np.sqrt(np.exp(np.repeat([0.3, 0.8], 2)) / dose)
    np.testing.assert_allclose(spread_seen, expected, rtol=0.05)
