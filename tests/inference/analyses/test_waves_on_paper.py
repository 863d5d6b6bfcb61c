"""Waves with reports of devices and records on paper: each wave has its own dice, arms and checks."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference import analyse_waves
from inference.analyses.arms import IN_TABLE, arms_apart, arms_of_all
from inference.analyses.assembling import assemble
from inference.analyses.design_file import read_design
from inference.analyses.joining import joined
from inference.analyses.paper import table_of_arms
from inference.analyses.prior_sites import prior_sites
from inference.analyses.table import known_channel, table_of
from inference.analyses.waves import Wave, table_of_waves
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.cli import main
from ldp_client.commands.paper import sheet_columns, sheet_name
from ldp_client.documents.errors import InputError
from schemas import Study
from summaries import summarize
from tests import studies
from tests.inference.simulation import seeded
from tests.kit.errors import raises

DICE = {"first": [["5/6", "1/6"], ["1/6", "5/6"]], "second": [["2/3", "1/3"], ["1/3", "2/3"]]}
EVER = {**studies.YES_NO, "mechanism": {"name": "randomized_response", "epsilon": "2"}}


def study_of(version: int, dice: str = "first", **more) -> Study:
    asked = {"id": "ever", "instructions": "Roll the die.", "matrix": DICE[dice]}
    public = [{"id": "region", "choices": ["north", "south"]}]
    document = studies.document(EVER, public=public, paper={"questions": [asked]}, **more)
    return Study({**document, "version": version})


def reports_of(study: Study, n: int) -> list:
    mechanisms, source = mechanisms_of(study), seeded(study.digest, n)
    return [
        perturb_answers(
            study, mechanisms, {"ever": person % 3 == 0, "region": ("north", "south")[person % 2]}, source
        )
        for person in range(n)
    ]


def entered(path: Path, study: Study, said, first: int = 1) -> str:
    """A sheet of records in the north."""
    name = sheet_name(study)
    rows = [[number, name, "north", one] for number, one in enumerate(said, first)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([sheet_columns(study), *rows])
    return str(path)


@pytest.fixture
def two(tmp_path):
    """Two waves with other dice; in the second some records have no answer of a device beside them."""
    one, other = study_of(1), study_of(2, "second")
    return {
        "2024": (one, reports_of(one, 30), entered(tmp_path / "a.csv", one, ["yes", "no", "no"])),
        "2025": (other, reports_of(other, 20), entered(tmp_path / "b.csv", other, ["no", "yes"])),
    }


def test_each_record_keeps_its_waves_dice(two):
    """Row by row, P(report | answer) is what the wave's own arms say."""
    whole = table_of_waves(two, ["ever", "region", "wave", "arm"])
    assert whole.n == 55
    start = 0
    for name, (study, reports, path) in two.items():
        own = table_of_arms(study, reports, path, ["ever", "region"])
        rows = slice(start, start + len(own.counts))
        start += len(own.counts)
        assert set(whole.public["wave"][rows]) == {name}
        assert list(whole.public["arm"][rows]) == list(own.public["arm"])
        mine, theirs = whole.private["ever"], own.private["ever"]
        assert np.array_equal(mine.vectors[mine.codes[rows]], theirs.vectors[theirs.codes])
    on_paper = mine.vectors[mine.codes[-2:]]
    assert on_paper == pytest.approx(np.asarray([[2, 1], [1, 2]]) / 3)
    assert sum("wave 2025: arm paper" in line for line in whole.noise) > 0


def test_a_wave_may_have_one_arm_alone(two):
    """Of all on paper `arm` is no column; where one wave alone is, a note says what then differs too."""
    first, other = two.values()
    table = table_of_waves({"a": first[:2], "b": (other[0], None, other[2])}, ["ever", "wave"])
    assert table.n == 32
    assert dict(table.public.groupby("wave", observed=True)["arm"].unique().map(list)) == {
        "a": ["device"],
        "b": ["paper"],
    }
    other_way = table_of_waves({"b": (other[0], None, other[2]), "a": first}, ["ever", "wave", "region"])
    assert other_way.n == 35
    assert set(other_way.public.columns) == {"wave", "arm", "region"}
    (note,) = [line for line in table.notes if "not answered alike" in line]
    assert "a device alone, b paper alone" in note
    table = table_of_waves({"a": (first[0], None, first[2]), "b": Wave(other[0], None, other[2])}, ["ever"])
    assert table.n == 5
    assert "arm" not in table.public.columns
    with raises(InputError, "wave.reports_invalid", "a: it has neither"):
        table_of_waves({"a": (first[0], None), "b": other}, ["ever"])


