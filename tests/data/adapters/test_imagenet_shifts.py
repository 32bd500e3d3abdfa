"""ImageNet-A, -R and -C: classes by folder, renditions, domains, the fixed subset, bad input."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from official import imagenet as official
from official import imagenet_a as official_a
from official import imagenet_c as official_c
from official import imagenet_r as official_r
from PIL import Image

from stamp.config.labels import imagenet_classes as source
from stamp.core.errors import UserError
from stamp.data.adapters import imagenet, imagenet_a, imagenet_c, imagenet_r
from stamp.data.archives import unpack
from stamp.data.download import complete
from stamp.data.views import check_index
from stamp.images.reading import open_image

TARGETS = {
    "imagenet_a": (imagenet_a, official_a, 7_500),
    "imagenet_r": (imagenet_r, official_r, 30_000),
}
FEW = ("gaussian_noise", "snow", "pixelate", "spatter")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("targets")
    for name, (_, maker, _) in TARGETS.items():
        maker.make(home / name, per_class=3, seed=2, size=24)
    official_c.make(home / "imagenet_c", 3, 4, 32, FEW, (1, 3, 5))
    return {name: home / name for name in (*TARGETS, "imagenet_c")}


@pytest.fixture
def corrupted(made: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the small ImageNet-C that a test may change."""
    return Path(shutil.copytree(made["imagenet_c"], tmp_path / "imagenet_c"))


def found(root: Path, **options: object) -> pl.DataFrame:
    chosen = {"corruptions": list(FEW), "severities": [1, 3, 5], "partial": True, **options}
    return imagenet_c.index(chosen, root, seed=1)


