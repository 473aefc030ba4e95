"""A FastAPI bot of twenty lines with JSON of its own shape: ``odd_bot.py FILE`` writes its address there."""

import os
import socket
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

DOCUMENTS = {"hours": "The library is open from ten to six.", "cards": "A card costs five euros a year."}
app = FastAPI()


class Turn(BaseModel):
    utterance: str


@app.post("/v2/turns")
def turn(turn: Turn) -> dict[str, object]:
    known = "documents" in turn.utterance
    said = DOCUMENTS["hours"] if known else "I don't have information about that."
    evidence = [{"ref": name, "page_content": text} for name, text in DOCUMENTS.items()]
    return {"took": 3, "data": {"bot_says": said}, "evidence": {"passages": evidence}}


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as server:
        partial = Path(sys.argv[1] + ".partial")
        partial.write_text(f"http://127.0.0.1:{server.getsockname()[1]}/v2/turns")
        os.replace(partial, sys.argv[1])
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[server])
