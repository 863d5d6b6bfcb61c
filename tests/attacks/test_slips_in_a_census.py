"""Weigh by a census that lacks a region, or one of one wave, or spells its levels in another way.

Defence: `ldpkit fit`: lists the levels that do not match, refuses those of the census, and says in the
verdict how many reports have no people in it. Known limit: duplicate rows, counts in thousands, cells
that it lacks, and people whom the study does not ask.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses.analysing import analyse_table
from inference.analyses.assembling import assemble
from inference.analyses.population import Population, left_out_of, notes_over, people_of
from inference.analyses.survey import read_frame
from inference.analyses.table import Table, table_of
from ldp_client.documents.errors import InputError
from tests.kit.channels import known_channel
from tests.kit.errors import raises

FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]
WHOLE = "north,950\nsouth,1200\nwest,2400\n"


def asked(**public: object) -> Table:
    """300 reports of each of three regions."""
    region = np.repeat(["north", "south", "west"], 300)
    frame = pd.DataFrame({"region": region, **public})
    said = (np.random.default_rng(7).random(900) < 0.4).astype(int)
    return table_of(frame, [known_channel("armed", ("no", "yes"), said, FORCED)])


def census_of(folder: Path, rows: str, header: str = "region,count\n") -> Population:
    path = folder / "census.csv"
    path.write_text(header + rows)
    return Population(census=read_frame(str(path)))


def said(table: Table, formula: str, over: Population) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Reasons of the verdict's informativeness, and notes."""
    analysis = assemble(table, formula)
    people = people_of(analysis, table, over)
    return left_out_of(analysis, people, over), notes_over(analysis, people, over)


def test_complete_census_gives_no_note(tmp_path: Path) -> None:
    over = census_of(tmp_path, WHOLE)
    assert said(asked(), "armed ~ region", over) == ((), ())
    assert said(asked(), "armed ~ 1 + (1 | region)", over) == ((), ())


@pytest.mark.parametrize("formula", ["armed ~ region", "armed ~ 1 + (1 | region)"])
@pytest.mark.parametrize("rows", ["north,950\nsouth,1200\n", "north,950\nsouth,1200\nwest,0\n"])
def test_level_missing_from_census_is_reported(formula: str, rows: str, tmp_path: Path) -> None:
    reasons, _ = said(asked(), formula, census_of(tmp_path, rows))
    assert [reason.split(":")[0] for reason in reasons] == [
        "300 of 900 reports have region = west, which the census does not count"
    ]


def test_numbered_group_missing_from_census_is_reported(tmp_path: Path) -> None:
    table = asked(clinic=np.arange(900) % 9, age=20 + np.arange(900) % 60)
    rows = "".join(f"{clinic},30,{100 + clinic}\n" for clinic in range(8))
    over = census_of(tmp_path, rows, "clinic,age,count\n")
    reasons, _ = said(table, "armed ~ age + (1 | clinic)", over)
    assert len(reasons) == 1
    assert "100 of 900 reports have clinic = 8" in reasons[0]


def test_census_of_one_wave_is_noted_without_doubt(tmp_path: Path) -> None:
    table = asked(wave=pd.Categorical(np.tile(["2024", "2025"], 450)))
    over = census_of(tmp_path, "2025,1000\n", "wave,count\n")
    reasons, notes = said(table, "armed ~ wave", over)
    assert reasons == ()
    assert any("450 of 900 reports have wave = 2024" in note for note in notes)


WAVES = pd.Categorical(np.tile(["1", "2"], 450))


def test_missing_level_is_reported_once(tmp_path: Path) -> None:
    table = asked(wave=WAVES, sex=np.repeat(["man", "woman"] * 3, 150))
    rows = "".join(f"2,{region},{sex},500\n" for region in ("north", "south") for sex in ("man", "woman"))
    over = census_of(tmp_path, rows, "wave,region,sex,count\n")
    reasons, notes = said(table, "armed ~ wave * region + sex", over)
    assert [reason.split(":")[0] for reason in reasons] == [
        "300 of 900 reports have region = west, which the census does not count"
    ]
    assert [note.split(":")[0] for note in notes] == [
        "450 of 900 reports have wave = 1, which the census does not count"
    ]


