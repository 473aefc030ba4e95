"""numpy, imported with one thread for linear algebra: a run multiplies nothing that would keep a second busy.

Owns the environment for the time of that import, and nothing after it: a bot that is launched later gets the
user's own. Where something else has imported numpy before, it stays as it is.
"""

from __future__ import annotations

import os

__all__ = ["np"]

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

_unset = [name for name in _THREADS if name not in os.environ]
os.environ.update(dict.fromkeys(_unset, "1"))
try:
    import numpy as np
finally:
    for _name in _unset:
        del os.environ[_name]
