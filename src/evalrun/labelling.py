"""Which answers of a run are to be labelled, and the label file as it grows, one label at a time.

Owns the choice by seed and the file, which is whole after each label, so that stopping loses nothing. What
stands in such a file is decided by ``labels``, how answers are shown by the command.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from evalrun.digest import short, utf8
from evalrun.errors import UserError
from evalrun.journal import RunFolder
from evalrun.jsonl import to_line, write_atomically
from evalrun.labels import load_labels
from evalrun.records import Case, Context, Design, Draw, Judgement, Label, LabelHeader, Rater
from evalrun.reports.words import count


@dataclass(frozen=True)
class Question:
    """One answer to be labelled, with what a rater may see: nothing of the judge."""

    case: Case
    draw: Draw
    context: Context | None

    @property
    def key(self) -> tuple[str, str]:
        """(case id, digest of the draw), which a label holds on to."""
        assert self.draw.digest is not None
        return (self.case.id, self.draw.digest)


def order(seed: int, name: str) -> str:
    """Where a question stands in the order of a seed."""
    return hashlib.sha256(utf8(f"{seed}\n{name}")).hexdigest()


def place(seed: int, draw: Draw) -> str:
    """Where a draw stands in the order of a seed: sha256 of seed, case and index, joined by line feeds."""
    return hashlib.sha256(utf8(f"{seed}\n{draw.case}\n{draw.index}")).hexdigest()


def choose_random(folder: RunFolder, seed: int, count: int) -> list[Question]:
    """One answer of each of ``count`` questions, all by seed; a larger count only adds some."""
    return _asked(folder, one_a_case(folder.draws(), seed)[:count])


def choose_by_verdict(folder: RunFolder, seed: int, each: int, dimension: str) -> list[Question]:
    """``each`` answers that the judge called yes and as many that it called no, one a question, by seed.

    They come in the order of the seed, so that their place tells nothing of the verdict.
    """
    said = {(one.case, one.index): _said(one, dimension) for one in folder.judgements()}
    order = one_a_case(folder.draws(), seed)
    groups = ([draw for draw in order if said.get(draw.key) is verdict][:each] for verdict in (True, False))
    chosen = {draw.key for group in groups for draw in group}
    return _asked(folder, [draw for draw in order if draw.key in chosen])


def _said(judgement: Judgement, dimension: str) -> bool | None:
    found: bool | None = getattr(judgement, dimension)
    return found


def one_a_case(draws: Iterable[Draw], seed: int) -> list[Draw]:
    """The first answer of each case in the order of the seed: those that can be chosen."""
    chosen: dict[str, Draw] = {}
    for draw in sorted(draws, key=lambda draw: place(seed, draw)):
        if draw.digest is not None:
            chosen.setdefault(draw.case, draw)
    return list(chosen.values())


def _asked(folder: RunFolder, draws: Iterable[Draw]) -> list[Question]:
    cases = folder.cases_of_draws()
    contexts = {(case, context.digest): context for case, context in folder.contexts()}
    asked = list(draws)
    for draw in asked:
        if draw.context is not None and (draw.case, draw.context) not in contexts:
            message = f"{folder.file('contexts')}: holds no context of an answer to '{draw.case}'"
            raise UserError(message, f"see what else is wrong: evalrun verify {folder.path}")
    return [Question(cases[draw.case], draw, contexts.get((draw.case, draw.context or ""))) for draw in asked]


def _chosen(header: LabelHeader) -> str:
    """``'refusal', design random, seed 3``; by verdict also whose."""
    judge = f", judge {short(header.judge)}" if header.judge else ""
    return f"'{header.dimension}', design {header.design}, seed {header.seed}{judge}"


class Sheet:
    """A label file that one rater adds to. It is written whole after each change."""

    def __init__(self, path: Path, header: LabelHeader, rater: str, rows: Iterable[Label] = ()) -> None:
        self.path = path
        self.rater = rater
        self._header = header
        self._rows = {(row.rater, row.case, row.draw): row for row in rows}

    @classmethod
    def open(cls, path: Path, header: LabelHeader, rater: str) -> Sheet:
        """The sheet in ``path``, or a new one with ``header``, whose rater is added where the file has none.

        A file without labels is as good as new, if it is about the same dimension.

        Raises:
            UserError: the file is about another dimension, or its answers were chosen otherwise.
        """
        if not path.exists():
            return cls(path, header, rater)
        known = load_labels(path, begun=True)
        old = known.header
        if not known.rows and old.dimension == header.dimension:
            return cls(path, header, rater)
        if _chosen(old) != _chosen(header):
            raise UserError(
                f"{path}: holds labels of {_chosen(old)}; these would be of {_chosen(header)}",
                "choose the same, or name another file with --output",
            )
        raters = header.raters | old.raters
        return cls(path, old.model_copy(update={"raters": raters}), rater, known.rows)

    def label_of(self, question: Question) -> bool | None:
        """What this rater said of an answer; None: nothing yet."""
        row = self._rows.get((self.rater, *question.key))
        return None if row is None else row.label

    def put(self, question: Question, label: bool) -> None:
        """Label an answer, or label it anew."""
        case, draw = question.key
        self._rows[self.rater, case, draw] = Label(draw=draw, case=case, rater=self.rater, label=label)
        self._write()

    def add(self, rows: Iterable[Label]) -> int:
        """Take in labels that were made elsewhere; one for the same answer by the same rater is replaced.

        Returns how many said otherwise before.
        """
        new = {(row.rater, row.case, row.draw): row for row in rows}
        turned = sum(key in self._rows and self._rows[key].label != row.label for key, row in new.items())
        self._rows |= new
        self._write()
        return turned

    def _write(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lines = [self._header, *self._rows.values()]
            write_atomically(self.path, b"".join(to_line(line) for line in lines))
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be written: {error.strerror}", "name another file with --output"
            ) from None


def new_header(
    folder: RunFolder, dimension: str, design: Design, seed: int, rater: str, who: Rater
) -> LabelHeader:
    """The header of a new sheet: it names the config of the run and how the answers were chosen.

    Where they are chosen by verdict, also the judge: by another's verdicts they would be others.
    """
    config, judge = folder.meta.config_path, folder.header.judge
    return LabelHeader(
        dimension=dimension,
        design=design,
        seed=seed,
        date=date.today(),
        configs=(_relative(config),) if config else (),
        raters={rater: who},
        judge=judge.fingerprint if judge and design == "by_verdict" else None,
    )


def _relative(path: str) -> str:
    """A path as seen from the working directory, where it lies below; with slashes."""
    found = Path(path).resolve()
    here = Path.cwd().resolve()
    return (found.relative_to(here) if found.is_relative_to(here) else found).as_posix()


def import_labels(folder: RunFolder, source: Path, target: Path, dimension: str) -> tuple[int, int]:
    """Take the labels of ``source`` into the sheet ``target``: how many there were, and how many of them
    replace one that said otherwise.

    Raises:
        UserError: the file is of another dimension, or a label is of no answer of the run; nothing is taken
            in then.
    """
    labels = load_labels(source)
    if labels.header.dimension != dimension:
        raise UserError(
            f"{source}: labels of '{labels.header.dimension}', not of '{dimension}'", "name another file"
        )
    known = {(draw.case, draw.digest) for draw in folder.draws()}
    if strange := [row for row in labels.rows if (row.case, row.draw) not in known]:
        named = ", ".join(row.case for row in strange[:5])
        raise UserError(
            f"{source}: {count(len(strange), 'label')} of no answer in {folder.path}: {named}",
            "name the run that the page was made from",
        )
    turned = Sheet.open(target, labels.header, labels.rows[0].rater).add(labels.rows)
    return len(labels.rows), turned
