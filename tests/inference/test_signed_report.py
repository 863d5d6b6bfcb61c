"""The report that an analyst signs: what it leads with, what it is joined with, and its tables as texts.

Defence: `ldpkit fit`: refuses those of another digest, and says what failed first, and in the exit code.
"""

import csv
import io
import json
import re

import numpy as np
import pytest

from inference.results.diagnostics import diagnose
from inference.results.earlier_steps import read_earlier
from inference.results.folder import save_report
from inference.results.headline import headline
from inference.results.intervals import USUAL
from inference.results.page import render_page
from inference.results.plots import pictures_of
from inference.results.posterior import Posterior
from inference.results.printed import text_of
from inference.results.prior_notes import informativeness
from inference.results.verdict import CARE, Finding
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.kit.errors import raises

HOSTILE = ["=1+1", "a & b_c%$#{}~^\\", "[x] | <b>*y*</b> `z`"]
STUDY = Study(
    studies.document(
        {**studies.YES_NO, "text": "Ever | *been* \\input{x} <i>there</i>?"},
        {**studies.ONE_OF, "choices": HOSTILE},
    )
)


def posterior_of(question, names, prior_sd=1.0, study=STUDY):
    random = np.random.default_rng(4)
    draws = {name: random.normal(0.3, 0.02, (4, 1000)) for name in names}
    prior_draws = {name: random.normal(0.3, prior_sd, 1000) for name in names}
    found = diagnose(draws, np.zeros((4, 1000), bool), informativeness(draws, prior_draws))
    model = study.question(question).model.name
    prior = dict.fromkeys(names, prior_sd)
    return Posterior(question, model, 500, draws, prior, found, study.digest, 0)


POSTERIORS = {
    "ever": posterior_of("ever", ["p"]),
    "colour": posterior_of("colour", [f"p[{label}]" for label in HOSTILE]),
}


@pytest.mark.parametrize("name", ["convergence", "fit", "informativeness"])
def test_headline_of_bad_result_shows_no_numbers(name):
    question = STUDY.question("ever")
    good = headline(question, POSTERIORS["ever"])
    assert good.shown == "ok"
    assert "the share of yes is 30" in good.says.lower()
    bad = headline(question, POSTERIORS["ever"].with_findings([Finding(name, "why")]))
    assert bad.shown == "bad"
    assert not re.search(r"\d", bad.says)


def test_only_fully_good_results_are_green(pictures):
    question = STUDY.question("ever")
    partial = headline(question, POSTERIORS["ever"].with_findings([Finding("informativeness", "why", CARE)]))
    assert partial.shown == "note"
    bad = {"ever": POSTERIORS["ever"].with_findings([Finding("convergence", "why")])}
    page = render_page(STUDY, bad, pictures=pictures)
    assert 'class="ok"' not in page


@pytest.fixture(scope="module")
def pictures():
    return {name: pictures_of(found, None) for name, found in POSTERIORS.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("report")
    save_report(STUDY, POSTERIORS, made)
    return made


def test_csv_has_every_parameter_and_no_spreadsheet_formula(folder):
    head, *rows = csv.reader(io.StringIO((folder / "tables.csv").read_text()))
    assert [row[head.index("parameter")] for row in rows] == [
        name for one in POSTERIORS.values() for name in one.draws
    ]
    assert float(rows[0][head.index("mean")]) == POSTERIORS["ever"].draws["p"].mean()
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "@")]


PLANNED = {"half_widths": {"1": {"p": [0.05, 0.02]}}, "devices": [1000, 10000]}
CALIBRATED = {"parameters": {"p": {"covered_90": 0.91}}, "studies": 100, "n": 1000, "ok": True, "reasons": []}
CHECK = {"name": "noise", "passed": True, "detail": "ok"}
AUDITED = {"question": "ever", "passed": True, "epsilon": "1.0", "lower_bound": "0.9", "checks": [CHECK]}


def earlier(tmp_path, digest=STUDY.digest, calibrated=CALIBRATED, audited=AUDITED):
    for name, entry in (("plan", PLANNED), ("calibration", calibrated)):
        (tmp_path / name).mkdir(exist_ok=True)
        document = {"study_digest": digest, "seed": 0, "questions": {"ever": entry}}
        (tmp_path / name / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "audit.json").write_text(json.dumps([{"study_digest": digest, **audited}]))
    return [str(tmp_path / name) for name in ("plan", "calibration", "audit.json")]


