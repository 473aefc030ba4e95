"""Recorded exchanges: replay, record, live.

Owns the key of an exchange, the files of a cassette folder, when a recording is stale, and the transport that
reads and writes it. What an exchange proves belongs to :mod:`evalrun.provenance`.
"""

from evalrun.cassette.differing import difference
from evalrun.cassette.keys import (
    BOOKS,
    Address,
    Book,
    Mode,
    address_of,
    addressed,
    belongs_to_a_draw,
    exchange_key,
    has_own_key,
    line_order,
    named,
)
from evalrun.cassette.store import (
    Cassette,
    Miss,
    Sources,
    Spent,
    Unstorable,
    keep_seed,
    key_of,
    put_book,
    read_book,
    redacted,
)
from evalrun.cassette.transport import CassetteTransport, RecordingMiss

__all__ = [
    "BOOKS",
    "Address",
    "Book",
    "Cassette",
    "CassetteTransport",
    "Miss",
    "Mode",
    "RecordingMiss",
    "Sources",
    "Spent",
    "Unstorable",
    "address_of",
    "addressed",
    "belongs_to_a_draw",
    "difference",
    "exchange_key",
    "has_own_key",
    "keep_seed",
    "key_of",
    "line_order",
    "named",
    "put_book",
    "read_book",
    "redacted",
]
