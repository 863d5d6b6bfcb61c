"""Weigh by a census that lacks a region, or one of one wave, stands twice, or has marks in its thousands."""

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
from inference.analyses.table import Table, known_channel, table_of
from ldp_client.documents.errors import InputError
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
    """Reasons of the verdict's knowledge, and notes."""
    analysis = assemble(table, formula)
    people = people_of(analysis, table, over)
    return left_out_of(analysis, people, over), notes_over(analysis, people, over)


def test_a_census_that_holds_all_is_used_without_a_word(tmp_path: Path) -> None:
    over = census_of(tmp_path, WHOLE)
    assert said(asked(), "armed ~ region", over) == ((), ())
    assert said(asked(), "armed ~ 1 + (1 | region)", over) == ((), ())


@pytest.mark.parametrize("formula", ["armed ~ region", "armed ~ 1 + (1 | region)"])
@pytest.mark.parametrize("rows", ["north,950\nsouth,1200\n", "north,950\nsouth,1200\nwest,0\n"])
def test_people_whom_a_census_does_not_count_are_told(formula: str, rows: str, tmp_path: Path) -> None:
    reasons, _ = said(asked(), formula, census_of(tmp_path, rows))
    assert [reason.split(":")[0] for reason in reasons] == [
        "300 of 900 reports have region = west, of which the census counts nobody"
    ]


def test_groups_with_numbers_are_told_and_numbers_that_are_none_are_not(tmp_path: Path) -> None:
    table = asked(clinic=np.arange(900) % 9, age=20 + np.arange(900) % 60)
    rows = "".join(f"{clinic},30,{100 + clinic}\n" for clinic in range(8))
    over = census_of(tmp_path, rows, "clinic,age,count\n")
    reasons, _ = said(table, "armed ~ age + (1 | clinic)", over)
    assert len(reasons) == 1
    assert "100 of 900 reports have clinic = 8" in reasons[0]


def test_a_census_of_one_wave_is_noted_and_not_doubted(tmp_path: Path) -> None:
    table = asked(wave=pd.Categorical(np.tile(["2024", "2025"], 450)))
    over = census_of(tmp_path, "2025,1000\n", "wave,count\n")
    reasons, notes = said(table, "armed ~ wave", over)
    assert reasons == ()
    assert any("450 of 900 reports have wave = 2024" in note for note in notes)


WAVES = pd.Categorical(np.tile(["1", "2"], 450))
LACKING = "1,north,900\n1,south,800\n1,west,700\n2,north,900\n2,south,800\n"


@pytest.mark.parametrize(
    "formula", ["armed ~ wave * region", "armed ~ wave + region", "armed ~ wave + (1 | region)"]
)
@pytest.mark.parametrize("zero", ["", "2,west,0\n"])
def test_a_region_of_one_wave_that_a_census_lacks_is_told(formula: str, zero: str, tmp_path: Path) -> None:
    """Its shares, totals and the difference between waves came out of other regions' people, and were ok."""
    reasons, _ = said(asked(wave=WAVES), formula, census_of(tmp_path, LACKING + zero, "wave,region,count\n"))
    (reason,) = reasons
    assert reason.startswith("150 of 900 reports have ")
    assert "wave = 2" in reason
    assert "region = west" in reason


def test_what_a_level_alone_tells_is_told_once(tmp_path: Path) -> None:
    table = asked(wave=WAVES, sex=np.repeat(["man", "woman"] * 3, 150))
    rows = "".join(f"2,{region},{sex},500\n" for region in ("north", "south") for sex in ("man", "woman"))
    over = census_of(tmp_path, rows, "wave,region,sex,count\n")
    reasons, notes = said(table, "armed ~ wave * region + sex", over)
    assert [reason.split(":")[0] for reason in reasons] == [
        "300 of 900 reports have region = west, of which the census counts nobody"
    ]
    assert [note.split(":")[0] for note in notes] == [
        "450 of 900 reports have wave = 1, of which the census counts nobody"
    ]


def test_a_region_of_one_wave_is_named_shortest_and_three_levels_together_are_found(tmp_path: Path) -> None:
    band, sex = np.arange(900) % 5, np.repeat(["man", "woman"] * 3, 150)
    table = asked(wave=WAVES, sex=sex, band=pd.Categorical([f"b{one}" for one in band]))
    kinds = [(w, r, s) for w in "12" for r in ("north", "south", "west") for s in ("man", "woman")]
    kept = [one for one in kinds if one not in [("2", "west", "man"), ("1", "south", "man")]]
    kept.remove(("1", "south", "woman"))
    rows = "".join(f"{w},{r},{s},b{b},70\n" for w, r, s in kept for b in range(5))
    over = census_of(tmp_path, rows, "wave,region,sex,band,count\n")
    reasons, notes = said(table, "armed ~ wave * region + sex + band", over)
    two, three = (reason.split(":")[0] for reason in reasons)
    assert not notes
    assert "150 of 900" in two
    assert "sex" not in two
    assert "75 of 900" in three
    assert "band" not in three


