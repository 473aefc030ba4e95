"""When a service counts as down."""

from __future__ import annotations

import time

from evalrun.circuit import FAILURES, Circuit


def failing(circuit: Circuit, times: int) -> None:
    """So many calls, one after the other, that find nobody."""
    for _ in range(times):
        circuit.tried(time.perf_counter(), "refused")


def test_it_opens_after_calls_in_a_row_that_found_nobody() -> None:
    """The words name the service and the last reason; what comes after does not close it."""
    circuit = Circuit("the bot")
    failing(circuit, FAILURES - 1)
    assert "" == circuit.down
    failing(circuit, 1)
    assert "the bot is down, nobody was there 5 times in a row: refused" == circuit.down
    circuit.tried(time.perf_counter(), "")
    assert circuit.down


def test_an_answer_in_between_begins_the_count_anew() -> None:
    """A service that is there now and then is not down."""
    circuit = Circuit("the bot")
    for _ in range(10):
        failing(circuit, FAILURES - 1)
        circuit.tried(time.perf_counter(), "")
    assert "" == circuit.down


def test_calls_that_were_in_flight_together_count_once() -> None:
    """A short break takes all of them, and says no more than one."""
    circuit, begun = Circuit("the bot"), time.perf_counter()
    for _ in range(100):
        circuit.tried(begun, "reset")
    assert "" == circuit.down
