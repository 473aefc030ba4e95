"""``junit.xml``: gates, faults of the run, and every question as test cases, for CI systems.

Owns names that are unique and stay the same between runs, text that XML can hold, and counts that equal the
elements; the file validates against the schema of Jenkins' xUnit plugin. Gates carry the failures, so that it
agrees with the exit code: a wrong answer is ``skipped`` with its reason unless the config asks for failures.
"""

# mypy: disable-error-code="no-untyped-call"
# (half of junitparser is annotated)

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from junitparser import Error, Failure, JUnitXml, Properties, Property, Skipped, TestCase, TestSuite

from evalrun.digest import tagged
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from evalrun.records import Meta, Metric, RunHeader, Verdict
from evalrun.reports import report
from evalrun.reports.rows import Detail, Result, Row, Rows, goodness, read_details, read_rows
from evalrun.reports.words import figure, gate_measured, gate_reasons, one_line, sentence, visible

CASES_MOST = 10_000
BYTES_MOST = 28_000_000
"""GitLab reads no report above 30 MB."""
_KINDS = 1_000
"""Kinds of test cases of one metric that are held ready."""
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_QUOTED = _ESCAPED | str.maketrans({'"': "&quot;", "\t": "&#9;", "\n": "&#10;"})


@dataclass(frozen=True)
class Asked:
    """``reports.junit`` of the config: how a wrong answer shows, and whether texts are included."""

    failures: bool
    include_text: bool

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Asked:
        """What the config of a run asks for; the defaults where it is silent."""
        reports = config.get("reports")
        asked = reports.get("junit") if isinstance(reports, dict) else None
        found = asked if isinstance(asked, dict) else {}
        return cls(found.get("cases") == "failure", found.get("include_text") is True)


@report("junit.xml")
def _whole(folder: RunFolder) -> bytes:
    """The run as JUnit XML. ``time`` and ``timestamp`` come from ``meta.json``, all else from the run."""
    return render(folder)


def render(folder: RunFolder, most: int = CASES_MOST, room: int = BYTES_MOST) -> bytes:
    """The run as JUnit XML. ``time`` and ``timestamp`` come from ``meta.json``, all else from the run.

    Of a large run the worst questions are shown: at most ``most`` of them, and fewer where the file would not
    fit in ``room`` bytes.
    """
    header, rows = folder.header, read_rows(folder)
    while len(written := _rendered(folder, header, rows, most)) > room and most:
        most = min(most, len(rows.rows)) // 2
    return written


def _rendered(folder: RunFolder, header: RunHeader, every: Rows, most: int) -> bytes:
    asked, rows = Asked.of(header.config), every.rows
    if len(rows) > most:
        shown = {row.id for row in every.worst()[:most]}
        rows = [row for row in rows if row.id in shown]
    details = read_details(folder, {row.id for row in rows}) if asked.include_text else {}
    suites = [*_gates(header), *_faults(header), *_metrics(header, rows, details, asked, len(every.rows))]
    meta, total = folder.meta, Counter[str]()
    texts = [_written_suite(suite, cases, meta, total) for suite, cases in suites]
    root = JUnitXml(one_line(f"evalrun {header.name}"))
    root.tests, root.failures, root.errors = total["testcase"], total["failure"], total["error"]
    root.time = round(meta.seconds, 3)
    opening, closing = _open("".join(_written(root._elem)))
    head = '<?xml version="1.0" encoding="UTF-8"?>\n' + opening
    return b"".join([head.encode(), *texts, f"{closing}\n".encode()])


class Written(NamedTuple):
    """A test case as text, and which elements it has."""

    tags: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, case: TestCase) -> Written:
        """A case with its name and all in it."""
        return cls(("testcase", *(child.tag for child in case._elem)), "".join(_written(case._elem)))


Suite = tuple[TestSuite, Iterable[Written]]


