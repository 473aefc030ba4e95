"""What a run is asked to do: the fields of a config file, their defaults and limits.

Owns what each field may hold and which of it goes into a run folder. Leaves reading the file and the rules
between sections to ``config``, and a target's own options to its ``Options``.
"""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    PlainSerializer,
    PrivateAttr,
    ValidationInfo,
    field_serializer,
    field_validator,
)
from pydantic import model_validator as validate_model
from pydantic_core import PydanticCustomError

from evalrun.addresses import UrlPath, is_address
from evalrun.digest import tagged
from evalrun.errors import UserError
from evalrun.records import Gate, GateRules, Level, Record
from evalrun.redaction import BLANKED, secrets_of, shown_values
from evalrun.reducers import Reducer, split
from evalrun.registry import parse_spec
from evalrun.yamlfile import Document, Loc

_KEYS = ("OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY")
"""Variables that hold a key where a config names none."""
_KEY_LENGTH = 12
"""Characters. A shorter word may be a dummy such as ``ollama``, which stands in many texts by right."""
OLLAMA_PORT = 11434
DEFAULT_OLLAMA = f"http://127.0.0.1:{OLLAMA_PORT}"
_FOLDER_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?\Z")
MODULE = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"
_LISTENING = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where a server listens on every interface → where it is reached on this machine."""
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?\Z", re.IGNORECASE)


def _fault(message: str, hint: str = "") -> PydanticCustomError:
    return PydanticCustomError("config", "{message}", {"message": message, "hint": hint})


# ---------------------------------------------------------------- kinds of text


def is_folder_name(text: str) -> bool:
    """Whether a folder may be called so on every system: ``nul`` and its like are none on Windows."""
    return bool(_FOLDER_NAME.match(text)) and not _DEVICE.match(text)


def _folder_name(text: str) -> str:
    if not is_folder_name(text):
        raise _fault(
            "cannot be the name of a folder everywhere",
            "use letters, digits, '.', '_' and '-', at most 64, beginning and ending with a letter or digit",
        )
    return text


def _url(text: str) -> str:
    """Whole and without a slash at the end; what is missing is filled in as Ollama does for OLLAMA_HOST."""
    full = text if "://" in text else f"http://{_bracketed(text)}"
    if not is_address(full):
        raise _fault("is not the address of a server", f"write it like {DEFAULT_OLLAMA}")
    parts = urlsplit(full)
    if "@" in parts.netloc:
        raise _fault("holds a name and a password", "a key belongs into the variable that 'key_env' names")
    host = _LISTENING.get(parts.hostname or "", parts.hostname or "")
    port = parts.port or (OLLAMA_PORT if "://" not in text else None)
    where = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    return parts._replace(netloc=where).geturl().rstrip("/")


def _bracketed(text: str) -> str:
    """A host as it stands in a URL: that of ``:port`` is this machine."""
    try:
        return f"[{ipaddress.IPv6Address(text)}]"
    except ValueError:
        return f"127.0.0.1{text}" if text.startswith(":") else text


def _model(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_-]*/\S+", text):
        raise _fault("is not provider/name", "write it like ollama/qwen2.5:7b")
    return text


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as fault:
        raise _fault(f"is not a regular expression: {fault}") from None
    return text


def _argument(text: str) -> str:
    if "\0" in text:
        raise _fault("holds a NUL, which no program can be given")
    return text


def _variable_name(text: str) -> str:
    if not text or "=" in text or "\0" in text:
        raise _fault("is not the name of a variable", "write it like MODEL_URL")
    return text


def _redactable(text: str) -> str:
    pattern = re.compile(_regex(text))
    if pattern.search(""):
        raise _fault("matches an empty text, and so any reply", "match what is to go, as in '[0-9]{7,}'")
    if pattern.search(BLANKED):
        raise _fault(f"matches '{BLANKED}', which it leaves in its place", "match less")
    return text


def _spec(text: str, info: ValidationInfo) -> str:
    base, reducer = split(text)
    try:
        parse_spec(base)
        known = (info.context or {}).get("check_scorer")
        if ":" in text:
            Reducer.of(reducer)
        elif known is not None:
            known(text)
    except UserError as fault:
        raise _fault(f"is not a scorer: {fault.message}", fault.hint) from None
    return text


def _in_folder(path: Path, info: ValidationInfo) -> Path:
    if "\0" in str(path) or any(len(part.encode("utf-8", "replace")) > 255 for part in path.parts):
        raise _fault("is not a path")
    folder = (info.context or {}).get("folder")
    return path if folder is None else folder / path


def _file(path: Path, info: ValidationInfo) -> Path:
    full = _in_folder(path, info)
    if (info.context or {}).get("folder") is not None and not full.is_file():
        raise _fault(f"names no file: {full}", "paths are relative to the folder of the config")
    return full


Url = Annotated[str, AfterValidator(_url)]
Argument = Annotated[str, AfterValidator(_argument)]
VariableName = Annotated[str, AfterValidator(_variable_name)]
FilePath = Annotated[Path, AfterValidator(_file)]
FolderPath = Annotated[Path, AfterValidator(_in_folder)]


# ---------------------------------------------------------------- sections
# A field with exclude=True is a limit, an address or a path: it changes how a run is made, not what it
# measures, and stays out of the run folder and of the digest.


class Limits(Record):
    """How hard a service may be driven. ``timeout`` in seconds, ``rate`` in calls a second."""

    concurrency: int = Field(default=4, ge=1, le=1000)
    timeout: float = Field(default=120, gt=0)
    rate: float | None = Field(default=None, gt=0)
    retries: int = Field(default=2, ge=0, le=100)


class Launch(Record):
    """How to start a bot: ``{port}`` and ``{tap}`` are filled in when it is started. Seconds."""

    command: tuple[Argument, ...] = Field(min_length=1, repr=False)
    env: dict[VariableName, Argument] = Field(default_factory=dict, repr=False)
    ready: UrlPath = Field(default="/healthz", pattern="^/")
    timeout: float = Field(default=60, gt=0, exclude=True)

    @field_serializer("env")
    def _without_secrets(self, env: dict[str, str]) -> dict[str, str]:
        return shown_values(env)

    @property
    def tapped(self) -> bool:
        """Whether the bot is told where the tap is."""
        return any("{tap}" in text for text in (*self.command, *self.env.values()))

    @property
    def told_port(self) -> bool:
        """Whether the bot is told where to listen."""
        return any("{port}" in text for text in (*self.command, *self.env.values()))


class TargetConfig(Record):
    """What answers. The keys beside these three are the ``options`` of the kind; ``url`` is an address."""

    kind: str
    launch: Launch | None = None
    limits: Limits = Field(default=Limits(), exclude=True)
    options: Any = Field(default=None, exclude=True)

    @property
    def tapped(self) -> bool:
        """Whether the bot's model calls pass the tap."""
        launched = self.launch is not None and self.launch.tapped
        return launched or bool(getattr(self.options, "tapped", False))


