"""The chat page of ``ragbot serve`` in a real browser, with a model server that streams from a script."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.servers import Json
from fakes.streaming import HOLD, StreamingModel

Visit = Callable[..., Any]
Violations = Callable[..., list[str]]
PROFILE = Path(__file__).parents[2] / "data" / "corpus" / "profile.md"
REFUSAL = "I don't have information about that."
DATABASE = "Which database do you use?"
SAID = "PostgreSQL is my default, and I have run it in every job."
HOSTILE = (
    "<img src=x onerror='window.__pwned = 1'><script>window.__pwned = 1</script> \u202eevil\u202c שלום **b**"
)
ANSWERS = {
    DATABASE: SAID,
    "And for analysis?": "For analysis on a single machine I use DuckDB.",
    "What do you earn?": REFUSAL,
    "Tell me slowly": f"First I think. {HOLD}Then I speak.",
    "Tell me at length": "One sentence of many. " * 60,
    "Be cut": "This goes on and",
    "Say nothing": "",
    "Say markup <b>now</b>": HOSTILE,
    "Say 40 kB": "word " * 8_000,
}


def say(body: Json) -> str | Json:
    """The scripted answer to the question of a model call."""
    question = body["messages"][-1]["content"].rpartition("\n\nQuestion: ")[2]
    if question == "Fail":
        return {"status": 500, "json": {"error": "out of memory"}}
    text = ANSWERS[question]
    return {"text": text, "done_reason": "length"} if question == "Be cut" else text


class Twin:
    """``ragbot serve`` on one address, to be stopped and started again."""

    def __init__(self, start: Callable[..., Any], folder: Path, model: StreamingModel) -> None:
        self._start = start
        self._folder = folder
        self._port = "0"
        self.model = model
        self.url = ""
        self._process: subprocess.Popen[str] | None = None
        shutil.copy(PROFILE, folder / "profile.md")

    def start(self) -> None:
        """Serve; the second time at the address of the first."""
        serve = ("serve", "--build", "--profile", str(self._folder / "profile.md"), "--port", self._port)
        env = {"OLLAMA_HOST": self.model.url, "RAGBOT_CACHE": str(self._folder)}
        self._process, self.url = self._start("ragbot", *serve, **env)
        self._port = self.url.rpartition(":")[2]

    def stop(self) -> None:
        """Away, from one moment to the next."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def running(start: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    """The twin, with its model server."""
    model = StreamingModel(say)
    model.start()
    twin = Twin(start, tmp_path_factory.mktemp("twin"), model)
    twin.start()
    yield twin
    model.stop()


@pytest.fixture
def twin(running: Twin) -> Twin:
    """The same, with nothing held and nothing counted."""
    running.model.go.clear()
    running.model.bodies.clear()
    running.model.left = 0
    return running


def ask(page: Any, question: str, *, wait: bool = True) -> Any:
    """Type a question and press Enter; its exchange, answered to the end where ``wait``."""
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")
    exchange = page.locator("#turns > li").last
    if wait:
        page.locator("#turns > li:last-child:not(.waiting)").wait_for()
    return exchange


def said(exchange: Any) -> str:
    """The answer of an exchange."""
    text: str = exchange.locator(".said").text_content()
    return text


# ---------------------------------------------------------------- a conversation


def test_an_answer_comes_with_its_sources_which_open(twin: Twin, visit: Visit) -> None:
    """The answer, then how many passages it was made from; each opens and shows its text."""
    page = visit(twin.url)
    page.get_by_text("Ask Tove Arkwell").wait_for()
    exchange = ask(page, DATABASE)
    assert SAID == said(exchange)
    exchange.get_by_text("Made from 5 passages").click()
    assert 5 == exchange.locator(".sources li").count()
    passage = exchange.locator(".sources li").filter(has_text="PostgreSQL is my default").first
    assert not passage.locator(".passage").is_visible()
    passage.locator("summary").click()
    assert passage.locator(".passage").is_visible()


def test_an_answer_streams(twin: Twin, visit: Visit) -> None:
    """What was said so far stands there while the rest is on its way, below the passages it is made from."""
    page = visit(twin.url)
    exchange = ask(page, "Tell me slowly", wait=False)
    exchange.get_by_text("First I think.").wait_for()
    assert "Then I speak." not in said(exchange)
    assert exchange.get_by_text("Reading 5 passages").is_visible()
    assert page.get_by_role("button", name="Stop").is_visible()
    twin.model.go.set()
    exchange.get_by_text("Then I speak.").wait_for()
    assert page.get_by_role("button", name="Ask", exact=True).is_visible()


def test_the_conversation_goes_with_the_next_question(twin: Twin, visit: Visit) -> None:
    """Earlier turns reach the model; a new conversation begins without them."""
    page = visit(twin.url)
    ask(page, DATABASE)
    ask(page, "And for analysis?")
    assert ["system", "user", "assistant", "user"] == [m["role"] for m in twin.model.bodies[-1]["messages"]]
    page.get_by_role("button", name="New conversation").click()
    assert 0 == page.locator("#turns > li").count()
    ask(page, DATABASE)
    assert ["system", "user"] == [m["role"] for m in twin.model.bodies[-1]["messages"]]


def test_no_information_is_said_plainly(twin: Twin, visit: Visit) -> None:
    """A refusal has a note of its own, and its passages are called what they are."""
    page = visit(twin.url)
    exchange = ask(page, "What do you earn?")
    assert REFUSAL == said(exchange)
    assert exchange.get_by_text("No information: none of the passages below answers this.").is_visible()
    assert exchange.get_by_text("5 passages that came closest").is_visible()


def test_a_suggested_question_is_asked_by_a_click(twin: Twin, visit: Visit) -> None:
    """It leaves the start for the conversation and the focus in the box."""
    ANSWERS["What do you work on?"] = "On timetables for ferries."
    page = visit(twin.url)
    page.get_by_role("button", name="What do you work on?").click()
    page.locator("#turns > li:not(.waiting)").wait_for()
    assert not page.locator("#start").is_visible()
    assert "question" == page.evaluate("document.activeElement.id")


# ---------------------------------------------------------------- where something goes wrong


@pytest.mark.parametrize("how", ["button", "Escape"])
def test_stop_ends_the_answer_here_and_at_the_model(twin: Twin, visit: Visit, how: str) -> None:
    """What was said stays and is called not whole; the model is not kept busy; the next question works."""
    page = visit(twin.url)
    exchange = ask(page, "Tell me slowly", wait=False)
    exchange.get_by_text("First I think.").wait_for()
    if how == "button":
        page.get_by_role("button", name="Stop").click()
    else:
        page.keyboard.press("Escape")
    assert exchange.get_by_text("Stopped. This answer is not whole.").is_visible()
    assert "First I think." == said(exchange).strip()
    for _ in range(100):
        if twin.model.left:
            break
        page.wait_for_timeout(50)
    assert 1 == twin.model.left
    assert SAID == said(ask(page, DATABASE))


def test_a_restarted_server_is_noticed_and_the_conversation_goes_on(twin: Twin, visit: Visit) -> None:
    """While it is away the page says so; when it is back it says so, and the question can be asked again."""
    page = visit(twin.url)
    visit.expected.append("ERR_CONNECTION_REFUSED")  # type: ignore[attr-defined]
    ask(page, DATABASE)
    twin.stop()
    exchange = ask(page, "And for analysis?", wait=False)
    exchange.get_by_text("The server cannot be reached. Your conversation is kept on this page.").wait_for()
    twin.start()
    exchange.get_by_text("The server is back.").wait_for()
    exchange.get_by_role("button", name="Ask again").click()
    page.locator("#turns > li:last-child:not(.waiting) .said").wait_for()
    assert "For analysis on a single machine I use DuckDB." == said(exchange)
    assert SAID == said(page.locator("#turns > li").first)
    assert 4 == len(twin.model.bodies[-1]["messages"])


def test_a_model_that_fails_is_said_without_its_words(twin: Twin, visit: Visit) -> None:
    """The page names the status; what the model's server said stays on the server."""
    page = visit(twin.url)
    exchange = ask(page, "Fail")
    assert exchange.get_by_text("The model server answered with status 500.").is_visible()
    assert "out of memory" not in page.locator("body").text_content()
    assert exchange.get_by_role("button", name="Ask again").is_visible()


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("Be cut", "This answer was cut at its length limit."),
        ("Say nothing", "The model returned an empty answer."),
    ],
)
def test_an_answer_that_is_not_whole_is_called_so(twin: Twin, visit: Visit, question: str, note: str) -> None:
    """Cut, or empty."""
    page = visit(twin.url)
    assert ask(page, question).get_by_text(note).is_visible()


