"""A rate given as ``26/35``, and the line that says how sure it is.

Owns the reading of such counts and their wording; the intervals are those of :mod:`evalrun.stats`.
"""

from __future__ import annotations

import re

from evalrun import stats
from evalrun.errors import UserError
from evalrun.reports.comparison.figures import limits, signed
from evalrun.reports.words import interval, rate

_COUNT = re.compile(r"\s*([0-9]{1,12})\s*/\s*([0-9]{1,12})\s*\Z")
Count = tuple[int, int]


def read_count(text: str) -> Count:
    """``26/35`` → (26, 35).

    Raises:
        UserError: it is not two whole numbers, more passes than questions, or no question at all.
    """
    found = _COUNT.match(text)
    if found is None:
        raise UserError(f"'{text}' is not PASSES/N", "write it like 26/35")
    passes, n = int(found[1]), int(found[2])
    if passes > n:
        raise UserError(f"{text}: {passes} of {n} cannot be", "passes come first: 26/35")
    if n == 0:
        raise UserError(f"{text}: no questions, so there is no rate", "write it like 26/35")
    return passes, n


def rate_line(passes: int, n: int) -> str:
    """``26 of 35: .74 [.58, .86]  95%, Wilson``."""
    found = stats.wilson_ci(passes, n)
    assert found.estimate is not None
    return f"{passes} of {n}: {rate(found.estimate)} {interval('rate', found.low, found.high)}  95%, Wilson"


def difference_line(first: Count, second: Count) -> str:
    """The second rate less the first, taken as rates of different questions."""
    found = stats.unpaired_ci(stats.wilson_ci(*second), stats.wilson_ci(*first))
    assert found.estimate is not None
    change = f"{signed(found.estimate)} {limits(found.low, found.high)}"
    return f"difference, second less first: {change}  95%, Newcombe, unpaired"
