"""The pages in a real run: made, named in its last lines, made anew by a word, images by a key."""

from __future__ import annotations

import polars as pl
from project import Project

LINES = "workflow/scripts/stamp/report/page/templates/study.html"


def test_pages_come_out_of_a_run_and_its_last_lines_name_them(project: Project) -> None:
    """One fat run: another word in a template, and the images of one study taken off."""
    index = project.result("index.html").read_text()
    before = project.result("small_phantom/page.html").read_text()
    assert 'href="small_phantom/page.html"' in index and 'href="small_digits/page.html"' in index
    assert "data:image/" in before and "they were generated" in before

    template = project.folder / LINES
    template.write_text(template.read_text().replace("<h2>Leaderboard</h2>", "<h2>Models</h2>"))
    project.edit("studies/small_phantom.yaml", lambda study: study.update(show_images=False))
    done = project.finish()
    board = pl.read_csv(project.result("small_phantom/leaderboard.csv"))
    first = board.row(0, named=True)
    ending = done.text.splitlines()[-20:]
    assert "Small phantom: 4 models" in ending
    assert "  page: results/small_phantom/page.html" in ending
    place = "-" if first["place"] is None else first["place"]
    shown = next(line for line in ending if line.startswith(f"  {place}  {first['label']} "))
    assert f"{first['stamp']:.3f} ({first['low']:.3f} to {first['high']:.3f})" in shown
    assert "flags" in shown or "excluded" in shown

    after = project.result("small_phantom/page.html").read_text()
    assert "<h2>Models</h2>" in after and "<h2>Models</h2>" not in before
    assert "data:image/" not in after
    assert (
        project.stamp("open", "small_phantom", "--print")
        .text.strip()
        .endswith("results/small_phantom/page.html")
    )
    assert not project.plan()
