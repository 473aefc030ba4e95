"""The simulation passes what is as stated, and fails what is not."""

from __future__ import annotations

import numpy as np
import pytest

from coverage_simulation import PARTS, Row, Stated, Table, main


def test_a_sound_interval_passes(capsys: pytest.CaptureFixture[str]) -> None:
    """The product's intervals are as stated, and every row of the table says so."""
    assert 0 == main(["--repetitions", "60", "--part", "verdict"])
    printed = capsys.readouterr().out
    assert 2 == sum(line.endswith(" ok") for line in printed.splitlines())
    assert "everything is as stated" in printed


def test_a_point_is_no_interval() -> None:
    """Limits that miss the truth on both sides break every stated figure."""
    row = Row()
    row.add(np.array([0.6, 0.2]), np.array([0.6, 0.2]), 0.5, np.array([0.6, 0.2]))
    found = row.breaches(Stated(0.95, 0.9, 0.03, 0.03), 2000)
    assert ["mean coverage", "worst coverage", "false holds", "false fails"] == [
        " ".join(breach.split()[:2]) for breach in found
    ]


def test_chance_is_allowed_for() -> None:
    """What a few repetitions show is held against a row only beyond chance."""
    row = Row()
    low = np.zeros(100)
    low[:5] = 0.9
    row.add(low, np.ones(100), 0.5, np.ones(100))
    stated = Stated(0.95, 0.95, 0.03)
    assert [] == row.breaches(stated, 100)
    assert ["false holds 0.050, allowed 0.037"] == row.breaches(stated, 10_000)


def test_every_part_is_seeded() -> None:
    """The same part gives the same rows again."""
    tables = [Table(), Table()]
    for table in tables:
        PARTS["ppi"](table, np.random.default_rng(1), 5)
    assert tables[0].rows == tables[1].rows