def test_missing_number_and_boolean_levels_are_reported() -> None:
    table = asked(year=np.tile([2024.0, 2025.0], 450), married=np.repeat([True, False, True], 300))
    over = Population(census=pd.DataFrame({"year": [2024.0], "married": [True], "count": [5000]}))
    reasons, _ = said(table, "armed ~ C(year) + married", over)
    assert ["year = 2025" in reasons[0], "married = 0" in reasons[1]] == [True, True]


@pytest.mark.parametrize(("listed", "code"), [(False, "census.rows_invalid"), (True, "census.unknown_value")])
def test_census_levels_without_reports_are_listed(listed: bool, code: str, tmp_path: Path) -> None:
    table = asked()
    if listed:
        table = replace(table, public=table.public.astype("category"))
    over = census_of(tmp_path, WHOLE.replace("west", "WEST").replace("north", "North"))
    with raises(InputError, code, "region", "'North', 'WEST'"):
        said(table, "armed ~ region", over)


def test_misspelt_census_group_is_noted_with_missing_one(tmp_path: Path) -> None:
    over = census_of(tmp_path, WHOLE.replace("west", "WEST"))
    (reason,), (note,) = said(asked(), "armed ~ 1 + (1 | region)", over)
    assert reason.startswith("300 of 900 reports have region = west")
    assert note.startswith("2,400 of 4,550 people are in groups of region without reports (WEST)")


@pytest.mark.slow
def test_uncounted_people_give_partial_informativeness(tmp_path: Path) -> None:
    over = census_of(tmp_path, "north,950\nsouth,1200\n")
    found = analyse_table(asked(), "armed ~ region", method="gaussian_approx", draws=200, population=over)
    assert found.verdict.informativeness.state == "partial"
    assert any(
        "which the census does not count" in reason for reason in found.verdict.informativeness.reasons
    )


@pytest.mark.parametrize(("young", "old", "told"), [(10, 90, True), (90, 10, False)])
def test_census_mostly_beyond_reported_ages_is_reported(
    young: int, old: int, told: bool, tmp_path: Path
) -> None:
    """Ages coded 1 to 6, or years of birth, would extrapolate the line."""
    table = asked(age=np.arange(900.0) % 10 + 20)
    census = census_of(tmp_path, f"25,{young}\n95,{old}\n", "age,count\n")
    reasons, _ = said(table, "armed ~ age", census)
    line = "90 of 100 people of the census have age beyond all reports (20 to 29): their estimates"
    assert any(line in reason for reason in reasons) is told


def test_census_with_one_row_per_person_is_accepted(tmp_path: Path) -> None:
    rows = "north,1\nsouth,1\nwest,1\n" * 400
    assert said(asked(), "armed ~ region", census_of(tmp_path, rows)) == ((), ())


@pytest.mark.parametrize(
    ("formula", "code"),
    [
        ("armed ~ np.log(income)", "census.rows_invalid"),
        ("armed ~ region + (np.log(income) | region)", "formula.term_not_finite"),
    ],
)
def test_infinite_term_in_census_is_rejected(formula: str, code: str, tmp_path: Path) -> None:
    """Such a row used to count as a share of exactly 0 or 1, and the fit was called ok."""
    table = asked(income=np.tile([10.0, 20.0, 30.0], 300))
    over = census_of(tmp_path, "north,0,500\nsouth,20,500\nwest,30,500\n", "region,income,count\n")
    with raises(InputError, code, "np.log(income)"):
        analyse_table(table, formula, population=over)


def test_term_that_fails_over_census_is_rejected(tmp_path: Path) -> None:
    table = asked(age=20.0 + np.arange(900) % 60)
    over = census_of(tmp_path, "north,90,500\nsouth,20,500\n", "region,age,count\n")
    with raises(InputError, "census.rows_invalid", "a term of the formula cannot be evaluated"):
        people_of(assemble(table, "armed ~ bs(age, df=4)"), table, over)
