"""Waves: versions of a study, or tables, in one analysis; incompatible waves are rejected by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference import analyse_waves
from inference.analyses.assembling import assemble
from inference.analyses.effects import quantities_of
from inference.analyses.reports import table_of_reports
from inference.analyses.study_formula import table_of_waves
from inference.analyses.survey import load_survey
from inference.analyses.table import Private, table_of
from inference.analyses.waves import concat
from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from ldpkit.cli.surveys import read_source
from schemas import Report, Study
from summaries import summarize
from tests import studies
from tests.inference.analyses.simulated import answered, any_draws, design, workers, write
from tests.kit.errors import raises

RANDOMIZED = {"name": "randomized_response", "epsilon": "2"}
EVER = {**studies.YES_NO, "text": "Have you ever?", "mechanism": RANDOMIZED}
JOB = {**studies.CHOICE, "id": "job", "mechanism": {"name": "oue", "epsilon": "3"}}


def study_of(
    version: int, *questions: Any, regions: tuple[str, ...] = ("south", "north"), **more: Any
) -> Study:
    public = [{"id": "region", "choices": list(regions)}]
    return Study({**studies.document(*questions), "version": version, "public": public, **more})


def reports_of(study: Study, share: float, n: int, seed: int) -> list[Report]:
    """Reports of n people: a share say yes, other choices are even, and numbers are 3."""
    random = np.random.default_rng(seed)

    def answer(choices: Any) -> Any:
        if choices == ("no", "yes"):
            return bool(random.random() < share)
        return str(random.choice(choices)) if choices else 3

    regions = study.public[0].choices
    people = [{one.id: answer(one.choices) for one in study.questions} for _ in range(n)]
    return answered(study, [{"region": regions[at % 2], **one} for at, one in enumerate(people)], seed)


def of_rows(column: Private) -> np.ndarray:
    """P(report | answer) of each row, (rows, answers)."""
    return column.choices.vectors[0, column.codes]


@pytest.fixture(scope="module")
def waves():
    """0.3 said yes in version 1, 0.6 in version 2, where the noise is another."""
    other = {**EVER, "mechanism": {**RANDOMIZED, "epsilon": "1"}}
    first, second = study_of(1, EVER, JOB), study_of(2, other, JOB)
    return {"2024": (first, reports_of(first, 0.3, 70, 1)), "2025": (second, reports_of(second, 0.6, 90, 2))}


@pytest.fixture
def files(waves, tmp_path, monkeypatch):
    """The waves' files, a.json with a.ndjson, and b.json with b.ndjson."""
    monkeypatch.chdir(tmp_path)
    for name, (study, reports) in zip("ab", waves.values(), strict=True):
        Path(f"{name}.json").write_text(study.to_json())
        Path(f"{name}.ndjson").write_text("".join(f"{one.to_json()}\n" for one in reports))
    return waves


def test_rows_of_each_wave_keep_their_channel(waves):
    """Row by row, P(report | answer) equals that in the wave's own table."""
    whole = table_of_waves(waves, None, ["ever", "job", "region", "wave"])
    start = 0
    for name, (study, reports) in waves.items():
        own = table_of_reports(study, reports, ["ever", "job", "region"])
        rows = slice(start, start + len(own.counts))
        start += len(own.counts)
        assert set(whole.public["wave"][rows]) == {name}
        assert list(whole.counts[rows]) == list(own.counts)
        assert list(whole.public["region"][rows]) == list(own.public["region"])
        for question in ("ever", "job"):
            mine, theirs = whole.private[question], own.private[question]
            assert np.array_equal(of_rows(mine)[rows], of_rows(theirs))
    assert start == len(whole.counts)
    assert whole.n == 160


@pytest.mark.parametrize("mechanism", ["oue", "randomized_response", "hadamard"])
def test_choices_in_another_order_are_matched_by_label(mechanism):
    job = {**JOB, "mechanism": {**JOB["mechanism"], "name": mechanism}}
    first, second = study_of(1, job), study_of(2, {**job, "choices": job["choices"][::-1]})
    reports = reports_of(second, 0.5, 40, 7)
    table = table_of_waves(
        {"a": (first, reports_of(first, 0.5, 9, 8)), "b": (second, reports)}, None, ["job"]
    )
    own = table_of_reports(second, reports, ["job"])
    mine, theirs = table.private["job"], own.private["job"]
    assert mine.answers == tuple(JOB["choices"])
    assert np.array_equal(of_rows(mine)[-len(own.counts) :], of_rows(theirs)[:, ::-1])


