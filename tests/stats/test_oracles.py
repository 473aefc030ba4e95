"""Every function of the product against values computed elsewhere: published tables and other libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from oracle_adapters import ADAPTERS

ORACLES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "oracles.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", ORACLES, ids=[case["name"] for case in ORACLES])
def test_oracle(case: dict[str, Any]) -> None:
    """A function returns what its oracle expects, within the oracle's tolerance."""
    found = ADAPTERS[case["function"]](**case["inputs"])
    for key, expected in case["expected"].items():
        if isinstance(expected, dict):
            assert expected["min"] - case["tol"] <= found[key] <= expected["max"] + case["tol"], key
        elif expected is None or isinstance(expected, list):
            assert expected == (pytest.approx(found[key], abs=case["tol"]) if expected else found[key]), key
        else:
            assert found[key] == pytest.approx(expected, abs=case["tol"]), key


def test_every_adapter_has_an_oracle() -> None:
    """No function stands in the table that no oracle tests."""
    assert set(ADAPTERS) == {case["function"] for case in ORACLES}
