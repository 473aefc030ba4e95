"""A whole project in a folder: documents, questions, rubric and config, with the fakes that answer and judge.

Owns one small world: eight topics with a question each that the documents answer, eight questions that they
do not. Everything is right with it; a test breaks one thing and says what turns red.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner

from evalrun.cli import main
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from evalrun.jsonl import read_lines
from evalrun.records import Draw, Exchange, Score
from fakes.bot import REFUSAL as REFUSAL
from fakes.servers import FakeModel, Json

BOT = Path(__file__).with_name("bot.py")
TOPICS = {
    "talks": ("Where did you speak?", "I spoke at a fair in Lyon.", "Once I spoke at a fair in Lyon."),
    "degree": ("What did you study?", "I studied physics.", "My degree is in physics."),
    "tools": ("Which tools do you use?", "I use a lathe.", "A lathe is the tool I use."),
    "city": ("Where do you live?", "I live in Graz.", "My home is Graz."),
    "languages": ("Which languages do you speak?", "I speak Dutch.", "Dutch is what I speak."),
    "hobby": ("What do you do at weekends?", "I row.", "At weekends I row."),
    "books": ("Which book did you write?", "I wrote a guide to clocks.", "A guide to clocks."),
    "prize": ("Which prize did you win?", "I won the harbour prize.", "The harbour prize."),
}
UNKNOWN = {
    "salary": "What do you earn?",
    "phone": "What is your phone number?",
    "pets": "Do you have pets?",
    "age": "How old are you?",
    "car": "Which car do you drive?",
    "taxes": "How do you pay taxes?",
    "vote": "Whom do you vote for?",
    "diet": "What do you eat?",
}
RUBRIC: Json = {
    "name": "plain",
    "version": 1,
    "shape": "claims",
    "max_tokens": 100,
    "schema": {
        "type": "object",
        "required": ["claims", "answer_is_refusal"],
        "properties": {
            "claims": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["claim", "quote", "supported"],
                    "properties": {
                        "claim": {"type": "string"},
                        "quote": {"type": "string"},
                        "supported": {"enum": ["yes", "no"]},
                    },
                },
            },
            "answer_is_refusal": {"enum": ["yes", "no"]},
        },
    },
    "correct": {"enum": ["yes", "no"]},
    "prompt": {
        "system": "Read the answer.",
        "user": "{reference}{context}\n\n{question}\n\n{answer}\n",
        "correction": "That was no verdict: {reason}. Again, please.",
    },
}
GATES: list[Json] = [
    {"metric": "recall@2", "group": "answerable", "min": 1.0, "infer": "this_set"},
    {"metric": "grounded", "group": "answerable", "min": 0.5},
    {"metric": "correctly_refused", "group": "unanswerable", "min": 0.5},
    {"metric": "faithful", "group": "all", "min": 0.6},
]
GREEN = {"recall@2": "holds", "grounded": "holds", "correctly_refused": "holds", "faithful": "holds"}
"""The verdicts of :data:`GATES` where nothing is broken."""


def question_of(body: Json) -> str:
    """The question in a bot's model call."""
    return str(body["messages"][-1]["content"]).rpartition("Question: ")[2]


def honest(body: Json) -> str:
    """What a model says that keeps to its documents; the seed chooses the wording."""
    question = question_of(body)
    for asked, *wordings in TOPICS.values():
        if asked == question:
            seed: int = body["options"].get("seed", 0)
            return wordings[seed % len(wordings)]
    return REFUSAL


def judged_answer(body: Json) -> str:
    """The answer that a judge's model call is about."""
    users = [message["content"] for message in body["messages"] if message["role"] == "user"]
    found = re.search(r"<<answer ([0-9a-f]{16})>>\n(.*)\n<<end answer \1>>", users[0], re.DOTALL)
    assert found, "a judge's prompt holds the answer in its fence"
    return found[2]


def fair(body: Json) -> str:
    """What a judge says that reads well: only what holds the word "invented" is unsupported."""
    answer = judged_answer(body)
    refusal = answer == REFUSAL
    claim = {"claim": answer, "quote": "", "supported": "no" if "invented" in answer else "yes"}
    return json.dumps({"claims": [] if refusal else [claim], "answer_is_refusal": "yes" if refusal else "no"})


def documents() -> dict[str, str]:
    """Topic → text."""
    return {topic: f"About my {topic}: {wordings[1]}" for topic, wordings in TOPICS.items()}


def questions() -> list[Json]:
    """The dataset, as lines."""
    known = [
        {"id": topic, "question": asked[0], "category": "known", "relevant_ids": [topic]}
        for topic, asked in TOPICS.items()
    ]
    unknown = [
        {"id": name, "question": asked, "category": "private", "expect": "refuse"}
        for name, asked in UNKNOWN.items()
    ]
    return known + unknown


