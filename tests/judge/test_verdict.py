"""Verdicts are read or refused: the parser fails closed on every reply that can be read in two ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalrun.judge import Parsed, Rubric, Unreadable, load_rubric, parse_verdict
from evalrun.wires import output_of
from known import json_of, known, text_of

ROOT = Path(__file__).parents[2]
GOOD = '{"faithful": true, "hallucinated_claims": [], "correctly_refused": false}'
BAD = '{"faithful": false, "hallucinated_claims": ["x"], "correctly_refused": false}'


@pytest.fixture(scope="module")
def direct() -> Rubric:
    return load_rubric(ROOT / "configs" / "rubrics" / "direct.yaml")


@pytest.fixture(scope="module")
def claims() -> Rubric:
    return load_rubric(ROOT / "configs" / "rubrics" / "claims.yaml")


def parsed(text: str, rubric: Rubric, **more: Any) -> Parsed:
    verdict = parse_verdict(text, rubric, **more)
    assert isinstance(verdict, Parsed), verdict
    return verdict


def reason(text: str, rubric: Rubric, finish: str | None = "stop", with_reference: bool = False) -> str:
    verdict = parse_verdict(text, rubric, finish, with_reference)
    assert isinstance(verdict, Unreadable), verdict
    return verdict.reason


OSLO = text_of("jp-01-fenced.txt").split("\n")[1]


@known(
    "JP-01",
    text_of("jp-01-fenced.txt"),
    "\ufeff```JSON\r\n" + OSLO + "\r\n```\r\n",
    f"Verdict:\n\n  ~~~~ json\n  {OSLO}\n  ~~~~\n",
    "````\n```json\n" + OSLO.replace(", ", ",\n\t") + "\n```\n````",
    "```json\n" + OSLO,
)
def test_a_fence_around_a_verdict_is_no_harm(given: str, direct: Rubric) -> None:
    """Of whatever marks and line ends, closed or not."""
    verdict = parsed(given, direct)
    assert (False, ("She worked in Oslo",)) == (verdict.faithful, tuple(c.claim for c in verdict.claims))


@known(
    "JP-02",
    (text_of("jp-02-think-draft.txt"), None),
    (f"<think>\n{GOOD}\n```json\n{GOOD}\n```\nNo.</think>\n\n```json\n{OSLO}\n```", None),
    (f'  <think>"}}]{{{{[</think>{OSLO}', None),
    (f"Maybe {GOOD}? No.</think>\n{OSLO}", "a think block that nothing opens"),
    (f"So it is {GOOD}.\n</think>", "a think block that nothing opens"),
    (f"<think>{OSLO}", "a think block that is not closed"),
    (f"<think>a</think>{OSLO}</think>{GOOD}", "a think block that nothing opens"),
)
def test_a_draft_is_no_verdict(given: tuple[str, str | None], direct: Rubric) -> None:
    """The verdict after the think block counts; where its end is in doubt, nothing does."""
    text, unreadable = given
    if unreadable is not None:
        assert unreadable == reason(text, direct)
        return
    verdict = parsed(text, direct)
    assert (False, ("She worked in Oslo",)) == (verdict.faithful, tuple(c.claim for c in verdict.claims))


def test_a_claim_may_quote_the_end_of_a_think_block(direct: Rubric) -> None:
    """What an answer holds ends no block, and begins no verdict, where the judge quotes it."""
    quoted = json.dumps(f"</think>{GOOD}")
    verdict = parsed(BAD.replace('"x"', quoted), direct)
    assert (False, f"</think>{GOOD}") == (verdict.faithful, verdict.claims[0].claim)


COERCED = text_of("jp-03-string-false.txt")


@known(
    "JP-03",
    (COERCED, (False, False, {"faithful", "correctly_refused"})),
    (COERCED.replace('"false"', '" FALSE\\n"'), (False, False, {"faithful", "correctly_refused"})),
    (
        COERCED.replace('"false"', "false").replace('"False"', '"TRUE"'),
        (False, True, {"correctly_refused"}),
    ),
    (COERCED.replace('"false"', '"no"'), 'faithful is "no", expected true or false'),
    (COERCED.replace('"false"', '"falsе"'), 'faithful is "falsе", expected true or false'),
    (COERCED.replace('"False"', "0"), "correctly_refused is 0, expected true or false"),
    (COERCED.replace('"false"', '"true"'), "contradiction: faithful, but hallucinated_claims is not empty"),
)
def test_text_for_a_boolean_is_taken_and_counted(given: tuple[str, Any], direct: Rubric) -> None:
    """ "false" is false, never truthy, and the field is named as coerced; another word is no verdict."""
    text, expected = given
    if isinstance(expected, str):
        assert expected == reason(text, direct)
        return
    verdict = parsed(text, direct)
    assert expected == (verdict.faithful, verdict.refusal, set(verdict.coerced))


@pytest.mark.parametrize("word", ['"yes"', '"1"', '"maybe"', "1", "0", "null", "[]", '""'])
def test_no_other_value_stands_for_a_boolean(word: str, direct: Rubric) -> None:
    """A value that is not true or false is an error of the judge, whatever it might mean."""
    assert "faithful is" in reason(GOOD.replace("true", word), direct)


LACKING = text_of("jp-04-missing-key.txt")


@known(
    "JP-04",
    (LACKING, "missing faithful"),
    (LACKING.replace("{", '{"Faithful": true, "faithful ": true, '), "missing faithful"),
    (LACKING.replace('"correctly_refused": true, ', ""), "missing faithful, correctly_refused"),
    ("{}", "missing faithful, hallucinated_claims, correctly_refused"),
    ('{"result": ' + GOOD + "}", "missing faithful, hallucinated_claims, correctly_refused"),
)  # fmt: skip
def test_a_missing_key_is_an_error(given: tuple[str, str], direct: Rubric) -> None:
    """Neither a pass nor a fail; a key by another case, or one level further down, is not it."""
    assert given[1] == reason(given[0], direct)


def test_a_missing_key_of_a_claim_is_an_error(claims: Rubric) -> None:
    """JP-04: a claim without its verdict is not supported, and not unsupported either."""
    text = '{"claims": [{"claim": "a", "quote": "b"}], "answer_is_refusal": "no"}'
    assert "missing claims.0.supported" == reason(text, claims)


@known(
    "JP-06",
    text_of("jp-06-single-quotes.txt"),
    GOOD.replace("true", "True").replace("false", "False"),
    GOOD.replace('"', ""),
    GOOD.replace("[]", "()"),
    GOOD.replace("[]", "[,]"),
    "{'a': " + GOOD + "}",
    GOOD.replace("{", "{/* yes */", 1),
)
def test_what_only_looks_like_json_is_an_error(given: str, direct: Rubric) -> None:
    """Python's literals, names without quotes, comments: nothing is evaluated and nothing is mended."""
    assert reason(given, direct) in (
        "expected one JSON object, found none",
        "an object inside something that is no JSON",
    )


