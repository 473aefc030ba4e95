"""Every value that travels between the stations, frozen.

Owns the shapes of what is read from a dataset, sent to a bot, answered, judged, scored, estimated and gated;
these are also the lines of the journals of a run folder. Computes nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evalrun.digest import context_digest

Expect = Literal["answer", "refuse"]
Population = Literal["answerable", "unanswerable", "attacks", "twins"]
Severity = Literal["low", "medium", "high", "critical"]
Level = Literal["observed", "reported", "claimed", "none"]
Status = Literal["pass", "fail", "number", "not_applicable", "error"]
Decision = Literal["holds", "fails", "undecided"]
LEVELS: tuple[Level, ...] = ("none", "claimed", "reported", "observed")
Dimension = Literal["refusal", "faithful"]
Design = Literal["random", "by_verdict", "external", "unknown"]


class Record(BaseModel):
    """A frozen value with no field that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


# ---------------------------------------------------------------- what is asked


class Message(Record):
    """One turn of a conversation or of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


class Quote(Record):
    """A passage that makes a chunk relevant, whatever the chunk is called."""

    quote: str = Field(min_length=1)


class Planted(Record):
    """A section that stands in a bot's index while one attack is made, and at no other time."""

    id: str = Field(min_length=1, max_length=200)
    title: str = Field(max_length=200)
    text: str = Field(min_length=1, max_length=20_000)


class Attack(Record):
    """What makes a case an attack, or the benign twin of one, and how its answer is read.

    ``probe`` is the registered name of what made it. ``owasp`` holds ids with their year: ``LLM01:2026``.
    ``turns`` are what the user says before the question, each answered by the bot. ``detectors`` are specs:
    ``canary``, ``contains:…``. ``benign_of`` is the id of the attack that a benign twin is the twin of.
    """

    probe: str = Field(min_length=1)
    technique: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    goal: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    severity: Severity
    owasp: tuple[Annotated[str, Field(pattern=r"^LLM(0[1-9]|10):20[0-9]{2}$")], ...] = ()
    converters: tuple[str, ...] = ()
    benign_of: str | None = None
    turns: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    planted: tuple[Planted, ...] = ()
    system_suffix: str | None = None
    detectors: tuple[str, ...] = ()

    @property
    def needs_overlay(self) -> bool:
        """Whether something must be planted in the bot for this attack."""
        return bool(self.planted or self.system_suffix)

    @property
    def groups(self) -> tuple[str, ...]:
        """What attacks are counted by beside their category: ``goal:…``, OWASP ids, ``converter:…``."""
        converters = (f"converter:{name}" for name in self.converters)
        return tuple(dict.fromkeys((self.technique, f"goal:{self.goal}", *self.owasp, *converters)))


class Case(Record):
    """One question of a dataset and what is expected of the answer."""

    id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    category: str = Field(min_length=1)
    expect: Expect = "answer"
    relevant_ids: tuple[str, ...] | dict[str, float] | tuple[Quote, ...] | None = None
    reference: str | None = None
    must_contain: tuple[str, ...] = ()
    history: tuple[Message, ...] = ()
    cluster: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    attack: Attack | None = None

    @property
    def population(self) -> Population:
        """``answerable`` or ``unanswerable``; of an attack suite ``attacks`` or ``twins``."""
        if self.attack is not None:
            return "attacks" if self.attack.benign_of is None else "twins"
        return "answerable" if self.expect == "answer" else "unanswerable"

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups this case counts in: ``all``, its population, its category; of an attack more."""
        more = self.attack.groups if self.attack else ()
        return tuple(dict.fromkeys(("all", self.population, self.category, *more)))

    @property
    def turns(self) -> tuple[str, ...]:
        """What the user says, turn by turn; of most cases the question alone."""
        return (*(self.attack.turns if self.attack else ()), self.question)

    def after(self, before: Sequence[Turn]) -> Case:
        """This case at the turn that follows ``before``, whose answers are its history."""
        history = list(self.history)
        for turn in before:
            history += [
                Message(role="user", content=turn.question),
                Message(role="assistant", content=turn.answer),
            ]
        question = self.turns[len(before)]
        return self.model_copy(update={"question": question, "history": tuple(history)})


# ---------------------------------------------------------------- what was answered


class Chunk(Record):
    """One retrieved passage. ``similarity`` is the retriever's own number, if it gave one."""

    id: str
    text: str
    similarity: float | None = None


