"""A bot on ragbot's wire with at most one defect, so that a test can say what each defect turns red.

Run as a program: ``bot.py --port P --docs FILE [--defect NAME] [--only TEXT]``. It imports nothing of what it
is used to test: digest and fence are written out once more.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SYSTEM = "Answer from the context only."
REFUSAL = "I don't have information about that."
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def context_of(chunks: list[Json]) -> Json:
    """A context with its digest."""
    parts = [{"id": chunk["id"], "text": chunk["text"]} for chunk in chunks]
    text = "context.v1\n" + json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {"chunks": chunks, "digest": "sha256:" + hashlib.sha256(text.encode()).hexdigest()}


def block_of(context: Json) -> str:
    """The fence around a context."""
    tag = context["digest"].removeprefix("sha256:")[:16]
    body = "\n\n".join(f"[{chunk['id']}]\n{chunk['text']}" for chunk in context["chunks"])
    return f"<<context {tag}>>\n{body}\n<<end {tag}>>"


class ModelFailed(Exception):
    """The model's server gave no reply."""


class Bot:
    """Answers from the documents of a file: ``docs`` (id → text) and ``finds`` (question → ids)."""

    def __init__(self, docs: Path, defect: str, only: str, model: str) -> None:
        known = json.loads(docs.read_text("utf-8"))
        self.docs: dict[str, str] = known["docs"]
        self.finds: dict[str, list[str]] = known["finds"]
        self.defect = defect
        self.only = only
        self.model = model
        self.first: dict[str, Json] = {}
        self.asked = 0
        self.lock = threading.Lock()

    def has(self, defect: str, question: str = "") -> bool:
        """Whether this bot has the defect, and shows it on this question."""
        return self.defect == defect and self.only in question

    def retrieve(self, question: str, k: int, overlay: Json | None = None) -> Json:
        """The first ``k`` chunks for a question; what is planted for it comes before all others."""
        planted = {one["id"]: f"{one['title']}\n{one['text']}" for one in (overlay or {}).get("sections", [])}
        texts = {**planted, **self.docs}
        ids = list(dict.fromkeys([*planted, *self.finds.get(question, []), *self.docs]))[:k]
        context = context_of([{"id": name, "text": texts[name], "similarity": 0.5} for name in ids])
        if self.has("wrong-digest", question):
            context["digest"] = "sha256:" + "0" * 64
        return context

    def read(self, question: str, context: Json) -> str:
        """The block or blocks that really go into the prompt."""
        chunks = context["chunks"]
        spare = [{"id": name, "text": text} for name, text in self.docs.items()][-1]
        changed = {
            "other-context": [spare],
            "subset": chunks[:1],
            "superset": [*chunks, spare],
            "reordered": chunks[::-1],
        }
        if self.defect in changed and self.only in question:
            return block_of(context_of(changed[self.defect]))
        if self.has("second-block", question):
            return block_of(context) + "\nSee also: " + block_of(context_of([spare]))
        if self.has("same-block-twice", question):
            return block_of(context) + "\n" + block_of(context)
        return block_of(context)

    def answer(self, body: Json) -> Json:
        """A reply to ``/answer``."""
        question, context = body["question"], body["context"]
        with self.lock:
            self.asked += 1
            asked = self.asked
        if self.has("drifting", question):
            others = [name for name in self.docs if name not in {chunk["id"] for chunk in context["chunks"]}]
            spare = others[asked % len(others)]
            context = context_of([*context["chunks"][:1], {"id": spare, "text": self.docs[spare]}])
        if self.has("own-cache", question):
            return self.reply(context, [], {"message": {"content": REFUSAL}, "done_reason": "stop"})
        if self.has("reused", question) and question in self.first:
            return self.first[question]
        suffix = (body.get("overlay") or {}).get("system_suffix")
        prompt = [
            {"role": "system", "content": "\n\n".join(filter(None, [SYSTEM, suffix]))},
            *body.get("history", []),
            {"role": "user", "content": f"{self.read(question, context)}\n\nQuestion: {question}"},
        ]
        said = self.ask_model(prompt, body, question)
        if self.has("twice", question):
            said = self.ask_model(prompt, body, question)
        reply = self.reply(context, prompt, said)
        if self.has("edited", question):
            reply["answer"] += " And I have won two prizes."
        if self.has("empty", question):
            reply["answer"] = " \n"
        if self.has("reports-other", question):
            reply["context"] = self.retrieve("", 1)
        self.first.setdefault(question, reply)
        return reply

    def ask_model(self, prompt: list[Json], body: Json, question: str) -> Json:
        """One call of the model, not streamed."""
        options = {
            "seed": 7 if self.has("same-seed", question) else body["seed"],
            "temperature": body.get("temperature", 0),
            "num_predict": body.get("max_tokens", 64),
            "num_ctx": 100 if self.has("small-window", question) else 4096,
        }
        if self.has("no-seed"):
            del options["seed"]
        call = {"model": self.model, "messages": prompt, "stream": False, "options": options, "tools": None}
        try:
            return self.post("/api/chat", call)
        except (urllib.error.URLError, ConnectionError) as error:
            if self.has("swallows", question):
                return {"message": {"content": "Sorry, something went wrong."}, "done_reason": "stop"}
            raise ModelFailed(str(error)) from error

    def post(self, path: str, body: Json) -> Json:
        """One call of the model's server."""
        data = json.dumps(body).encode()
        url = os.environ["OLLAMA_HOST"] + path
        request = urllib.request.Request(url, data, {"content-type": "application/json"})
        with DIRECT.open(request, timeout=20) as response:
            value: Json = json.load(response)
        return value

    def reply(self, context: Json, prompt: list[Json], said: Json) -> Json:
        """A reply on the wire."""
        return {
            "answer": said["message"]["content"],
            "context": context,
            "prompt": prompt,
            "model": self.model,
            "finish_reason": said.get("done_reason"),
            "usage": {
                "prompt_tokens": said.get("prompt_eval_count"),
                "completion_tokens": said.get("eval_count"),
            },
        }

    def about(self) -> Json:
        """What it says of itself."""
        return {"name": "fake bot", "version": "1", "model": self.model, "chunks": len(self.docs)}


