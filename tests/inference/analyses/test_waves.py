"""Waves: versions of a study, or tables, in one analysis; incompatible waves are rejected by name."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference import analyse_waves
from inference.analyses.program import assemble
from inference.analyses.study_formula import table_of_reports, table_of_waves
from inference.analyses.survey import load_survey
from inference.analyses.table import concat, table_of
from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Report
from summaries import summarize
from tests import studies
from tests.inference.analyses.simulated import EVER, JOB, SHARP, design, reported, reports_of, study_of, write
from tests.kit.errors import raises


def of_rows(column):
    """P(report | answer) of each row, (rows, answers)."""
    return column.choices.vectors[0, column.codes]


@pytest.fixture(scope="module")
def waves():
    first, second = study_of(EVER, JOB), study_of(studies.YES_NO, JOB, version=2)
    return {"2024": (first, reports_of(first, 70, 1)), "2025": (second, reports_of(second, 90, 2))}


@pytest.mark.parametrize("mechanism", ["oue", "randomized_response", "hadamard"])
def test_rows_of_waves_keep_their_channel_in_the_order_of_the_first_wave(mechanism):
    """Row by row, P(report | answer) equals that in the wave's own table, with choices matched by label."""
    job = {**JOB, "mechanism": {**JOB["mechanism"], "name": mechanism}}
    turned = {**job, "choices": job["choices"][::-1], "mechanism": {**job["mechanism"], "epsilon": "1"}}
    first, second = study_of(job), study_of(turned, version=2)
    waves = {"a": (first, reports_of(first, 9, 8)), "b": (second, reports_of(second, 40, 7))}
    whole = table_of_waves(waves, None, ["job", "region", "wave"])
    tables = [table_of_reports(*wave, ["job", "region"]) for wave in waves.values()]
    mine, (one, other) = whole.private["job"], [of_rows(own.private["job"]) for own in tables]
    assert mine.answers == tuple(JOB["choices"])
    assert np.array_equal(of_rows(mine), np.concatenate([one, other[:, ::-1]]))
    assert list(whole.counts) == [count for own in tables for count in own.counts]
    assert list(whole.public["region"]) == [region for own in tables for region in own.public["region"]]
    assert list(whole.public["wave"]) == ["a"] * len(one) + ["b"] * len(other)


FIRST = study_of(EVER, JOB)
OTHER_JOB = {**JOB, "choices": ["student", "worker", "nurse", "other"]}


@pytest.mark.parametrize(
    ("second", "names", "code"),
    [
        (study_of(OTHER_JOB, version=2), ["job"], ("wave.other_answers", "teacher", "nurse")),
        (study_of({**JOB, "ordered": True}, version=2), ["job"], ("wave.other_answers", "wave b")),
        (study_of(JOB, version=2), ["ever"], ("table.unknown_column", "wave b")),
        (study_of(EVER, {**JOB, "id": "wave"}, version=2), ["ever"], ("wave.name_taken", "wave b")),
        # It would count twice.
        (FIRST, ["ever"], "wave.report_in_two"),
    ],
)
def test_incompatible_waves_are_rejected(second, names, code):
    waves = {"a": (FIRST, reports_of(FIRST, 6)), "b": (second, reports_of(second, 6))}
    with raises(InputError, code):
        table_of_waves(waves, None, names)


def test_single_wave_and_summary_are_rejected(waves):
    """A summary has no single reports, so one in two waves could not be found."""
    with raises(InputError, "wave.only_one"):
        analyse_waves({"2024": waves["2024"]}, "ever ~ wave")
    study, reports = waves["2024"]
    with raises(InputError, "wave.summary_has_no_reports"):
        table_of_waves({"a": (study, summarize(study, reports)), "b": waves["2025"]}, "ever ~ 1")


LISTS = [{"title": title, "questions": ["ever"], "any_of": True} for title in ("You?", "Your mother?")]
IN_LISTS = [study_of(studies.YES_NO, sections=[one]) for one in LISTS]
IN_UNITS = [study_of({**studies.NUMBER, "unit": unit}) for unit in ("tablets", "packs")]


@pytest.mark.parametrize(
    ("names", "first", "second", "wanted"),
    [
        (["ever", "wave"], study_of(EVER), study_of(EVER, version=2), None),
        (["ever"], study_of(EVER), study_of(EVER, version=2), "pooled"),
        (["ever", "wave"], study_of(EVER), study_of({**EVER, "text": "Do you?"}), "is worded differently"),
        (["ever", "wave"], *IN_LISTS, "is worded differently"),
        (["hours", "wave"], *IN_UNITS, "tablets, packs"),
    ],
)
def test_difference_between_waves_is_noted(names, first, second, wanted):
    waves = {"1": (first, reports_of(first, 4, 1)), "2": (second, reports_of(second, 4, 2))}
    notes = table_of_waves(waves, None, names).notes
    assert bool(notes) == (wanted is not None)
    assert wanted is None or any(wanted in note for note in notes)