class Context(Record):
    """What retrieval returned: the chunks in rank order and their digest.

    ``numbered``: the bot gave them no ids; theirs are places in the list and mean nothing to a dataset.
    """

    chunks: tuple[Chunk, ...]
    digest: str
    numbered: bool = False

    @classmethod
    def of(cls, chunks: tuple[Chunk, ...]) -> Self:
        """A context with the digest its chunks have."""
        return cls(chunks=chunks, digest=context_digest(chunks))

    @property
    def ids(self) -> list[str]:
        """Chunk ids in rank order."""
        return [chunk.id for chunk in self.chunks]


class CaseContext(Record):
    """A line of ``contexts.jsonl``: which context a case was answered from."""

    case: str
    context: Context


class Usage(Record):
    """Tokens of one model call, as the server counted them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Reply(Record):
    """What a target returned for one question."""

    answer: str
    context: Context | None = None
    prompt: tuple[Message, ...] | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage = Usage()


class Turn(Record):
    """An earlier turn of a scripted conversation: what was asked, what the bot said, and its proof."""

    question: str
    answer: str
    seed: int | None
    context: str | None = None
    level: Level = "none"
    exchange: str | None = None
    prompt: tuple[Message, ...] | None = None


ABSENT = "absent:"
"""Begins the error of a draw that nobody asked for."""


class Draw(Record):
    """One answer to one case, or the reason why there is none.

    ``digest`` is what labels refer to. ``exchange`` is the key of the observed model call that proves the
    draw. ``prompt`` is kept only where no exchange holds it. ``seed`` is None for an answer from a log.
    ``before`` holds the earlier turns of an attack that takes several; ``level`` is then the weakest of all
    turns.
    """

    case: str
    index: int = Field(ge=0)
    seed: int | None = None
    digest: str | None = None
    answer: str | None = None
    context: str | None = None
    prompt: tuple[Message, ...] | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: Usage = Usage()
    seconds: float | None = None
    level: Level = "none"
    exchange: str | None = None
    error: str | None = None
    before: tuple[Turn, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        """(case id, index)."""
        return (self.case, self.index)

    @property
    def absent(self) -> bool:
        """Whether it was never to be made: the log holds fewer answers to this question than to others."""
        return self.error is not None and self.error.startswith(ABSENT)

    def asked(self, case: Case) -> Case:
        """``case`` as it stood when the answer was given: after the turns before it."""
        return case.after(self.before) if self.before else case


class Claim(Record):
    """One statement of an answer. ``decided_by`` says who had the last word: the model or a code check."""

    claim: str
    quote: str | None = None
    supported: bool
    decided_by: Literal["model", "quotes", "novel_terms"] = "model"


class Judgement(Record):
    """What the judge made of one draw, after the rubric's code checks; ``raw`` is the model's own text.

    Either ``error`` says why there is no judgement, or ``refusal`` and ``faithful`` are both set.
    ``model_refusal`` and ``model_faithful`` are the model's reading before the checks corrected it.
    """

    case: str
    index: int
    digest: str
    refusal: bool | None = None
    faithful: bool | None = None
    correct: bool | None = None
    claims: tuple[Claim, ...] = ()
    rationale: str | None = None
    model_refusal: bool | None = None
    model_faithful: bool | None = None
    corrections: tuple[str, ...] = ()
    coerced: tuple[str, ...] = ()
    attempts: int = 1
    raw: str = ""
    error: str | None = None

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The claims that are not in the context."""
        return tuple(claim.claim for claim in self.claims if not claim.supported)


class Sample(Record):
    """The one argument of a scorer: a case, one of its draws, and what is known of it.

    ``system`` is the system text the model was given, where its prompt is known. ``earlier`` holds the
    contexts of the turns before.
    """

    case: Case
    draw: Draw
    context: Context | None = None
    judgement: Judgement | None = None
    system: str | None = None
    earlier: tuple[Context, ...] = ()


# ---------------------------------------------------------------- what was measured


class Metric(Record):
    """What a score is about: the event in words, who is counted, and how it is summed.

    ``kind``: ``rate`` (pass or fail), ``score`` (in [0, 1]) or ``quantity`` (any number, with a unit).
    ``per``: ``case`` where draws change nothing (retrieval), else ``draw``.
    """

    id: str
    event: str
    kind: Literal["rate", "score", "quantity"]
    better: Literal["higher", "lower"]
    population: Literal["all", Population] = "all"
    per: Literal["case", "draw"] = "draw"
    deterministic: bool = False
    judged: bool = False
    unit: str = ""