def test_cells_of_few_reports_are_at_most_noted(tmp_path: Path) -> None:
    """A census that is a sample lacks small cells: one of 9 reports is no reason, many are a note."""
    cells = [(f"c{clinic}", f"b{band}") for clinic in range(20) for band in range(5)]
    table = asked(
        clinic=[f"c{one}" for one in np.arange(900) % 20],
        band=[f"b{one}" for one in np.arange(900) // 20 % 5],
    )
    for lacking, noted in ((1, 0), (5, 1)):
        rows = "".join(f"{c},{b},{50 + n}\n" for n, (c, b) in enumerate(cells) if n % 21 or n >= 21 * lacking)
        over = census_of(tmp_path, rows, "clinic,band,count\n")
        reasons, notes = said(table, "armed ~ band + (1 | clinic)", over)
        assert reasons == ()
        assert len([note for note in notes if "small groups by" in note]) == noted


def test_levels_that_are_numbers_or_yes_and_no_are_told() -> None:
    table = asked(year=np.tile([2024.0, 2025.0], 450), married=np.repeat([True, False, True], 300))
    over = Population(census=pd.DataFrame({"year": [2024.0], "married": [True], "count": [5000]}))
    reasons, _ = said(table, "armed ~ C(year) + married", over)
    assert ["year = 2025" in reasons[0], "married = 0" in reasons[1]] == [True, True]


def test_a_year_of_by_is_told_where_it_lacks_a_region(tmp_path: Path) -> None:
    table = asked(year=np.tile([2024.0, 2025.0], 450))
    rows = "2024,north,900\n2024,south,800\n2024,west,700\n2025,north,900\n2025,south,800\n"
    over = census_of(tmp_path, rows, "year,region,count\n")
    over = Population(census=over.census, by="year")
    reasons, _ = said(table, "armed ~ year + region", over)
    assert len(reasons) == 1
    assert "150 of 900" in reasons[0]


@pytest.mark.parametrize("formula", ["armed ~ region", "armed ~ 1 + (1 | region)"])
@pytest.mark.parametrize("listed", [False, True])
def test_a_level_in_capitals_is_named_with_that_of_the_reports(
    formula: str, listed: bool, tmp_path: Path
) -> None:
    table = asked()
    if listed:
        table = replace(table, public=table.public.astype("category"))
    over = census_of(tmp_path, WHOLE.replace("west", "WEST"))
    with raises(InputError, "census.other_spelling", "region", "WEST", "west"):
        said(table, formula, over)


@pytest.mark.slow
def test_the_verdict_knows_of_people_who_are_not_counted(tmp_path: Path) -> None:
    over = census_of(tmp_path, "north,950\nsouth,1200\n")
    found = analyse_table(asked(), "armed ~ region", method="laplace", draws=200, population=over)
    assert found.verdict.knowledge.state == "partial"
    assert any("of which the census counts nobody" in reason for reason in found.verdict.knowledge.reasons)


def test_a_census_below_itself_is_refused(tmp_path: Path) -> None:
    with raises(InputError, "census.all_rows_repeated", "2"):
        said(asked(), "armed ~ region", census_of(tmp_path, WHOLE * 2))
    _, notes = said(asked(), "armed ~ region", census_of(tmp_path, WHOLE + "west,2400\n"))
    assert any("1 of the census's rows stand more than once" in note for note in notes)


def test_a_row_a_person_may_stand_twice(tmp_path: Path) -> None:
    rows = "north,1\nsouth,1\nwest,1\n" * 400
    assert said(asked(), "armed ~ region", census_of(tmp_path, rows)) == ((), ())


def test_few_people_and_parts_of_people_are_noted(tmp_path: Path) -> None:
    _, notes = said(asked(), "armed ~ region", census_of(tmp_path, "north,0.2\nsouth,0.3\nwest,0.5\n"))
    assert any("3 of 3 counts of the census are not whole" in note for note in notes)
    assert any("counts 1 people, fewer than the 900" in note for note in notes)


@pytest.mark.parametrize("formula", ["armed ~ np.log(income)", "armed ~ region + (np.log(income) | region)"])
def test_a_term_that_is_infinite_in_the_census_is_refused(formula: str, tmp_path: Path) -> None:
    """A share of exactly 0 or 1 came into the census's, whatever the slope was, and the fit was ok."""
    table = asked(income=np.tile([10.0, 20.0, 30.0], 300))
    over = census_of(tmp_path, "north,0,500\nsouth,20,500\nwest,30,500\n", "region,income,count\n")
    with pytest.raises(InputError, match=r"term np\.log\(income\).* is not a finite number in some rows"):
        analyse_table(table, formula, population=over)


def test_a_term_that_cannot_be_evaluated_over_the_census_says_so(tmp_path: Path) -> None:
    table = asked(age=20.0 + np.arange(900) % 60)
    over = census_of(tmp_path, "north,90,500\nsouth,20,500\n", "region,age,count\n")
    with raises(InputError, "census.rows_invalid", "a term of the formula cannot be evaluated"):
        people_of(assemble(table, "armed ~ bs(age, df=4)"), table, over)
