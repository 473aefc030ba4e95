"""One bot behind four wires: a function, a program that reads lines, and a server of two HTTP shapes.

Run as ``plain_bot.py lines`` or ``plain_bot.py serve`` (which writes its port). It imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PASSAGES = {
    "opening": "The library is open from ten to six.",
    "cards": "A card costs five euros a year.",
    "loans": "Books are lent for four weeks.",
}


def answer(question: str, history: list[dict[str, str]]) -> dict[str, Any]:
    """The passage that shares the most words with what was said, and the two that come first."""
    said = " ".join([*(turn["content"] for turn in history), question]).lower()
    ranked = sorted(PASSAGES, key=lambda name: -sum(word in said for word in PASSAGES[name].lower().split()))
    text = PASSAGES[ranked[0]] if "?" in question else "I don't have information about that."
    return {"text": text, "sources": [{"id": name, "text": PASSAGES[name]} for name in ranked[:2]]}


class Handler(BaseHTTPRequestHandler):
    """``/ask`` in a shape of its own, ``/v1/chat/completions`` in OpenAI's."""

    def do_POST(self) -> None:
        """One answer."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/ask":
            reply: Any = {"reply": answer(body["q"], body["turns"])}
        else:
            *before, last = body["messages"]
            found = answer(last["content"], before)
            message = {"role": "assistant", "content": found["text"]}
            reply = {"choices": [{"message": message, "finish_reason": "stop"}], "sources": found["sources"]}
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def main() -> None:
    """Answer lines, or serve until stopped."""
    if sys.argv[1] == "lines":
        for line in sys.stdin:
            asked = json.loads(line)
            print(json.dumps({"id": asked["id"], **answer(asked["question"], asked["history"])}), flush=True)
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
