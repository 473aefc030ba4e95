"""A program that reads JSON lines and writes JSON lines, with at most one defect; it imports nothing of ours.

Run as ``program.py [DEFECT]``. It answers a question with its words reversed, a second later where it begins
with "slow", out of order with others.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

LOCK = threading.Lock()
DEFECT = sys.argv[1] if len(sys.argv) > 1 else ""


def write(line: object) -> None:
    """One line, whole."""
    with LOCK:
        sys.stdout.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        sys.stdout.flush()


def answer(asked: dict[str, object]) -> None:
    """Answer one question."""
    question = str(asked["question"])
    if question.startswith("slow"):
        time.sleep(1.0)
    reply: dict[str, object] = {"id": asked["id"], "answer": question[::-1], "asked": asked}
    if question.startswith("fail"):
        reply = {"id": asked["id"], "error": "the index is gone"}
    if DEFECT == "no-id":
        del reply["id"]
    write(reply)


def main() -> None:
    """Answer line after line, until there are no more."""
    print("loading", file=sys.stderr, flush=True)
    if DEFECT == "dies":
        sys.exit("no such index: broken.json")
    if DEFECT == "chatty":
        write("Loading the model…")
    if os.environ.get("PID_FILE"):
        with open(os.environ["PID_FILE"], "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    for line in sys.stdin:
        asked = json.loads(line)
        question = str(asked["question"])
        if question.startswith("crash"):
            print("division by zero", file=sys.stderr, flush=True)
            os._exit(9)
        if question.startswith("hang"):
            time.sleep(60)
        threading.Thread(target=answer, args=(asked,), daemon=True).start()


if __name__ == "__main__":
    main()
