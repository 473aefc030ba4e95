"""A plugin is tested without a run: a sample in, a value out."""

from manners import brief

from evalrun.records import Case, Draw, Sample
from evalrun.scorers import score


def said(answer: str) -> str:
    """The status of one answer."""
    case = Case(id="one", question="When?", category="any")
    sample = Sample(case=case, draw=Draw(case="one", index=0, seed=1, answer=answer))
    [found] = score(brief(None), sample, per="draw")
    return found.status


def test_brief() -> None:
    """58 characters pass, 59 do not."""
    assert "pass" == said("x" * 58)
    assert "fail" == said("x" * 59)
