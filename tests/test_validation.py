"""Schema faults in a user's words: unions, lists and nested keys."""

from __future__ import annotations

from pydantic import Field

from evalrun.errors import Problem
from evalrun.records import Record
from evalrun.validation import Line, at_most, check


class Inner(Record):
    """A nested record."""

    colour: str = "red"
    size: int = Field(default=1, ge=1)


class Several(Record):
    """A list that may not be empty, of items that may be wrong."""

    some: tuple[Inner, ...] = Field(min_length=1)


class Outer(Record):
    """A record with every kind of nesting that the project uses."""

    one: Inner | None = None
    many: tuple[Inner, ...] = Field(default=(), max_length=2)
    words: dict[str, str] = Field(default_factory=dict)
    code: str = Field(default="a", pattern="^[a-z]+$")


def told(value: object) -> list[tuple[str, str]]:
    """(message, hint) of each problem of a value."""
    found, problems = check(Outer, value, Line("f:1"))
    assert (found is None) == bool(problems)
    return [(problem.message, problem.hint) for problem in problems]


def test_a_value_that_fits_is_returned() -> None:
    """Lists become tuples, mappings become records."""
    assert (Outer(many=(Inner(size=2),)), []) == check(Outer, {"many": [{"size": 2}]}, Line("f:1"))


def test_unknown_keys_are_found_through_unions_and_lists() -> None:
    """The nearest key is looked for in the mapping that holds the unknown one."""
    assert [
        ("unknown key 'one.color'", "did you mean 'colour'?"),
        ("unknown key 'many.0.sise'", "did you mean 'size'?"),
    ] == told({"one": {"color": "x"}, "many": [{"sise": 2}]})


def test_nothing_is_converted() -> None:
    """Numbers in quotes, switches for numbers and numbers for text are faults."""
    assert [
        ("'one.colour' should be text (it is 3)", "if it is meant as text, quote it"),
        ("'one.size' should be a whole number (it is \"2\")", ""),
        ("'many.0.size' should be a whole number (it is true)", ""),
        ("'words.a' should be text (it is null)", ""),
    ] == told({"one": {"colour": 3, "size": "2"}, "many": [{"size": True}], "words": {"a": None}})


def test_shapes_are_called_what_they_are_in_a_file() -> None:
    """A list is a list and a mapping a mapping, and a long value is cut."""
    assert [
        ("'one' should be a mapping (it is a list)", ""),
        ("'many' should be a list (it is a mapping)", ""),
        ("'code' is not of the form ^[a-z]+$ (it is \"" + "9" * 58 + "…)", ""),
    ] == told({"one": [], "many": {}, "code": "9" * 100})


def test_the_whole_may_be_wrong() -> None:
    """A value that is no mapping at all has no key to name."""
    assert [("the whole should be a mapping (it is a list)", "")] == told([])


def test_many_problems_are_cut_with_their_number() -> None:
    """A thousand bad lines fill no screen."""
    problems = [Problem("f:1", str(number)) for number in range(1100)]
    assert [*problems[:100], Problem("", "and 1,000 more like these")] == at_most(problems)
    assert problems[:100] == at_most(problems[:100])


def test_a_list_of_wrong_items_is_not_called_too_short_as_well() -> None:
    """Only the items are told; an empty list is too short."""
    _, wrong = check(Several, {"some": [{"size": 0}]}, Line("f:1"))
    assert ["'some.0.size' should be at least 1 (it is 0)"] == [problem.message for problem in wrong]
    _, empty = check(Several, {"some": []}, Line("f:1"))
    assert ["'some' should have at least 1 item, not 0 (it is a list)"] == [one.message for one in empty]


def test_half_a_character_is_told_where_it_stands() -> None:
    """A lone surrogate has no bytes; it may stand in a key, too."""
    hint = "write the whole character, in UTF-8"
    [(message, said)] = told({"words": {"a": "x", "b": "\ud800"}})
    assert (True, hint) == (message.startswith("'words.b' holds half a character"), said)
    [(message, said)] = told({"words": {"\udc00": "x"}})
    assert message.startswith("'words' holds half a character")
