"""Names from files of elsewhere: none becomes a path, and no symbolic link is written through."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from make_run import make_run

from evalrun.cassette import Cassette
from evalrun.cli import main
from evalrun.errors import UserError
from evalrun.journal import KINDS, RunFolder
from evalrun.jsonl import Appender, write_atomically
from evalrun.records import Case, Exchange
from evalrun.reports import write_reports
from fakes.servers import FakeModel

IDS = [
    "../../escaped",
    "/tmp/escaped-by-evalrun",
    "a/b",
    "..",
    ".",
    "con",
    "x\\y",
    "C:\\escaped",
    "~/escaped",
]


def files(folder: Path) -> set[str]:
    """Every file below ``folder``."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_ids_are_never_paths(tmp_path: Path) -> None:
    """Cases called like paths: a run, its reports, its export and its labels write the files of any run."""
    rows = [{"id": name, "question": "Why?", "category": "c", "cluster": name} for name in IDS]
    project = tmp_path / "project"
    project.mkdir()
    (project / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    asked = '{model: m, messages: [{role: user, content: "{question}"}]}'
    bot = FakeModel(lambda body: "Because.").start()
    (project / "c.yaml").write_text(
        "name: c\ndataset: q.jsonl\ndraws: 1\nprovenance: none\nscorers: [refusal_rule]\n"
        f"target: {{kind: http, url: '{bot.url}', path: /api/chat, body: {asked}, answer: message.content}}\n"
    )
    run = tmp_path / "runs" / "r"
    try:
        done = CliRunner().invoke(main, ["run", str(project / "c.yaml"), "--live", "--output", str(run)])
    finally:
        bot.stop()
    assert len(IDS) == len(list(RunFolder(run).draws())), done.output
    page = str(tmp_path / "labels.html")
    asks = ["label", str(run), "--dimension", "refusal", "--random", "10", "--html", page]
    for command in (
        ["report", str(run)],
        asks,
        ["export", str(run), "--output", str(tmp_path / "table.csv")],
    ):
        assert 0 == CliRunner().invoke(main, command).exit_code, command
    plain = make_run(tmp_path / "plain")
    write_reports(plain)
    own = {f"runs/r/{name}" for name in files(plain.path) | {"resume.json"}}
    made = files(tmp_path) - {f"plain/{name}" for name in files(plain.path)}
    assert made - own <= {"project/q.jsonl", "project/c.yaml", "labels.html", "table.csv"}
    assert not Path("/tmp/escaped-by-evalrun").exists()


def test_lines_of_a_recording_are_never_paths(tmp_path: Path) -> None:
    """Whatever case, path and source a line names, a cassette has its two books and its source."""
    cassette = Cassette(tmp_path / "in" / "cassette", "record")
    for name in IDS:
        line = Exchange(
            source=name, key="k", case=name, draw=0, turn=0, method="POST", path=f"/../{name}/api/chat",
            media_type="application/json", request={"model": name}, status=200, reply="{}", seconds=0.0,
        )  # fmt: skip
        cassette.store("bot", line)
    cassette.close()
    assert {"in/cassette/bot.jsonl", "in/cassette/source.json"} == files(tmp_path)


def test_no_link_is_written_through(tmp_path: Path) -> None:
    """Where reports, or the names they are first written under, are links, the files take their place."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    run = make_run(tmp_path / "run")
    write_reports(run)
    for name in ("report.html", "junit.xml", "summary.md", "run.json"):
        (run.path / f"{name}.tmp").symlink_to(victim)
    for name in ("report.html", "junit.xml", "summary.md"):
        (run.path / name).unlink()
        (run.path / name).symlink_to(victim)
    CliRunner().invoke(main, ["report", str(run.path)])
    write_atomically(run.path / "run.json", b"{}")
    assert "mine" == victim.read_text()
    assert not any(path.is_symlink() for path in run.path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_a_linked_journal_is_not_gone_on_with(tmp_path: Path, kind: str) -> None:
    """A journal that leads out of its folder is neither cut nor added to, whether it is there or not."""
    victim = tmp_path / "victim"
    victim.write_text("mine, without a line end")
    (tmp_path / "run").mkdir()
    for target in (victim, tmp_path / "new"):
        link = RunFolder(tmp_path / "run").file(kind)
        link.symlink_to(target)
        with pytest.raises(UserError, match="is a symbolic link"):
            Appender(link)
        with pytest.raises(UserError, match="is a symbolic link"):
            RunFolder(tmp_path / "run").append(kind, Case(id="a", question="b", category="c"))
        link.unlink()
    assert "mine, without a line end" == victim.read_text()
    assert not (tmp_path / "new").exists()
