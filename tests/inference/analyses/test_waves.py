"""Waves: versions of a study, or tables, in one analysis; incompatible waves are rejected by name."""

from __future__ import annotations

import csv
import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from inference import analyse_waves
from inference.analyses.assembling import assemble
from inference.analyses.inputs import source_of
from inference.analyses.likelihood import with_unknown
from inference.analyses.population import Population, people_of
from inference.analyses.report_page import sentence
from inference.analyses.reports import table_of_reports
from inference.analyses.survey import load_waves, read_frame
from inference.analyses.waves import table_of_waves
from inference.results.quantity import Quantity
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Report, Study
from summaries import summarize
from summaries.reading import load_evidence
from tests import studies
from tests.kit.errors import raises

REGION = {"id": "region", "choices": ["south", "north"]}
EVER = {
    **studies.YES_NO,
    "text": "Have you ever?",
    "mechanism": {"name": "randomized_response", "epsilon": "2"},
}
JOB = {**studies.CHOICE, "id": "job", "mechanism": {"name": "oue", "epsilon": "3"}}


def study_of(version: int, *questions, regions=("south", "north"), **more) -> Study:
    field = {"id": "region", "choices": list(regions)}
    return Study({**studies.document(*questions), "version": version, "public": [field], **more})


def reports_of(study: Study, share: float, n: int, seed: int) -> list:
    random, mechanisms = np.random.default_rng(seed), mechanisms_of(study)
    regions, source = study.public[0].choices, NotForRealAnswers(random.bytes)
    found = []
    for person in range(n):
        answers = {"region": regions[person % len(regions)]}
        for question in study.questions:
            if question.choices != ("no", "yes"):
                answers[question.id] = question.choices[int(random.integers(len(question.choices)))]
            else:
                answers[question.id] = bool(random.random() < share)
        found.append(perturb_answers(study, mechanisms, answers, source))
    return found


@pytest.fixture(scope="module")
def waves():
    """0.3 said yes in version 1, 0.6 in version 2, where the noise is another."""
    other = {**EVER, "mechanism": {"name": "randomized_response", "epsilon": "1"}}
    first, second = study_of(1, EVER, JOB), study_of(2, other, JOB)
    return {
        "2024": (first, reports_of(first, 0.3, 700, 1)),
        "2025": (second, reports_of(second, 0.6, 900, 2)),
    }


def test_rows_of_each_wave_keep_their_channel(waves):
    """Row by row, P(report | answer) equals that in the wave's own table."""
    whole = table_of_waves(waves, ["ever", "job", "region", "wave"])
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
            assert np.array_equal(mine.vectors[mine.codes[rows]], theirs.vectors[theirs.codes])
    assert start == len(whole.counts)
    assert whole.n == 1600


@pytest.mark.slow
def test_difference_between_waves_is_estimated_and_printed(waves, tmp_path, monkeypatch):
    """Shares of 0.3 and 0.6, with an interval and the probability that the difference is above 0."""
    monkeypatch.chdir(tmp_path)
    arguments = ["fit", "--formula", "ever ~ wave + region", "--out", "out", "--method", "gaussian_approx"]
    for name, (study, reports) in waves.items():
        (tmp_path / f"{name}.json").write_text(study.to_json())
        (tmp_path / f"{name}.ndjson").write_text("".join(f"{one.to_json()}\n" for one in reports))
        arguments += ["--wave", f"{name}={name}.json,{name}.ndjson"]
    assert main(arguments) in (0, 4)
    entry = json.loads((tmp_path / "out" / "posterior.json").read_text())["questions"]["ever"]
    assert set(entry["parameters"]) == {"Intercept", "wave[2025]", "region[north]"}
    found = entry["quantities"]["share ever = yes, wave: 2025 − 2024"]
    assert abs(found["mean"] - 0.3) < 5 * found["sd"] < 0.5
    assert found["direction"] == "above 0"
    assert found["probability_of_direction"] > 0.99
    page = (tmp_path / "out" / "report.html").read_text()
    assert "above 0 with probability more than 0.99" in page


