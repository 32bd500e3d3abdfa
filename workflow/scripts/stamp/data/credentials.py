"""Credentials from the places that their own services document, and texts freed of them."""

from __future__ import annotations

import json
import netrc
import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from stamp.core.errors import UserError, suggest

ACCESS = ("open", "kaggle", "physionet")

_USERINFO = re.compile(r"(://)[^/?#\s]*@")
# A password with an unescaped slash ends the authority early; what follows a port is a path.
_ODD_USERINFO = re.compile(r"(://)[^/\s:@\[]*:(?!\d+(?:[/?#\s]|$))\S*@")
_QUERY = re.compile(r"(?<=\S)\?\S+?(?=[:;,)'\">]*(?:\s|$))")
_FRAGMENT = re.compile(r"(://[^\s#]*)#\S+")
_AUTHORIZATION = re.compile(r"""(?i)(authorization\b['"]?\s*[:=,]\s*)(?:b?(['"]).*?\2|[^\r\n]*)""")


def kaggle() -> tuple[str, str] | None:
    """Kaggle's user name and key, from the environment or ``kaggle.json``; None without either."""
    user, key = os.environ.get("KAGGLE_USERNAME", ""), os.environ.get("KAGGLE_KEY", "")
    if user and key:
        return user, key
    if user or key:
        lone, other = ("KAGGLE_USERNAME", "KAGGLE_KEY")[:: 1 if user else -1]
        raise UserError(f"{lone} is set without {other}; set both or neither")
    folders = [os.environ.get("KAGGLE_CONFIG_DIR", ""), "~/.kaggle"]
    for folder in filter(None, folders):
        file = Path(folder).expanduser() / "kaggle.json"
        if file.is_file():
            return _kaggle_file(file)
    return None


def _kaggle_file(file: Path) -> tuple[str, str]:
    wrong = UserError(f'{file}: not a Kaggle token; it should be {{"username": …, "key": …}}')
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
    except ValueError:
        raise wrong from None
    if not isinstance(record, dict):
        raise wrong
    user, key = record.get("username"), record.get("key")
    if not (isinstance(user, str) and isinstance(key, str) and user and key):
        raise wrong
    return user, key


def netrc_for(host: str) -> tuple[str, str] | None:
    """Login and password of a host in ``$NETRC`` or ``~/.netrc``; None if there is no entry."""
    named = os.environ.get("NETRC", "")
    file = Path(named or "~/.netrc").expanduser()
    if not file.is_file():
        if named:
            raise UserError(f"{file}: no such file, but NETRC names it")
        return None
    try:
        entry = netrc.netrc(str(file)).authenticators(host)
    except netrc.NetrcParseError as error:
        raise UserError(f"{file}: line {error.lineno} is not in netrc format") from None
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{file}: not in netrc format") from None
    if entry is None:
        return None
    login, account, password = entry
    return (login or account or "", password) if password else None


def for_url(access: str, url: str) -> tuple[str, str] | None:
    """The credentials that a data set's kind of access takes to a URL; None where there are none"""
    if access == "open":
        return None
    if access == "kaggle":
        return kaggle()
    if access == "physionet":
        return netrc_for(urlsplit(url).hostname or "")
    raise UserError(f"access '{access}' is not known: {suggest(access, ACCESS)}")


def redact(text: str) -> str:
    """``text`` without the user names, passwords and queries of URLs, and Authorization values."""
    text = _AUTHORIZATION.sub(r"\1***", text)
    text = _USERINFO.sub(r"\1", text)
    text = _ODD_USERINFO.sub(r"\1", text)
    return _FRAGMENT.sub(r"\1", _QUERY.sub("", text))