@dataclass
class Outcome:
    """What one command did: its exit code, what it printed, and the run folder if it wrote one."""

    code: int
    text: str
    folder: RunFolder
    error: BaseException | None = None

    @property
    def decisions(self) -> dict[str, str]:
        """Metric of a gate → its verdict."""
        return {verdict.gate.metric: verdict.decision for verdict in self.folder.header.verdicts}

    @property
    def why(self) -> dict[str, str]:
        """Metric of a gate → why it is undecided."""
        return {verdict.gate.metric: verdict.why for verdict in self.folder.header.verdicts}

    @property
    def draws(self) -> list[Draw]:
        """The draws in their order."""
        return list(self.folder.draws())

    @property
    def errors(self) -> dict[str, list[str]]:
        """Case → the errors of its draws, for the cases that have any."""
        found: dict[str, list[str]] = {}
        for draw in self.draws:
            if draw.error is not None:
                found.setdefault(draw.case, []).append(draw.error)
        return found

    def scores(self, metric: str) -> list[Score]:
        """The scores of one metric."""
        return [score for score in self.folder.scores() if score.metric == metric]

    def files(self) -> dict[str, bytes]:
        """Name → bytes of every file but ``meta.json``."""
        return {
            path.name: path.read_bytes()
            for path in sorted(self.folder.path.iterdir())
            if path.name != "meta.json"
        }


@dataclass
class Project:
    """The folder, its fakes and its config; :meth:`write` puts all of it down, :meth:`run` runs it."""

    folder: Path
    model: FakeModel = field(default_factory=lambda: FakeModel(honest))
    judge: FakeModel = field(default_factory=lambda: FakeModel(fair))
    docs: dict[str, str] = field(default_factory=documents)
    cases: list[Json] = field(default_factory=questions)
    rubric: Json = field(default_factory=lambda: json.loads(json.dumps(RUBRIC)))
    config: Json = field(default_factory=dict)
    runs: int = 0

    def __post_init__(self) -> None:
        self.model.start()
        self.judge.start()
        self.config = {
            "name": "small",
            "dataset": "cases.jsonl",
            "target": {
                "kind": "ragbot",
                "k": 2,
                "launch": {"command": self.command(), "env": {"OLLAMA_HOST": "{tap}"}, "timeout": 60},
                "limits": {"concurrency": 4, "timeout": 60, "retries": 0},
            },
            "cassette": {"path": "cassette", "upstream": self.model.url},
            "draws": 2,
            "temperature": 0.7,
            "scorers": ["recall@2", "mrr", "outcome", "faithful"],
            "judge": {
                "model": "ollama/judge-model",
                "rubric": "rubric.yaml",
                "base_url": self.judge.url,
                "limits": {"concurrency": 4, "timeout": 60, "retries": 0},
            },
            "gates": json.loads(json.dumps(GATES)),
        }

    def command(self, *more: str) -> list[str]:
        """How the bot is started."""
        return [sys.executable, "-S", str(BOT), "--port", "{port}", "--docs", "docs.json", *more]

    def break_bot(self, defect: str, only: str = "") -> None:
        """Give the bot a defect, shown on questions that hold ``only``."""
        self.config["target"]["launch"]["command"] = self.command("--defect", defect, "--only", only)

    def write(self) -> Path:
        """Put all files down; the path of the config."""
        finds = {case["question"]: case.get("relevant_ids") or [] for case in self.cases}
        known = {"docs": self.docs, "finds": finds}
        (self.folder / "docs.json").write_text(json.dumps(known), "utf-8")
        lines = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in self.cases)
        (self.folder / "cases.jsonl").write_text(lines, "utf-8")
        (self.folder / "rubric.yaml").write_text(json.dumps(self.rubric, indent=1), "utf-8")
        path = self.folder / "config.yaml"
        path.write_text(json.dumps(self.config, indent=1), "utf-8")
        return path

    def run(self, *args: str, resume: Path | None = None) -> Outcome:
        """``evalrun run`` in this process, into a new folder, or on in that of ``resume``."""
        output = resume or self._next()
        where = "--resume" if resume else "--output"
        done = CliRunner().invoke(main, ["run", str(self.write()), where, str(output), *args])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Outcome(done.exit_code, done.output, RunFolder(output))

    def start(
        self, *args: str, env: dict[str, str] | None = None, resume: Path | None = None
    ) -> tuple[subprocess.Popen[str], Path]:
        """``evalrun run`` as a process of its own, and the folder it writes."""
        output = resume or self._next()
        where = "--resume" if resume else "--output"
        program = [sys.executable, "-c", "from evalrun.cli import main; main()"]
        command = [*program, "run", str(self.write()), where, str(output), *args]
        process = subprocess.Popen(
            command,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return process, output

    def recorded(self) -> Project:
        """This project, recorded, which must go well; the servers forget what they were asked."""
        done = self.run("--record")
        assert done.code in (ExitCode.OK, ExitCode.NOT_ENOUGH_EVIDENCE), done.text
        self.model.bodies.clear()
        self.judge.bodies.clear()
        return self

    def lines(self, book: str = "bot") -> list[Exchange]:
        """The recorded exchanges, as they stand in the file."""
        return list(read_lines(self.folder / "cassette" / f"{book}.jsonl", Exchange))

    def raw(self, book: str = "bot") -> bytes:
        """A book of the cassette, byte for byte."""
        return (self.folder / "cassette" / f"{book}.jsonl").read_bytes()

    def stop(self) -> None:
        """Stop the servers: from now on nothing but a launched bot answers."""
        self.model.stop()
        self.judge.stop()

    def _next(self) -> Path:
        self.runs += 1
        return self.folder / "runs" / str(self.runs)
