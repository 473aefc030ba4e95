"""Code that corrects the model's reading: what rules can decide, rules decide.

Owns the three checks a rubric may name and how they combine. Each change is written down as a correction, so
that a report can say how often the model was overruled.
"""

from __future__ import annotations

from dataclasses import dataclass

from evalrun.judge.rubric import Check
from evalrun.judge.verdict import Parsed
from evalrun.language import holds_quote, novel_terms, one_sentence_holds, refusal_rule, shares_words
from evalrun.language.text import folded, sentences
from evalrun.records import Claim, Context

# A change of what a check finds is another judge: raise its number.
VERSIONS: dict[Check, int] = {"refusal_rule": 1, "quotes": 1, "novel_terms": 1}
_KIND = {True: "refusal", False: "answer"}


@dataclass(frozen=True)
class Reading:
    """What is believed of an answer after the checks."""

    refusal: bool
    faithful: bool
    claims: tuple[Claim, ...]
    corrections: tuple[str, ...]


def corrected(
    parsed: Parsed, checks: tuple[Check, ...], question: str, answer: str, context: Context
) -> Reading:
    """The model's reading after ``checks``, in the order refusal_rule, novel_terms, quotes.

    ``faithful`` is: no claim is unsupported. An answer that only declines, as refusal_rule decides, makes no
    claims; what the model read into it is dropped.
    """
    source = "\n".join(f"{chunk.id}\n{chunk.text}" for chunk in context.chunks)
    claims = tuple(
        Claim(claim=read.claim, quote=read.quote, supported=read.supported) for read in parsed.claims
    )
    refusal, corrections = parsed.refusal, list[str]()
    if "refusal_rule" in checks:
        refusal, claims = _by_rule(refusal_rule(answer), refusal, claims, corrections)
    if "quotes" in checks and parsed.refusal and not refusal and not claims:
        claims = _own_claims(answer, corrections)
    if "novel_terms" in checks:
        claims = _by_terms(claims, answer, f"{source}\n{question}", corrections)
    if "quotes" in checks:
        claims = tuple(_by_quote(claim, answer, source, question, corrections) for claim in claims)
    return Reading(refusal, all(claim.supported for claim in claims), claims, tuple(corrections))


def _by_rule(
    rule: bool | None, model: bool, claims: tuple[Claim, ...], corrections: list[str]
) -> tuple[bool, tuple[Claim, ...]]:
    if rule is None:
        return model, claims
    if rule != model:
        corrections.append(f"refusal_rule: {_KIND[model]} -> {_KIND[rule]}")
    if rule and not all(claim.supported for claim in claims):
        corrections.append("refusal_rule: claims of a refusal dropped")
    return rule, () if rule else claims


def _by_quote(claim: Claim, answer: str, source: str, question: str, corrections: list[str]) -> Claim:
    if not claim.supported or _carried(claim, answer, source, question):
        return claim
    corrections.append(f"quotes: {claim.claim}")
    return claim.model_copy(update={"supported": False, "decided_by": "quotes"})


def _carried(claim: Claim, answer: str, source: str, question: str) -> bool:
    """Whether the context carries a claim: its names and numbers stand there, and so does its quote.

    A small model often copies the answer where the quote should stand. That is not held against it when one
    sentence of the context holds the words of the claim, or of what was copied, all the same.
    """
    quote = claim.quote or ""
    if novel_terms(claim.claim, source):
        return False
    if holds_quote(source, quote):
        return shares_words(quote, claim.claim) or one_sentence_holds(source, claim.claim, question)
    texts = (claim.claim, quote) if holds_quote(answer, quote) else (claim.claim,)
    return any(one_sentence_holds(source, text, question) for text in texts)


def _own_claims(answer: str, corrections: list[str]) -> tuple[Claim, ...]:
    """The sentences of an answer that the model took for a refusal, and the rule did not; quotes decides."""
    corrections.append("quotes: the answer's sentences read as its claims")
    return tuple(Claim(claim=text, supported=True) for text in sentences(answer))


def _by_terms(
    claims: tuple[Claim, ...], answer: str, known: str, corrections: list[str]
) -> tuple[Claim, ...]:
    for term in novel_terms(answer, known):
        holding = [claim for claim in claims if folded(term) in folded(claim.claim)]
        if any(not claim.supported for claim in holding):
            continue
        corrections.append(f"novel_terms: {term}")
        if not holding:
            text = next((part for part in sentences(answer) if term in part), answer)
            claims = (*claims, Claim(claim=text, supported=False, decided_by="novel_terms"))
        update = {"supported": False, "decided_by": "novel_terms"}
        claims = tuple(claim.model_copy(update=update) if claim in holding else claim for claim in claims)
    return claims


def unread(reading: Reading, parsed: Parsed) -> str | None:
    """Why this reading is no verdict: an answer that states something, of which no claim was read."""
    if parsed.faithful and not reading.refusal and not reading.claims:
        return "contradiction: the answer is no refusal, but no claim of it is listed"
    return None