def test_hostile_list_title_is_escaped(tmp_path, pictures):
    """In HTML and in Markdown it is shown as written."""
    title = HOSTILE[2] + " <img src=x onerror=x()>"
    listed = [{"title": title, "questions": ["ever"], "any_of": True}]
    study = Study(studies.document(studies.YES_NO, sections=listed))
    found, drawn = {"ever": POSTERIORS["ever"]}, {"ever": pictures["ever"]}
    page = render_page(study, found, pictures=drawn)
    assert "is a list of boxes; people tick any number" in page
    save_report(study, found, tmp_path)
    for text in (page, (tmp_path / "report.md").read_text()):
        assert "<img src=x" not in text
        assert "<b>" not in text


def test_result_shows_plan_calibration_and_audit(tmp_path, pictures):
    found = read_earlier(STUDY, earlier(tmp_path))(POSTERIORS)
    assert found.ok
    said = {(line.question, line.what): (line.state, line.says) for line in found.lines}
    assert said["ever", "plan"][1].startswith("expected of p ± 5.0 points from 1,000 devices")
    assert said["ever", "calibration"][0] == said["ever", "audit"][0] == "good"
    assert said["colour", "audit"] == ("", "not audited")
    assert "What was done before" in render_page(STUDY, POSTERIORS, pictures=pictures, earlier=found)


@pytest.mark.parametrize(
    "wrong",
    [
        {"calibrated": {**CALIBRATED, "ok": False, "reasons": ["ranks of p"]}},
        {"audited": {**AUDITED, "passed": False}},
        {"audited": {**AUDITED, "checks": [{**CHECK, "passed": False}]}},
        {"audited": {**AUDITED, "checks": []}},
    ],
)
def test_failed_earlier_check_makes_result_not_ok(wrong, tmp_path, pictures):
    found = read_earlier(STUDY, earlier(tmp_path, **wrong))(POSTERIORS)
    assert not found.ok
    page = render_page(STUDY, POSTERIORS, pictures=pictures, earlier=found)
    assert re.search(r'class="bad">not usable: (calibration|audit): ', page)


@pytest.mark.slow
def test_failed_earlier_check_is_in_json_and_csv(tmp_path):
    (tmp_path / "given").mkdir()
    failed = {**CALIBRATED, "ok": False, "reasons": ["ranks of p"]}
    found = read_earlier(STUDY, earlier(tmp_path / "given", calibrated=failed))(POSTERIORS)
    save_report(STUDY, POSTERIORS, tmp_path, earlier=found)
    said = json.loads((tmp_path / "posterior.json").read_text())["earlier"]
    assert said["ok"] is False
    (bad,) = [one for one in said["says"] if one["state"] == "bad"]
    assert (bad["question"], bad["what"]) == ("ever", "calibration")
    rows = list(csv.DictReader((tmp_path / "tables.csv").read_text().splitlines()))
    of_ever = [row for row in rows if row["question"] == "ever"]
    told = f"calibration: {bad['says']}"
    assert {(row["verdict"], row["reasons"]) for row in of_ever} == {("not usable", told)}
    assert all(row["reasons"] != told for row in rows if row["question"] != "ever")
    # Where people look first, too: beside the number.
    page = (tmp_path / "report.md").read_text()
    (line,) = [one for one in page.splitlines() if one.startswith("| Ever")]
    assert line.endswith("| not usable: calibration: " + bad["says"].replace("|", "\\|") + " |")
    printed = "\n".join(text_of(each, USUAL) for each in found.on(POSTERIORS).values())
    assert "): not usable\n" in printed
    assert printed.count(told) == 1


def test_earlier_checks_of_another_study_are_rejected(tmp_path):
    steps = earlier(tmp_path, digest="0" * 64)
    for path in steps:
        with raises(InputError, "result.input_of_other_study"):
            read_earlier(STUDY, [path])
    (tmp_path / "audit.json").write_text(json.dumps([AUDITED]))
    with raises(InputError, "result.not_a_result"):
        read_earlier(STUDY, [steps[-1]])
