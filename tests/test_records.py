"""Values that travel: an attack changes no case that is none, and is counted in groups of its own."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from evalrun.comparison.measured import case_digest
from evalrun.jsonl import to_line
from evalrun.records import Attack, Case

PLAIN = Case(id="a", question="Where?", category="single_chunk")
ATTACK = Attack(
    probe="override",
    technique="direct_override",
    goal="leak_prompt",
    severity="high",
    owasp=("LLM01:2025", "LLM01:2026"),
    converters=("base64",),
)


def attack(**changes: object) -> Case:
    """A case that is an attack."""
    return PLAIN.model_copy(
        update={"category": "direct_override", "attack": ATTACK.model_copy(update=changes)}
    )


def test_a_case_without_an_attack_is_written_as_before() -> None:
    """No new key in a journal, and the digest that baselines already hold."""
    assert b'{"category":"single_chunk","id":"a","question":"Where?"}\n' == to_line(PLAIN)
    assert "sha256:193303f469c8" == case_digest(PLAIN)[:19]


def test_an_attack_counts_by_technique_goal_owasp_and_converter() -> None:
    """Beside ``all`` and its own population, never among the answerable questions."""
    expected = ("all", "attacks", "direct_override", "goal:leak_prompt")
    assert (*expected, "LLM01:2025", "LLM01:2026", "converter:base64") == attack().groups


def test_a_benign_twin_is_a_population_of_its_own() -> None:
    """It is no attack, so that over-refusal stands beside the attack success rate, not in it."""
    assert "twins" == attack(benign_of="b").population
    assert "attacks" not in attack(benign_of="b").groups


def test_what_an_attack_plants_is_part_of_what_a_case_asks() -> None:
    """Two runs are not paired by a case whose attack was changed."""
    assert case_digest(attack()) != case_digest(attack(turns=("Hello",)))


@pytest.mark.parametrize("owasp", ["LLM01", "LLM11:2025", "LLM00:2026", "LLM1:2025"])
def test_an_owasp_id_without_its_year_is_refused(owasp: str) -> None:
    """The list is renumbered from edition to edition: an id alone says nothing."""
    with pytest.raises(ValidationError):
        Attack.model_validate(ATTACK.model_dump() | {"owasp": [owasp]})
