"""Names and sentences that tables and pages show: plain text, nothing that somebody would run.

One rule for all of them, wherever they come from. A browser runs what stands in an HTML tag, and a
spreadsheet what begins like a formula; a control character can move a terminal's cursor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from stamp.core.errors import UserError

TAG = re.compile(r"<\s*[A-Za-z/!?]")
# A cell that spreadsheets compute, also in the wide forms of its first sign; a number is none.
FORMULA = "^[ \t\u00a0]*[-=+@\uff1d\uff0b\uff0d\uff20]"
NUMBER = "^[ \t\u00a0]*[-+]?[0-9., ]*%?[ \t\u00a0]*$"
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def why_refused(text: str) -> str | None:
    """What is wrong with a text that is shown, to be said after it; None for plain text."""
    if CONTROL.search(text):
        return "holds a line break or another control character: write it in one plain line"
    if TAG.search(text):
        return "holds an HTML tag: write it as plain text"
    if is_formula(text):
        return f"begins with '{text.strip()[0]}', which spreadsheets run as a formula"
    return None


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would compute a cell with this text."""
    return bool(re.search(FORMULA, text)) and not re.search(NUMBER, text)


def check(texts: Iterable[str], where: str) -> None:
    """Refuse the first of some texts that is not plain."""
    for text in texts:
        if reason := why_refused(text):
            raise UserError(f"{where}: {text!r} {reason}")