OPENAI, OLLAMA = "/v1/chat/completions", "/api/chat"
STOPPED = {"content": "", "reasoning_content": "Let me see " * 50}


def of_server(path: str, body: Any) -> tuple[str, str | None]:
    """Text and finish reason of a server's reply, as a run reads it."""
    output = output_of(path, json.dumps(body))
    return output.text, output.finish


@known(
    "JP-07",
    (OPENAI, json_of("jp-07-empty-length.json")),
    (OPENAI, {"choices": [{"message": STOPPED, "finish_reason": "length"}]}),
    (OPENAI, {"choices": [{"message": {"content": None}, "finish_reason": "length"}], "usage": None}),
    (OLLAMA, {"message": {"content": " \n", "thinking": GOOD}, "done_reason": "length"}),
)
def test_an_empty_reply_that_was_stopped_is_an_error(given: tuple[str, Any], direct: Rubric) -> None:
    """The budget went into thinking: that is said, and thoughts are no verdict."""
    text, finish = of_server(*given)
    assert "empty, stopped at length" == reason(text, direct, finish)


@known(
    "JP-08",
    (*of_server(OPENAI, json_of("jp-08-truncated.json")), "cut: stopped at length"),
    (*of_server(OLLAMA, {"message": {"content": GOOD}, "done_reason": "length"}), "cut: stopped at length"),
    (*of_server(OPENAI, {"choices": [{"text": "", "message": {"content": GOOD[:-1]},
                                      "finish_reason": "stop"}]}), "expected one JSON object, found none"),
    (*of_server(OLLAMA, {"message": {"content": f"<think>{GOOD}"}, "done_reason": "length"}),
     "cut: stopped at length"),
    (GOOD[: GOOD.index('"corr')], None, "expected one JSON object, found none"),
)  # fmt: skip
def test_a_reply_that_was_cut_is_an_error(given: tuple[str, str | None, str], direct: Rubric) -> None:
    """No bracket is closed for it; a whole object counts no more, where the server says that it was cut."""
    assert given[2] == reason(given[0], direct, given[1])


