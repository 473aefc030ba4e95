"""A rubric file is checked whole: every problem at once, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalrun.errors import InputError
from evalrun.judge import load_rubric

RUBRICS = Path(__file__).parents[2] / "configs" / "rubrics"


def changed(tmp_path: Path, *changes: tuple[str, str], name: str = "claims") -> Path:
    text = (RUBRICS / f"{name}.yaml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "rubric.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["claims", "direct"])
def test_the_rubrics_of_the_project_load(name: str) -> None:
    """Both are valid, and their examples fit their own schema."""
    rubric = load_rubric(RUBRICS / f"{name}.yaml")
    assert (f"{name}@1", name) == (rubric.id, rubric.shape)
    assert "correct" not in rubric.schema_for(False)["required"]
    assert "correct" == rubric.schema_for(True)["required"][-1]


def test_the_digest_covers_prompt_schema_and_checks(tmp_path: Path) -> None:
    """A comment changes nothing; a word of the prompt, an example, the checks or a limit do."""
    same = load_rubric(changed(tmp_path, ("name: claims", "name: claims # a comment"))).digest
    others = [
        load_rubric(changed(tmp_path, change)).digest
        for change in [
            ("You check the answers", "You grade the answers"),
            ("goat leather", "calf leather"),
            ("[refusal_rule, quotes, novel_terms]", "[quotes]"),
            ("max_tokens: 400", "max_tokens: 401"),
        ]
    ]
    assert load_rubric(RUBRICS / "claims.yaml").digest == same
    assert 5 == len({same, *others})


def test_all_problems_are_reported_at_once_with_their_places(tmp_path: Path) -> None:
    """An unknown key, a wrong type and a missing one: three lines, one error."""
    path = changed(tmp_path, ("max_tokens: 400", "max_token: 400"), ("version: 1", "version: one"))
    with pytest.raises(InputError) as caught:
        load_rubric(path)
    text = str(caught.value)
    assert 3 == len(caught.value.problems)
    assert "did you mean 'max_tokens'?" in text
    assert f"{path}:5:10: 'version'" in text


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (("[refusal_rule, quotes", "[refusal_rules, quotes"), "checks.0"),
        (("    {question}\n", "    question\n"), "{question} exactly once"),
        (
            ('answer_is_refusal: {enum: ["yes", "no"]}', "answer_is_refusal: {type: string}"),
            "must be a boolean",
        ),
        (("required: [claims, answer_is_refusal]", "required: [claims]"), "needs 'answer_is_refusal'"),
        (('supported: {enum: ["yes", "no"]}', "supported: {type: text}"), "not a JSON Schema"),
        (("claims: []", "claims: none"), "does not fit the schema"),
        (("{reason}", "reason"), "{reason} exactly once"),
    ],
)
def test_what_a_rubric_may_not_say(tmp_path: Path, change: tuple[str, str], part: str) -> None:
    """Checks, slots, schema and examples are held against each other."""
    with pytest.raises(InputError, match=r"rubric\.yaml:\d+:\d+: ") as caught:
        load_rubric(changed(tmp_path, change))
    assert part in str(caught.value)


def test_a_direct_rubric_has_no_quotes_to_check(tmp_path: Path) -> None:
    """A check without its material could never fail."""
    with pytest.raises(InputError, match="needs claims with quotes"):
        load_rubric(changed(tmp_path, ("[refusal_rule, ", "[quotes, "), name="direct"))


def test_a_list_is_no_rubric(tmp_path: Path) -> None:
    """The shape of the whole file is named."""
    path = tmp_path / "rubric.yaml"
    path.write_text("- a\n", encoding="utf-8")
    with pytest.raises(InputError, match="a rubric is a mapping"):
        load_rubric(path)


def test_the_rubric_for_attacks_asks_nothing_about_correctness(tmp_path: Path) -> None:
    """What would be a hit stands where others have a reference; a check on claims has nothing to read."""
    rubric = load_rubric(RUBRICS / "redteam.yaml")
    assert ("redteam@1", "attack") == (rubric.id, rubric.shape)
    assert rubric.schema_for(False) == rubric.schema_for(True)
    with pytest.raises(InputError, match="has no claims that a check could correct"):
        load_rubric(changed(tmp_path, ("shape: attack", "shape: attack\nchecks: [quotes]"), name="redteam"))