class DatasetConfig(Record):
    """Which questions; ``columns`` names a CSV's column of each field of a case."""

    path: FilePath = Field(exclude=True)
    columns: dict[str, str] | None = None


class CassetteConfig(Record):
    """Where replies are recorded, which server gives them, what is blanked in a request's key.

    ``at: model`` records what models reply; ``at: bot`` what the bot itself replies, where it cannot run: a
    replay then exercises nothing of it. ``about`` is what cannot be read off the wire (file, sha256, server)
    and goes into ``source.json``. ``redact`` are patterns of what is blanked in a reply before anybody reads
    it and before it is stored; ``compress`` stores the lines packed.
    """

    path: FolderPath = Field(exclude=True)
    at: Literal["model", "bot"] = "model"
    upstream: Url = Field(default=DEFAULT_OLLAMA, exclude=True)
    ignore: tuple[Annotated[str, AfterValidator(_regex)], ...] = ()
    redact: tuple[Annotated[str, AfterValidator(_redactable)], ...] = ()
    compress: bool = Field(default=False, exclude=True)
    about: dict[Literal["bot", "judge"], dict[str, str]] = Field(default_factory=dict, exclude=True)


def _ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise _fault("is no IP address to listen on", "write one, as in 0.0.0.0 or 172.17.0.1") from None


