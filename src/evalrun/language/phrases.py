"""The phrases people decline with, by language, as regular expressions over folded text.

Owns the word lists alone; :mod:`evalrun.language.refusal` says how they combine. A phrase is about *telling*
(say, share, discuss, know, mention): "I am unable to travel" and "I do not have a car" are answers.
"""

from __future__ import annotations

import re

_TELL_EN = (
    r"(?:say|tell|share|help|answer|discuss|disclose|provide|give|comment|confirm|reveal|assist|speak|talk|respond|"
    r"offer|divulge|fulfil?l|comply|state|determine|verify|find|speculate|go into|get into|make (?:up|that))\b"
)
_INFO_EN = (
    r"(?:information|info|details?|data|answers?|records?|mention|specifics|facts?|insights?|"
    r"context|documentation|access to)\b"
)
_SOURCE_EN = (
    r"(?:profile|context|text|sections?|documents?|source|notes|passages?|information|provided|material|excerpts?|"
    r"answer|details?|question|name|names|figure|it|that|this|there|which|here|above|below)"
)
_SAID_EN = (
    r"(?:mention(?:ed)?|say|said|contain(?:ed)?|includ(?:e|ed)|provid(?:e|ed)|specif(?:y|ied)|stat(?:e|ed)|"
    r"cover(?:ed)?|list(?:ed)?|indicat(?:e|ed)|give|given|describ(?:e|ed)|discuss(?:ed)?|disclos(?:e|ed)|"
    r"shar(?:e|ed)|available|address(?:ed)?|found|detail(?:ed)?|part of|explicitly|name|named|record(?:ed)?|"
    r"specifically|known|public|answer(?:ed)?|present|clear|in (?:the|my|this|your|that))\b"
)