def _written_suite(suite: TestSuite, cases: Iterable[Written], meta: Meta, total: Counter[str]) -> bytes:
    """A suite as text, case by case: all of their elements together would outweigh the run."""
    kinds, text = Counter[tuple[str, ...]](), bytearray()
    for case in cases:
        kinds[case.tags] += 1
        text += case.text.encode()
    found = Counter[str]()
    for tags, times in kinds.items():
        found.update({tag: times * count for tag, count in Counter(tags).items()})
    suite.tests, suite.failures = found["testcase"], found["failure"]
    suite.errors, suite.skipped = found["error"], found["skipped"]
    suite.timestamp = meta.started
    total += found
    opening, closing = _open("".join(_written(suite._elem)))
    return b"".join([opening.encode(), text, closing.encode()])


def _open(text: str) -> tuple[str, str]:
    """An element as text, before and from its closing tag."""
    opening, _, closing = text.rpartition("</")
    return opening, f"</{closing}"


def _written(element: Any) -> Iterator[str]:
    """An element as text, a line a suite and a case: the same bytes whichever library junitparser found."""
    line = "\n" if element.tag in ("testsuite", "testcase") else ""
    attributes = "".join(
        f' {name}="{value.translate(_QUOTED)}"' for name, value in sorted(element.attrib.items())
    )
    yield f"{line}<{element.tag}{attributes}>{(element.text or '').translate(_ESCAPED)}"
    for child in element:
        yield from _written(child)
    yield f"</{element.tag}>"


# ---------------------------------------------------------------- gates and faults


def _gates(header: RunHeader) -> Iterator[Suite]:
    if header.verdicts:
        yield TestSuite("gates"), _gate_cases(header)


def _gate_cases(header: RunHeader) -> Iterator[Written]:
    names = distinct([f"{v.gate.name} {v.gate.needs}" for v in header.verdicts])
    for name, verdict in zip(names, header.verdicts, strict=True):
        case = TestCase(name, one_line(f"{header.name}.gates"))
        for element in _gate_result(verdict, header):
            case.append(element)
        if verdict.decision == "holds" or not verdict.red:
            case.system_out = visible(_gate_text(verdict, header))
        yield Written.of(case)


def _gate_result(verdict: Verdict, header: RunHeader) -> Iterator[Failure | Error]:
    if verdict.red:
        kind = Failure if verdict.decision == "fails" else Error
        result = kind(one_line(verdict.decided_by or verdict.why or verdict.decision), verdict.decision)
        result.text = visible(_gate_text(verdict, header))
        yield result


def _gate_text(verdict: Verdict, header: RunHeader) -> str:
    lines = [f"measured {gate_measured(verdict, header)}, needs {verdict.gate.needs}: {verdict.decision}"]
    if verdict.judge_measured is False:
        lines.append("the judge was not measured against labels")
    lines.append(verdict.decided_by)
    return "\n".join(filter(None, [*lines, *gate_reasons(verdict, header)]))


def _faults(header: RunHeader) -> Iterator[Suite]:
    if header.errors:
        yield TestSuite("run"), _fault_cases(header)


def _fault_cases(header: RunHeader) -> Iterator[Written]:
    kind = ExitCode(header.exit_code).name.lower()
    for number, text in enumerate(header.errors, start=1):
        case = TestCase(f"fault {number}", one_line(f"{header.name}.run"))
        fault = Error(one_line(text, 300), kind)
        fault.text = visible(f"{text}\n{sentence(header)}")
        case.append(fault)
        yield Written.of(case)


# ---------------------------------------------------------------- questions


def _metrics(
    header: RunHeader, rows: list[Row], details: Mapping[str, Detail], asked: Asked, every: int
) -> Iterator[Suite]:
    """``every``: how many questions there are, of which ``rows`` are shown."""
    ids = [row.id for row in rows]
    names = {id: name.translate(_QUOTED) for id, name in zip(ids, distinct(ids), strict=True)}
    for metric in header.metrics:
        counted = [row for row in rows if _counts(metric, row)]
        if counted:
            suite = TestSuite(one_line(metric.id))
            suite.append(_properties(metric, len(rows), every))
            classname = one_line(f"{header.name}.{metric.id}")
            yield suite, _cases(metric, counted, names, classname, details, asked)


