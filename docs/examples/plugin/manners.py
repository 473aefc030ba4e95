"""A plugin: one scorer and one report of your own. A config names it under ``plugins``."""

from evalrun.errors import UserError
from evalrun.journal import RunFolder
from evalrun.records import Metric, Sample
from evalrun.reports import report
from evalrun.scorers import SCORERS, Scorer

SHORT = 58
METRIC = Metric(id="brief", event=f"at most {SHORT} characters", kind="rate", better="higher")


def is_brief(sample: Sample) -> dict[str, bool]:
    """Metric → value: true or false for a rate, a number in [0, 1] for a score, None: does not apply."""
    return {METRIC.id: len(sample.draw.answer or "") <= SHORT}


@SCORERS("brief")
def brief(k: int | None) -> Scorer:
    """Whether an answer is short."""
    if k is not None:
        raise UserError(f"scorer 'brief' takes no @{k}", "write brief")
    return Scorer("brief", (METRIC,), is_brief)


@report("long-answers.txt")
def long_answers(folder: RunFolder) -> bytes:
    """The answers that are too long, one a line."""
    long = [draw for draw in folder.draws() if len(draw.answer or "") > SHORT]
    return "".join(f"{draw.case}: {draw.answer!r}\n" for draw in long).encode()