def test_difference_between_waves_is_a_contrast(waves):
    """At each draw: the share with all people in the second wave, less that in the first."""
    analysis = assemble(table_of_waves(waves, "ever ~ wave"), "ever ~ wave")
    draws = any_draws(analysis)
    found = {one.name: one for one in quantities_of(analysis, draws)}
    moved = found["share ever = yes, wave: 2025 − 2024"]
    assert moved.contrast
    shares = [found[f"share ever = yes, wave = {name}"].draws for name in ("2024", "2025")]
    assert np.allclose(moved.draws, shares[1] - shares[0])


@pytest.mark.usefixtures("files")
def test_waves_of_command_keep_their_names_and_order():
    given = {"missing": None, "codebook": None, "formula": "ever ~ wave"}
    source = read_source({**given, "waves": ("late=b.json,b.ndjson", "early=a.json,a.ndjson")}, [])
    assert list(source.table.public["wave"].cat.categories) == ["late", "early"]


FIRST = study_of(1, EVER, JOB)
OTHER_JOB = {**JOB, "choices": ["student", "worker", "nurse", "other"]}


@pytest.mark.parametrize(
    ("second", "names", "code"),
    [
        (study_of(2, OTHER_JOB), ["job"], ("wave.other_answers", "teacher", "nurse")),
        (study_of(2, {**JOB, "ordered": True}), ["job"], ("wave.other_answers", "wave b")),
        (study_of(2, JOB), ["ever"], ("table.unknown_column", "wave b")),
        (study_of(2, EVER, {**JOB, "id": "wave"}), ["ever", "wave"], ("wave.name_taken", "wave b")),
    ],
)
def test_incompatible_waves_are_rejected(second, names, code):
    given = {"a": (FIRST, reports_of(FIRST, 0.5, 6, 3)), "b": (second, reports_of(second, 0.5, 6, 4))}
    with raises(InputError, code):
        table_of_waves(given, None, names)


def test_report_in_two_waves_is_rejected():
    """It would count twice."""
    reports = reports_of(FIRST, 0.5, 20, 3)
    with raises(InputError, "wave.report_in_two"):
        table_of_waves({"a": (FIRST, reports), "b": (FIRST, reports[5:6])}, "ever ~ 1")


def test_single_wave_and_summary_are_rejected(waves):
    """A summary has no single reports, so one in two waves could not be found."""
    with raises(InputError, "wave.only_one"):
        analyse_waves({"2024": waves["2024"]}, "ever ~ wave")
    study, reports = waves["2024"]
    with raises(InputError, "wave.summary_has_no_reports"):
        table_of_waves({"a": (study, summarize(study, reports)), "b": waves["2025"]}, "ever ~ 1")


def notes(names: list[str], *versions: Study, n: int = 4) -> list[str]:
    """Return the notes on waves called 1, 2 and so on."""
    given = {str(at): (one, reports_of(one, 0.5, n, at)) for at, one in enumerate(versions, 1)}
    return list(table_of_waves(given, None, names).notes)


ONE = [study_of(version, EVER) for version in (1, 2)]
LISTS = [{"title": title, "questions": ["ever"], "any_of": True} for title in ("You?", "Your mother?")]
PACKS = {**studies.NUMBER, "unit": "packs"}
TABLETS = {**studies.NUMBER, "unit": "tablets"}


@pytest.mark.parametrize(
    ("names", "versions", "wanted"),
    [
        (["ever", "wave"], ONE, None),
        (["ever"], ONE, "pooled"),
        (["ever", "wave"], (ONE[0], study_of(2, {**EVER, "text": "Do you?"})), "ever is worded differently"),
        (
            ["ever", "wave"],
            [study_of(at, studies.YES_NO, sections=[one]) for at, one in enumerate(LISTS, 1)],
            "ever is worded differently",
        ),
        (["hours", "wave"], (study_of(1, TABLETS), study_of(2, PACKS)), "tablets, packs"),
    ],
)
def test_difference_between_waves_is_noted(names, versions, wanted):
    found = notes(names, *versions)
    assert bool(found) == (wanted is not None)
    assert wanted is None or any(wanted in note for note in found)


