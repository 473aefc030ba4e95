"""Relevance as passages: pooled over runs, one key a chunk, and alive after another chunking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalrun.cli import main
from evalrun.dataset import load_dataset
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from evalrun.records import Case, Chunk, Quote
from evalrun.relevance import Pooled, passages, pool
from fakes.project import Project

DOCS = {
    "fair": "A fair is held in Lyon every spring. I spoke at that fair twice.",
    "physics": "My degree is in physics, from Graz. It took me five years.",
    "lathe": "A lathe is what I use on most days. It was built in 1962.",
}
CASES = [
    {"id": "talk", "question": "Where did I speak at a fair?", "category": "known"},
    {"id": "years", "question": "How many years did the degree take?", "category": "known"},
    {"id": "pets", "question": "Do I have pets?", "category": "private", "expect": "refuse"},
]


@pytest.fixture
def small(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Three documents, two questions they answer; retrieval of the first two is scored."""
    monkeypatch.chdir(project.folder)
    del project.config["judge"]
    project.docs, project.cases = dict(DOCS), [dict(case) for case in CASES]
    project.config |= {"scorers": ["recall@2", "latency"], "gates": [], "draws": 1}
    return project


def ran(project: Project) -> RunFolder:
    """A live run of it."""
    done = project.run("--live")
    assert 0 == done.code, done.text
    return done.folder


def label(run: RunFolder, keys: str, *args: str) -> Result:
    """Read chunks with these keys."""
    words = ["label", str(run.path), "--dimension", "relevant", "--output", "pooled.jsonl", *args]
    return CliRunner().invoke(main, words, input=keys)


def keys_for(run: RunFolder, wanted: dict[str, str]) -> str:
    """y for the chunk that answers each question, n for the others, in the order of the pool."""
    return "".join("y" if wanted[one.case.id] == one.chunk.id else "n" for one in pool([run]))


def test_what_is_chosen_is_scored_and_survives_another_chunking(small: Project) -> None:
    """The same passages find their chunk where the documents are cut at each sentence, ids all new."""
    run = ran(small)
    done = label(run, keys_for(run, {"talk": "fair", "years": "physics"}))
    assert 0 == done.exit_code, done.output
    assert "4 of 4 chunks read, of 2 questions" in done.output
    talk, years, pets = load_dataset(Path("pooled.jsonl")).cases
    assert (Quote(quote="I spoke at that fair twice."),) == talk.relevant_ids
    assert isinstance(years.relevant_ids, tuple)
    assert 1 == len(years.relevant_ids)
    assert pets.relevant_ids is None
    cut = {f"{name}-{n}": s for name, text in DOCS.items() for n, s in enumerate(text.split(". "))}
    small.docs = cut
    small.cases = [json.loads(line) for line in Path("pooled.jsonl").read_text("utf-8").splitlines()]
    small.cases[1] |= {"relevant_ids": [{"quote": "Nobody ever wrote this sentence."}]}
    again = Cut(small, {"Where did I speak at a fair?": ["fair-1"]})
    assert {"talk": 1.0, "years": 0.0} == again.recall()


class Cut:
    """The project with a retriever that finds what it is told, and a dataset of quotes."""

    def __init__(self, project: Project, finds: dict[str, list[str]]) -> None:
        self.project = project
        write = project.write

        def written() -> Path:
            path = write()
            (project.folder / "docs.json").write_text(
                json.dumps({"docs": project.docs, "finds": finds}), "utf-8"
            )
            return path

        project.write = written  # type: ignore[method-assign]

    def recall(self) -> dict[str, float | None]:
        """Case → recall@2."""
        done = self.project.run("--live")
        assert 0 == done.code, done.text
        return {score.case: score.value for score in done.scores("recall@2") if score.status == "number"}


def test_a_second_call_goes_on_and_asks_nothing_twice(small: Project) -> None:
    """What was said stands in the file, no as well as yes."""
    run = ran(small)
    assert "1 of 4 chunks read" in label(run, "nq").output
    done = label(run, "nnn")
    assert "4 of 4 chunks read" in done.output
    assert "nothing relevant so far: talk, years" in done.output
    assert "4 of 4" in label(run, "").output


def test_chunks_of_other_runs_are_pooled_and_covered_ones_not_asked(small: Project) -> None:
    """A chunk of another chunking that holds the chosen passage counts by itself."""
    first = ran(small)
    small.docs = {f"long-{name}": f"Before it. {text}" for name, text in DOCS.items()}
    second = ran(small)
    chunks = [one.chunk.id for one in pool([first, second]) if one.case.id == "talk"]
    assert 4 == len(chunks)
    assert {"fair", "long-fair"} <= set(chunks)
    keys = "".join("y" if "fair" in name else "n" for name in chunks)
    order = [name for name in chunks if "fair" in name]
    skipped = "".join(key for name, key in zip(chunks, keys, strict=True) if name != order[1])
    done = label(first, skipped + "q", "--pool", str(second.path))
    assert "4 of 8 chunks read" in done.output
    [talk, *_] = load_dataset(Path("pooled.jsonl")).cases
    assert isinstance(talk.relevant_ids, tuple)
    assert 1 == len(talk.relevant_ids)


def test_back_and_a_digit_choose_another_passage(small: Project) -> None:
    """What is said again replaces what was said."""
    run = ran(small)
    label(run, "nb2q")
    [talk, *_] = load_dataset(Path("pooled.jsonl")).cases
    first = pool([run])[0]
    others = [one.chunk for one in pool([run]) if one.case.id == "talk"]
    assert (Quote(quote=passages(first, others)[1]),) == talk.relevant_ids


def test_passages_stand_in_no_other_chunk() -> None:
    """Nor are they too short to tell; where no sentence will do, the beginning of the chunk."""
    case = Case(id="a", question="What does a lathe do?", category="c")
    shared = "This line stands in both of them. "
    chunk = Chunk(id="1", text=shared + "Yes. The lathe turns wood all day. It has a motor and a belt.")
    other = Chunk(id="2", text=shared + "It is about something else.")
    found = passages(Pooled(case, chunk), [chunk, other])
    assert ["The lathe turns wood all day.", "It has a motor and a belt."] == found
    bare = Chunk(id="3", text="Two words")
    assert ["Two words"] == passages(Pooled(case, bare), [bare, other])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--by-verdict",), "--by-verdict"),
        (("--html", "x.html"), "are for answers"),
    ],
)
def test_options_for_answers_are_refused(small: Project, args: tuple[str, ...], said: str) -> None:
    """And --pool for answers."""
    run = ran(small)
    done = label(run, "", *args)
    assert ExitCode.USAGE == done.exit_code
    assert said in done.output
    other = ["label", str(run.path), "--dimension", "refusal", "--random", "1", "--pool", str(run.path)]
    assert ExitCode.USAGE == CliRunner().invoke(main, other).exit_code


def test_a_file_of_other_questions_is_left_alone(small: Project) -> None:
    """Nothing is written over it."""
    run = ran(small)
    Path("pooled.jsonl").write_text('{"id": "talk", "question": "Another?"}\n', "utf-8")
    done = label(run, "y")
    assert ExitCode.USAGE == done.exit_code
    assert "holds other questions" in done.output