TOKEN = r"^[A-Za-z0-9._~-]{16,128}$"


def _token(text: str) -> str:
    if not re.fullmatch(TOKEN, text):
        said = f"has {len(text)} characters" if not 16 <= len(text) <= 128 else "holds another character"
        raise _fault(
            f"is no token: 16 to 128 of A-Z, a-z, 0-9 and . _ ~ -, and this one {said}",
            'make one: export TAP_TOKEN=$(python -c "import secrets; print(secrets.token_urlsafe(24))")',
        )
    return text


class TapConfig(Record):
    """Where the tap listens, for a bot that does not run on this machine's loopback, as in a container.

    ``bind``: an address of this machine; ``0.0.0.0`` is all of them. ``host``: the name by which the bot
    calls it, where that is another. ``token``: what every call must bring, from the environment; ``{tap}``
    holds it as the first part of its path, and ``Authorization: Bearer`` may bring it instead. Beyond
    loopback there is no tap without one.
    """

    bind: Annotated[str, AfterValidator(_ip)] = "127.0.0.1"
    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$")
    token: Annotated[str, AfterValidator(_token), Field(json_schema_extra={"pattern": TOKEN})] | None = Field(
        default=None, repr=False
    )

    @validate_model(mode="after")
    def _guarded(self) -> TapConfig:
        address = ipaddress.ip_address(self.bind)
        if not address.is_loopback and self.token is None:
            hint = 'add token: "${TAP_TOKEN}", set to 16 letters and digits or more'
            raise _fault(f"opens {self.bind} to the network without a 'token'", hint)
        if address.is_unspecified and self.host is None:
            hint = "add host: host.docker.internal, or the name of this machine that the bot knows"
            raise _fault(f"needs a 'host' beside bind: {self.bind}, which no bot can call", hint)
        return self


class JudgeConfig(Record):
    """Which model reads the answers, by which rubric.

    ``base_url`` is the address of its server; by default what the environment says: ``OLLAMA_HOST``,
    ``OPENAI_BASE_URL``, or Bedrock in ``AWS_REGION``. ``key_env`` names the variable that holds its key,
    by default ``OPENAI_API_KEY``; a key itself stands in no config.
    """

    model: Annotated[str, AfterValidator(_model)]
    rubric: FilePath = Field(exclude=True)
    temperature: float = Field(default=0.0, ge=0)  # 0 and 0.0 are two texts, and so two fingerprints
    base_url: Url | None = Field(default=None, exclude=True)
    key_env: str | None = Field(default=None, exclude=True)
    limits: Limits = Field(default=Limits(), exclude=True)

    @field_validator("base_url", mode="before")
    @classmethod
    def _whole(cls, url: object, info: ValidationInfo) -> object:
        """Only for Ollama a missing scheme and port are known."""
        provider = str(info.data.get("model", "ollama/")).partition("/")[0]
        if isinstance(url, str) and url and "://" not in url and provider != "ollama":
            raise _fault("is not the address of a server", f"write it like https://{url}")
        return url


class Budget(Record):
    """What a run may spend, one that goes on counting anew; it ends with exit 3 as soon as one is reached.

    ``calls`` to models, of the bot and of the judge together; ``tokens`` that these read and wrote;
    ``seconds``; ``cost`` by ``prices``. What is replayed costs nothing. Nothing new is begun then, but what
    is in flight is finished and kept: a run may end above its budget by as many answers and verdicts as the
    ``limits.concurrency`` of target and judge let be in flight.
    """

    calls: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0)
    cost: float | None = Field(default=None, gt=0)


