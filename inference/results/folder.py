"""The folder of a fit: posterior.json, draws, plots and the report, written completely or not at all."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from inference.results.earlier_steps import NOTHING, Earlier
from inference.results.intervals import USUAL, Interval
from inference.results.page import PAGE, report_files
from inference.results.plots import Draws, pictures_of
from inference.results.posterior import Posterior
from inference.results.provenance import Provenance
from inference.results.saving import RESULT, save_posteriors
from inference.results.tables import FILES
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import STREAM
from schemas import Study


class Digested(Protocol):
    """The source of a result: a study, or a table with its design."""

    @property
    def digest(self) -> str:
        """Return the digest that identifies it."""


@dataclass(frozen=True)
class OwnFiles:
    """The files of a command's result folder, used to recognise an older result of the same command.

    mark: the document {"study_digest", "questions"} that is always present. each: patterns of every
    question's files, with {} for its id. others: further files.
    """

    mark: str
    each: tuple[str, ...]
    others: tuple[str, ...] = ()

    def listed_in(self, folder: Path) -> set[str]:
        """Return the names of a result's files by its mark; none if the mark is missing or invalid."""
        try:
            document = json.loads((folder / self.mark).read_bytes())
            if not isinstance(document["study_digest"], str) or not isinstance(document["questions"], dict):
                return set()
        except (OSError, ValueError, KeyError, TypeError):
            return set()
        named = {pattern.replace("{}", name) for pattern in self.each for name in document["questions"]}
        return {self.mark, *self.others, *named}


FIT_FILES = OwnFiles(RESULT, ("{}.nc", "{}.png", "{}-chains.png"), (PAGE, *FILES))


def save_report(
    study: Study,
    posteriors: Mapping[str, Posterior],
    folder: Path,
    raw: Mapping[str, Draws] | None = None,
    interval: Interval = USUAL,
    made: Provenance | None = None,
    earlier: Earlier = NOTHING,
) -> None:
    """Write posterior.json, the report (HTML, Markdown, CSV, LaTeX), and each question's draws and pictures.

    QUESTION.nc has its draws, QUESTION.png its intervals, QUESTION-chains.png its traces and ranks.
    """
    # posterior.json keeps the fit's own verdict separate from earlier results: only the fit is ever repeated.
    save_posteriors(posteriors, folder, made, earlier)
    posteriors = earlier.on(posteriors)
    known = raw or {}
    pictures = {name: pictures_of(found, known.get(name), interval) for name, found in posteriors.items()}
    # Written first: a question named "x-chains" then overwrites the chains of x with its own picture.
    for name, drawn in pictures.items():
        (folder / f"{name}-chains.png").write_bytes(drawn.chains_png)
    for name, drawn in pictures.items():
        (folder / f"{name}.png").write_bytes(drawn.intervals_png)
    for name, text in report_files(study, posteriors, raw, pictures, interval, made, earlier).items():
        (folder / name).write_text(text, encoding="utf-8")


@contextmanager
def whole_folder(target: Path, own: OwnFiles = FIT_FILES, study: Digested | None = None) -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` only after everything was written.

    Replaces an older result of the same command, or an empty folder, and keeps its mode. Raises InputError if
    the folder holds other files, both at the start and again before replacing it; if it holds a result of
    another study (with `study`); and if writing fails, for example on a full disk.
    """
    if str(target) == STREAM:
        raise UsageError(
            "--out - is standard output, and this command writes a folder: name one",
            code="result.to_standard_output",
        )
    target = target.resolve()
    temporary = None
    try:
        if _files_of(target, own) and study is not None:
            _refuse_other_study(target / own.mark, study)
        target.parent.mkdir(parents=True, exist_ok=True)
        made = target.parent / f".ldpkit-{os.urandom(8).hex()}"
        # The umask decides who may read a new folder.
        made.mkdir()
        temporary = made
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        yield temporary
        _swap(temporary, target, own)
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror or error}", code="files.not_writable"
        ) from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _files_of(target: Path, own: OwnFiles) -> list[str]:
    """Return the files of an older result in a folder. Raises InputError if it holds anything else."""
    if not target.exists():
        return []
    if not target.is_dir():
        raise InputError(f"{target} is not a folder", code="result.not_a_folder")
    if Path.cwd().is_relative_to(target):
        raise InputError(f"{target} is the folder you are in: choose another", code="result.current_folder")
    found = sorted(target.iterdir())
    listed = own.listed_in(target)
    foreign = [one.name for one in found if one.name not in listed or one.is_symlink() or not one.is_file()]
    if foreign:
        raise InputError(
            f"{target} holds {foreign[0]}, which is no result of this command: choose another folder",
            code="result.foreign_file",
        )
    return [one.name for one in found]


def _refuse_other_study(result: Path, study: Digested) -> None:
    digest = json.loads(result.read_text(encoding="utf-8"))["study_digest"]
    if digest != study.digest:
        raise InputError(
            f"{result.parent} holds a result of another study, or of this one before it was edited "
            f"({digest}): choose another folder",
            code="result.of_other_study",
        )


def _swap(temporary: Path, target: Path, own: OwnFiles) -> None:
    """Replace the older result by the new result, deleting only the older result's own files."""
    names = _files_of(target, own)
    if not target.exists():
        os.replace(temporary, target)
        return
    aside = Path(tempfile.mkdtemp(prefix=".ldpkit-old-", dir=target.parent))
    os.replace(target, aside / "old")
    os.replace(temporary, target)
    for name in names:
        (aside / "old" / name).unlink()
    (aside / "old").rmdir()
    aside.rmdir()