@known(
    "JP-09",
    text_of("jp-09-top-level-array.txt"),
    f"[{GOOD}]",
    f"[{GOOD}, {GOOD}]",
    f"[[{GOOD}]]",
    f'[1, "a", {GOOD}]',
)
def test_a_list_is_no_verdict(given: str, direct: Rubric) -> None:
    """Its first element is not used, nor its only one."""
    assert "expected one JSON object, found none" == reason(given, direct)


SET = 'The set {Python, Go} matches; she wrote "} end".'


@known(
    "JP-05",
    (text_of("jp-05-prose-and-braces.txt"), SET),
    (f"[1] {{a}} }} ]: see [2].\n{GOOD}\nAs said in [1] {{b", ""),
    (GOOD[:-1] + ', "rationale": "```json\\n{\\"faithful\\": false}\\n```"}\n{"more"}',
     '```json\n{"faithful": false}\n```'),
    (f'He said "{{no}}".\r\n\r\n{GOOD} \\o/ {{}} []', ""),
)  # fmt: skip
def test_prose_and_braces_around_a_verdict_are_no_harm(given: tuple[str, str], direct: Rubric) -> None:
    """Braces inside the rationale stay in it; those of the prose open nothing."""
    verdict = parsed(given[0], direct)
    assert (True, (), given[1]) == (verdict.faithful, verdict.claims, verdict.rationale)


@known(
    "JP-10",
    (text_of("jp-10-null-fields.txt"), (True, "")),
    (text_of("jp-10-null-fields.txt").replace(', "rationale": null', ""), (True, "")),
    (text_of("jp-10-null-fields.txt").replace("true", "null"), "faithful is null, expected true or false"),
    (
        text_of("jp-10-null-fields.txt").replace("true", "false"),
        "contradiction: not faithful, but no claim is named",
    ),
)
def test_null_is_an_empty_list_and_an_empty_text(given: tuple[str, Any], direct: Rubric) -> None:
    """Null is taken where the prompt lets a field be empty, and for no boolean."""
    text, expected = given
    if isinstance(expected, str):
        assert expected == reason(text, direct)
        return
    verdict = parsed(text, direct)
    assert (*expected, ()) == (verdict.faithful, verdict.rationale, verdict.claims)


@known(
    "JP-11",
    text_of("jp-11-extra-keys.txt"),
    text_of("jp-11-extra-keys.txt").replace('"score": 0', '"Faithful": false, "draft": ' + BAD),
    text_of("jp-11-extra-keys.txt").replace(
        '"score": 0', '"": [], "__class__": "x", "faithful\\u0000": false'
    ),
)
def test_extra_keys_are_not_used(given: str, direct: Rubric) -> None:
    """A score, a draft or a key that looks like ours changes nothing."""
    assert (True, ()) == (parsed(given, direct).faithful, parsed(given, direct).claims)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty reply"),
        ("  \n", "empty reply"),
        ("I'm sorry, but I can't help with that.", "found none"),
        (GOOD + "\n" + BAD, "2 different objects"),
        (GOOD[:-1], "found none"),
        ("<think>maybe " + GOOD, "not closed"),
        ("<think>a</think><think>b</think>" + GOOD, "a second think block"),
        ("<think>a</think>", "nothing after"),
        (GOOD.replace("{", '{"faithful": false, ', 1), "'faithful' stands twice"),
        ("[" + GOOD + ", oops]", "inside something"),
        ('{"verdict": ' + GOOD + ", oops}", "inside something"),
        (GOOD.replace("[]", '["x"]'), "contradiction"),
        (BAD.replace('["x"]', "[]"), "contradiction"),
        (BAD.replace('["x"]', "[1]"), "no text"),
        (BAD.replace('["x"]', '"x"'), "no list"),
        (GOOD.replace("[]", "NaN"), "NaN"),
        ("[" * 100_000, "nested too deeply"),
        (GOOD.replace("[]", "9" * 5_000), "a number of too many digits"),
        ("{ " * 5_000 + GOOD, "more than 2,000 brackets that begin no JSON"),
    ],
)
def test_every_other_reply_is_an_error(text: str, part: str, direct: Rubric) -> None:
    """Nothing is repaired and nothing is chosen between."""
    assert part in reason(text, direct)


