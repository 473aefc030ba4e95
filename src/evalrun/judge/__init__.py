"""The judge: a rubric, a model and code checks, from a draw to a judgement.

Owns everything between an answer and what is believed of it. A judgement says what the answer is; whether
that is good is the business of the scorers, and how far the judge can be trusted that of ``agreement``.
"""

from evalrun.judge.judge import Judge
from evalrun.judge.rubric import Rubric, load_rubric
from evalrun.judge.verdict import Parsed, Unreadable, parse_verdict

__all__ = ["Judge", "Parsed", "Rubric", "Unreadable", "load_rubric", "parse_verdict"]