@pytest.mark.parametrize("kept_first", [True, False])
def test_panel_of_kept_answers_is_noted_whichever_wave_is_memoized(kept_first):
    once = study_of(1, {**studies.MEMOIZED, "mechanism": studies.YES_NO["mechanism"]})
    kept = study_of(2, studies.MEMOIZED)
    (mechanism,) = mechanisms_of(kept).values()
    payload = {"habit": mechanism.perturb(True)}
    report = Report("0" * 32, kept.id, kept.version, kept.digest, payload, public={"region": "south"})
    given = {"b": (kept, [report]), "a": (once, reports_of(once, 0.5, 4, 1))}
    found = table_of_waves(given if kept_first else dict(reversed(given.items())), None, ["habit"]).notes
    assert any("one kept answer" in note for note in found)


def test_one_export_serves_all_waves(waves, tmp_path):
    """Each wave reads its version's reports; only those of a third version count as left out."""
    third = study_of(3, EVER, JOB)
    both = [one for _, reports in waves.values() for one in reports]
    for others in ([], reports_of(third, 0.5, 3, 9)):
        path = tmp_path / "all.ndjson"
        path.write_text("".join(f"{one.to_json()}\n" for one in [*both, *others]))
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
    table, _ = load_survey({"a": "a.csv", "b": "b.csv"}, "d.json", formula, "drop", [])
    own = assemble(table, formula).table
    vectors = of_rows(own.private["q"])
    wave = own.public["wave"]
    for name, p in (("a", 0.9), ("b", 0.7)):
        assert set(np.round(vectors[wave == name].max(axis=1), 12)) == {p}
    assert any(note.startswith("each wave: 1 row of 41 had blank cells") for note in table.notes)
    assert table.n == 80


TABLES, STUDIES = ["--formula", "q ~ wave + age"], ["--formula", "ever ~ wave"]
WITH_A = [*TABLES, "--wave", "a=d.json,a.csv", "--wave"]
OTHER = [*STUDIES, "--wave", "b=b.json,b.ndjson", "--wave"]


@pytest.mark.usefixtures("tables", "files")
@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ([*TABLES, "--wave", "a=d.json,a.csv", "--missing", "drop"], 2, "two or more"),
        ([*TABLES, "--wave", "a=d.json,a.csv", "--wave", "a=d.json,b.csv"], 2, "called a"),
        ([*TABLES, "--wave", "d.json,a.csv", "--wave", "b=d.json,b.csv"], 2, "must be NAME="),
        ([*WITH_A, "b=a.json,a.ndjson"], 2, "have one design"),
        ([*WITH_A, "b=d.json,bad.csv", "--missing", "drop"], 3, "q, row 2 of wave b"),
        ([*WITH_A, "b=d.json,short.csv", "--missing", "drop"], 3, "wave b: there is"),
        ([*WITH_A, "b=d.json,named.csv", "--missing", "drop"], 3, "wave b: it has a column wave"),
        ([*OTHER, "a=a.json"], 2, "must be NAME="),
        ([*OTHER, "a=a.json,"], 2, "must be NAME="),
        ([*OTHER, "a=a.json,a.ndjson", "--missing", "drop"], 2, "are for tables"),
    ],
)
def test_invalid_command_for_waves_is_rejected(given, code, said, capsys):
    assert main(["survey", *given, "--out", "out"]) == code
    assert said in capsys.readouterr().err
    assert not Path("out").exists()


SIZES = {"a": 1000, "b": 3000}


@pytest.mark.attack(17)
@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_plain_mean_is_pooled_over_all_waves(order):
    """One wave's mean must not pass as that of all; each wave weighs as its people, whichever is first."""
    tables = {}
    for place, name in enumerate(order):
        table = workers(SIZES[name], place, "normal" if name == "a" else "groups")
        tables[name] = table_of(table.public[["died"]], [table.private["hours"]])
    own = {name: table.private["hours"].number for name, table in tables.items()}
    found = concat(tables).private["hours"].number
    shares = {name: SIZES[name] / 4000 for name in order}
    assert found.plain.mean == pytest.approx(sum(shares[one] * own[one].plain.mean for one in order))
    error = np.sqrt(sum((shares[one] * own[one].plain.error) ** 2 for one in order))
    assert found.plain.error == pytest.approx(error)
    assert found.plain.mean != pytest.approx(own[order[0]].plain.mean)
