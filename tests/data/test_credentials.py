"""Credentials come from the services' own places, and go nowhere."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stamp.core.errors import UserError
from stamp.data import credentials

SECRET = "hunter2-0123456789"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and none of the environment's credentials."""
    for name in ("KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_CONFIG_DIR", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def told(call: object, *args: str) -> str:
    """The one line that a user sees, after checking that the traceback holds no secret."""
    with pytest.raises(UserError) as caught:
        call(*args)  # type: ignore[operator]
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def kaggle_file(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "kaggle.json"
    file.write_text(text)
    return file


def test_without_any_credentials_there_are_none() -> None:
    assert credentials.kaggle() is None
    assert credentials.netrc_for("physionet.org") is None


def test_the_environment_precedes_the_named_folder_and_that_the_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kaggle_file(home / ".kaggle", json.dumps({"username": "home", "key": "1"}))
    assert credentials.kaggle() == ("home", "1")
    monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(home / "other"))
    assert credentials.kaggle() == ("home", "1")
    kaggle_file(home / "other", json.dumps({"username": "other", "key": "2"}))
    assert credentials.kaggle() == ("other", "2")
    monkeypatch.setenv("KAGGLE_USERNAME", "env")
    monkeypatch.setenv("KAGGLE_KEY", "3")
    assert credentials.kaggle() == ("env", "3")


@pytest.mark.parametrize("alone", ["KAGGLE_USERNAME", "KAGGLE_KEY"])
def test_half_of_a_pair_in_the_environment_is_named(
    alone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(alone, SECRET)
    assert told(credentials.kaggle).startswith(f"{alone} is set without KAGGLE_")


@pytest.mark.parametrize(
    "text",
    [
        f'{{"username": "me", "key": "{SECRET}"',
        f'["me", "{SECRET}"]',
        f'{{"user": "me", "password": "{SECRET}"}}',
        f'{{"username": "{SECRET}", "key": 5}}',
        f'{{"username": "{SECRET}", "key": ""}}',
        "",
    ],
)
def test_a_malformed_kaggle_file_is_named_but_not_quoted(text: str, home: Path) -> None:
    file = kaggle_file(home / ".kaggle", text)
    assert str(file) in told(credentials.kaggle)


def test_a_netrc_entry_is_found_by_host_and_in_the_file_that_the_environment_names(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".netrc").write_text("machine physionet.org\n  login me\n  password a#b\n")
    assert credentials.netrc_for("physionet.org") == ("me", "a#b")
    assert credentials.netrc_for("example.org") is None
    other = home / "other"
    other.write_text("machine example.org login you password c\n")
    monkeypatch.setenv("NETRC", str(other))
    assert credentials.netrc_for("physionet.org") is None
    assert credentials.netrc_for("example.org") == ("you", "c")


def test_a_malformed_netrc_is_named_with_its_line_but_not_quoted(home: Path) -> None:
    (home / ".netrc").write_text(f"machine a login b password c\n{SECRET} x\n")
    assert told(credentials.netrc_for, "a") == f"{home / '.netrc'}: line 2 is not in netrc format"


def test_a_netrc_that_the_environment_names_in_vain_is_a_mistake(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETRC", str(home / "nowhere"))
    assert "nowhere: no such file" in told(credentials.netrc_for, "a")


def test_each_kind_of_access_takes_its_own_credentials(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".netrc").write_text("machine physionet.org login me password b\n")
    monkeypatch.setenv("KAGGLE_USERNAME", "env")
    monkeypatch.setenv("KAGGLE_KEY", "3")
    url = "https://physionet.org:443/files/a.csv"
    assert credentials.for_url("open", url) is None
    assert credentials.for_url("kaggle", url) == ("env", "3")
    assert credentials.for_url("physionet", url) == ("me", "b")
    assert "did you mean 'kaggle'?" in told(credentials.for_url, "kagle", url)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://h.org/a/b.zip", "https://h.org/a/b.zip"),
        (f"https://u:{SECRET}@h.org/a", "https://h.org/a"),
        (f"https://{SECRET}@h.org:80/a@b", "https://h.org:80/a@b"),
        (f"https://u:p@{SECRET}@h.org/a", "https://h.org/a"),
        (f"https://u:p/{SECRET}@h.org/a", "https://h.org/a"),
        (f"https://h.org/a?X-Signature={SECRET}&b=1", "https://h.org/a"),
        (f"https://h.org/a#token={SECRET}", "https://h.org/a"),
        (f"from https://h.org/a?{SECRET}, again", "from https://h.org/a, again"),
        (f'http://h:80 "GET /a?t={SECRET} HTTP/1.1" 200', 'http://h:80 "GET /a HTTP/1.1" 200'),
        (f"Max retries exceeded with url: /a?t={SECRET} (x)", None),
        (f"Authorization: Basic {SECRET}", "Authorization: ***"),
        (f"{{'Authorization': 'Bearer {SECRET}', 'A': 'b'}}", "{'Authorization': ***, 'A': 'b'}"),
        (f"authorization=Digest user={SECRET}, response={SECRET}", "authorization=***"),
        ("unknown model 'a': did you mean 'b'?", "unknown model 'a': did you mean 'b'?"),
        ("http://127.0.0.1:8080/a@b", "http://127.0.0.1:8080/a@b"),
    ],
)
def test_a_redacted_text_keeps_where_and_loses_who(text: str, clean: str | None) -> None:
    assert SECRET not in credentials.redact(text)
    if clean is not None:
        assert credentials.redact(text) == clean


WORD = st.text("abcXYZ019-._~%", min_size=8, max_size=20)


@given(user=WORD, password=WORD, token=WORD, path=st.text("abc/", max_size=8))
def test_no_part_of_credentials_survives_redaction(
    user: str, password: str, token: str, path: str
) -> None:
    user, password, token = f"U{user}", f"P{password}", f"T{token}"
    url = f"https://{user}:{password}@host.example/{path}?key={token}#x{token}"
    for text in (url, f"({url})", f"GET {url} failed: Authorization: Basic {password}"):
        clean = credentials.redact(text)
        assert not any(secret in clean for secret in (user, password, token))
        assert f"https://host.example/{path}" in clean
