"""`python -m stamp example-data` writes images that the workflow reads, and overwrites nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stamp.__main__ import main
from stamp.cli.example_data.clinic import write_image
from stamp.images.reading import open_image


def test_the_example_is_the_same_in_every_kind_of_file(tmp_path: Path) -> None:
    """8-bit PNG, 16-bit PNG and DICOM of one image decode to its gray values."""
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for name, number in (("a.png", 0), ("b.png", 1), ("c.dcm", 0)):
        write_image(tmp_path / name, pixels, number)
        assert np.array_equal(np.asarray(open_image(tmp_path / name, 1)), pixels), name


def test_the_example_is_not_written_over_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kept.txt").write_text("x")
    assert main(["example-data", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