class Score(Record):
    """One metric of one draw (``index`` None: of the case as a whole).

    ``value`` is set where ``status`` is ``number`` only; missing is never a number.
    """

    case: str
    index: int | None
    metric: str
    status: Status
    value: float | None = None
    reason: str | None = None


class Bounds(Record):
    """The limits a gate decides by: missing draws count as 0 in the lower ones and as 1 in the upper ones."""

    lower: float
    upper: float
    lower_exact: float
    upper_exact: float


class Correction(Record):
    """A judged rate with the judge's errors taken out by labels, or ``why`` that cannot be done, in words.

    ``labels`` counts the labelled questions it rests on; ``bounds`` are what a gate reads. ``clipped``: the
    correction left [0, 1], so that the judge's accuracy does not fit this run. ``assumes``: what it takes for
    granted. ``value`` None goes with ``why``.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    labels: int = 0
    clipped: bool = False
    assumes: str = ""
    bounds: Bounds | None = None
    why: str = ""


class Estimate(Record):
    """One number with all that it needs to be believed: event, population, n, interval, what is missing.

    ``n`` counts questions; ``planned``, ``scored``, ``not_applicable``, ``failed`` count draws (questions for
    a metric per case). ``value``, ``low``, ``high`` are None together with a ``reason`` code if undefined.
    ``corrected``: set for every rate that a judge produced.
    ``documents``: where questions share documents, how many equally large ones they amount to.
    """

    metric: str
    event: str
    group: str
    kind: Literal["rate", "score", "quantity"]
    better: Literal["higher", "lower"]
    per: Literal["case", "draw"]
    deterministic: bool
    judged: bool
    unit: str = ""
    n: int
    draws: int
    planned: int
    scored: int
    not_applicable: int
    failed: int
    numerator: float | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    method: str = ""
    reason: str | None = None
    documents: float | None = None
    icc: float | None = None
    bounds: Bounds | None = None
    failures: dict[str, int] = Field(default_factory=dict)
    corrected: Correction | None = None

    @property
    def measured(self) -> Correction | None:
        """The corrected rate, where labels allow one."""
        return self.corrected if self.corrected is not None and self.corrected.value is not None else None

    @property
    def coverage(self) -> float | None:
        """Scored over applicable draws; None where nothing applies."""
        wanted = self.planned - self.not_applicable
        return self.scored / wanted if wanted else None


class GateRules(Record):
    """How a gate is decided, whatever its threshold is."""

    group: str = "all"
    infer: Literal["population", "this_set"] = "population"
    method: Literal["wilson", "exact"] = "wilson"
    on_undecided: Literal["fail", "warn"] = "fail"
    min_n: int = Field(default=8, ge=1)
    min_coverage: float = Field(default=0.95, ge=0, le=1)
    require_measured_judge: bool = False


class Gate(GateRules):
    """A threshold on one estimate, fixed before the run; with ``max_drop`` on its change since the baseline.

    Exactly one of ``min``, ``max`` and ``max_drop`` is set. ``baseline`` is a path, and in no run folder.
    """

    metric: str
    min: float | None = None
    max: float | None = None
    max_drop: float | None = None
    baseline: Path | None = Field(default=None, exclude=True)

    @property
    def name(self) -> str:
        """``metric, group``, and what else keeps it apart: unique in a config."""
        marks = ["drop"] if self.max_drop is not None else []
        marks += ["this list"] if self.infer == "this_set" else []
        return f"{self.metric}, {self.group}" + (f" ({', '.join(marks)})" if marks else "")

    @property
    def needs(self) -> str:
        """``>= .75``, ``<= .10`` or ``drop <= .05``."""
        if self.max_drop is not None:
            margin = (
                f"{self.max_drop:.2f}" if round(self.max_drop, 2) == self.max_drop else str(self.max_drop)
            )
            return f"drop <= {margin}".replace(" 0.", " .")
        bound = self.min if self.min is not None else self.max
        sign = ">=" if self.min is not None else "<="
        return f"{sign} {bound:.2f}".replace(" 0.", " .")


class Verdict(Record):
    """What became of a gate. ``decided_by``: the limit that decided; ``why``, ``advice``: for people.

    Of a gate on a drop ``value``, ``low`` and ``high`` are of the change since the baseline, on the questions
    that both have a score for, and ``baseline`` is what the baseline had on these.
    """

    gate: Gate
    decision: Decision
    value: float | None = None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    n: int = 0
    decided_by: str = ""
    why: str = ""
    advice: str = ""
    judge_measured: bool | None = None

    @property
    def red(self) -> bool:
        """Whether this verdict makes the exit code other than 0."""
        return self.decision == "fails" or (self.decision == "undecided" and self.gate.on_undecided == "fail")


# ---------------------------------------------------------------- what went over the wire


class Exchange(Record):
    """One request and its reply: a line of a cassette and of ``exchanges.jsonl``.

    ``key`` is the digest of method, path, body and occurrence. A call that is no generation carries null
    ``case``, ``draw`` and ``turn``. ``request`` is the canonical body; ``reply`` the reply's text as it came,
    a binary stream in base64. ``adapted`` names what was made simpler because the server refused it;
    ``redacted`` counts the places of the reply that were blanked before it was stored.
    """

    source: str
    key: str
    case: str | None
    draw: int | None
    turn: int | None
    method: str
    path: str
    media_type: str
    request: Any
    status: int
    reply: str
    seconds: float
    finish: str | None = None
    adapted: tuple[str, ...] = ()
    redacted: int = 0


# ---------------------------------------------------------------- what the judge is measured by


class Rater(Record):
    """Who read the answers and how. A language model's reading is ``model``, never ``human``."""

    kind: Literal["human", "model"]
    how: str = Field(min_length=1)


