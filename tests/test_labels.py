"""Label files: header and rows, and what they are refused for."""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalrun.errors import InputError
from evalrun.labels import Labels, load_labels
from evalrun.records import Label, LabelHeader, Rater

DRAW = "sha256:" + "a" * 64
HEADER = {
    "dimension": "refusal",
    "design": "random",
    "seed": 7,
    "date": "2025-03-01",
    "configs": ["quality"],
    "raters": {"r1": {"kind": "model", "how": "read each answer, blind to the verdict"}},
}
LABEL = {"draw": DRAW, "case": "talks-02", "rater": "r1", "label": True}


def written(folder: Path, *lines: Any) -> Path:
    """A label file of these lines; a text is written as it is."""
    path = folder / "refusal.v1.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def refused(path: Path) -> list[str]:
    """The problems of a file, as ``line: message``; of the file as a whole, the message."""
    with pytest.raises(InputError) as caught:
        load_labels(path)
    return [
        f"{problem.where}: {problem.message}".removeprefix(f"{path}:").strip()
        for problem in caught.value.problems
    ]


def test_header_and_rows_are_read(tmp_path: Path) -> None:
    """How the labels came about, then the labels, then what the file is known by."""
    path = written(tmp_path, HEADER, "", {**LABEL, "note": "declines politely"})
    assert (
        Labels(
            LabelHeader(
                dimension="refusal",
                design="random",
                seed=7,
                date=datetime.date(2025, 3, 1),
                configs=("quality",),
                raters={"r1": Rater(kind="model", how="read each answer, blind to the verdict")},
            ),
            (Label(draw=DRAW, case="talks-02", rater="r1", label=True, note="declines politely"),),
            "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest(),
            path,
        )
        == load_labels(path)
    )  # fmt: skip


def test_raters_may_label_the_same_draw(tmp_path: Path) -> None:
    """One label each."""
    raters = {"r1": {"kind": "human", "how": "x"}, "r2": {"kind": "model", "how": "y"}}
    path = written(tmp_path, {**HEADER, "raters": raters}, LABEL, {**LABEL, "rater": "r2", "label": False})
    assert [("r1", True), ("r2", False)] == [(row.rater, row.label) for row in load_labels(path).rows]


def test_a_second_label_of_one_rater_is_refused(tmp_path: Path) -> None:
    """Even the same one: a draw counts once."""
    assert ["4: 'r1' labels the same draw twice, on lines 2 and 4"] == refused(
        written(tmp_path, HEADER, LABEL, {**LABEL, "case": "other"}, LABEL)
    )


@pytest.mark.parametrize(("lines", "said"), [([], "holds no labels"), ([HEADER], "holds no labels yet")])
def test_a_file_without_labels_is_refused(tmp_path: Path, lines: list[Any], said: str) -> None:
    """An empty file and a header alone measure nobody."""
    path = written(tmp_path, *lines)
    assert [said] == refused(path)


def test_a_header_is_enough_for_a_file_that_is_only_begun(tmp_path: Path) -> None:
    """It says what is to be read; an empty file says nothing."""
    found = load_labels(written(tmp_path, HEADER), begun=True)
    assert ((), HEADER["dimension"]) == (found.rows, found.header.dimension)
    with pytest.raises(InputError):
        load_labels(written(tmp_path), begun=True)


def test_the_header_comes_first(tmp_path: Path) -> None:
    """Labels without a word on how they were chosen are refused."""
    assert ["1: a label where the header should be"] == refused(written(tmp_path, LABEL))


def test_every_bad_line_is_told_at_once(tmp_path: Path) -> None:
    """Header and rows alike."""
    path = written(
        tmp_path,
        {**HEADER, "design": "handpicked", "sead": 1, "date": "2025-02-30"},
        {**LABEL, "label": "yes"},
        {**LABEL, "draw": "abc"},
        "{",
        {**LABEL, "lable": True},
    )
    assert [
        "1: 'design' should be 'random', 'by_verdict', 'external' or 'unknown' (it is \"handpicked\")",
        "1: 'date' should be a date in the format YYYY-MM-DD, day value is outside expected range"
        ' (it is "2025-02-30")',
        "1: unknown key 'sead'",
        "2: 'label' should be true or false (it is \"yes\")",
        "3: 'draw' is not of the form ^sha256:[0-9a-f]{64}$ (it is \"abc\")",
        "4:2: not valid JSON: Expecting property name enclosed in double quotes",
        "5: unknown key 'lable'",
    ] == refused(path)


def test_a_rater_must_be_in_the_header(tmp_path: Path) -> None:
    """Who read an answer is never left open."""
    assert ["2: rater 'r2' is not in the header"] == refused(
        written(tmp_path, HEADER, {**LABEL, "rater": "r2"})
    )


@pytest.mark.parametrize("label", [1, 0, "true", None])
def test_a_label_is_true_or_false(tmp_path: Path, label: Any) -> None:
    """Nothing is converted; a missing label is a row left out."""
    (problem,) = refused(written(tmp_path, HEADER, {**LABEL, "label": label}))
    assert problem.startswith("2: 'label' should be true or false")


@pytest.mark.parametrize(
    "rater", [{"kind": "expert", "how": "x"}, {"kind": "human"}, {"kind": "human", "how": ""}]
)
def test_a_rater_has_a_kind_and_a_way_of_reading(tmp_path: Path, rater: dict[str, str]) -> None:
    """Human or model, and how: both are needed to say what an agreement means."""
    assert 1 == len(refused(written(tmp_path, {**HEADER, "raters": {"r1": rater}}, LABEL)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@settings(max_examples=100, deadline=None)
@given(
    data=st.one_of(
        st.binary(max_size=80),
        st.tuples(
            st.dictionaries(st.sampled_from(list(HEADER)), JSON, max_size=3),
            st.dictionaries(st.sampled_from(list(LABEL)), JSON, max_size=3),
        ).map(
            lambda two: (json.dumps({**HEADER, **two[0]}) + "\n" + json.dumps({**LABEL, **two[1]})).encode()
        ),
    )
)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever a file holds, the answer is labels or an input error."""
    path = tmp_path_factory.mktemp("l") / "l.jsonl"
    path.write_bytes(data)
    try:
        found: Any = load_labels(path)
    except InputError as fault:
        found = fault.problems
    assert found.rows if isinstance(found, Labels) else found
