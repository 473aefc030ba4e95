"""The same calls in a bare aiohttp loop: what asking costs where nothing is proved, scored or written down.

Reads its bodies from a file: a line for the bot and one for the judge, with ``item 0`` or ``Item 0`` in them.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import aiohttp

HEADERS = {"content-type": "application/json"}


async def main(url: str, cases: int, at_once: int, asked: str, judged: str) -> None:
    """Ask the bot and then the judge of every case, ``at_once`` of them at any time."""
    numbers = iter(range(cases))
    connector = aiohttp.TCPConnector(limit=at_once)
    async with aiohttp.ClientSession(connector=connector, headers=HEADERS) as session:

        async def call(path: str, body: str) -> None:
            async with session.post(url + path, data=body.encode()) as reply:
                await reply.json()

        async def worker() -> None:
            for number in numbers:
                await call("/answer", asked.replace("tem 0", f"tem {number}"))
                await call("/v1/chat/completions", judged.replace("tem 0", f"tem {number}"))

        await asyncio.gather(*(worker() for _ in range(at_once)))


if __name__ == "__main__":
    bodies = Path(sys.argv[4]).read_text(encoding="utf-8").splitlines()
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *bodies))