DECLINES: dict[str, tuple[str, ...]] = {
    "en": (
        rf"\b(?:i|we)(?:'m| am| are|'re)? (?:\w+ )?(?:can't|cannot|can not|could not|couldn't|won't|will not|"
        rf"unable to|not able to|not allowed to|not permitted to|not at liberty to|not going to|"
        rf"not comfortable|not in a position to|not authori[sz]ed to)(?: \w+)? (?:{_TELL_EN}|\w+ing\b)",
        rf"\b(?:i|we)(?: \w+)? (?:don't|do not|didn't|did not|never)(?: \w+)? "
        rf"(?:discuss|share|disclose|talk|comment|give out|answer|speak about|recall|remember|reveal|"
        rf"go into|provide|publish|make .{{1,20}} public)\b",
        r"\b(?:i|we)(?: \w+)? (?:don't|do not) (?:actually |really )?know(?=\s*[.,!]|$| (?:that|this|the answer|the exact"
        r"|the specific|about|if|whether|what|how|when|where|which|who|why|enough|anything|of any|for sure)\b)",
        rf"\b(?:i|we)(?: \w+)? (?:don't|do not|haven't)(?: currently| actually)? (?:have|got) (?:[\w'-]+ ){{0,5}}?{_INFO_EN}",
        rf"\b(?:i|we)(?:'ve| have) (?:no|not any|nothing)(?: [\w'-]+){{0,3}}? (?:{_INFO_EN}|idea|knowledge|to (?:say|share|add))",
        r"\b(?:i|we)(?:'d| would)?(?: \w+)? (?:prefer|choose|rather|like|want|wish|chosen|decided|opt) (?:not|to not)\b",
        r"\b(?:i|we)(?: have|'ve)?(?: \w+)? (?:decline|refuse)\b",
        r"\bkeep(?:ing)? (?:.{1,60} )?(?:private|confidential|to myself)\b",
        r"\bi(?: \w+)? (?:consider|treat|regard) .{1,60}\b(?:private|confidential|personal)\b",
        r"\b(?:is|are|stays?|remains?|be|kept)(?: \w+){0,2} (?:private|confidential|off[ -]limits|not public)\b",
        r"\b(?:not something|nothing|not a topic|not a subject|not topics|not things|something|a topic|topics|things|a subject)"
        r"(?: that| which)? (?:i|we)(?: \w+)?"
        r"(?: (?:can't|cannot|don't|do not|won't|will not|can|would|wish to|want to|am willing to|'m willing to))?"
        r"(?: \w+)? (?:discuss|share|talk|comment|answer|disclose|speak|say|help)",
        rf"\b{_SOURCE_EN}\b[^.,]{{0,40}}? (?:doesn't|does not|don't|do not|didn't|did not) (?:\w+ )?{_SAID_EN}",
        rf"\b(?:isn't|aren't|wasn't|weren't|hasn't been|haven't been|(?:is|are|was|were) (?:not|never|nowhere)|(?:has|have) not been)"
        rf"(?: \w+ly| yet| been)? {_SAID_EN}",
        rf"\bthere(?:'s| is| are|'re| was| were)?(?: is| are)? (?:no|not any|nothing|isn't any|isn't|not enough|not sufficient|insufficient)\b"
        rf"[^.]{{0,40}}?\b(?:{_INFO_EN}|about|on (?:that|this)|in (?:the|my) (?:profile|context|sections?|text|information))",
        rf"^(?:sorry,? )?(?:no|not enough|insufficient) (?:\w+ )?(?:{_INFO_EN}|comment\b)",
        rf"^(?:it|that|this)?(?:'s| is)? ?not (?:\w+ )?{_SAID_EN}",
        r"\bnothing (?:\w+ )?(?:about|on|in) (?:that|this|it|my|the|the profile)\b",
        r"\b(?:beyond|outside)(?: of)? (?:what|the scope|my (?:profile|scope)|the (?:profile|context))",
        r"\b(?:i'm|i am|we are|we're) (?:not (?:sure|certain|aware)|unaware|unsure)\b",
        r"\bwithout (?:more|further|additional|any) (?:information|context|details)\b",
    ),
    "de": (
        r"\b(?:kann|können|darf|dürfen|möchte|will|werde)\b.*\b(?:nichts?|keine?n?)\b.*"
        r"\b(?:sagen|beantworten|antworten|mitteilen|teilen|verraten|weitergeben|helfen|nennen|sprechen|reden|äußern|geben|preisgeben)\b",
        r"\b(?:habe|haben|liegen|finde|gibt)\b.*\bkeine?\b.*\b(?:information(?:en)?|angaben?|auskunft|auskünfte|details?|daten|antwort|hinweise?)\b",
        r"\bkeine (?:information(?:en)?|angaben?|auskunft|details?|daten|antwort)\b",
        r"\b(?:ich )?wei(?:ß|ss) (?:ich )?(?:es |das |dazu |darüber |leider )*nicht\b",
        r"\b(?:spreche|rede|äußere|teile|gebe)\b.*\bnicht\b",
        r"\bnicht (?:im profil|im kontext|erwähnt|enthalten|angegeben|genannt|bekannt|öffentlich|aufgeführt)\b",
        r"\b(?:profil|kontext|text)\b.*\b(?:nicht|nichts|keine)\b",
        r"\b(?:ist|bleibt|sind|bleiben)\b.* (?:privat|vertraulich)\b",
    ),
    "fr": (
        r"\b(?:je|nous) ne (?:peux|puis|pouvons|sais|souhaite|veux|désire|dispose|donne|parle|communique|partage|"
        r"discute|divulgue|réponds|suis pas (?:en mesure|autorisée?|sûre?))\b",
        r"\b(?:je|nous) n'(?:ai|avons) (?:pas|aucune?)\b.*\b(?:informations?|réponse|détails?|données|renseignements?|précisions?|accès)\b",
        r"\baucune (?:information|réponse|donnée|mention|précision)\b",
        r"\b(?:n'est|ne sont|ne figure|n'apparaît|n'apparait|ne se trouve)\b.* (?:pas|nulle part)\b.*"
        r"\b(?:mentionn|indiqu|précis|dans|public|disponible|fourni)",
        r"\b(?:profil|contexte|texte|document)\b.* (?:ne|n')\s?.*\b(?:pas|rien|aucune?)\b",
        r"\bje préfère ne pas\b",
        r"\b(?:est|reste|sont|restent) (?:privée?s?|confidentiel(?:le)?s?)\b",
    ),
    "es": (
        r"\bno (?:puedo|podemos|quiero|deseo|voy a|me es posible|estoy autorizad[oa] a) (?:\w+ )?(?:decir|compartir|responder|"
        r"contestar|ayudar|dar|revelar|hablar|comentar|proporcionar|facilitar|divulgar|comunicar)",
        r"\bno (?:lo )?sé\b",
        r"\bno (?:tengo|tenemos|dispongo|hay|existe|cuento con)\b.*\b(?:información|datos|respuesta|detalles|informacion)\b",
        r"\bno (?:se (?:menciona|indica|especifica|incluye|dice)|aparece|figura|está (?:en|mencionad|incluid|disponible))",
        r"\b(?:perfil|contexto|texto|documento)\b.* no (?:\w+ )?(?:menciona|dice|incluye|contiene|indica|especifica)",
        r"\bprefiero no\b",
        r"\bno (?:hablo|comparto|comento|doy|discuto|revelo) ",
        r"\b(?:es|son|sigue siendo) (?:privad[oa]s?|confidencial(?:es)?)\b",
    ),
}

