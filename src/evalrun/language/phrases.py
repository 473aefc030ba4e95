"""The phrases people decline with, by language, as regular expressions over folded text.

Owns the word lists alone; :mod:`evalrun.language.refusal` says how they combine. A phrase is about *telling*
(say, share, discuss, know, mention): "I am unable to travel" and "I do not have a car" are answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_TELL = (
    r"(?:say|tell|share|help|answer|discuss|disclose|provide|give|comment|confirm|reveal|assist|speak|talk|"
    r"respond|offer|divulge|fulfil?l|comply|state|determine|verify|find|speculate|go into|get into)\b"
)
_INFO = (
    r"(?:information|info|details?|data|answers?|records?|mention|specifics|facts?|insights?|"
    r"context|documentation|access to)\b"
)
_SOURCE = (
    r"(?:profile|context|text|sections?|documents?|source|notes|passages?|information|material|excerpts?|"
    r"answer|details?|question|names?|figure|it|that|this|there|which|here|above|below)"
)
_SAID = (
    r"(?:mention(?:ed)?|say|said|contain(?:ed)?|includ(?:e|ed)|provid(?:e|ed)|specif(?:y|ied)|stat(?:e|ed)|"
    r"cover(?:ed)?|list(?:ed)?|indicat(?:e|ed)|give|given|describ(?:e|ed)|discuss(?:ed)?|disclos(?:e|ed)|"
    r"shar(?:e|ed)|available|address(?:ed)?|found|detail(?:ed)?|part of|explicitly|named?|record(?:ed)?|"
    r"specifically|known|public|answer(?:ed)?|present|clear|in (?:the|my|this|your|that))\b"
)
_WE = r"\b(?:i|we)"
_MAY_NOT = (
    r"(?:can't|cannot|can not|could not|couldn't|won't|will not|unable to|not able to|not allowed to|"
    r"not permitted to|not at liberty to|not going to|not comfortable|"
    r"not in a position to|not authori[sz]ed to)"
)
_KNOW_WHAT = (
    r"(?=\s*[.,!]|$| (?:that|this|the answer|the exact|the specific|about|if|whether|what|how|when|where|"
    r"which|who|why|enough|anything|of any|for sure)\b)"
)
_TOPIC = r"\b(?:(?:not )?(?:something|a topic|topics|things|a subject)|nothing)"
_WISH = (
    r"(?: (?:can't|cannot|don't|do not|won't|will not|can|would|wish to|want to|am willing to|"
    r"'m willing to))?"
)
_TELL_DE = (
    r"(?:sagen|beantworten|antworten|mitteilen|teilen|verraten|weitergeben|helfen|nennen|sprechen|reden|"
    r"äußern|geben|preisgeben)\b"
)
_INFO_DE = r"(?:information(?:en)?|angaben?|auskunft|auskünfte|details?|daten|antwort|hinweise?)\b"
_TELL_FR = (
    r"(?:peux|puis|pouvons|sais|souhaite|veux|désire|dispose|donne|parle|communique|partage|discute|divulgue|"
    r"réponds|suis pas (?:en mesure|autorisée?|sûre?))\b"
)
_INFO_FR = r"(?:informations?|réponse|détails?|données|renseignements?|précisions?|accès)\b"
_TELL_ES = (
    r"(?:decir|compartir|responder|contestar|ayudar|dar|revelar|hablar|comentar|proporcionar|facilitar|"
    r"divulgar|comunicar)"
)

DECLINES: dict[str, tuple[str, ...]] = {
    "en": (
        rf"{_WE}(?:'m| am| are|'re)? (?:\w+ )?{_MAY_NOT}(?: \w+)? (?:{_TELL}|\w+ing\b)",
        rf"{_WE}(?: \w+)? (?:don't|do not|didn't|did not|never)(?: \w+)? (?:discuss|share|disclose|talk|"
        r"comment|give out|answer|speak about|recall|remember|reveal|go into|provide|publish)\b",
        rf"{_WE}(?: \w+)? (?:don't|do not) (?:actually |really )?know{_KNOW_WHAT}",
        rf"{_WE}(?: \w+)? (?:don't|do not|haven't)(?: currently| actually)? (?:have|got) "
        rf"(?:[\w'-]+ ){{0,5}}?{_INFO}",
        rf"{_WE}(?:'ve| have) (?:no|not any|nothing)(?: [\w'-]+){{0,3}}? "
        rf"(?:{_INFO}|idea|knowledge|to (?:say|share|add))",
        rf"{_WE}(?:'d| would)?(?: \w+)? (?:prefer|choose|rather|like|want|wish|chosen|decided|opt) "
        r"(?:not|to not)\b",
        rf"{_WE}(?: have|'ve)?(?: \w+)? (?:decline|refuse)\b",
        r"\bkeep(?:ing)? (?:.{1,60} )?(?:private|confidential|to myself)\b",
        rf"{_WE}(?: \w+)? (?:consider|treat|regard) .{{1,60}}\b(?:private|confidential|personal)\b",
        r"\b(?:is|are|stays?|remains?|be|kept)(?: \w+){0,2} "
        r"(?:private|confidential|off[ -]limits|not public)\b",
        rf"{_TOPIC}(?: that| which)? (?:i|we)(?: \w+)?{_WISH}(?: \w+)? {_TELL}",
        rf"\b{_SOURCE}\b[^.,]{{0,40}}? (?:doesn't|does not|don't|do not|didn't|did not) (?:\w+ )?{_SAID}",
        r"\b(?:isn't|aren't|wasn't|weren't|hasn't been|haven't been|"
        r"(?:is|are|was|were) (?:not|never|nowhere)|"
        rf"(?:has|have) not been)(?: \w+ly| yet| been)? {_SAID}",
        r"\bthere(?:'s| is| are|'re| was| were)? "
        r"(?:no|not any|nothing|isn't any|isn't|not enough|insufficient)\b"
        rf"[^.]{{0,40}}?\b(?:{_INFO}|about|on (?:that|this)|in (?:the|my) {_SOURCE})",
        rf"^(?:sorry,? )?(?:no|not enough|insufficient) (?:\w+ )?(?:{_INFO}|comment\b)",
        rf"^(?:it|that|this)?(?:'s| is)? ?not (?:\w+ )?{_SAID}",
        r"\bnothing (?:\w+ )?(?:about|on|in) (?:that|this|it|my|the)\b",
        r"\b(?:beyond|outside)(?: of)? (?:what|the scope|my (?:profile|scope)|the (?:profile|context))",
        rf"{_WE}(?:'m|'re| am| are) (?:not (?:sure|certain|aware)|unaware|unsure)\b",
        r"\bwithout (?:more|further|additional|any) (?:information|context|details)\b",
    ),
    "de": (
        rf"\b(?:kann|können|darf|dürfen|möchte|will|werde)\b.*\b(?:nichts?|keine?n?)\b.*\b{_TELL_DE}",
        rf"\b(?:habe|haben|liegen|finde|gibt)\b.*\bkeine?\b.*\b{_INFO_DE}",
        rf"\bkeine {_INFO_DE}",
        r"\b(?:ich )?weiß (?:ich )?(?:es |das |dazu |darüber |leider )*nicht\b",
        r"\b(?:spreche|rede|äußere|teile|gebe)\b.*\bnicht\b",
        r"\bnicht (?:im profil|im kontext|erwähnt|enthalten|angegeben|genannt|bekannt|öffentlich|"
        r"aufgeführt)\b",
        r"\b(?:profil|kontext|text)\b.*\b(?:nicht|nichts|keine)\b",
        r"\b(?:ist|bleibt|sind|bleiben)\b.* (?:privat|vertraulich)\b",
    ),
    "fr": (
        rf"\b(?:je|nous) ne {_TELL_FR}",
        rf"\b(?:je|nous) n'(?:ai|avons) (?:pas|aucune?)\b.*\b{_INFO_FR}",
        r"\baucune (?:information|réponse|donnée|mention|précision)\b",
        r"\b(?:n'est|ne sont|ne figure|n'apparaît|n'apparait|ne se trouve)\b.* (?:pas|nulle part)\b.*"
        r"\b(?:mentionn|indiqu|précis|dans|public|disponible|fourni)",
        r"\b(?:profil|contexte|texte|document)\b.* (?:ne|n')\s?.*\b(?:pas|rien|aucune?)\b",
        r"\bje préfère ne pas\b",
        r"\b(?:est|reste|sont|restent) (?:privée?s?|confidentiel(?:le)?s?)\b",
    ),
    "es": (
        rf"\bno (?:puedo|podemos|quiero|deseo|voy a|me es posible|estoy autorizad[oa] a) (?:\w+ )?{_TELL_ES}",
        r"\bno (?:lo )?sé\b",
        r"\bno (?:tengo|tenemos|dispongo|hay|existe|cuento con)\b.*"
        r"\b(?:información|informacion|datos|respuesta|detalles)\b",
        r"\bno (?:se (?:menciona|indica|especifica|incluye|dice)|aparece|figura|"
        r"está (?:en|mencionad|incluid))",
        r"\b(?:perfil|contexto|texto|documento)\b.* no (?:\w+ )?(?:menciona|dice|incluye|contiene|indica)",
        r"\bprefiero no\b",
        r"\bno (?:hablo|comparto|comento|doy|discuto|revelo) ",
        r"\b(?:es|son|sigue siendo) (?:privad[oa]s?|confidencial(?:es)?)\b",
    ),
}
"""Found anywhere in a clause, each makes it a clause that declines."""

_AND = r"(?:so |but |and |however,? )?"
COURTESY: tuple[str, ...] = (
    r"(?:i'm |i am |we're |we are )?(?:so |very |truly )?sorry\b(?! to hear).{0,40}",
    r"(?:i'm |i am )?(?:so |very )?sorry to hear\b.*",
    r"(?:i )?apologi[sz]e\b.*",
    r"(?:my )?apologies\b.*",
    r"unfortunately",
    r"thank(?:s| you)\b.*",
    r"(?:no|yes|hello|hi|hey|okay|ok|sure|certainly|great question|good question)",
    rf"{_AND}(?:please |kindly )?(?:feel free|let me know|don't hesitate|do not hesitate|ask|contact|"
    r"reach out|refer|consult|check|see|write|get in touch|try|provide|specify|rephrase|clarify)\b.*",
    rf"{_AND}if (?:you|there)\b.*",
    r"(?:is there|do you have|would you like|can you|could you|what else|how can i|what would you)\b.*",
    rf"{_AND}(?:i'm|i am|i'd be|i would be|we're|we are|i will be|i'll be) (?:\w+ )?"
    r"(?:happy|glad|here|open|delighted|available|willing)\b.*",
    rf"{_AND}i can (?:only |gladly |certainly |still |instead )?(?:tell|talk|help|share|discuss|answer|"
    r"assist|speak|provide)(?! (?:you )?that\b).*",
    rf"{_AND}you (?:can|could|may|might|should|are welcome)\b.*",
    r"as an? (?:ai|assistant|language model|digital twin|virtual|chatbot|twin|bot)\b[^,]*",
    rf"{_AND}(?:the|my|this) (?:profile|context|information|text|sections?|documents?)(?: \w+){{0,3}} "
    r"(?:only|mainly|focus(?:es)?|is limited|are limited)\b.*",
    r"i (?:only|mainly|mostly) (?:answer|talk|discuss|speak|respond)\b.*",
    r"i (?:\w+ )?(?:hope|appreciate|understand)\b.*",
    # German, French, Spanish
    r"(?:es )?tut mir (?:sehr )?leid|leider|entschuldigung|danke\b.*",
    r"(?:bitte )?(?:fragen sie|frag|wenden sie sich)\b.*",
    r"(?:je suis )?désolée?s?|malheureusement|merci\b.*|n'hésitez pas\b.*|veuillez\b.*",
    r"lo (?:siento|lamento)(?: mucho)?|lamentablemente|gracias\b.*|por favor\b.*|no dudes\b.*",
)
"""A clause that is one of these as a whole neither declines nor states anything."""

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": frozenset(
        "the of to at on is are was were and or my i i'm i've she it her his their they we you for with from"
        " by not can can't have has had do does don't that this there as".split()
    ),
    "de": frozenset(
        "der die das ein eine einen und oder ich sie er wir ist war sind mein meine im auf für mit von zu"
        " nicht kein keine habe hat dazu".split()
    ),
    "fr": frozenset(
        "le les une des et ou je j'ai elle nous est était suis mon mes dans à au aux du pour avec pas cette"
        " ce qui".split()
    ),
    "es": frozenset("el los las una y yo ella él soy mis del al para esta este por".split()),
}
"""Words that tell one of the languages: each stands in no other, as far as these four go."""
SHARED_WORDS = frozenset("a an am in no es en de la un il ma mi se lo he con que ne era o".split())
"""Small words that several languages have."""


_BEGINS = (_WE, r"\b", "")
_GAP = ".*"
_NEVER = "(?!)"


@dataclass(frozen=True)
class Phrases:
    """Patterns to look for in folded text.

    Those with gaps are looked for part by part, each from where the one before it ended: one expression would
    try every place of each part with every place of the others. It finds the same, since no part that begins
    later ends earlier. ``heads``: without any first part there is none of them.
    """

    whole: re.Pattern[str]
    heads: re.Pattern[str]
    parted: tuple[tuple[re.Pattern[str], ...], ...]

    @classmethod
    def of(cls, patterns: Iterable[str]) -> Phrases:
        """Those patterns, compiled."""
        parts = [pattern.split(_GAP) for pattern in patterns]
        parted = [several for several in parts if len(several) > 1]
        return cls(
            either(several[0] for several in parts if len(several) == 1),
            either(several[0] for several in parted),
            tuple(tuple(map(_compiled, several)) for several in parted),
        )

    def stand_in(self, text: str) -> bool:
        """Whether any of them is found in one line of text."""
        if self.whole.search(text):
            return True
        return bool(self.heads.search(text)) and any(_in_turn(parts, text) for parts in self.parted)


def _in_turn(parts: Iterable[re.Pattern[str]], text: str) -> bool:
    end = 0
    for part in parts:
        found = part.search(text, end)
        if found is None:
            return False
        end = found.end()
    return True


def either(patterns: Iterable[str]) -> re.Pattern[str]:
    """One expression for all of the patterns; what many of them begin with is asked once at each place."""
    groups: dict[str, list[str]] = {}
    for pattern in patterns:
        begin = next(begin for begin in _BEGINS if pattern.startswith(begin))
        groups.setdefault(begin, []).append(f"(?:{pattern.removeprefix(begin)})")
    every = "|".join(f"{begin}(?:{'|'.join(rests)})" for begin, rests in groups.items())
    return _compiled(every or _NEVER)


def _compiled(pattern: str) -> re.Pattern[str]:
    """For folded text, in which ß is ss."""
    return re.compile(pattern.replace("ß", "ss"))
