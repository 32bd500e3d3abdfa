"""Data sets: their folders, their downloads."""

from __future__ import annotations

import pytest
from configured import load, mistake
from naming import check_named


def test_an_unknown_adapter_is_suggested(files: dict) -> None:
    files["datasets.yaml"]["mnist"]["adapter"] = "mnits"
    assert "mnist: unknown adapter 'mnits': did you mean 'mnist'?" in mistake(files)


def test_a_folder_of_data_comes_from_its_entry_the_environment_or_the_data_folder(
    files: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"title": "t", "licence": "l", "citation": "c", "access": "form"}
    datasets = files["datasets.yaml"]
    datasets["nih-14"] = {"adapter": "nih", **texts}
    datasets["rsna"] = {"adapter": "rsna", **texts, "options": {"nih_lists": "{nih-14}"}}
    plan = load(files, data="images/")
    assert plan.datasets["nih-14"].root == "images/nih-14"
    assert plan.datasets["rsna"].options == {"nih_lists": "images/nih-14"}
    monkeypatch.setenv("STAMP_NIH_14_ROOT", "/mnt/nih")
    assert load(files).datasets["nih-14"].root == "/mnt/nih"
    assert load(files).datasets["rsna"].options == {"nih_lists": "/mnt/nih"}
    datasets["nih-14"]["root"] = "here"
    assert load(files).datasets["nih-14"].root == "here"


def test_an_address_with_a_password_is_refused_and_not_repeated(files: dict) -> None:
    entry = files["datasets.yaml"]["mnist"]
    entry["files"] = [{"name": "a.zip", "url": "https://user:secret@example.org/a.zip"}]
    said = mistake(files)
    assert said.startswith("config/datasets.yaml: mnist.files.0.url: ")
    assert said.endswith("an address may not hold a name or a password")
    del entry["files"]
    for address in ("https://me@example.org", "ftp://user:secret@example.org", "user:secret@host"):
        entry["images_url"] = address
        assert "images_url: " in mistake(files) and "secret" not in mistake(files)
    del entry["images_url"]
    entry["files"] = [{"name": "../a.zip", "url": "https://example.org/a.zip"}]
    check_named(mistake(files), "config/datasets.yaml: mnist: files", "'../a.zip'")


def test_open_data_is_downloaded_and_gated_data_only_on_request(files: dict) -> None:
    entry = {"adapter": "nih", "title": "t", "licence": "l", "citation": "c"}
    for access in ("open", "kaggle", "physionet"):
        files["datasets.yaml"][access] = {**entry, "access": access}
    found = load(files).datasets
    assert [found[name].download for name in ("open", "kaggle", "physionet")] == [
        True,
        False,
        False,
    ]


def test_downloads_are_of_a_data_set_and_of_the_one_that_it_relabels(files: dict) -> None:
    texts = {"title": "t", "licence": "l", "citation": "c", "access": "open", "adapter": "nih"}
    there = [{"name": "a.zip", "url": "https://example.org/a.zip"}]
    files["datasets.yaml"]["first"] = {**texts, "files": there}
    files["datasets.yaml"]["second"] = {**texts, "relabels": "first"}
    files["datasets.yaml"]["closed"] = {**texts, "files": there, "download": False}
    found = load(files)
    assert found.downloads("second") == [("first", "a.zip")]
    assert found.downloads("closed") == []


def test_a_data_set_may_lie_in_the_folder_of_another(
    files: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"title": "t", "licence": "l", "citation": "c", "access": "form", "adapter": "chexpert"}
    files["datasets.yaml"] |= {"first": texts, "second": {**texts, "root": "{first}"}}
    assert load(files).datasets["second"].root == "data/first"
    monkeypatch.setenv("STAMP_FIRST_ROOT", "/disk/there")
    assert load(files).datasets["second"].root == "/disk/there"
    files["datasets.yaml"]["second"]["root"] = "{frist}"
    assert "second: root: unknown data set 'frist': did you mean 'first'?" in mistake(files)
    files["datasets.yaml"]["second"]["root"] = "{second}"
    check_named(mistake(files), "second: root", "'second'")


def test_images_are_fetched_only_where_downloads_are_allowed(files: dict) -> None:
    texts = {"title": "t", "licence": "l", "citation": "c", "adapter": "nih"}
    address = {"images_url": "https://example.org/images"}
    files["datasets.yaml"]["open"] = {**texts, **address, "access": "open"}
    files["datasets.yaml"]["gated"] = {**texts, **address, "access": "physionet"}
    found = load(files).datasets
    assert found["open"].fetched_from == "https://example.org/images"
    assert found["gated"].fetched_from is None