def test_unnamed_waves_are_named_after_versions(waves, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = []
    for name, (study, reports) in waves.items():
        (tmp_path / f"{name}.json").write_text(study.to_json())
        (tmp_path / f"{name}.ndjson").write_text("".join(f"{one.to_json()}\n" for one in reports))
        given.append(f"{name}.json,{name}.ndjson")
    source = source_of(Namespace(wave=given, design=None, missing=None, formula="ever ~ wave"), [])
    assert list(source.table().public["wave"].cat.categories) == ["1", "2"]
    assert source.digest == source.table().digest


def test_contrast_is_printed_with_its_direction():
    draws = np.asarray([[-0.1, 0.2, 0.3, 0.4]])
    quantity = Quantity("share q = yes, wave: b − a", "difference of the share", draws, contrast=True)
    assert quantity.to_document()["probability_of_direction"] == 0.75
    assert sentence(quantity).endswith("above 0 with probability 0.75.")
    below = Quantity("share q = yes, wave: b − a", "difference of the share", -draws, contrast=True)
    assert below.to_document()["direction"] == "below 0"
    assert "probability" not in sentence(Quantity("share q = yes", "share", draws))


OTHER_JOB = {**JOB, "choices": ["student", "worker", "nurse", "other"]}
BAD = {
    "job has other choices in wave b than in wave a (teacher in wave a alone; nurse, other in wave b": (
        (2, OTHER_JOB),
        ["job"],
    ),
    "wave b: there is no column 'ever'": ((2, JOB), ["ever"]),
    "wave b: its study already has a field wave": ((2, EVER, {**JOB, "id": "wave"}), ["ever", "wave"]),
    "is also in another wave": (None, ["ever"]),
}


@pytest.mark.parametrize("said", BAD)
def test_incompatible_waves_are_rejected(said):
    first = study_of(1, EVER, JOB)
    reports = reports_of(first, 0.5, 20, 3)
    given, names = BAD[said]
    if given is None:
        second, others = first, reports[5:6]
    else:
        second = study_of(*given)
        others = reports_of(second, 0.5, 20, 4)
    with pytest.raises(InputError) as error:
        table_of_waves({"a": (first, reports), "b": (second, others)}, names)
    assert said in str(error.value)


def kept_reports(study: Study) -> list:
    """One of each value of a memoized yes/no."""
    (mechanism,) = mechanisms_of(study).values()
    payloads = {mechanism.perturb(place % 2 == 0) for place in range(60)}
    region = {"region": study.public[0].choices[0]}
    return [
        Report(f"{place:032x}", study.id, study.version, study.digest, {"habit": payload}, public=region)
        for place, payload in enumerate(sorted(payloads))
    ]


def test_differences_between_waves_are_noted():
    """Changed wording, changed regions, memoized answers, and waves that the formula does not name."""
    first, second = (
        study_of(1, studies.MEMOIZED),
        study_of(2, {**studies.MEMOIZED, "text": "Do you still?"}, regions=("south", "north", "sea")),
    )
    waves = {"a": (first, kept_reports(first)), "b": (second, kept_reports(second))}
    table = table_of_waves(waves, ["habit", "region"])
    for said in ("worded differently", "one kept answer", "no sea in wave a", "pooled"):
        assert any(said in note for note in table.notes), said
    assert list(table.public["region"].cat.categories) == ["south", "north", "sea"]
    lists = [{"title": title, "questions": ["ever"], "any_of": True} for title in ("You?", "Your mother?")]
    boxes = [study_of(1 + place, studies.YES_NO, sections=[one]) for place, one in enumerate(lists)]
    waves = {f"{study.version}": (study, reports_of(study, 0.5, 2, 1)) for study in boxes}
    assert any("worded differently" in note for note in table_of_waves(waves, ["ever", "region"]).notes)
    units = ["tablets", "packs", "tablets"]
    counts = [study_of(1 + place, {**studies.NUMBER, "unit": unit}) for place, unit in enumerate(units)]
    waves = {
        f"{study.version}": (
            study,
            [perturb_answers(study, mechanisms_of(study), {"hours": 3, "region": "south"})],
        )
        for study in counts
    }
    for chosen, noted in (("12", 1), ("13", 0)):
        table = table_of_waves({name: waves[name] for name in chosen}, ["hours"])
        assert sum("tablets in wave 1" in note for note in table.notes) == noted


@pytest.mark.parametrize("kept_first", [True, False])
def test_panel_note_appears_whichever_wave_is_memoized(kept_first):
    """Before, the note appeared only if the first wave's answers were memoized."""
    once = study_of(1, {**studies.MEMOIZED, "mechanism": studies.YES_NO["mechanism"]})
    kept = study_of(2, studies.MEMOIZED)
    answers = [{"habit": place % 3 == 0, "region": "south"} for place in range(9)]
    reports = [perturb_answers(once, mechanisms_of(once), one) for one in answers]
    waves = {"b": (kept, kept_reports(kept)), "a": (once, reports)}
    order = waves if kept_first else dict(reversed(waves.items()))
    assert any("one kept answer" in note for note in table_of_waves(order, ["habit"]).notes)


def test_choices_in_another_order_are_matched_by_label():
    """The vectors of version 2 are reordered to version 1's order."""
    first, second = study_of(1, JOB), study_of(2, {**JOB, "choices": JOB["choices"][::-1]})
    reports = reports_of(second, 0.5, 40, 7)
    table = table_of_waves({"a": (first, reports_of(first, 0.5, 9, 8)), "b": (second, reports)}, ["job"])
    own = table_of_reports(second, reports, ["job"])
    mine, theirs = table.private["job"], own.private["job"]
    assert mine.answers == tuple(JOB["choices"])
    assert np.array_equal(mine.vectors[mine.codes[-len(own.counts) :]], theirs.vectors[theirs.codes][:, ::-1])


def test_one_export_serves_all_waves(waves, tmp_path, capsys):
    """Each wave reads its version's reports; only those of a third version count as left out."""
    third = study_of(3, EVER, JOB)
    both = [one for _, reports in waves.values() for one in reports]
    for others, said in (([], False), (reports_of(third, 0.5, 3, 9), True)):
        path = tmp_path / "all.ndjson"
        path.write_text("".join(f"{one.to_json()}\n" for one in [*both, *others]))
        read = {name: (study, load_evidence(study, path)) for name, (study, _) in waves.items()}
        table = table_of_waves(read, ["ever", "wave"])
        assert table.n == 1600
        assert any("3 reports answer other versions" in note for note in table.notes) == said
        assert ("left out" in capsys.readouterr().err) == said


def test_census_matches_waves_named_by_years(waves, tmp_path):
    """2024 is a number in the file and a label in the waves."""
    (tmp_path / "census.csv").write_text("wave,count\n2024,100\n2025,300\n")
    census = read_frame(str(tmp_path / "census.csv"))
    table = table_of_waves(waves, ["ever", "wave"])
    analysis = assemble(table, "ever ~ wave")
    frame, sizes = people_of(analysis, table, Population(census=census, by="wave"))
    assert list(frame["wave"]) == ["2024", "2025"]
    assert list(sizes) == [100, 300]


def test_single_wave_is_rejected(waves):
    with raises(InputError, "wave.only_one"):
        analyse_waves({"2024": waves["2024"]}, "ever ~ wave")


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Other dice in each wave: p is 0.9, then 0.7."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(9)
    write(tmp_path / "a.csv", ["q", "age"], random.integers(0, 2, (300, 2)).tolist())
    write(tmp_path / "b.csv", ["age", "q", "extra"], random.integers(0, 2, (200, 3)).tolist())
    parts = [{"rows": {"wave": name}, "design": "warner", "p": p} for name, p in (("a", "0.9"), ("b", "0.7"))]
    column = {"matrices": parts}
    (tmp_path / "d.json").write_text(json.dumps({"format": "ldpkit.design/1", "columns": {"q": column}}))
    return tmp_path


@pytest.mark.usefixtures("tables")
def test_waves_of_tables_may_have_their_own_dice():
    table, _ = load_waves({"a": "a.csv", "b": "b.csv"}, "d.json", "q ~ wave + age", "error", [])
    cells = assemble(table, "q ~ wave + age").cells
    vectors = with_unknown(table.private["q"].vectors, {}, {})[cells.reports["q"]]
    wave = np.asarray(cells.frame["wave"])[cells.cell]
    assert set(np.round(vectors[wave == "a"].max(axis=1), 12)) == {0.9}
    assert set(np.round(vectors[wave == "b"].max(axis=1), 12)) == {0.7}
    assert table.n == 500


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("formula", ["q ~ wave + region", "q ~ wave + (1 | region)"])
def test_levels_of_tables_differing_only_in_case_are_named(formula, tables):
    for name, regions in {"a": ["north", "south"], "b": ["NORTH", "south"]}.items():
        rows = [[place % 2, regions[place // 2 % 2]] for place in range(40 if name == "a" else 60)]
        write(tables / f"{name}.csv", ["q", "region"], rows)
    given = ({"a": "a.csv", "b": "b.csv"}, "d.json", formula, "error", [])
    assert any("'north' and 'NORTH', which look alike" in note for note in load_waves(*given)[0].notes)


def test_levels_of_studies_differing_only_in_case_are_noted():
    studies_of = {"a": study_of(1, EVER), "b": study_of(2, EVER, regions=("South", "north"))}
    given = {name: (one, reports_of(one, 0.5, 20, 3)) for name, one in studies_of.items()}
    table = table_of_waves(given, ["ever", "region", "wave"])
    assert any("'south' and 'South', which look alike" in note for note in table.notes)


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["--wave", "a=a.csv"], 2, "two or more"),
        (["--wave", "a=a.csv", "--wave", "a=b.csv"], 2, "called a"),
        (["--wave", "a.csv", "--wave", "b=b.csv"], 2, "NAME=TABLE.csv"),
        (["--wave", "a=a.csv", "--wave", "b=s.json,r.ndjson"], 2, "only tables"),
        (["--wave", "a=a.csv", "--wave", "b=b.csv", "--table", "a.csv"], 2, "--table"),
        (["--wave", "a=a.csv", "--wave", "b=bad.csv"], 3, "wave b: q, row 2"),
        (["--wave", "a=a.csv", "--wave", "b=short.csv"], 3, "wave b: there is no column 'age'"),
    ],
)
def test_invalid_command_for_waves_of_tables_is_rejected(given, code, said, tables, capsys):
    write(tables / "bad.csv", ["q", "age"], [[0, 1], [7, 1]])
    write(tables / "short.csv", ["q"], [[0], [1]])
    assert main(["fit", *given, "--design", "d.json", "--formula", "q ~ wave + age", "--out", "out"]) == code
    assert said in capsys.readouterr().err
    assert not (tables / "out").exists()


FIT = ["fit", "--formula", "ever ~ wave", "--out", "out", "--method", "gaussian_approx"]
WAVES = ["--wave", "a=a.json,a.ndjson", "--wave", "b=b.json,b.ndjson"]


@pytest.fixture
def files(waves, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, (study, reports) in zip("ab", waves.values(), strict=True):
        (tmp_path / f"{name}.json").write_text(study.to_json())
        (tmp_path / f"{name}.ndjson").write_text("".join(f"{one.to_json()}\n" for one in reports[:30]))
    return waves


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--wave", "a=a.json"], "write NAME="),
        (["--wave", "a=a.json,"], "must be NAME="),
        (["--wave", "a=a.json,a.ndjson,a.csv"], "write NAME="),
        (["--wave", "a=a.json,a.ndjson", "--missing", "drop"], "--missing is for tables"),
        (["--wave", "a=a.json,a.ndjson", "--design", "d.json"], "--design is for tables"),
    ],
)
def test_invalid_command_for_waves_of_studies_is_rejected(given, said, files, capsys):
    assert main([*FIT, *given, *WAVES[2:]]) == 2
    line = capsys.readouterr().err.strip()
    assert said in line
    assert "\n" not in line
    assert files