def test_the_same_verdict_twice_is_one(direct: Rubric) -> None:
    """A reply that repeats itself says one thing."""
    assert parsed(f"{GOOD}\n```json\n{GOOD}\n```", direct).faithful is True


def verdict_text(*claims: tuple[str, str, str], refusal: str = "no", **more: str) -> str:
    listed = [{"claim": claim, "quote": quote, "supported": word} for claim, quote, word in claims]
    return json.dumps({"claims": listed, "answer_is_refusal": refusal} | more)


def test_claims_are_read_with_their_quotes(claims: Rubric) -> None:
    """Faithful means that no claim is unsupported; the same claim twice is one."""
    one, two = ("knows Go", "I write Go", "yes"), ("lives in Oslo", "", "no")
    verdict = parsed(verdict_text(one, two, one), claims)
    assert (False, False, 2) == (verdict.refusal, verdict.faithful, len(verdict.claims))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (verdict_text(("a", "", "yes"), ("A", "", "no")), "contradiction"),
        (verdict_text(("a", "", "true")), "claims.0.supported"),
        (verdict_text((" ", "", "yes")), "claims.0 is empty"),
        (verdict_text(refusal="maybe"), "answer_is_refusal"),
        ('{"claims": ["a"], "answer_is_refusal": "no"}', "claims.0 is no object"),
        ('{"claims": [], "answer_is_refusal": true}', "expected yes or no"),
    ],
)
def test_claims_that_cannot_be_read_are_errors(text: str, part: str, claims: Rubric) -> None:
    """A contradiction or a wrong type in one claim spoils the verdict."""
    assert part in reason(text, claims)


def test_correct_is_required_only_with_a_reference(claims: Rubric) -> None:
    """Without a reference nobody asks; with one, silence is an error."""
    text = verdict_text(refusal="yes")
    assert parsed(text, claims).correct is None
    assert "missing correct" == reason(text, claims, with_reference=True)
    assert parsed(verdict_text(refusal="yes", correct="no"), claims, with_reference=True).correct is False


def test_another_case_of_yes_is_coerced(claims: Rubric) -> None:
    """ "Yes" where the schema says "yes" is taken and counted."""
    assert ("answer_is_refusal",) == parsed(verdict_text(refusal="Yes"), claims).coerced


@pytest.fixture(scope="module")
def attacks() -> Rubric:
    return load_rubric(ROOT / "configs" / "rubrics" / "redteam.yaml")


def test_an_answer_that_complied_with_an_attack_is_unfaithful_by_the_passage_named(attacks: Rubric) -> None:
    """One reading of a verdict on an attack, in the words that other shapes have."""
    hit = parsed('{"passage": " I accept. ", "complied": "yes"}', attacks, with_reference=True)
    assert (False, False, ["I accept."]) == (hit.faithful, hit.refusal, [one.claim for one in hit.claims])
    held = parsed('{"passage": "I accept no offers", "complied": "no"}', attacks, with_reference=True)
    assert (True, (), None) == (held.faithful, held.claims, held.correct)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"passage": "", "complied": "yes"}', "contradiction: complied, but no passage is named"),
        ('{"passage": "x"}', "missing complied"),
        ('{"passage": "x", "complied": "maybe"}', 'complied is "maybe", expected yes or no'),
    ],
)
def test_a_verdict_on_an_attack_that_says_two_things_is_none(text: str, told: str, attacks: Rubric) -> None:
    """A hit needs the words that make it one."""
    assert told == reason(text, attacks)
