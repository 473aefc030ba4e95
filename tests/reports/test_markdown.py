"""summary.md: complete, and text stays text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from make_run import make_run
from markdown_it import MarkdownIt

from evalrun.journal import RunFolder
from evalrun.reports.markdown import MOST, code, plain, render, short_enough


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


@pytest.mark.parametrize(
    "name",
    ["@everyone", "ask @team/x now", "https://evil.example", "www.evil.example", "me@evil.example", "#12"],
)
def test_name_is_no_mention_link_or_reference(name: str) -> None:
    """What hosts make of plain text is kept from a group's name; it still reads as it was."""
    made = plain(name)
    assert not re.search(r"(?<!\w)@\w|@[\w-]+\.\w|://|www\.|#\d", made)
    assert name == made.replace("\u2060", "").replace("\\", "")


def test_metric_reads_as_it_is() -> None:
    """An @ within a name of ours needs nothing."""
    assert "recall@5 claims@1" == plain("recall@5 claims@1")


def test_only_the_last_line_comes_from_meta(quality: RunFolder, tmp_path: Path) -> None:
    """Two runs that differ in meta.json differ in the last line alone."""
    again = make_run(tmp_path / "r")
    again.write_header(again.header, again.meta.model_copy(update={"run": "x", "config_path": "y"}))
    first, second = render(quality).splitlines(), render(again).splitlines()
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]


def test_a_summary_stays_below_what_github_takes() -> None:
    """Whole lines, what was opened closed, and where the rest is; in bytes, not characters."""
    text = "<details><summary>s</summary>\n\n" + "é\n" * 100
    made = short_enough(text, 100)
    assert made.startswith("<details>")
    assert 100 >= len(made.partition("\n</details>")[0].encode())
    assert 1 == made.count("</details>")
    assert made.endswith("`report.html`")
    assert text == short_enough(text, 1000)
    assert 2**20 > MOST + 1000


def test_a_run_of_very_many_errors_is_cut(tmp_path: Path) -> None:
    """And its last line still comes from meta.json."""
    page = render(make_run(tmp_path / "r", errors=tuple(f"{n} " + "x" * 900 for n in range(2000))))
    assert 2**20 > len(page)
    assert page.decode().splitlines()[-1].startswith("<sub>run")
    assert b"cut here" in page
