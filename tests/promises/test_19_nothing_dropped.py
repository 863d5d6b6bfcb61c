"""Nothing is dropped silently: blanks, duplicates, damaged lines and wrong files are refused, or counted.

Each row or report that goes in comes out, or is counted as left out, for every kind of file.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ldp_client import Device
from ldp_client.documents.errors import AnswerError
from ldpkit.cli import main
from summaries import reading
from tests.promises.damaged_files import PEOPLE, TABLES, files_of

Patch, Captured = pytest.MonkeyPatch, pytest.CaptureFixture[str]
REFUSED = 3
# What a command says of rows that it read and left out.
STATED = re.compile(r"(\d+) reports? (?:were repeated|answers? other versions)")


def lost(name: str, rows: int, people: int, code: int, words: str, made: int | None) -> list[str]:
    """What became of rows of which nobody is told. people: how many they are of.

    made: how many came out; None for no file.
    """
    if code:
        # Lines before may say how far it came.
        is_clear = (
            code == REFUSED and words.count("\nldpkit: ") + words.startswith("ldpkit: ") == 1 and made is None
        )
        return [] if is_clear else [f"{name}: ends with {code}, {made} rows and the words {words!r}"]
    stated = sum(int(count) for count in STATED.findall(words))
    return (
        []
        if made == people and people + stated == rows
        else [f"{name}: {rows} rows in, {made} out: {words!r}"]
    )


def perturbed(folder: Path, captured: Captured) -> list[str]:
    """Where `perturb` loses a person."""
    study, out, wrong = folder / "study.json", folder / "out.ndjson", []
    study.write_text(PEOPLE.to_json())
    for name, (lines, rows) in TABLES.items():
        table = folder / f"{name}.csv"
        table.write_text("".join(f"{line}\n" for line in lines))
        out.unlink(missing_ok=True)
        code = main(["perturb", str(study), str(table), "--out", str(out)])
        made = len(out.read_text().splitlines()) if out.exists() else None
        wrong += lost(name, rows, rows, code, captured.readouterr().err, made)
    return wrong


def test_table_of_answers_keeps_every_row(tmp_path: Path, capsys: Captured) -> None:
    assert perturbed(tmp_path, capsys) == []


def test_a_device_refuses_a_blank(tmp_path: Path) -> None:
    device = Device(tmp_path, "9", require_consent=False)
    for answers in ({"hours": 3}, {"hours": 3, "ever": None}, {"hours": 3, "ever": True, "more": 1}, {}):
        with pytest.raises(AnswerError):
            device.answer(PEOPLE, answers)
    assert list(device.ledger.queued()) == []


def summarized(folder: Path, captured: Captured, suffix: str) -> list[str]:
    """Where `summarize` loses a report."""
    study, out, wrong = folder / "study.json", folder / "summary.json", []
    study.write_text(PEOPLE.to_json())
    for name, files, rows, people in files_of(folder, suffix):
        out.unlink(missing_ok=True)
        code = main(["summarize", str(study), *map(str, files), "--out", str(out)])
        counts = (
            {part["n"] for part in json.loads(out.read_text())["questions"].values()}
            if out.exists()
            else {None}
        )
        assert len(counts) == 1
        wrong += lost(f"{name} ({suffix})", rows, people, code, captured.readouterr().err, counts.pop())
    return wrong


@pytest.mark.parametrize("suffix", ["ndjson", "csv", "parquet"])
def test_a_file_of_reports_loses_none(tmp_path: Path, capsys: Captured, suffix: str) -> None:
    assert summarized(tmp_path, capsys, suffix) == []


def test_fit_rejects_files_it_cannot_count(tmp_path: Path, capsys: Captured) -> None:
    study, refused = tmp_path / "study.json", []
    study.write_text(PEOPLE.to_json())
    for name, files, *_ in files_of(tmp_path, "ndjson"):
        if name.startswith(
            ("of other", "of another study", "an ", "no", "cut", "half", "a study", "a table", "damaged")
        ):
            code = main(["fit", str(study), *map(str, files), "--out", str(tmp_path / "fit")])
            refused.append((name, code, (tmp_path / "fit").exists()))
            assert capsys.readouterr().err.count("\n") >= 1
    assert len(refused) > 8
    assert [case for case in refused if case[1:] != (REFUSED, False)] == []


def test_a_planted_reader_that_skips_bad_lines_is_found(
    tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(reading.Findings, "refuse_bad", lambda _found: None)
    assert any(problem.startswith("cut off") for problem in summarized(tmp_path, capsys, "ndjson"))
