"""Changes, p-values and rounded counts as they are printed."""

from __future__ import annotations

import math

from evalrun.reports.words import rate, signed

__all__ = ["about", "limits", "p_value", "signed"]


def limits(low: float | None, high: float | None) -> str:
    """``[-.02, +.10]``, or an empty string."""
    return "" if low is None or high is None else f"[{signed(low)}, {signed(high)}]"


def p_value(p: float | None) -> str:
    """``.22``, ``<.001``; three digits below .10."""
    if p is None:
        return "–"
    if p < 0.001:
        return "<.001"
    return rate(p) if p >= 0.1 else f"{p:.3f}".replace("0.", ".", 1)


def about(number: int) -> str:
    """A number of questions, rounded up to two digits: 709 → ``710``."""
    step = 10 ** max(len(str(number)) - 2, 0)
    return f"{math.ceil(number / step) * step:,}"