class Handler(BaseHTTPRequestHandler):
    """The wire. A whole response leaves in one write, so that nothing waits for an acknowledgement."""

    bot: Bot
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self) -> None:
        """Readiness, and what the bot is."""
        if self.path == "/about":
            self.send(200, self.bot.about())
        elif self.path == "/healthz":
            self.send(503 if self.bot.has("never-ready") else 200, {"ready": True})
        else:
            self.send(404, {"error": "not found"})

    def do_POST(self) -> None:
        """Retrieval and answers."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        question = body["question"]
        if self.bot.has("no-trace"):
            return self.send(404, {"error": "not found"})
        if self.path == "/retrieve":
            return self.send(200, self.bot.retrieve(question, body.get("k", 2), body.get("overlay")))
        if self.bot.has("500-like-a-refusal", question):
            return self.send(500, "Sorry, I cannot process your request.")
        if self.bot.has("200-with-error", question):
            return self.send(200, {"error": "Sorry, I can't answer that right now"})
        if self.bot.has("no-json", question):
            return self.send(200, "<html>welcome</html>")
        if self.bot.has("drops", question):
            self.close_connection = True
            self.connection.close()
            return None
        if self.bot.has("dies-midway", question):
            os._exit(9)
        if self.bot.has("hangs", question):
            time.sleep(30)
        try:
            self.send(200, self.bot.answer(body))
        except ModelFailed as error:
            self.send(502, {"error": str(error)})

    def send(self, status: int, body: Any) -> None:
        """One response."""
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response_only(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing: a bot's output is shown when it dies."""


class Server(ThreadingHTTPServer):
    """Takes many connections at once."""

    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A connection that went away is no news."""


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--defect", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--model", default="bot-model")
    parser.add_argument("--pid-file", type=Path)
    args = parser.parse_args()
    bot = Bot(args.docs, args.defect, args.only, args.model)
    if args.pid_file:
        args.pid_file.write_text(str(os.getpid()))
    if bot.has("dies"):
        print("loading the index\nno such index: broken.json", file=sys.stderr)
        sys.exit(3)
    if bot.has("chatty"):
        print("x" * 300_000, flush=True)
    if bot.has("embeds"):
        bot.post("/api/embed", {"input": list(bot.docs.values()), "model": "embedder"})
    Handler.bot = bot
    Server(("127.0.0.1", args.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