def test_a_design_may_speak_of_each_wave(two):
    """One in ten denies in the second; one matrix for both is refused, as their dice differ."""
    forced = {"design": "forced", "yes": "1/6", "no": "1/6"}
    parts = [
        {"rows": {"wave": "2024"}, **forced},
        {"rows": {"wave": "2025"}, "design": "forced", "yes": "1/3", "no": "1/3"},
    ]
    column = {"reports": ["no", "yes"], "denial": "0.1"}

    def design(**own):
        return read_design(json.dumps({"format": "ldpkit.design/1", "columns": {"ever": {**column, **own}}}))

    table = table_of_waves(two, ["ever"], design=design(matrices=parts))
    ever = table.private["ever"]
    assert ever.vectors[ever.codes[-1], 1] == pytest.approx(0.9 * 2 / 3 + 0.1 / 3)
    with raises(InputError, "wave.dice_differ", "ever"):
        table_of_waves(two, ["ever"], design=design(**forced))
    with raises(InputError, "wave.design_lacks_matrix", "2025", "ever"):
        table_of_waves(two, ["ever"], design=design(matrices=parts[:1]))


def waves_of_arms(shift: dict[str, float], n: int = 1500, seed: int = 5):
    """Two waves of devices and paper; of each, so many more say yes on paper."""
    random, tables = np.random.default_rng(seed), {}
    matrix = [[0.8, 0.2], [0.2, 0.8]]
    for wave, more in shift.items():
        arms = {}
        for arm, share in (("device", 0.4), ("paper", 0.4 + more)):
            truth = [random.random(n) < share for _ in range(2)]
            said = [(random.random(n) < np.where(one, 0.8, 0.2)).astype(int) for one in truth]
            names = [
                known_channel(name, ("no", "yes"), one, matrix)
                for name, one in zip(("q", "r"), said, strict=True)
            ]
            arms[arm] = table_of(pd.DataFrame(index=range(n)), names)
        tables[wave] = joined(arms, "arm")
    return replace(joined(tables, "wave"), waves="wave")


def apart(table, formula):
    analysis = assemble(table, formula)
    sites = {name: 0 * values[None] for name, values in prior_sites(analysis, 1, 50).items()}
    return arms_apart(analysis, table, sites)


def test_arms_are_held_against_each_other_in_each_wave():
    """Where paper says more in one wave and less in the other, all together agree."""
    table = waves_of_arms({"a": 0.25, "b": -0.25})
    quantities, reasons, _ = apart(table, "q ~ wave")
    assert [line.split(":")[0] for line in reasons] == [
        f"devices and paper disagree on q where wave = {wave}, beyond what public columns explain"
        for wave in "ab"
    ]
    assert "share q = yes, wave = b, arm: paper − device" in [one.name for one in quantities]
    pooled = table_of(table.public[["arm"]], list(table.private.values()))
    assert not apart(pooled, "q ~ 1")[1]
    # A law in which arms differ in all waves alike does not hide it.
    assert len(apart(table, "q ~ wave + arm")[1]) == 2
    assert not apart(waves_of_arms({"a": 0, "b": 0}), "q ~ wave")[1]


def test_a_crossed_table_of_waves_holds_arms_apart_too():
    table = waves_of_arms({"a": 0, "b": 0.25})
    quantities, reasons, _ = arms_of_all(table, list(table.private.values()), remedy=IN_TABLE)
    assert [("on q" in line, "wave = b" in line) for line in reasons] == [(True, True), (False, True)]
    assert len(quantities) == 12


def test_python_takes_records_as_a_third_part(two, monkeypatch):
    monkeypatch.setattr("inference.analyses.waves.analyse_table", lambda table, formula: (table, formula))
    table, formula = analyse_waves(two, "ever ~ wave * arm")
    assert formula == "ever ~ wave * arm"
    assert table.n == 55
    assert {"wave", "arm"} <= set(table.public.columns)