def test_summary_as_wave_is_rejected(files, capsys):
    """It has no single reports, so a report in two waves could not be found."""
    assert main(["summarize", "a.json", "a.ndjson", "--out", "sum.json"]) == 0
    assert main([*FIT, "--wave", "a=a.json,sum.json", *WAVES[2:]]) == 3
    assert "wave a: a summary has no single reports" in capsys.readouterr().err
    study, reports = files["2024"]
    with raises(InputError, "wave.reports_invalid", "a: a summary has no single"):
        table_of_waves({"a": (study, summarize(study, reports)), "b": files["2025"]}, ["ever"])


@pytest.mark.slow
def test_wave_accepts_reports_in_exported_csv(files, capsys):
    reports = [one.to_document() for one in files["2024"][1][:30]]
    with open("exported.csv", "w", newline="") as file:
        writer = csv.writer(file)
        parts = [(part, name) for part in ("payloads", "public") for name in reports[0].get(part, {})]
        writer.writerow(["report_id", "study", "version", "digest", *(".".join(one) for one in parts)])
        for one in reports:
            cells = [one[part][name] for part, name in parts]
            writer.writerow([one["id"], one["study"], one["version"], one["digest"], *cells])
    for out, given in (("out", "a.ndjson"), ("same", "exported.csv")):
        waves = ["--wave", f"a=a.json,{given}", *WAVES[2:]]
        done = main(["fit", "--formula", "ever ~ wave", "--out", out, "--method", "gaussian_approx", *waves])
        assert done in (0, 4), capsys.readouterr().err
    found = [json.loads(Path(out, "posterior.json").read_text())["questions"] for out in ("out", "same")]
    assert found[0] == found[1]


@pytest.mark.usefixtures("tables")
def test_blank_rows_are_counted_for_each_wave(tables):
    for name in ("a", "b"):
        write(tables / f"{name}.csv", ["q", "age"], [[0, 30], [1, ""], [1, 40]])
    waves = {"a": "a.csv", "b": "b.csv"}
    table, _ = load_waves(waves, "d.json", "q ~ wave + age", "drop", [])
    assert [note[:15] for note in table.notes if "blank" in note] == ["wave a: 1 row o", "wave b: 1 row o"]
