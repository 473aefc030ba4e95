"""The vector store and its ranking."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from ragbot_fakes import PROFILE, FakeOllama, WordEmbedder

from fakes.servers import scripted, serving
from known import json_of, known
from ragbot.errors import ModelError, QuestionError, RagbotError
from ragbot.index import FORMAT, build, cache_folder, index_path, load, query_vector, save, stale, unit_rows
from ragbot.models import embedder
from ragbot.profile import Profile, Section, parse_profile


class TableEmbedder:
    """Gives the vectors it was told, whatever the texts."""

    name = "embed-a"

    def __init__(self, *rows: Sequence[float]) -> None:
        self.rows = rows

    def embed(self, texts: Sequence[str]) -> NDArray[np.floating]:
        return np.array(self.rows, dtype=np.float64)


def sections_of(names: Sequence[str]) -> Profile:
    """A profile with a section of each name."""
    return Profile(tuple(Section(name, name, f"text {name}", 1) for name in names))


EM_01 = json_of("em-01-mixed-dims.json")


def store(dim: Any, *vectors: Any) -> Any:
    """An index file as the case has it."""
    names = ("work", "study", "home")
    rows = [{"id": name, "text": "t", "vector": row} for name, row in zip(names, vectors, strict=False)]
    return EM_01 | {"dim": dim, "chunks": rows}


@known(
    "EM-01",
    (EM_01, "'study' has 3 dimensions, the index 4"),
    (store(2, [1, 0, 0, 0], [0, 1, 0, 0]), "'work' has 4 dimensions, the index 2"),
    (store(4, [1, 0, 0, 0], [0, 1, 0, 0, 0]), "'study' has 5 dimensions, the index 4"),
    (store(2, [1, 0], []), "'study' has 0 dimensions, the index 2"),
    (store("2", [1, 0]), "'work' has 2 dimensions, the index 2"),
    (store(2, [1, 0], [[1], 0]), "not a readable index"),
    (store(0, []), "no vectors, or a zero one"),
)
def test_stored_vectors_of_two_sizes_are_refused(given: tuple[Any, str], tmp_path: Path) -> None:
    """A store of one size with a row of another is refused at start-up, naming both."""
    case, words = given
    rows = [one | {"vector": [32767 * number for number in one["vector"]]} for one in case["chunks"]]
    head = {"format": FORMAT, "embedder": {"name": case["model"], "dims": case["dim"]}, "profile": "sha256:0"}
    (tmp_path / "index.json").write_text(json.dumps(head | {"chunks": rows}))
    with pytest.raises(RagbotError, match=f"(?s){words}.*rebuild the index"):
        load(tmp_path / "index.json")


def test_query_of_another_size_is_refused() -> None:
    """EM-01: a query of 3 dimensions against an index of 4 names both and says what to do."""
    with pytest.raises(RagbotError, match=r"(?s)returned 3 dimensions, the index has 4.*rebuild the index"):
        query_vector("q", TableEmbedder([1, 0, 0]), 4)


EM_02 = [(one["id"], one["vector"]) for one in json_of("em-02-zero-vector.json")["chunks"]]


@known(
    "EM-02",
    (EM_02, [("work", 1.0), ("study", 0.707114)]),
    (
        [("study", [-0.5, 0.0]), ("work", [3.0, 4.0]), ("blank", [0.0, -0.0])],
        [("work", 0.6), ("study", -1.0)],
    ),
    ([("blank", [0, 0]), ("work", [0, 1]), ("study", [0, 2])], [("work", 0.0), ("study", 0.0)]),
    (
        [("work", [1e-200, 0]), ("blank", [0, 0]), ("study", [1e200, 1e200])],
        [("work", 1.0), ("study", 0.707114)],
    ),
)
def test_a_zero_vector_is_named_at_build_and_never_ranked(
    given: tuple[list[tuple[str, list[float]]], list[tuple[str, float]]],
) -> None:
    """A section without a direction is refused; the others rank as they should, with finite similarities,
    however short or long their vectors are.
    """
    rows, ranked = given
    with pytest.raises(RagbotError, match="the vector of 'blank' is zero"):
        build(sections_of([name for name, _ in rows]), TableEmbedder(*(vector for _, vector in rows)))
    rows = [(name, vector) for name, vector in rows if name != "blank"]
    index = build(sections_of([name for name, _ in rows]), TableEmbedder(*(vector for _, vector in rows)))
    found = index.search(query_vector("q", TableEmbedder([1, 0]), 2), 5)
    assert [name for name, _ in ranked] == [chunk.id for chunk in found]
    assert [value for _, value in ranked] == pytest.approx([chunk.similarity for chunk in found], abs=1e-4)


def test_zero_query_is_an_error() -> None:
    """EM-02: a question without a direction is refused instead of ranked at random."""
    with pytest.raises(QuestionError, match="nothing in this question can be searched for"):
        query_vector("?", TableEmbedder([0, 0]), 2)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_vector_that_is_not_finite_is_refused(bad: float) -> None:
    """A NaN never enters the store."""
    with pytest.raises(RagbotError, match="the vector of 'b' is not finite"):
        unit_rows(np.array([[1.0, 0.0], [bad, 1.0]]), ["a", "b"])


async def test_ollama_is_asked_by_its_own_call(ollama: FakeOllama) -> None:
    """``/api/embed`` with 64 texts at most; its rows come in the order of the texts."""
    texts = ["x" * size for size in range(1, 71)]
    found = await asyncio.to_thread(embedder("ollama/m").embed, texts)
    assert [[float(size), 1.0] for size in range(1, 71)] == found.tolist()
    assert [
        {"model": "m", "input": texts[:64], "truncate": False},
        {"model": "m", "input": texts[64:], "truncate": False},
    ] == ollama.bodies


async def test_a_text_that_does_not_fit_the_models_window_is_refused_not_cut(ollama: FakeOllama) -> None:
    """Else a part of the profile could never be found."""
    ollama.window = 5
    with pytest.raises(ModelError, match="answered with status 400") as caught:
        await asyncio.to_thread(embedder("ollama/m").embed, ["short", "longer than that"])
    assert "exceeds the context length" in caught.value.detail


async def test_fewer_rows_than_texts_are_refused(ollama: FakeOllama) -> None:
    """EM-03: Ollama's rows have no number, so their count is all there is to tell by."""
    ollama.embeddings = {"embeddings": [X, Z]}
    with pytest.raises(ModelError, match="returned 2 vectors for 3 texts"):
        await asyncio.to_thread(build, sections_of(EM_03["inputs"]), embedder("ollama/m"))