class Price(Record):
    """What a model costs: a million tokens read, a million written, in any one currency."""

    prompt: float = Field(default=0.0, ge=0)
    completion: float = Field(default=0.0, ge=0)

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """The cost of so many tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


class JUnitConfig(Record):
    """How unmet expectations of single cases look in ``junit.xml``, and whether model text is in it."""

    cases: Literal["skipped", "failure"] = "skipped"
    include_text: bool = False


class ReportsConfig(Record):
    """What the reports show where there is a choice."""

    junit: JUnitConfig = JUnitConfig()


class Fact(Record):
    """A harmless question that the bot can answer, and its subject in a word or two: for benign twins."""

    question: str = Field(min_length=1)
    topic: str = Field(min_length=1)


class AttacksConfig(Record):
    """What fills the probes. A probe that names what is not given here does not apply.

    ``seed`` makes the canaries. ``owner``: whose bot it is; ``subject``: what it speaks about;
    ``private_terms``: names or values that it may neither tell nor confirm; ``probes``: files of own probes.
    ``planted: by_hand``: what ``--save-planted`` wrote stands among the bot's documents, and only attacks by
    document are made.
    """

    seed: str = Field(default="evalrun", min_length=1)
    owner: str | None = None
    subject: str | None = None
    private_terms: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    probes: tuple[FilePath, ...] = Field(default=(), exclude=True)
    planted: Literal["by_hand"] | None = None


def _baseline_file(path: Path, info: ValidationInfo) -> Path:
    full = _in_folder(path, info)
    if (info.context or {}).get("folder") is not None and not full.is_file():
        raise _fault(f"names no file: {full}", "make it from a run: evalrun accept RUN")
    return full


class MaxDrop(Record):
    """By how much a metric may get worse than in the ``baseline`` that ``evalrun accept`` wrote: 0.05."""

    metric: str
    margin: float = Field(ge=0, lt=1)
    baseline: Annotated[Path, AfterValidator(_baseline_file)] = Field(exclude=True)


class GateConfig(GateRules):
    """A threshold: ``metric`` with ``min`` or ``max``, or ``max_drop``."""

    metric: str | None = None
    min: float | None = Field(default=None, ge=0, le=1)
    max: float | None = Field(default=None, ge=0, le=1)
    max_drop: MaxDrop | None = None

    @validate_model(mode="after")
    def _one_bound(self) -> GateConfig:
        if [self.min, self.max, self.max_drop].count(None) != 2:
            raise _fault("needs one of 'min', 'max' and 'max_drop'", "a gate has one limit")
        if self.max_drop is None and self.metric is None:
            raise _fault("needs a 'metric'", "name what is measured, as in metric: grounded")
        if self.max_drop is not None and self.metric is not None:
            raise _fault("names a metric beside 'max_drop'", "write it inside: max_drop: {metric: …}")
        if self.max_drop is not None and self.method == "exact":
            raise _fault("has no exact method for a drop", "leave out 'method'")
        return self


def _as_gate(gate: GateConfig) -> Gate:
    rules = {name: getattr(gate, name) for name in GateRules.model_fields}
    if gate.max_drop is None:
        return Gate(**rules, metric=gate.metric or "", min=gate.min, max=gate.max)
    drop = gate.max_drop
    return Gate(**rules, metric=drop.metric, max_drop=drop.margin, baseline=drop.baseline)


if TYPE_CHECKING:
    _Gate = Gate
else:  # what is written in a file is checked as it is written, and is a gate from then on
    _Gate = Annotated[GateConfig, AfterValidator(_as_gate), PlainSerializer(lambda gate: gate.model_dump())]


class RunConfig(Record):
    """One config file, checked. Paths are joined to the folder it lies in."""

    name: Annotated[str, AfterValidator(_folder_name)]
    plugins: tuple[Annotated[str, Field(pattern=MODULE)], ...] = ()
    dataset: DatasetConfig | None = None
    redteam: AttacksConfig | None = None
    target: TargetConfig
    cassette: CassetteConfig | None = None
    tap: TapConfig = Field(default=TapConfig(), exclude=True)
    draws: int = Field(default=1, ge=1, le=1000)
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)
    scorers: tuple[Annotated[str, AfterValidator(_spec)], ...] = Field(min_length=1)
    judge: JudgeConfig | None = None
    labels: tuple[FilePath, ...] = Field(default=(), exclude=True)
    provenance: Level = "observed"
    budget: Budget = Field(default=Budget(), exclude=True)
    prices: dict[Literal["bot", "judge"], Price] = Field(default_factory=dict, exclude=True)
    gates: tuple[_Gate, ...] = ()
    reports: ReportsConfig = ReportsConfig()

    _document: Document = PrivateAttr(default_factory=lambda: Document(Path("config")))

    @field_validator("scorers", mode="after")
    @classmethod
    def _each_once(cls, scorers: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({spec for spec in scorers if scorers.count(spec) > 1})
        if twice:
            raise _fault(f"holds '{twice[0]}' twice", "keep one of them")
        return scorers

    @property
    def at_bot(self) -> bool:
        """Whether the bot's own replies are recorded, instead of its model's."""
        return self.cassette is not None and self.cassette.at == "bot"

    @property
    def upstream(self) -> str:
        """Where the tap sends the calls to the bot's model: as the cassette says, else ``OLLAMA_HOST``.

        Raises:
            UserError: there is no cassette, and ``OLLAMA_HOST`` is no address.
        """
        if self.cassette is not None:
            return self.cassette.upstream
        try:
            return _url(os.environ.get("OLLAMA_HOST") or DEFAULT_OLLAMA)
        except PydanticCustomError as error:
            raise UserError(f"OLLAMA_HOST {error.message()}") from None

    @property
    def tapped(self) -> bool:
        """Whether the bot's model calls pass the tap."""
        return self.target.tapped and not self.at_bot

    @property
    def path(self) -> Path:
        """The file this was read from."""
        return self._document.path

    @property
    def folder(self) -> Path:
        """Where a launched bot runs, and what paths are relative to."""
        return self.path.parent

    def where(self, *loc: str | int) -> str:
        """``file:line:col`` of a value, for messages."""
        return self._document.where(loc)

    def written_in_env(self, *loc: str | int) -> bool:
        """Whether the environment had a part in a value."""
        return loc in self._document.from_env

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys that this config names or reads, which must stand in nothing that is written."""
        given = self._document.variables.items()
        found = {f"{loc} {name}": text for loc, used in given for name, text in used.items()}
        named = {getattr(self.judge, "key_env", None), getattr(self.target.options, "key_env", None)}
        found |= {f"key {name}": os.environ.get(name, "") for name in (*named, *_KEYS) if name}
        for where in ("headers", "env"):
            found |= getattr(self.target.options, where, None) or {}
        found |= self.target.launch.env if self.target.launch else {}
        words = secrets_of(found)
        return tuple(word for word in words if len(word) >= _KEY_LENGTH)

    def public(self) -> dict[str, Any]:
        """What goes into ``run.json``: all that decides what is measured; no limit, address or path.

        Values that came from the environment stand as they are written, ``${NAME}``: no key gets out, and the
        same file gives the same bytes on every machine.
        """
        shown = self.model_dump(mode="json")
        # Exactly one of the two stands in a config; the other is no part of what was asked.
        del shown["dataset" if self.dataset is None else "redteam"]
        if isinstance(self.target.options, BaseModel):
            shown["target"] |= self.target.options.model_dump(mode="json", exclude={"url"})
        for loc, text in self._document.from_env.items():
            _restore(shown, loc, text)
        return shown

    @property
    def digest(self) -> str:
        """Digest of :meth:`public`."""
        return tagged("config", self.public())


def _restore(shown: Any, loc: Loc, text: str) -> None:
    """Put ``text`` at ``loc``, where there is such a place."""
    for part in loc[:-1]:
        shown = _part(shown, part)
    if _part(shown, loc[-1]) is not None:
        shown[loc[-1]] = text


def _part(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    return value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None