def test_panel_of_kept_answers_is_noted_whichever_wave_is_memoized():
    once = study_of({**studies.MEMOIZED, "mechanism": studies.YES_NO["mechanism"]})
    kept = study_of(studies.MEMOIZED, version=2)
    (mechanism,) = mechanisms_of(kept).values()
    payload = {"habit": mechanism.perturb(True)}
    report = Report("0" * 32, kept.id, 2, kept.digest, payload, public={"region": "south", "age": "20"})
    waves = [("a", (once, reports_of(once, 4))), ("b", (kept, [report]))]
    for given in (waves, waves[::-1]):
        notes = table_of_waves(dict(given), None, ["habit"]).notes
        assert any("one kept answer" in note for note in notes)


@pytest.mark.parametrize("others", [0, 3])
def test_one_export_serves_all_waves(waves, others, tmp_path):
    """Each wave reads its version's reports; only those of a third version count as left out."""
    more = reports_of(study_of(EVER, JOB, version=3), others)
    every = [*(one for _, reports in waves.values() for one in reports), *more]
    path = tmp_path / "all.ndjson"
    path.write_text("".join(f"{one.to_json()}\n" for one in every))
    table = table_of_waves({name: (study, path) for name, (study, _) in waves.items()}, "ever ~ wave")
    assert table.n == 160
    assert any("3 reports answer other versions" in note for note in table.notes) == bool(others)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Other dice in each wave: p is 0.9, then 0.7; a blank age in each."""
    monkeypatch.chdir(tmp_path)
    for name, region in (("a", "north"), ("b", "NORTH")):
        rows = [[at % 2, 30 + at, ("south", region)[at // 2 % 2]] for at in range(40)]
        write(Path(f"{name}.csv"), ["q", "age", "region"], [*rows, [1, "", "south"]])
    parts = [{"rows": {"wave": name}, "design": "warner", "p": p} for name, p in (("a", "0.9"), ("b", "0.7"))]
    Path("d.json").write_text(design(q={"matrices": parts, "reports": ["0", "1"]}))
    write(Path("bad.csv"), ["q", "age"], [[0, 1], [7, 1]])
    write(Path("short.csv"), ["q"], [[0], [1]])
    write(Path("named.csv"), ["q", "age", "wave"], [[0, 1, 1], [1, 2, 1]])


@pytest.mark.usefixtures("tables")
def test_waves_of_tables_may_have_their_own_dice():
    formula = "q ~ wave + age + (1 | region)"
    table, _ = load_survey({"a": "a.csv", "b": "b.csv"}, "d.json", formula, drop=True)
    own = assemble(table, formula).table
    vectors = of_rows(own.private["q"])
    wave = own.public["wave"]
    for name, p in (("a", 0.9), ("b", 0.7)):
        assert set(np.round(vectors[wave == name].max(axis=1), 12)) == {p}
    assert any(note.startswith("each wave: 1 row of 41 had blank cells") for note in table.notes)
    assert table.n == 80


WITH_A = ["a=d.json,a.csv"]


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("waves", "exit_code", "said"),
    [
        (WITH_A, 2, "two or more"),
        ([*WITH_A, "a=d.json,b.csv"], 2, "called a"),
        ([*WITH_A, "b.csv"], 2, "must be NAME="),
        ([*WITH_A, "b=a.json,a.ndjson"], 2, "have one design"),
        ([*WITH_A, "b=d.json,bad.csv"], 3, "q, row 2 of wave b"),
        ([*WITH_A, "b=d.json,short.csv"], 3, "wave b: there is"),
        ([*WITH_A, "b=d.json,named.csv"], 3, "wave b: it has a column wave"),
        (["a=a.json,a.ndjson", "b=a.json,b.ndjson"], 2, "are for tables"),
    ],
)
def test_invalid_command_for_waves_is_rejected(waves, exit_code, said, capsys):
    Path("a.json").write_text(FIRST.to_json())
    options = [word for wave in waves for word in ("--wave", wave)]
    formula = ["--formula", "q ~ wave + age", "--missing", "drop"]
    assert main(["survey", *options, *formula, "--out", "out"]) == exit_code
    assert said in capsys.readouterr().err
    assert not Path("out").exists()


@pytest.mark.attack(17)
@pytest.mark.parametrize("people", [(1000, 3000), (3000, 1000)])
def test_plain_mean_is_pooled_over_all_waves(people):
    """One wave's mean must not pass as that of all; each wave weighs as its people, whichever is first."""
    columns = [reported(SHARP, np.full(n, 2.0 + n / 1000), n) for n in people]
    tables = [table_of(pd.DataFrame(index=range(n)), [one]) for n, one in zip(people, columns, strict=True)]
    found = concat(dict(zip("ab", tables, strict=True))).private["hours"].number.plain
    weights, each = np.asarray(people) / 4000, [one.number.plain for one in columns]
    assert found.mean == pytest.approx(weights @ [one.mean for one in each])
    assert found.error == pytest.approx(np.linalg.norm(weights * [one.error for one in each]))
    assert found.mean != pytest.approx(each[0].mean)
