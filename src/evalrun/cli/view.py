"""The command that shows runs in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from evalrun.cli.told import echo

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("path", metavar="[RUN|RUNS]", default="runs", type=_FOLDER)
@click.option("--port", type=click.IntRange(0, 65535), default=8766, show_default=True, help="0: a free one.")
@click.option("--no-open", is_flag=True, help="Print the address only; open no browser.")
def view(path: Path, port: int, no_open: bool) -> None:
    """Show one RUN, or all RUNS of a folder with their trends, in a browser until Ctrl-C."""
    import asyncio
    import threading
    import webbrowser

    from evalrun.errors import UserError
    from evalrun.view.listing import Runs
    from evalrun.view.page import report_path
    from evalrun.view.server import create_app, listen, serve

    if not path.is_dir():
        raise UserError(f"{path}: there is no such folder", "evalrun run CONFIG makes a run in runs/")
    runs = Runs(path)
    listener = listen(port)
    host, port = listener.getsockname()
    url = f"http://{host}:{port}" + (report_path(path.resolve().name) if runs.only else "/")

    def ready() -> None:
        echo(f"{path} at {url}  (Ctrl-C ends it)")
        if not no_open:  # in a thread: a browser that runs in a terminal does not return
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    asyncio.run(serve(create_app(runs, port), listener, ready))


ALL = (view,)