EM_03 = json_of("em-03-batch-order.json")


def reply_of(*rows: tuple[int, Sequence[float]]) -> dict[str, Any]:
    """An embedding reply with these numbers and rows."""
    return {"data": [{"index": number, "embedding": row} for number, row in rows]}


X, Y, Z = [1, 0, 0], [0, 1, 0], [0, 0, 1]


@known(
    "EM-03",
    (EM_03["replies"][0], EM_03["replies"][1], "returned 2 vectors for 3 texts"),
    (reply_of((1, Y), (2, Z), (0, X)), reply_of((0, X), (1, Y), (3, Z)), "the embedding server returned"),
    (
        reply_of((2, Z), (1, Y), (0, X)),
        reply_of((0, X), (1, Y), (2, Z), (3, X)),
        "returned 4 vectors for 3 texts",
    ),
    (reply_of((0, X), (1, Y), (2, Z)), reply_of((0, X), (1, Y), (-1, Z)), "the embedding server returned"),
)
async def test_rows_are_put_in_the_order_of_the_texts(
    given: tuple[Any, Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply in another order is put right by its numbers; of a short or gapped one the build fails with
    the count, and the index that was there is still whole.
    """
    whole, broken, words = given
    path = index_path(Path("me.md"))
    profile = sections_of(EM_03["inputs"])
    save(build(profile, TableEmbedder(X, Y, Z)), path)
    async with serving(scripted([{"json": whole}, {"json": broken}])) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        found = await asyncio.to_thread(embedder("openai/m").embed, EM_03["inputs"])
        assert [X, Y, Z] == found.tolist()
        with pytest.raises(ModelError, match=words):
            await asyncio.to_thread(build, profile, embedder("openai/m"))
    assert 3 == len(load(path).chunks)
    assert [path] == list(path.parent.iterdir())


@pytest.mark.parametrize(
    "reply",
    [
        [],
        {"data": [{"index": 0, "embedding": [1, 0]}]},
        {"embeddings": [[1, 0]]},
        {"embeddings": [[1, 0], [1]]},
        {"embeddings": ["AAAA", None]},
        {"embeddings": None},
    ],
)
async def test_other_broken_embedding_replies_are_errors(ollama: FakeOllama, reply: Any) -> None:
    """Another server's reply, a row missing, two sizes, or no numbers: never a guess."""
    ollama.embeddings = reply
    with pytest.raises(ModelError, match="the embedding server returned"):
        await asyncio.to_thread(embedder("ollama/m").embed, ["a", "b"])


async def test_embedding_server_that_refuses(ollama: FakeOllama) -> None:
    """The status is told; the server's words stay in the detail."""
    ollama.status, ollama.embeddings = 500, {"error": "out of memory"}
    with pytest.raises(ModelError, match="answered with status 500") as caught:
        await asyncio.to_thread(embedder("ollama/m").embed, ["a"])
    assert "out of memory" in caught.value.detail
    assert "out of memory" not in str(caught.value)


def test_builder_counts_vectors() -> None:
    """An embedder that returns fewer rows than sections builds nothing."""
    with pytest.raises(RagbotError, match="returned 1 vectors for 3 sections"):
        build(parse_profile("a\n\n## B\n\nb\n\n## C\n\nc\n"), TableEmbedder([1, 0]))


def test_ties_keep_the_order_of_the_profile() -> None:
    """Equal similarities rank as the sections stand, however many are asked for."""
    ids = [f"s{at * 7 % 60}" for at in range(60)]
    profile = Profile(tuple(Section(id, id, id, 1) for id in ids))
    index = build(profile, TableEmbedder(*([at % 2, (at + 1) % 2] for at in range(60))))
    query = query_vector("q", TableEmbedder([1, 0]), 2)
    ranked = ids[1::2] + ids[0::2]
    assert ranked == [chunk.id for chunk in index.search(query, 100)]
    assert ranked[:7] == [chunk.id for chunk in index.search(query, 7)]


def test_stored_vectors_are_unit_length_int16() -> None:
    """Length is taken away, 1.0 is 32767, and half goes to the even neighbour on every machine."""
    rows = unit_rows(np.array([[3.0, 4.0], [-1e-9, 0.0]]), ["a", "b"])
    assert np.int16 == rows.dtype
    assert [[19660, 26214], [-32767, 0]] == rows.tolist()


def test_dots_do_not_overflow() -> None:
    """256 dimensions of equal weight still give a cosine of 1."""
    index = build(Profile((Section("a", "a", "a", 1),)), TableEmbedder([1.0] * 256))
    (found,) = index.search(query_vector("q", TableEmbedder([1.0] * 256), 256), 1)
    assert found.similarity == pytest.approx(1.0, abs=1e-4)


def test_saved_index_is_read_back_whole(tmp_path: Path) -> None:
    """Nothing is lost on the way through the file."""
    index = build(parse_profile(PROFILE), WordEmbedder())
    save(index, tmp_path / "deep" / "index.json")
    again = load(tmp_path / "deep" / "index.json")
    assert (index.embedder, index.dims, index.profile) == (again.embedder, again.dims, again.profile)
    assert index.chunks == again.chunks
    assert index.vectors.tolist() == again.vectors.tolist()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a readable index"),
        ("[]", "not a readable index"),
        ('{"format": "ragbot-index.v0"}', "format 'ragbot-index.v0', wanted ragbot-index.v1"),
        ('{"format": "ragbot-index.v1", "chunks": []}', "not a readable index"),
        ('{"format": "ragbot-index.v1", "embedder": {"dims": 1}, "chunks": []}', "no vectors"),
        (
            '{"format": "ragbot-index.v1", "embedder": {"dims": 1}, "chunks": [{"vector": [0]}]}',
            "no vectors, or a zero one",
        ),
        (
            '{"format": "ragbot-index.v1", "embedder": {"dims": 1}, "chunks": [{"vector": [99999]}]}',
            "not a readable index",
        ),
    ],
)
def test_damaged_index_is_refused_with_what_to_do(tmp_path: Path, text: str, words: str) -> None:
    """Half a file, another format or impossible numbers never start a bot."""
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(RagbotError, match=f"(?s){words}.*rebuild the index"):
        load(tmp_path / "index.json")


