"""Schemathesis over the OpenAPI of a real ``ragbot serve``, with and without ``--trace``.

The model behind it is scripted. ``nox -s openapi`` runs this; what counts as a finding stands in
``schemathesis.toml``, and arguments go to ``schemathesis run`` as they are.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from fakes.streaming import StreamingModel  # noqa: E402

PROFILE = ROOT / "data" / "corpus" / "profile.md"


def main(arguments: list[str]) -> int:
    """The exit code of the first run that found something, or 0."""
    model = StreamingModel(lambda body: "I work at Acme since 2020.").start()
    try:
        codes = [checked(model.url, trace, arguments) for trace in ([], ["--trace"])]
    finally:
        model.stop()
    return next(filter(None, codes), 0)


def checked(model: str, trace: list[str], arguments: list[str]) -> int:
    """One run over the calls that are open."""
    print(f"\n== ragbot serve {' '.join(trace)}", flush=True)
    program = os.environ.get("SCHEMATHESIS") or str(Path(sys.executable).with_name("schemathesis"))
    with tempfile.TemporaryDirectory() as folder, serving(model, trace, folder) as url:
        settings = ("--config-file", str(ROOT / "tests" / "schemathesis.toml"))
        command = [program, *settings, "run", f"{url}/openapi.json", *arguments]
        path = os.pathsep.join(filter(None, [str(ROOT / "tests"), os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, check=False
        ).returncode


@contextmanager
def serving(model: str, trace: list[str], cache: str) -> Iterator[str]:
    """The address of a twin that asks the scripted model."""
    env = {**os.environ, "OLLAMA_HOST": model, "RAGBOT_CACHE": cache}
    command = [sys.executable, "-m", "ragbot.cli", "serve", "--build", "--port", "0", *trace]
    said = ""
    with subprocess.Popen(
        [*command, "--profile", str(PROFILE)], stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stderr is not None
        try:
            while not (found := re.search(r"http://\S+", said)):
                line = process.stderr.readline()
                if not line:
                    raise SystemExit(f"ragbot did not start:\n{said}")
                said += line
            yield found[0]
        finally:
            process.terminate()
            print(process.stderr.read(), end="")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