@pytest.fixture
def files(two, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, (study, reports, _) in zip("ab", two.values(), strict=True):
        (tmp_path / f"{name}.json").write_text(study.to_json())
        (tmp_path / f"{name}.ndjson").write_text("".join(f"{one.to_json()}\n" for one in reports))
    return two


FIT = ["fit", "--formula", "ever ~ wave + region", "--out", "out", "--method", "laplace"]
SECOND = ["--wave", "b=b.json,b.ndjson,b.csv"]


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["--wave", "a=a.json,a.csv"], 2, "reports of devices come second"),
        (["--wave", "a=a.json,a.csv,a.ndjson"], 2, "reports of devices come second"),
        (["--wave", "a=a.json,,"], 2, "must be NAME="),
        (["--wave", "a=a.json,a.ndjson,"], 2, "must be NAME="),
        (["--wave", "a=a.json,a.ndjson,a.csv,a.csv"], 2, "write NAME="),
        (["--wave", "a=a.json,a.ndjson,b.csv"], 3, "wave a: b.csv: record 1: its sheet is"),
        (["--wave", "a=a.json,a.ndjson,none.csv"], 3, "wave a: cannot read none.csv"),
        (["--wave", "a=a.json,a.ndjson,blank.csv"], 3, "wave a: blank.csv: 1 row of 2 have blank cells"),
        (["--wave", "a=a.json,a.ndjson,odd.csv"], 3, "wave a: odd.csv: ever, row 2: 'maybe' is no report"),
        (["--wave", "a=a.json,a.ndjson,a.csv", "--paper", "a.csv"], 2, "--paper is of one study"),
        (["--wave", "a=a.json,a.ndjson,a.csv", "--design", "none.json"], 3, "cannot read none.json"),
    ],
)
def test_a_command_for_waves_on_paper_that_cannot_be_is_refused(given, code, said, files, capsys):
    study = files["2024"][0]
    entered(Path("blank.csv"), study, ["yes", ""])
    entered(Path("odd.csv"), study, ["yes", "maybe"])
    assert main([*FIT, *given, *SECOND]) == code
    line = capsys.readouterr().err.strip()
    assert said in line
    assert "\n" not in line
    assert not Path("out").exists()


def test_a_summary_as_a_waves_reports_is_refused(files, capsys):
    """It has nobody's single report, so that nothing tells whether one stands in two waves."""
    assert main(["summarize", "a.json", "a.ndjson", "--out", "sum.json"]) == 0
    assert main([*FIT, "--wave", "a=a.json,sum.json", *SECOND]) == 3
    assert "wave a: a summary no longer has single reports" in capsys.readouterr().err
    study, reports, _ = files["2024"]
    with raises(InputError, "wave.reports_invalid", "a: a summary no longer has"):
        table_of_waves({"a": (study, summarize(study, reports)), "b": files["2025"]}, ["ever"])


def test_blanks_of_waves_without_paper_are_refused(files, capsys):
    """The option would change nothing."""
    waves = ["--wave", "a=a.json,a.ndjson", "--wave", "b=b.json,b.ndjson"]
    assert main([*FIT, *waves, "--blanks", "leave-out"]) == 2
    assert "--blanks is for tables and records on paper" in capsys.readouterr().err
    assert files


@pytest.mark.slow
def test_from_files_to_one_posterior_of_waves(files):
    """Reports and records, or records alone; a row with a blank is left out where that is said."""
    entered(Path("blank.csv"), files["2025"][0], ["yes", "", "no"])
    waves = ["--wave", "a=a.json,a.ndjson,a.csv", "--wave", "b=b.json,,blank.csv"]
    assert main([*FIT, *waves, "--blanks", "leave-out"]) in (0, 4)
    entry = json.loads(Path("out/posterior.json").read_text())["questions"]["ever"]
    assert entry["n"] == 35
    page = Path("out/report.html").read_text()
    assert "1 row of 3 had blank cells" in page
    assert "b paper alone" in page
    assert "share ever = yes, wave = a, arm = paper alone" in entry["quantities"]


@pytest.mark.slow
def test_reports_of_a_wave_may_be_csv_as_exports_are(files, capsys):
    """A file of devices' reports that ends in .csv was taken for records on paper."""
    reports = [one.to_document() for one in files["2024"][1]]
    with open("exported.csv", "w", newline="") as file:
        writer = csv.writer(file)
        parts = [(part, name) for part in ("payloads", "public") for name in reports[0].get(part, {})]
        writer.writerow(["report_id", "study", "version", "digest", *(".".join(one) for one in parts)])
        for one in reports:
            cells = [one[part][name] for part, name in parts]
            writer.writerow([one["id"], one["study"], one["version"], one["digest"], *cells])
    for out, given in (("out", "a.ndjson"), ("same", "exported.csv")):
        waves = ["--wave", f"a=a.json,{given}", "--wave", "b=b.json,b.ndjson"]
        assert main(["fit", "--formula", "ever ~ wave", "--out", out, "--method", "laplace", *waves]) in (
            0,
            4,
        ), capsys.readouterr().err
    found = [json.loads(Path(out, "posterior.json").read_text())["questions"] for out in ("out", "same")]
    assert found[0] == found[1]