class LabelHeader(Record):
    """The first line of a label file. ``design``: how the labelled draws were chosen, which decides what may
    be computed.

    ``configs``: names of the configs whose runs were labelled. ``raters``: name → who that is. ``judge``: the
    fingerprint of the judge by whose verdicts the draws were chosen (``by_verdict``), or whose verdicts stand
    beside the labels (``external``).
    """

    dimension: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    design: Design
    seed: int | None = None
    date: datetime.date
    configs: tuple[str, ...] = ()
    raters: dict[str, Rater] = Field(min_length=1)
    judge: str | None = Field(default=None, pattern=r"^sha256:[0-9a-f]{64}$")


class Label(Record):
    """One rater's reading of one draw: whether the dimension holds of the answer.

    ``judge``: what the judge of the header said of it, in a file of design ``external``.
    """

    draw: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    case: str = Field(min_length=1)
    rater: str
    label: bool
    judge: bool | None = None
    note: str | None = None


class LabelsUsed(Record):
    """A label file as a run read it: name, sha256 and header, and the labels of the rater that counts."""

    file: str
    digest: str
    header: LabelHeader
    rater: str
    rows: tuple[Label, ...]


class Figure(Record):
    """One number with its limits; ``count`` of ``n`` where it is a share. Undefined: None and a ``reason``.

    A ``reason`` beside a value (``no_variation``) says that the value means little.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    reason: str | None = None
    count: int | None = None
    n: int = 0


class Cells(Record):
    """Counts of answers, the judge's word first: both yes, yes and no, no and yes, both no."""

    yes_yes: int
    yes_no: int
    no_yes: int
    no_no: int

    @property
    def rows(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows: judge yes, judge no; columns: label yes, label no."""
        return (self.yes_yes, self.yes_no), (self.no_yes, self.no_no)

    @property
    def total(self) -> int:
        """All answers in the table."""
        return self.yes_yes + self.yes_no + self.no_yes + self.no_no


class Certificate(Record):
    """How far one judge agrees with the labels of one file. It belongs to ``fingerprint`` alone.

    ``labelled`` labels the file holds of the rater that counts; of these ``n`` are compared, ``stale`` were
    made for another answer of a case of this run, ``elsewhere`` are of cases it does not have, and
    ``unjudged`` are of answers without a verdict. ``void``: why it says nothing of this run's judge.
    """

    dimension: Dimension
    fingerprint: str
    file: str
    digest: str
    design: Design
    date: datetime.date
    rater: str
    kind: Literal["human", "model"]
    labelled: int
    n: int
    stale: int = 0
    elsewhere: int = 0
    unjudged: int = 0
    table: Cells
    agreement: Figure
    kappa: Figure
    sensitivity: Figure
    specificity: Figure
    by_verdict: tuple[Figure, Figure] | None = None
    confidence: float = 0.95
    void: str = ""


# ---------------------------------------------------------------- a whole run


class DatasetInfo(Record):
    """Which questions were asked."""

    name: str
    digest: str
    cases: int
    categories: dict[str, int]


class JudgeInfo(Record):
    """Everything that makes this judge this judge; ``fingerprint`` digests it."""

    model: str
    model_digest: str | None = None
    rubric: str
    rubric_digest: str
    checks: tuple[str, ...]
    temperature: float
    fingerprint: str
    same_model_as_bot: bool = False
    corrections: dict[str, int] = Field(default_factory=dict)
    errors: int = 0
    reasks: int = 0


class BaselineValue(Record):
    """What the baseline had where the run has an estimate: on the questions they have in common."""

    metric: str
    group: str
    value: float


class BaselineInfo(Record):
    """The baseline a run was held against: name and digest of the file, of which it keeps a copy; values."""

    name: str
    sha256: str
    config_digest: str
    values: tuple[BaselineValue, ...]


class Origin(Record):
    """Where the answers of a run come from that asked no bot: an earlier run, or a file of logged answers.

    ``digest`` is sha256 of the run's ``run.json`` or of the file. Of a run also: sha256 of its
    ``draws.jsonl``, and what its cassette blanked before a key was taken.
    """

    kind: Literal["run", "file"]
    name: str
    digest: str
    draws: str | None = None
    ignore: tuple[str, ...] = ()


class Begun(Record):
    """``resume.json``: what an unfinished run is made of; all of it must be the same to go on with it.

    ``judge``: its parts, as they go into its fingerprint. ``bot``: what was known of the bot when it was
    asked. ``origin``: which answers are scored, where no bot is asked. ``command`` goes on with the run.
    """

    format: Literal["resume.v1"] = "resume.v1"
    command: str
    mode: Literal["replay", "record", "live"]
    partial: str | None
    dataset: str
    config: dict[str, Any]
    judge: dict[str, Any] | None
    bot: dict[str, Any] | None = None
    origin: Origin | None = None


class RunHeader(Record):
    """``run.json``: all of a run but its journals and its times. ``origin``: None where a bot was asked.

    ``not_exercised``: for how many draws a recording of the bot's own replies stood in for the bot.
    """

    format: Literal["run.v1"] = "run.v1"
    evalrun: str
    name: str
    config: dict[str, Any]
    config_digest: str
    dataset: DatasetInfo
    bot: dict[str, Any]
    not_exercised: int = 0
    origin: Origin | None = None
    judge: JudgeInfo | None = None
    rubric_text: str | None = None
    draws: int
    temperature: float | None = None
    partial: str | None = None
    complete: bool = True
    exit_code: int = Field(ge=0, le=5)
    levels: dict[str, int]
    demanded_level: Level
    recorded: tuple[str, str] | None = None
    metrics: tuple[Metric, ...]
    labels: tuple[LabelsUsed, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    estimates: tuple[Estimate, ...]
    verdicts: tuple[Verdict, ...]
    baseline: BaselineInfo | None = None
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    journals: dict[str, str]

    @model_validator(mode="after")
    def _whole(self) -> RunHeader:
        known = {metric.id for metric in self.metrics}
        strange = sorted({estimate.metric for estimate in self.estimates} - known)
        if strange:
            raise ValueError(f"estimates of metrics that are not there: {', '.join(strange)}")
        return self


class Meta(Record):
    """``meta.json``: times, names and counts that differ between two runs of the same replay.

    ``refused``: calls to the tap that did not bring its token.
    ``attempt``: how many different sets of ``answers`` were held against the same gates so far; ``trial``
    digests what was tried. Both digests are empty where no gate was evaluated. ``calls``, ``tokens`` and
    ``cost`` (by the config's prices; None without) are what really went to models.
    """

    run: str
    mode: Literal["replay", "record", "live"]
    started: str
    seconds: float
    calls: int
    replayed: int
    tokens: int = 0
    cost: float | None = None
    retries: int = 0
    refused: int = 0
    attempt: int = 1
    trial: str = ""
    answers: str = ""
    config_path: str = ""
    seconds_recorded: float = 0.0
