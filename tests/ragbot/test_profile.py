"""Sections of a Markdown profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from known import known, text_of
from ragbot.errors import RagbotError
from ragbot.profile import parse_profile, read_profile


def ids(source: str) -> list[str]:
    return [section.id for section in parse_profile(source).sections]


def texts(source: str) -> list[str]:
    return [section.text for section in parse_profile(source).sections]


INSIDE = text_of("ch-01-fences.md")


@known(
    "CH-01",
    (INSIDE, ["work", "tools"]),
    (INSIDE.replace("```", "`````").replace("echo hi", "```\n## still code"), ["work", "tools"]),
    (INSIDE.replace("~~~\n## also not\n~~~", "   ~~~ text\n## also not\n   ~~~~~"), ["work", "tools"]),
    (
        "## Work\n\n<!--\n## hidden\n-->\n\n<pre>\n## raw\n</pre>\n\nDone.\n\n## Tools\n\nGo.\n",
        ["work", "tools"],
    ),
    ("## Work\n\n```\n## never closed\n\n## Tools\n\nGo.\n", ["work"]),
)
def test_fenced_heading_stays_inside_its_section(given: tuple[str, list[str]]) -> None:
    """'##' inside a fence, a comment or raw HTML starts no section, and every line is kept."""
    source, names = given
    sections = parse_profile(source).sections
    assert names == [section.id for section in sections]
    kept = "\n".join(section.text for section in sections)
    lines = [line for line in source.split("\n")[source.startswith("# ") :] if line]
    assert lines == [line for line in kept.split("\n") if line]


@known(
    "CH-02",
    (text_of("ch-02-preamble.md"), "# Mara\n\nMara builds search tools. Contact by mail only."),
    ("\n\n  Mara builds search tools.\n## Work\nAt A since 2020.", "  Mara builds search tools."),
    (
        "> Mara\n\n- builds\n\n### Search tools\n\n## Work\n\nAt A since 2020.",
        "> Mara\n\n- builds\n\n### Search tools",
    ),
)
def test_text_before_the_first_section_is_the_first_chunk(given: tuple[str, str]) -> None:
    """The preamble is indexed, then the sections."""
    preamble, work = parse_profile(given[0]).sections
    assert given[1] == preamble.text
    assert ("_preamble", "work") == (preamble.id, work.id)
    assert "At A since 2020." in work.text


AGAIN = text_of("ch-03-repeat-headings.md")


@known(
    "CH-03",
    (AGAIN, ["projects", "study", "projects.2"]),
    (AGAIN.replace("Study", "PROJECTS ##"), ["projects", "projects.2", "projects.3"]),
    (AGAIN.replace("## Study", "## Projects\n\n## Projects 2"), ["projects", "projects-2", "projects.3"]),
    (AGAIN.replace("Study", "*Projects*!"), ["projects", "projects.2", "projects.3"]),
)
def test_repeated_headings_stay_two_chunks_with_ids_of_their_own(given: tuple[str, list[str]]) -> None:
    """Each chunk has its heading once; sections of one name get ids of their own."""
    sections = parse_profile(given[0]).sections
    assert given[1] == [section.id for section in sections]
    assert [1] * len(sections) == [section.text.count("## ") for section in sections]
    assert "## Projects\n\nRain, a cache." == sections[-1].text


FIRST = text_of("ch-04-heading-first.md")


@known(
    "CH-04",
    FIRST,
    text_of("ch-04-heading-first-bom-crlf.md"),
    FIRST.replace("\n", "\r"),
    "\ufeff\n" + FIRST + "\n\n\n",
    FIRST.replace("## Work", "  ##   Work  ##").replace("## Study", "\nStudy\r\n---"),
)
def test_file_that_begins_with_a_heading_loses_nothing(given: str, tmp_path: Path) -> None:
    """The first section is found without a line before it, with a UTF-8 mark and with any line ends."""
    path = tmp_path / "me.md"
    path.write_bytes(given.encode())
    work, study = read_profile(path).sections
    assert ("Work", "At A since 2020.") == (work.title, work.text.split("\n", 1)[1])
    assert ("Study", "Physics.") == (study.title, study.text.rsplit("\n", 1)[1])
    assert "\r" not in work.text + study.text + work.title + study.title


def test_id_survives_a_change_of_text_elsewhere() -> None:
    """Editing, filling or adding other sections leaves an id alone."""
    assert "projects.2" == ids("## Projects\n\na\n\n## Projects\n\nb\n")[1]
    assert "projects.2" == ids("## New\n\nx\n\n## Projects\n\nchanged\n\n### Deep\n\n## Projects\n\nb\n")[2]
    assert ["projects.2"] == ids("## Projects\n\n## Projects\n\nb\n")


def test_no_heading_can_take_a_made_id() -> None:
    """Headings that spell 'projects 2', 'projects.2' or '_preamble' get other ids than the made ones."""
    found = ids("text\n\n## Projects\n\na\n\n## Projects\n\nb\n\n## Projects.2\n\nc\n\n## _preamble\n\nd\n")
    assert ["_preamble", "projects", "projects.2", "projects-2", "preamble"] == found


def test_setext_and_nested_headings() -> None:
    """An underlined heading starts a section; '###' stays inside."""
    assert ["Work\n----\n\na\n\n### Deep\n\nb", "## Study\n\nc"] == texts(
        "Title\n=====\n\nWork\n----\n\na\n\n### Deep\n\nb\n\n## Study\n\nc\n"
    )


def test_headings_in_quotes_lists_and_indented_code_are_text() -> None:
    """Only a heading at the top level cuts."""
    assert ["work"] == ids("## Work\n\n> ## quoted\n\n- ## listed\n\n    ## code\n")


def test_later_h1_ends_the_section_before_it() -> None:
    """The title of a second part does not slip into the last section of the first."""
    assert ["## A\n\na", "# Part\n\nintro", "## B\n\nb"] == texts(
        "## A\n\na\n\n# Part\n\nintro\n\n## B\n\nb\n"
    )


def test_empty_section_is_a_warning_with_its_line() -> None:
    """A section with nothing but headings or a comment is reported and not indexed; a bare title is fine."""
    profile = parse_profile("# Me\n\n## A\n\na\n\n## Gap\n\n### Deep\n\n## Todo\n\n<!-- later -->\n", "me.md")
    assert ["a"] == [section.id for section in profile.sections]
    assert (
        "me.md:7: section 'Gap' is empty and is not indexed",
        "me.md:11: section 'Todo' is empty and is not indexed",
    ) == profile.warnings


def test_heading_markup_is_not_in_title_or_id() -> None:
    """Emphasis, code and links leave their words."""
    (section,) = parse_profile("## **Work** at [`Acme`](https://acme.example)\n\na\n").sections
    assert ("Work at Acme", "work-at-acme") == (section.title, section.id)


def test_ids_of_other_scripts_and_of_signs() -> None:
    """Letters of any script stay; a heading of signs alone still has an id."""
    assert ["über-mich", "仕事", "हिन्दी", "section"] == ids(
        "## Über mich\n\na\n\n## 仕事\n\nb\n\n## हिन्दी\n\nc\n\n## !?\n\nd\n"
    )


def test_name_is_the_first_h1() -> None:
    """The twin is called what the title says."""
    assert "Mara Lund" == parse_profile("# Mara *Lund*\n\n## Work\n\na\n").name
    assert "" == parse_profile("## Work\n\na\n").name


def test_digest_is_of_ids_and_texts() -> None:
    """Line ends and a mark change nothing; a word does."""
    digest = parse_profile("## Work\n\na b\n").digest
    assert digest == parse_profile("\ufeff## Work\r\n\r\na b\r\n\r\n").digest
    assert digest != parse_profile("## Work\n\na c\n").digest


@pytest.mark.parametrize("source", ["", "\n\n", "# Only a title\n", "## Empty\n"])
def test_nothing_to_index_is_an_error(source: str) -> None:
    """A profile without text is refused by name."""
    with pytest.raises(RagbotError, match=r"me\.md: no section with text"):
        parse_profile(source, "me.md")


def test_unreadable_files_name_the_place(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are named with their line; a missing file with its path."""
    file = tmp_path / "bad.md"
    file.write_bytes(b"## A\n\nok\n\xff\n")
    with pytest.raises(RagbotError, match=r"bad\.md:4: this is not UTF-8"):
        read_profile(file)
    with pytest.raises(RagbotError, match=r"none\.md: No such file"):
        read_profile(tmp_path / "none.md")
