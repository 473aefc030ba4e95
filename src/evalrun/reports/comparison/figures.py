"""Changes, p-values and rounded counts as they are printed."""

from __future__ import annotations

import math

from evalrun.reports.words import rate


def signed(value: float | None) -> str:
    """A change with its sign: ``+.04``, ``-.15``; ``.00`` is said of exactly 0 only."""
    if value is None:
        return "–"
    if value == 0:
        return ".00"
    text = next((t for d in (2, 3) if float(t := f"{value:+.{d}f}")), f"{value:+.3f}")
    return text.replace("0.", ".", 1).replace("1.00", "1.0")


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
