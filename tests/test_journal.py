"""The files of a run: appended while it goes on, read back after a kill, sorted and sealed at the end."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalrun.digest import sha256_bytes
from evalrun.errors import UserError
from evalrun.journal import KINDS, RunFolder
from evalrun.jsonl import (
    Appender,
    read_lines,
    sorted_lines,
    to_line,
    torn_bytes,
    whole_lines,
    write_atomically,
)
from evalrun.records import Case, CaseContext, Chunk, Context, Draw, Exchange, Record, Score
from fakes.limits import no_file_beyond


def draw(case: str, index: int, **fields: object) -> Draw:
    """A draw."""
    return Draw.model_validate({"case": case, "index": index, "seed": 1} | fields)


def test_a_line_holds_what_is_not_at_its_default_with_sorted_keys() -> None:
    """One text for one value, in UTF-8, ending at a line feed."""
    line = to_line(draw("café", 0, answer="a\u2028b\nc"))
    assert '{"answer":"a\u2028b\\nc","case":"café","index":0,"seed":1}\n'.encode() == line


def test_a_separator_of_unicode_ends_no_line(tmp_path: Path) -> None:
    """Lines end at LF and nowhere else."""
    with_separators = draw("a", 0, answer="one\u2028two\u2029three\x85four")
    path = tmp_path / "draws.jsonl"
    path.write_bytes(to_line(with_separators))
    assert [with_separators] == list(read_lines(path, Draw))


def test_a_torn_last_line_is_left_out_and_then_overwritten(tmp_path: Path) -> None:
    """What a killed run wrote half is no record; the next one starts on a line of its own."""
    path = tmp_path / "draws.jsonl"
    whole = to_line(draw("a", 0))
    path.write_bytes(whole + to_line(draw("a", 1))[:-9])
    assert [draw("a", 0)] == list(read_lines(path, Draw))
    appender = Appender(path)
    appender.write(draw("a", 2))
    appender.close()
    appender.close()
    assert [draw("a", 0), draw("a", 2)] == list(read_lines(path, Draw))


def test_a_line_for_which_there_is_no_room_leaves_no_half_of_itself(tmp_path: Path) -> None:
    """Where there is room again soon after, as where a log is rotated, the next line stands by itself."""
    path = tmp_path / "draws.jsonl"
    appender = Appender(path)
    appender.write(draw("a", 0))
    with no_file_beyond(path.stat().st_size + 20), pytest.raises(OSError, match=r"draws\.jsonl"):
        appender.write(draw("a", 1, answer="long" * 99))
    appender.write(draw("a", 2))
    appender.close()
    assert [draw("a", 0), draw("a", 2)] == list(read_lines(path, Draw))


def test_a_journal_that_is_put_in_place_can_still_be_appended_to(tmp_path: Path) -> None:
    """What comes later stands behind what was put there, even where something was appended before."""
    folder = RunFolder(tmp_path)
    folder.append("draws", draw("gone", 0))
    folder.rewrite("draws", [draw("a", 0)])
    folder.append("draws", draw("a", 1))
    folder.close()
    assert [draw("a", 0), draw("a", 1)] == list(folder.draws())


def test_no_file_is_no_lines(tmp_path: Path) -> None:
    """A journal that was never begun is empty."""
    assert [] == list(read_lines(tmp_path / "gone.jsonl", Draw))
    assert ([], 0) == whole_lines(tmp_path / "gone.jsonl")


@pytest.mark.parametrize(
    "bad", [b"{}", b"no json", b'{"case":"a","index":-1,"seed":1}', b'{"case":"a","x":1}']
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, bad: bytes) -> None:
    """With the file and the number of the line."""
    path = tmp_path / "draws.jsonl"
    path.write_bytes(to_line(draw("a", 0)) + b"\n" + bad + b"\n")
    with pytest.raises(UserError, match=r"draws\.jsonl:3: not a line of this journal"):
        list(read_lines(path, Draw))


def test_a_number_that_is_none_is_never_written() -> None:
    """NaN has no line: missing is a reason."""
    with pytest.raises(ValueError, match="finite"):
        Score(case="a", index=0, metric="m", status="number", value=float("nan"))


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    """The new bytes, and nothing left beside them."""
    path = tmp_path / "x"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert b"new" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_a_file_for_which_there_is_no_room_stays_as_it_was(tmp_path: Path) -> None:
    """And nothing is left beside it, where room is what is needed."""
    path = tmp_path / "run.json"
    write_atomically(path, b"old")
    with no_file_beyond(1000), pytest.raises(OSError, match=r"'[^']*run\.json'$"):
        write_atomically(path, b"new" * 1000)
    assert ([path], b"old") == (list(tmp_path.iterdir()), path.read_bytes())


def test_sealing_sorts_every_journal_and_gives_its_digest(tmp_path: Path) -> None:
    """Whatever the order in which things finished: the same bytes; cases keep that of the dataset."""
    lines: dict[str, list[Record]] = {
        "cases": [Case(id="b", question="?", category="x"), Case(id="a", question="?", category="x")],
        "draws": [draw("b", 1), draw("a", 10), draw("a", 2)],
        "scores": [
            Score(case="a", index=1, metric="m", status="pass"),
            Score(case="a", index=None, metric="r", status="number", value=1.0),
            Score(case="a", index=0, metric="n", status="pass"),
            Score(case="a", index=0, metric="m", status="pass"),
        ],
        "contexts": [CaseContext(case=c, context=Context.of((Chunk(id="1", text="x"),))) for c in ("b", "a")],
    }
    digests = []
    for turned in (False, True):
        folder = RunFolder(tmp_path / str(turned))
        for kind, records in lines.items():
            for record in records[::-1] if turned and kind != "cases" else records:
                folder.append(kind, record)
        digests.append(folder.seal())
    assert digests[0] == digests[1]
    assert {f"{kind}.jsonl" for kind in KINDS} == set(digests[0])
    assert sha256_bytes(folder.file("draws").read_bytes()) == digests[0]["draws.jsonl"]
    assert [("a", 2), ("a", 10), ("b", 1)] == [one.key for one in folder.draws()]
    assert ["b", "a"] == [case.id for case in folder.cases()]
    assert [(None, "r"), (0, "m"), (0, "n"), (1, "m")] == [(one.index, one.metric) for one in folder.scores()]
    assert ["a", "b"] == [case for case, _ in folder.contexts()]
    assert [] == list(folder.exchanges())


PLACES = st.tuples(st.sampled_from(["a", "b", "é", "\U0001f600", ""]), st.integers(0, 3))


@given(st.lists(PLACES), st.booleans())
def test_sorted_lines_are_the_lines_in_order(places: list[tuple[str, int]], torn: bool) -> None:
    """Byte by byte as they stand; equals keep their order, and a torn last line is left out."""
    order = KINDS["draws"][1]
    draws = [draw(case, index, answer=str(number)) for number, (case, index) in enumerate(places)]
    with TemporaryDirectory() as folder:
        path = Path(folder, "draws.jsonl")
        path.write_bytes(b"".join(map(to_line, draws)) + (b'{"case":"a"' if torn else b""))
        found = list(sorted_lines(path, order))
    assert [to_line(one) for one in sorted(draws, key=lambda one: one.key)] == found


def test_lines_that_have_no_place_are_named(tmp_path: Path) -> None:
    """Not JSON, not an object, or without what the order goes by."""
    for bad in (b"no json", b"[1]", b"{}"):
        path = tmp_path / "draws.jsonl"
        path.write_bytes(to_line(draw("a", 0)) + bad + b"\n")
        with pytest.raises(UserError, match=r"draws\.jsonl:2: not a line of this journal"):
            list(sorted_lines(path, KINDS["draws"][1]))


@pytest.mark.parametrize("torn", [0, 1, 70_000])
@pytest.mark.parametrize("whole", [0, 1, 70_000])
def test_a_torn_line_is_measured_whatever_its_length(tmp_path: Path, whole: int, torn: int) -> None:
    """From the end of the file: a long journal is not read for it."""
    path = tmp_path / "x.jsonl"
    path.write_bytes((b"a" * (whole - 1) + b"\n" if whole else b"") + b"b" * torn)
    assert torn == torn_bytes(path) == whole_lines(path)[1]


def test_the_lines_of_some_cases_alone(tmp_path: Path) -> None:
    """Those of others are not made into records; what is no line at all is still told."""
    path = tmp_path / "draws.jsonl"
    path.write_bytes(to_line(draw("a", 0)) + to_line(draw("b", 0)) + b'{"case":"c"}\n')
    assert [draw("b", 0)] == list(read_lines(path, Draw, {"b"}))
    path.write_bytes(b"[]\n")
    with pytest.raises(UserError):
        list(read_lines(path, Draw, {"b"}))


def exchange(source: str, key: str, case: str | None, reply: str) -> Exchange:
    """A model call of the first draw of a case; of none: one that is no generation."""
    place = None if case is None else 0
    return Exchange(
        source=source, key=key, case=case, draw=place, turn=place, method="POST", path="/x",
        media_type="", request=None, status=200, reply=reply, seconds=0.0,
    )  # fmt: skip


def test_every_exchange_is_sealed_once(tmp_path: Path) -> None:
    """Of a verdict that cases share that of the first case; of a call that was made again the later one."""
    folder = RunFolder(tmp_path)
    for source, key, case, reply in [
        ("judge", "k", "b", "of b"),
        ("bot", "k", "b", "early"),
        ("judge", "k", "a", "of a"),
        ("bot", "k", "b", "late"),
        ("bot", "v", None, "first"),
        ("bot", "v", None, "again"),
        ("bot", "k", "a", "other"),
    ]:
        folder.append("exchanges", exchange(source, key, case, reply))
    folder.seal()
    assert ["first", "other", "of a", "late"] == [line.reply for line in folder.exchanges()]


def test_a_folder_without_a_finished_run_is_told(tmp_path: Path) -> None:
    """Neither an empty folder nor a header of another kind is a run."""
    with pytest.raises(UserError, match=r"no run\.json here"):
        _ = RunFolder(tmp_path).header
    (tmp_path / "run.json").write_text(json.dumps({"format": "run.v9"}))
    with pytest.raises(UserError, match=r"run\.json: "):
        _ = RunFolder(tmp_path).header


def test_lines_that_hold_nothing_of_interest_are_passed_over(tmp_path: Path) -> None:
    """Only lines with the bytes that are looked for become records; one that is no record is still told."""
    path = tmp_path / "draws.jsonl"
    told = Draw(case="a", index=1, error="service: gone")
    path.write_bytes(to_line(Draw(case="a", index=0, answer="yes")) + to_line(told))
    assert [told] == list(read_lines(path, Draw, holding=b'"error"'))
    path.write_bytes(to_line(told) + b"spoilt\n")
    with pytest.raises(UserError, match=r"draws\.jsonl:2"):
        list(read_lines(path, Draw, holding=b'"error"'))
