"""The special functions of scipy that intervals and plans are made of.

Owns their import, which a run waits for: ``scipy.special`` asks numpy for every package it has, and so would
load numpy's compiler interface, test tools and masked arrays for nothing, 7 MB and a third of the time.
"""

from __future__ import annotations

import sys

from evalrun.stats.blas import np

__all__ = ["bdtrc", "betaincinv", "stdtrit"]

_UNUSED = ("ctypeslib", "f2py", "ma", "polynomial", "testing")

# Packages that numpy imports when they are first asked for. With a placeholder they are not; afterwards they
# are asked for as ever, by scipy, too.
_held_back = [name for name in _UNUSED if f"numpy.{name}" not in sys.modules]
np.__dict__.update(dict.fromkeys(_held_back))
try:
    from scipy.special import bdtrc, betaincinv, stdtrit
finally:
    for _name in _held_back:
        if np.__dict__[_name] is None:
            del np.__dict__[_name]