def _cases(
    metric: Metric,
    rows: list[Row],
    names: Mapping[str, str],
    classname: str,
    details: Mapping[str, Detail],
    asked: Asked,
) -> Iterator[Written]:
    """What a large run says of its questions is mostly the same, but for their names: it is written once.

    ``names``: id → the name of the case as it stands in an attribute.
    """
    known: dict[Hashable, tuple[tuple[str, ...], str, str]] = {}
    for row in rows:
        result, detail = row.results[metric.id], details.get(row.id)
        number = "" if metric.kind == "rate" else _measured(metric, result)
        kind = (result.failed, result.scored, result.passed, result.reason, number)
        found = known.get(kind) if detail is None else None
        if found is None:
            case = TestCase("", classname)
            _fill(case, metric, result, detail, asked)
            tags, text = Written.of(case)
            before, _, behind = text.partition(' name=""')
            found = (tags, before, behind)
            if detail is None and len(known) < _KINDS:
                known[kind] = found
        tags, before, behind = found
        yield Written(tags, f'{before} name="{names[row.id]}"{behind}')


def _properties(metric: Metric, shown: int, every: int) -> Properties:
    properties = Properties()
    facts = {
        "event": metric.event,
        "better": metric.better,
        "population": metric.population,
        "kind": metric.kind,
    }
    if shown < every:
        facts["shown"] = f"the {shown:,} worst of {every:,} questions; scores.jsonl holds them all"
    for name, value in facts.items():
        properties.add_property(Property(name, one_line(value)))
    return properties


def _counts(metric: Metric, row: Row) -> bool:
    return metric.id in row.results and metric.population in ("all", row.population)


def _fill(case: TestCase, metric: Metric, result: Result, detail: Detail | None, asked: Asked) -> None:
    if result.failed:
        case.append(_reasoned(Error(one_line(result.reason, 300), "not_scored"), metric, result))
    elif not result.scored:
        case.append(Skipped(one_line(result.reason or "not applicable"), "not_applicable"))
        return
    elif metric.kind == "rate" and goodness(metric, result) != 1.0:
        kind = Failure if asked.failures else Skipped
        case.append(_reasoned(kind(_unmet(metric, result), "unmet"), metric, result))
    texts = [_measured(metric, result)] if metric.kind != "rate" and result.scored else []
    texts += _texts(detail) if detail else []
    if texts:
        case.system_out = visible("\n".join(texts))


def _reasoned(element: Any, metric: Metric, result: Result) -> Any:
    lost = f"; {result.failed} not scored: {result.reason}" if result.failed else ""
    element.text = visible(f"{_measured(metric, result)}{lost}")
    return element


def _unmet(metric: Metric, result: Result) -> str:
    wanted = "always" if metric.better == "higher" else "never"
    return one_line(f"{_measured(metric, result)}; expected {wanted}")


def _measured(metric: Metric, result: Result) -> str:
    if metric.kind == "rate":
        return f"{metric.event}: {result.passed} of {result.scored}"
    return f"{metric.event}: {figure(metric.kind, result.value, metric.unit)}"


def _texts(detail: Detail) -> list[str]:
    answers = [f"answer {draw.index + 1}: {draw.answer or draw.error or ''}" for draw in detail.draws]
    # A line of a model's must not begin a line of a log: there it could be a command to the CI system.
    return [text.replace("\n", "\n| ") for text in (f"question: {detail.case.question}", *answers)]


def distinct(texts: Iterable[str]) -> list[str]:
    """Names that differ from each other even where case and outer space do not count.

    Names that would collide get 8 digits of their own digest, whatever their order; equal texts a number.
    """
    originals = list(texts)
    lines = [one_line(text) for text in originals]
    folded = Counter(line.casefold() for line in lines)
    names = []
    for text, line in zip(originals, lines, strict=True):
        mark = f" [{_digits(text)}]" if folded[line.casefold()] > 1 else ""
        names.append(f"{line or '(blank)'}{mark}")
    return _numbered(names)


def _digits(text: str) -> str:
    return tagged("name", [text]).removeprefix("sha256:")[:8]


def _numbered(names: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    taken: set[str] = set()
    for place, name in enumerate(names):
        while names[place].casefold() in taken:  # a text may look like another one with its number
            seen[name] += 1
            names[place] = f"{name} ({seen[name] + 1})"
        taken.add(names[place].casefold())
    return names
