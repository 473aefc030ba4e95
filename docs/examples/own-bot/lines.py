"""The same bot as a program: a JSON object a line in, one a line out, with the id of its question."""

import json
import sys

from bot import ask

for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], **ask(asked["question"])}), flush=True)