def test_missing_index_says_what_to_do(tmp_path: Path) -> None:
    """The first start without --build names the command that makes an index."""
    with pytest.raises(RagbotError, match=r"(?s)no index yet.*ragbot serve --build"):
        load(tmp_path / "index.json")


def test_reader_of_the_old_index_is_not_disturbed(tmp_path: Path) -> None:
    """A new index takes the place of the old file instead of being written into it."""
    path = tmp_path / "index.json"
    save(build(parse_profile(PROFILE), WordEmbedder()), path)
    before = path.read_text()
    with path.open() as reader:
        save(build(parse_profile(PROFILE.replace("Graz", "Wien")), WordEmbedder()), path)
        assert before == reader.read()
    assert before != path.read_text()


def test_failed_write_keeps_the_old_index(tmp_path: Path) -> None:
    """Where the new file cannot be put in place, the old one stays and no scrap is left."""
    (tmp_path / "index.json").mkdir()
    with pytest.raises(RagbotError, match="set RAGBOT_CACHE"):
        save(build(parse_profile(PROFILE), WordEmbedder()), tmp_path / "index.json")
    assert ["index.json"] == [file.name for file in tmp_path.iterdir()]


def test_stale_index_names_what_changed() -> None:
    """Sections that are new, gone or changed, a new order, and another embedder are told apart."""
    index = build(parse_profile(PROFILE), WordEmbedder())
    changed = PROFILE.replace("physics", "Physics").replace("## Salary", "## Pay")
    moved = Profile(parse_profile(PROFILE).sections[::-1])
    assert "" == stale(index, parse_profile(PROFILE), WordEmbedder())
    assert "new: pay; gone: salary; changed: study" == stale(index, parse_profile(changed), WordEmbedder())
    assert "the order of its sections changed" == stale(index, moved, WordEmbedder())
    assert "the embedder was words (10 dimensions), now it is embed-a" == stale(
        index, parse_profile(PROFILE), TableEmbedder([1])
    )


