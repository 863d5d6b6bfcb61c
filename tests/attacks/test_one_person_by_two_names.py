"""An issuer's list as spreadsheets write it: blanks about names, other line ends, names written otherwise."""

from __future__ import annotations

import csv

import pytest

from ldp_client.documents.errors import InputError
from tests.collector.commands import run
from tests.kit.errors import raises


@pytest.fixture(autouse=True)
def issuer(tmp_path, monkeypatch):
    """An issuer's folder with a key of a study, and a code for Anna and for Zoë."""
    run("issuer", "init", str(tmp_path / "own"), "--address", "https://issuer.example")
    monkeypatch.chdir(tmp_path / "own")
    run("issuer", "key", "panel")
    invite("name\nAnna\nZoë\n", "first.csv")


def invite(text, out, *more):
    with open("people.csv", "w", newline="", encoding="utf-8") as file:
        file.write(text)
    run("issuer", "invite", "panel", "--names", "people.csv", "--out", out, *more)


@pytest.mark.parametrize("name", ["Anna ", "  Anna", "Anna\u00a0", "Zoe\u0308"])
def test_name_with_surrounding_blanks_is_a_duplicate(name):
    with raises(InputError, "issuer.duplicate_name"):
        invite(f"name\n{name}\n", "second.csv")


def test_blank_name_is_rejected():
    with raises(InputError, "issuer.incomplete_name_line", "2"):
        invite("name\n  \n", "second.csv")


def test_carriage_return_line_ends_are_read():
    invite("name\rCarl\rDora\r", "second.csv")
    with open("second.csv", encoding="utf-8") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["Carl", "Dora"]


def test_oversized_csv_cell_is_rejected():
    # As in a process that has read no reports in CSV, whose cells are longer.
    limit = csv.field_size_limit(1 << 17)
    try:
        with raises(InputError, "files.not_csv"):
            invite("name\n" + "x" * 140_000 + "\n", "second.csv")
    finally:
        csv.field_size_limit(limit)


def test_replacing_code_of_unknown_name_warns(capsys):
    invite("name\nAna\n", "second.csv", "--again")
    assert "names without a code here: 1 (Ana)" in capsys.readouterr().err


def test_duplicate_column_is_rejected():
    """The last column used to win without a message, so that codes went to names that were not checked."""
    with raises(InputError, "issuer.duplicate_column", "name"):
        invite("name,name\nCarl,Dora\n", "second.csv")
    with raises(InputError, "issuer.duplicate_column", "region"):
        invite("name,region,region\nCarl,north,south\n", "second.csv")


@pytest.mark.parametrize("more", [(), ("--again",), ("--again", "--second-token")])
def test_empty_name_list_is_rejected_with_file_name(more):
    with raises(InputError, "issuer.no_names", "people.csv"):
        invite("name\n\n", "second.csv", *more)
