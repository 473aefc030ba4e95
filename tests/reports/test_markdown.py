"""summary.md: complete, and text stays text."""

from __future__ import annotations

from pathlib import Path

from make_run import make_run
from markdown_it import MarkdownIt

from evalrun.journal import RunFolder
from evalrun.reports.markdown import code, render


def html(folder: RunFolder) -> str:
    rendered: str = MarkdownIt("gfm-like", {"linkify": False}).render(render(folder).decode())
    return rendered


def test_summary_holds_verdicts_and_worst(quality: RunFolder) -> None:
    """Sentence, gate table and worst questions are there."""
    page = html(quality)
    assert "1 of 5 gates fails, 1 undecided: not safe to ship on this evidence</h2>" in page
    assert 5 + 13 == page.count("<tr>") - 2 - page.count("<strong>")
    assert "<code>out-of-corpus-05</code> 0/2" in page


def test_hostile_text_makes_no_markup(hostile: RunFolder) -> None:
    """No script, image, link or heading comes out of text that is not ours."""
    page = html(hostile)
    for made in ("<script", "<img", "<a ", "<b ", "javascript:window.__pwned=1)</a>"):
        assert made not in page
    assert 1 == page.count("<h2>")


def test_code_span_cannot_be_closed() -> None:
    """The fence is longer than any run of backticks inside."""
    assert "``` a `` b ```" == code("a `` b")
    assert "`a \\| b`" == code("a | b")


def test_only_the_last_line_comes_from_meta(quality: RunFolder, tmp_path: Path) -> None:
    """Two runs that differ in meta.json differ in the last line alone."""
    again = make_run(tmp_path / "r")
    again.write_header(again.header, again.meta.model_copy(update={"run": "x", "config_path": "y"}))
    first, second = render(quality).splitlines(), render(again).splitlines()
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]