COURTESY: tuple[str, ...] = (
    r"(?:i'm |i am |we're |we are )?(?:so |very |truly )?sorry\b(?! to hear).{0,40}",
    r"(?:i'm |i am )?(?:so |very )?sorry to hear\b.*",
    r"(?:i )?apologi[sz]e\b.*",
    r"(?:my )?apologies\b.*",
    r"unfortunately",
    r"thank(?:s| you)\b.*",
    r"(?:no|yes|hello|hi|hey|okay|ok|sure|certainly|great question|good question)",
    r"(?:so |but |however,? |and )?(?:please |kindly )?(?:feel free|let me know|don't hesitate|do not hesitate|ask|contact|reach out|"
    r"refer|consult|check|see|write|get in touch|try|provide|specify|rephrase|clarify)\b.*",
    r"(?:so |but |and )?if (?:you|there)\b.*",
    r"(?:is there|do you have|would you like|can you|could you|what else|how can i|what would you)\b.*",
    r"(?:so |but |and |however,? )?(?:i'm|i am|i'd be|i would be|we're|we are|i will be|i'll be) (?:\w+ )?"
    r"(?:happy|glad|here|open|delighted|available|willing)\b.*",
    r"(?:so |but |and |however,? )?i can (?:only |gladly |certainly |still |instead )?(?:tell|talk|help|share|discuss|answer|assist|"
    r"speak|provide)(?! (?:you )?that\b).*",
    r"(?:so |but |and |however,? )?you (?:can|could|may|might|should|are welcome)\b.*",
    r"as an? (?:ai|assistant|language model|digital twin|virtual|chatbot|twin|bot)\b[^,]*",
    r"(?:so |and |but )?(?:the|my|this) (?:profile|context|information|text|sections?|documents?)(?: \w+){0,3} "
    r"(?:only|mainly|focus(?:es)?|is limited|are limited)\b.*",
    r"i (?:only|mainly|mostly) (?:answer|talk|discuss|speak|respond)\b.*",
    r"i (?:\w+ )?(?:hope|appreciate|understand)\b.*",
    # de, fr, es
    r"(?:es )?tut mir (?:sehr )?leid|leider|entschuldigung|danke\b.*|(?:bitte )?(?:fragen sie|frag|wenden sie sich)\b.*",
    r"(?:je suis )?désolée?s?|malheureusement|merci\b.*|n'hésitez pas\b.*|veuillez\b.*",
    r"lo (?:siento|lamento)(?: mucho)?|lamentablemente|gracias\b.*|por favor\b.*|no dudes\b.*",
)

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": frozenset(
        "the a an of to in on at is are was were and or my i i'm i've she he they it her his their we you for with from by"
        " not no can can't have has had do does don't that this as".split()
    ),
    "de": frozenset(
        "der die das ein eine einen und oder ich sie er es wir ist war sind mein meine im in an am auf für mit von zu nicht"
        " kein keine habe hat dazu".split()
    ),
    "fr": frozenset(
        "le la les un une des et ou je j'ai elle il nous est était suis mon ma mes dans à au aux du de pour avec ne pas"
        " cette ce que qui en".split()
    ),
    "es": frozenset(
        "el la los las un una y o yo ella él es era soy mi mis en a al del de para con no que esta este lo se he por".split()
    ),
}


def compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """The patterns, compiled for folded text, in which ß is ss."""
    return tuple(re.compile(pattern.replace("ß", "ss")) for pattern in patterns)
