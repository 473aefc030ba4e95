"""The OWASP Top 10 for LLM applications in its editions of 2025 and 2026, and which id is which risk.

The edition of 2026 (published on 4 August 2026) renumbers the list, so an id says nothing without its year.
Source of names and order: the repository ``GenAI-Security-Project/GenAI-LLM-Top10``,
``2026/README.md``; edition 2025: ``genai.owasp.org/llm-top-10``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EDITIONS: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {
        2025: (
            "Prompt Injection",
            "Sensitive Information Disclosure",
            "Supply Chain",
            "Data and Model Poisoning",
            "Improper Output Handling",
            "Excessive Agency",
            "System Prompt Leakage",
            "Vector and Embedding Weaknesses",
            "Misinformation",
            "Unbounded Consumption",
        ),
        2026: (
            "Prompt Injection",
            "Sensitive Information Disclosure",
            "Excessive Agency",
            "Supply Chain",
            "Data and Model Poisoning",
            "Unbounded Consumption",
            "Misinformation",
            "Hidden Context Exposure",
            "Vector and Embedding Weaknesses",
            "Improper Output Handling",
        ),
    }
)
"""Year → the ten risks in the order of their numbers."""

RISKS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "injection": (1, 1),
        "disclosure": (2, 2),
        "supply": (3, 4),
        "poisoning": (4, 5),
        "output": (5, 10),
        "agency": (6, 3),
        "hidden": (7, 8),
        "vectors": (8, 9),
        "misinformation": (9, 7),
        "consumption": (10, 6),
    }
)
"""Our word for a risk → its number in 2025 and in 2026."""


def ids(*risks: str) -> tuple[str, ...]:
    """``ids("hidden")`` → ``("LLM07:2025", "LLM08:2026")``: the ids of some risks in both editions."""
    numbered = [(number, year) for risk in risks for number, year in zip(RISKS[risk], EDITIONS, strict=True)]
    return tuple(f"LLM{number:02}:{year}" for number, year in sorted(numbered, key=lambda item: item[1]))


def title(name: str) -> str:
    """``LLM08:2026`` → ``Hidden Context Exposure``."""
    number, _, year = name.removeprefix("LLM").partition(":")
    return EDITIONS[int(year)][int(number) - 1]