def test_planted_sections_stand_in_one_index_only() -> None:
    """An overlay's section can be found; the index it was laid over does not keep it."""
    index = build(parse_profile(PROFILE), WordEmbedder())
    planted = Section("trap", "Trap", "## Trap\n\nplanted kafka", 0)
    wider = index.plus([planted], WordEmbedder())
    query = query_vector("kafka planted", WordEmbedder(), index.dims)
    assert "trap" == wider.search(query, 1)[0].id
    assert "trap" not in [chunk.id for chunk in index.search(query, 50)]
    with pytest.raises(QuestionError, match="an id that is taken"):
        index.plus([Section("work", "Work", "planted", 0)], WordEmbedder())


def test_cache_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """RAGBOT_CACHE first; profiles of different folders do not share a file."""
    assert cache == cache_folder()
    assert index_path(Path("/a/profile.md")) != index_path(Path("/b/profile.md"))
    monkeypatch.delenv("RAGBOT_CACHE")
    assert "ragbot" in cache_folder().parts[-2:]


def test_wordllama_works_from_its_wheel() -> None:
    """256 dimensions without a download; a text has the same vector whatever stands beside it."""
    wordllama = embedder("wordllama")
    alone = unit_rows(wordllama.embed(["I studied physics in Graz."]), ["a"])
    beside = unit_rows(wordllama.embed(["short", "I studied physics in Graz.", "word " * 500]), list("abc"))
    assert (1, 256) == alone.shape
    assert alone[0].tolist() == beside[1].tolist()


def test_wordllama_leaves_logging_alone() -> None:
    """Importing the library neither turns on INFO for the process nor takes its log over."""
    code = """
import logging
from ragbot.models import embedder
embedder("wordllama").embed(["word"])
print(logging.getLogger().level == logging.WARNING, logging.getLogger().handlers)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ("True []\n", "") == (done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("word2vec", "known: bedrock, ollama, openai, wordllama"),
        ("ollama", "which embedding model"),
        ("wordllama/big", "no model 'big'"),
    ],
)
def test_unknown_embedders_are_refused(spec: str, words: str) -> None:
    """A wrong name says which there are."""
    with pytest.raises(RagbotError, match=words):
        embedder(spec)