def test_markup_is_only_text(twin: Twin, visit: Visit) -> None:
    """Of the reader and of the model alike; right-to-left text does not turn the page."""
    page = visit(twin.url)
    exchange = ask(page, "Say markup <b>now</b>")
    assert HOSTILE == said(exchange)
    assert "Say markup <b>now</b>" == exchange.locator(".asked").text_content()
    assert 0 == page.locator("img, #turns b, #turns script").count()


# ---------------------------------------------------------------- sizes, keys, accessibility


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1024, 768), (1440, 900)])
def test_a_long_conversation_scrolls_inside_the_page(
    twin: Twin, visit: Visit, width: int, height: int
) -> None:
    """The box stays in reach, the newest words in sight, and nothing is wider than the screen."""
    page = visit(twin.url, viewport={"width": width, "height": height}, has_touch=width < 500)
    ask(page, "Tell me at length")
    ask(page, "Say 40 kB")
    ask(page, DATABASE)
    assert (width, height) == tuple(
        page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    )
    box = page.get_by_label("Your question").bounding_box()
    assert box["y"] + box["height"] <= height
    assert (
        page.locator("#turns > li")
        .last.locator(".said")
        .evaluate("(said) => said.getBoundingClientRect().bottom <= innerHeight")
    )


def test_keys_alone_open_a_source(twin: Twin, visit: Visit) -> None:
    """From the box backwards through the sources, without a pointer."""
    page = visit(twin.url)
    exchange = ask(page, DATABASE)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert exchange.locator(".passage").first.is_visible()


def test_a_question_can_be_typed_at_once(twin: Twin, visit: Visit) -> None:
    """Whoever has a keyboard need not look for the field first."""
    page = visit(twin.url)
    page.keyboard.type(DATABASE)
    assert DATABASE == page.get_by_label("Your question").input_value()


def test_shift_enter_starts_a_line(twin: Twin, visit: Visit) -> None:
    """Only Enter alone asks."""
    page = visit(twin.url)
    page.get_by_label("Your question").fill("one")
    page.keyboard.press("Shift+Enter")
    assert "one\n" == page.get_by_label("Your question").input_value()
    assert 0 == page.locator("#turns > li").count()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "light"), (1440, "dark")])
def test_axe_finds_nothing(twin: Twin, visit: Visit, violations: Violations, width: int, scheme: str) -> None:
    """At the start, while an answer comes, and with answers, notes, trouble and open sources."""
    page = visit(twin.url, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert [] == violations(page)
    waiting = ask(page, "Tell me slowly", wait=False)
    waiting.get_by_text("First I think.").wait_for()
    assert [] == violations(page)
    page.keyboard.press("Escape")
    for question in (DATABASE, "What do you earn?", "Fail"):
        ask(page, question)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert [] == violations(page)