def mistake(adapter, root: Path, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        adapter.index({"partial": True, **options}, root, 1)
    text = str(caught.value)
    assert "\n" not in text
    return text


def walked(root: Path) -> dict[str, str]:
    """The class of every picture below a folder, by its path."""
    places = [Path(folder) / name for folder, _, names in os.walk(root) for name in names]
    return {str(place): place.parent.name for place in places if place.name != "README.txt"}


@pytest.mark.parametrize("name", TARGETS)
def test_every_picture_is_indexed_under_its_folders_class(made, name):
    adapter, _, _ = TARGETS[name]
    index = check_index(adapter.index({"partial": True}, made[name], 1), name)
    assert dict(index.select("path", "group").iter_rows()) == walked(made[name])
    wnids = source.classes()
    assert [wnids[label] for label in index["label"]] == index["group"].to_list()
    assert index.schema["label"] == pl.Int16
    assert set(index["label"]) <= set(source.shipped(f"{name}_indices"))
    assert set(index["domain"]) == {name} and set(index["split"]) == {"test"}
    ids = [f"{Path(path).parent.name}/{Path(path).stem}" for path in index["path"]]
    assert index["image"].to_list() == ids


def test_the_names_of_imagenet_a_hold_spaces_and_points_and_stay_whole(made):
    index = imagenet_a.index({"partial": True}, made["imagenet_a"], 1)
    pattern = r"^n\d{8}/0\.\d{6}_[a-z ]+ _ [a-z ]+_0\.\d{7}$"
    assert index["image"].str.contains(pattern).all()


def test_the_rendition_is_the_first_word_of_the_name(made):
    index = imagenet_r.index({"partial": True}, made["imagenet_r"], 1)
    first = [Path(path).name.split("_")[0] for path in index["path"]]
    assert index["rendition"].to_list() == first
    assert set(first) <= set(official_r.RENDITIONS) and len(set(first)) > 3


def test_a_picture_of_another_name_has_no_rendition(made, tmp_path):
    root = Path(shutil.copytree(made["imagenet_r"], tmp_path / "r"))
    (root / "imagenet-r" / "n01443537" / "art_0.jpg").rename(
        root / "imagenet-r" / "n01443537" / "fish.jpg"
    )
    index = imagenet_r.index({"partial": True}, root, 1)
    assert index.filter(pl.col("rendition").is_null())["image"].to_list() == ["n01443537/fish"]


@pytest.mark.parametrize("name", TARGETS)
def test_the_folder_itself_may_be_the_data_sets(made, name):
    adapter, _, _ = TARGETS[name]
    inside = made[name] / name.replace("_", "-")
    whole = adapter.index({"partial": True}, made[name], 1)
    assert adapter.index({"partial": True}, inside, 1).equals(whole)


@pytest.mark.parametrize("name", TARGETS)
def test_the_archive_gives_what_was_packed_and_is_asked_to_be_unpacked(made, tmp_path, name):
    adapter, maker, _ = TARGETS[name]
    root = Path(shutil.copytree(made[name], tmp_path / name))
    before = adapter.index({"partial": True}, root, 1)
    (archive,) = maker.archives(root)
    assert f"run `tar -xf {archive.name}`" in mistake(adapter, root)
    unpack(archive, root)
    assert adapter.index({"partial": True}, root, 1).equals(before)


@pytest.mark.parametrize("name", TARGETS)
def test_a_copy_with_other_than_the_published_number_of_images_is_refused(made, monkeypatch, name):
    adapter, _, count = TARGETS[name]
    there = len(walked(made[name]))
    with pytest.raises(UserError, match=f"{there} images .* whole set has {count:,}"):
        adapter.index({}, made[name], 1)
    monkeypatch.setattr(adapter, "IMAGES", there)
    assert len(adapter.index({}, made[name], 1)) == there


@pytest.mark.parametrize("name", TARGETS)
def test_a_class_that_the_set_does_not_have_is_named(made, tmp_path, name):
    adapter, _, _ = TARGETS[name]
    root = Path(shutil.copytree(made[name], tmp_path / name))
    wrong = root / name.replace("_", "-") / "n01440764"
    wrong.mkdir()
    text = mistake(adapter, root)
    assert str(wrong) in text and "200 classes" in text and "another class of ImageNet" in text


def test_classes_by_name_instead_of_wordnet_id_are_refused(made, tmp_path):
    root = Path(shutil.copytree(made["imagenet_a"], tmp_path / "a"))
    (root / "imagenet-a" / "goldfinch").mkdir()
    assert "WordNet ids like n01440764" in mistake(imagenet_a, root)


@pytest.mark.parametrize("name", TARGETS)
def test_an_empty_folder_says_where_the_set_is(tmp_path, name):
    adapter, _, _ = TARGETS[name]
    archive = f"people.eecs.berkeley.edu/~hendrycks/{name.replace('_', '-')}.tar"
    assert archive in mistake(adapter, tmp_path)
    assert "no such folder" in mistake(adapter, tmp_path / "nowhere")
    assert "unknown option 'images'" in mistake(adapter, tmp_path, images=3)


def test_the_fifteen_corruptions_and_four_extra_come_in_the_published_archives():
    assert len(imagenet_c.CORRUPTIONS) == len(set(imagenet_c.CORRUPTIONS)) == 15
    assert set(imagenet_c.EXTRA) == {"speckle_noise", "gaussian_blur", "spatter", "saturate"}
    assert imagenet_c.OPTIONS["corruptions"] == list(imagenet_c.CORRUPTIONS)
    assert imagenet_c.ARCHIVES["weather"] == ("snow", "frost", "fog", "brightness")


def test_every_corrupted_picture_is_indexed_though_one_folder_is_listed(made):
    index = check_index(found(made["imagenet_c"]), "imagenet_c")
    assert dict(index.select("path", "group").iter_rows()) == walked(made["imagenet_c"])
    wnids = source.classes()
    for row in index.iter_rows(named=True):
        corruption, severity, wnid, name = Path(row["path"]).parts[-4:]
        assert row["domain"] == f"{corruption}-{severity}"
        assert row["image"] == f"{corruption}-{severity}/{Path(name).stem}"
        assert row["group"] == wnid == wnids[row["label"]]
    assert index.schema["label"] == pl.Int16 and set(index["split"]) == {"test"}


def test_the_kind_of_a_domain_is_what_stands_before_its_last_hyphen(made):
    domains = found(made["imagenet_c"])["domain"].unique()
    kinds = Counter(domain.rpartition("-")[0] for domain in domains)
    assert kinds == dict.fromkeys(FEW, 3)


def test_corruptions_and_severities_come_in_the_order_asked(made):
    index = found(made["imagenet_c"], corruptions=["snow", "pixelate"], severities=[5, 1])
    expected = ["snow-5", "snow-1", "pixelate-5", "pixelate-1"]
    assert index["domain"].unique(maintain_order=True).to_list() == expected


def test_a_folder_named_after_the_archive_is_looked_into(corrupted):
    before = found(corrupted).drop("path")
    for archive, inside in (("noise", "gaussian_noise"), ("extra", "spatter")):
        (corrupted / archive).mkdir()
        (corrupted / inside).rename(corrupted / archive / inside)
    index = found(corrupted)
    assert index.drop("path").equals(before)
    assert set(index["path"]) == set(walked(corrupted))


def test_the_archives_of_zenodo_give_what_was_packed(corrupted):
    before = found(corrupted)
    packed = official_c.archives(corrupted)
    assert [file.name for file in packed] == [
        "noise.tar",
        "weather.tar",
        "digital.tar",
        "extra.tar",
    ]
    assert "run `tar -xf noise.tar`" in mistake(imagenet_c, corrupted)
    for file in packed:
        unpack(file, corrupted)
    assert found(corrupted).equals(before)


def test_corrupted_pictures_are_square_and_of_the_validation_images(made, tmp_path):
    official.make(tmp_path, per_class=5, seed=4, size=32, layout="folders")
    clean = imagenet.index({"partial": True}, tmp_path, 1).select("image", "group", clean="path")
    index = found(made["imagenet_c"], corruptions=["pixelate"], severities=[1])
    index = index.with_columns(image=pl.col("image").str.split("/").list.last())
    both = index.join(clean, on=["image", "group"])
    assert len(both) == len(index) == 36
    for path in index["path"]:
        with Image.open(path) as opened:
            assert opened.size == (32, 32) and opened.format == "JPEG"
    near, far = _distances(both["path"].to_list(), both["clean"].to_list())
    assert near < 0.5 * far


def _distances(corrupted: list[str], clean: list[str]) -> tuple[float, float]:
    """Mean distance of each corrupted picture to its own clean one, and to the others."""
    a, b = (
        np.stack([np.asarray(open_image(path, 3).resize((6, 6)), float) for path in paths])
        for paths in (corrupted, clean)
    )
    distance = np.sqrt(((a[:, None] - b) ** 2).mean(axis=(2, 3, 4)))
    own = np.eye(len(a), dtype=bool)
    return float(distance[own].mean()), float(distance[~own].mean())


def test_stronger_corruption_is_farther_from_the_picture(made):
    index = found(made["imagenet_c"], corruptions=["gaussian_noise"])
    pixels = {
        severity: np.stack(
            [np.asarray(open_image(path, 3), float) for path in index.filter(domain=domain)["path"]]
        )
        for severity, domain in ((s, f"gaussian_noise-{s}") for s in (1, 3, 5))
    }
    rough = [np.abs(np.diff(pixels[severity], axis=2)).mean() for severity in (1, 3, 5)]
    assert rough[0] < rough[1] < rough[2]


names = st.dictionaries(
    st.integers(1, 50_000).map(official.name), st.sampled_from(official.CLASSES), min_size=1
)


@settings(max_examples=60, deadline=None)
@given(names)
def test_the_fixed_order_takes_classes_in_turn_and_knows_no_order_of_files(images):
    stems = sorted(images, key=lambda stem: (images[stem], stem))
    ranked = imagenet_c.ranked([images[stem] for stem in stems], [f"{s}.JPEG" for s in stems])
    backwards = imagenet_c.ranked(
        [images[stem] for stem in stems[::-1]], [f"{s}.JPEG" for s in stems[::-1]]
    )
    assert ranked.equals(backwards)
    order = ranked.sort("rank")
    assert order["rank"].to_list() == list(range(len(stems)))
    sizes = Counter(images.values())
    taken: Counter[str] = Counter()
    for group in order["group"]:
        taken[group] += 1
        # No class is two ahead of one that still has an image to give.
        left = [taken[other] for other in sizes if taken[other] < sizes[other]]
        assert not left or taken[group] <= min(left) + 1


@settings(max_examples=30, deadline=None)
@given(names, st.data())
def test_the_order_of_images_that_stay_is_not_changed_by_images_that_go(images, data):
    """Within a class: who is first among all is first among any that are left with it."""
    kept = data.draw(st.sets(st.sampled_from(sorted(images)), min_size=1))

    def order(stems: set[str], group: str) -> list[str]:
        groups = [images[stem] for stem in sorted(stems)]
        ranked = imagenet_c.ranked(groups, [f"{stem}.JPEG" for stem in sorted(stems)])
        return ranked.filter(group=group).sort("rank")["stem"].to_list()

    for group in official.CLASSES:
        whole = order(set(images), group)
        assert order(kept, group) == [stem for stem in whole if stem in kept]


def test_a_subset_holds_the_same_images_in_every_domain_and_is_part_of_larger_ones(made):
    chosen = {}
    for count in (5, 12, 20, 36):
        index = found(made["imagenet_c"], images=count)
        domains = index.with_columns(stem=pl.col("image").str.split("/").list.last()).group_by(
            "domain"
        )
        sets = {frozenset(rows["stem"]) for _, rows in domains}
        assert len(sets) == 1 and len(index) == count * 12
        (chosen[count],) = sets
        assert sorted(set(index["rank"])) == list(range(count))
        sizes = Counter(index.filter(domain="snow-3")["group"]).values()
        assert max(sizes) - (min(sizes) if count >= 12 else 0) <= 1
    assert chosen[5] < chosen[12] < chosen[20] < chosen[36]
    assert found(made["imagenet_c"]).equals(found(made["imagenet_c"], images=36))


def test_the_subset_does_not_depend_on_the_seed(made):
    options = {"corruptions": list(FEW), "severities": [1], "partial": True, "images": 10}
    one, two = (imagenet_c.index(options, made["imagenet_c"], seed) for seed in (1, 2))
    assert one.equals(two)


def test_the_documented_subset_of_the_real_names_stays_what_it_is():
    """The first images of the order, worked out from the documented rule by hand."""
    import hashlib

    stems = [official.name(number) for number in range(1, 1001)]
    groups = [official.CLASSES[number % 12] for number in range(1, 1001)]

    def place(stem: str) -> int:
        digest = hashlib.blake2b(f"imagenet_c:{stem}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big")

    rounds = []
    for group in set(groups):
        members = [stem for stem, other in zip(stems, groups, strict=True) if other == group]
        rounds += [
            (turn, place(stem), stem) for turn, stem in enumerate(sorted(members, key=place))
        ]
    expected = [stem for _, _, stem in sorted(rounds)]
    ranked = imagenet_c.ranked(groups, [f"{stem}.JPEG" for stem in stems])
    assert ranked.sort("rank")["stem"].to_list() == expected


def test_an_image_that_only_another_folder_lacks_is_found_missing_later(corrupted):
    index = found(corrupted)
    gone = Path(index.filter(domain="snow-3")["path"][7])
    gone.unlink()
    assert found(corrupted).equals(index)
    with pytest.raises(UserError, match=f"1 of 432 images are missing .*{gone.name}"):
        complete("imagenet_c", index["path"].to_list(), corrupted, None, "open", imagenet_c.HELP)


def test_a_corruption_that_is_not_there_is_named_with_its_archive(corrupted, tmp_path):
    text = mistake(imagenet_c, corrupted, corruptions=["fog"])
    assert "no folder fog" in text and "weather.tar" in text and "zenodo.org" in text
    text = mistake(imagenet_c, corrupted, corruptions=["snow"], severities=[1, 2])
    assert "snow has no folder '2'" in text and "weather.tar" in text
    assert "no such folder" in mistake(imagenet_c, tmp_path / "nowhere")


def test_part_of_imagenet_c_is_refused_unless_it_is_meant(made, monkeypatch):
    text = mistake(
        imagenet_c, made["imagenet_c"], corruptions=["snow"], severities=[1], partial=False
    )
    assert "36 images" in text and "50,000" in text
    monkeypatch.setattr(imagenet_c, "IMAGES", 36)
    assert len(found(made["imagenet_c"], partial=False)) == 432


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"corruptions": ["gausian_noise"]}, "did you mean 'gaussian_noise'"),
        ({"corruptions": "snow"}, "expected a list"),
        ({"corruptions": []}, "expected a list"),
        ({"severities": [0]}, "one or more of 1, 2, 3, 4, 5"),
        ({"severities": [True]}, "one or more of 1, 2, 3, 4, 5"),
        ({"severities": ["1"]}, "one or more of 1, 2, 3, 4, 5"),
        ({"severities": 3}, "one or more of 1, 2, 3, 4, 5"),
        ({"severities": []}, "one or more of 1, 2, 3, 4, 5"),
        ({"images": 0}, "from 1 to 50000"),
        ({"images": 37, "corruptions": ["snow"], "severities": [1]}, "has 36"),
        ({"image": 10}, "did you mean 'images'"),
        ({"partial": None}, "expected true or false"),
    ],
)
def test_a_wrong_option_of_imagenet_c_is_named_with_what_is_right(made, options, message):
    assert message in mistake(imagenet_c, made["imagenet_c"], **options)


def test_a_folder_that_is_no_class_of_imagenet_is_named(corrupted):
    (corrupted / "gaussian_noise" / "1" / "n00000000").mkdir()
    text = mistake(imagenet_c, corrupted, corruptions=list(FEW), severities=[1])
    assert "n00000000" in text and "1000 classes" in text
