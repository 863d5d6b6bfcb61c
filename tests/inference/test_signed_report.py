"""The report that an analyst signs: what it leads with, what it is joined with, and its tables as texts.

Defence: `ldpkit fit`: refuses those of another digest, and says what failed first, and in the exit code.
"""

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from inference.cli import verdict_lines
from inference.results import methods, references
from inference.results.citation import citation_of
from inference.results.diagnostics import diagnose
from inference.results.earlier_steps import read_earlier
from inference.results.folder import save_report
from inference.results.headline import headline, lists_in_words
from inference.results.intervals import USUAL
from inference.results.page import render_page
from inference.results.plots import pictures_of
from inference.results.posterior import Posterior
from inference.results.prior_notes import informativeness
from inference.results.provenance import Input, made_now
from inference.results.verdict import Part, Verdict
from ldp_client.documents.catalogue import MECHANISMS
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.kit.errors import raises

REGION = {"id": "region", "choices": ["north", "south"]}
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
    found = diagnose(draws, np.zeros((4, 1000), bool), informativeness=informativeness(draws, prior_draws))
    model = study.question(question).model.name
    prior = dict.fromkeys(names, prior_sd)
    return Posterior(question, model, 500, draws, prior, found, study.digest, 0)


POSTERIORS = {
    "ever": posterior_of("ever", ["p"]),
    "colour": posterior_of("colour", [f"p[{label}]" for label in HOSTILE]),
}


def with_part(posterior, name, part):
    verdict = replace(posterior.verdict, **{name: part})
    return replace(posterior, diagnostics=replace(posterior.diagnostics, verdict=verdict))


@pytest.mark.parametrize("name", ["convergence", "fit", "informativeness"])
def test_headline_of_bad_result_shows_no_numbers(name):
    question = STUDY.question("ever")
    good = headline(question, POSTERIORS["ever"])
    assert good.shown == "ok"
    assert "the share of yes is 30" in good.says.lower()
    bad = headline(question, with_part(POSTERIORS["ever"], name, Part("bad", ("why",))))
    assert bad.shown == "bad"
    assert not re.search(r"\d", bad.says)


def test_only_fully_good_results_are_green(pictures):
    question = STUDY.question("ever")
    partial = headline(question, with_part(POSTERIORS["ever"], "informativeness", Part("partial", ("why",))))
    unchecked = headline(question, with_part(POSTERIORS["ever"], "fit", Part("not checked", ("why",))))
    assert {partial.shown, unchecked.shown} == {"note"}
    bad = {"ever": with_part(POSTERIORS["ever"], "convergence", Part("bad", ("why",)))}
    page = render_page(STUDY, bad, pictures=pictures)
    assert 'class="ok"' not in page
    assert Verdict().ok


def test_headline_omits_parameters_equal_to_their_prior():
    names = ["p[" + label + "]" for label in HOSTILE]
    posterior = replace(POSTERIORS["colour"], prior_sd={**dict.fromkeys(names, 1.0), names[0]: 0.02})
    says = headline(STUDY.question("colour"), posterior).says
    assert "of “=1+1” the reports do not say more than the prior" in says


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


def test_markdown_escapes_hostile_labels(folder):
    text = (folder / "report.md").read_text()
    assert "<b>" not in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    cells = {len(re.findall(r"(?<!\\)\|", line)) for line in tables[2:4]}
    assert cells == {4}
    assert "\\*been\\*" in text


def test_latex_compiles_with_hostile_labels(folder, tmp_path):
    text = (folder / "tables.tex").read_text()
    assert "\\input{x}" not in text
    assert r"a \& b\_c\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    bare = re.sub(r"\\[\\{}]", "", text)
    assert bare.count("{") == bare.count("}")
    if shutil.which("pdflatex") is None:
        return
    whole = "\\documentclass{article}\n\\begin{document}\n" + text + "\\end{document}\n"
    (tmp_path / "whole.tex").write_text(whole)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "whole.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_methods_name_mechanism_draws_seed_and_digest(folder):
    page = (folder / "report.html").read_text()
    for said in ("with ε = 1", "Warner 1965", "4 chains of 1,000 kept draws", "seed 0", STUDY.digest):
        assert said in page
    assert "these reports do not show who added it" in page


def test_methods_state_epsilon_of_set_for_batches():
    def said(question=studies.YES_NO, **fields):
        study = Study(studies.document(question, **fields))
        posterior = posterior_of(question["id"], ["p"], study=study)
        return " ".join(methods.methods_of(study, {question["id"]: posterior}, made_now()))

    batched = said(channel={"batches": {"hours": 24}})
    assert "only the set of reports, in no order: epsilon 0.21" in batched
    assert "among 495 true reports (5 of 500 left out as false)" in batched
    assert "nor towards relay and collector together" in batched
    assert "all through an independent relay" in batched
    assert "the set of reports" not in said()
    # Of a cell the fewest people are not known here, and of noise with a delta no bound is certified.
    assert "the set of reports" not in said(channel={"batches": {"hours": 24}}, public=[REGION])
    assert "the set of reports" not in said(studies.NORMAL, channel={"batches": {"hours": 24}})


def test_every_mechanism_has_its_papers_and_a_short_form():
    assert set(references.MECHANISMS) == set(MECHANISMS)
    for name in MECHANISMS:
        for paper in references.papers(name):
            assert re.fullmatch(r"[\w’ ]+( & \w+| et al\.)? (19|20)\d\d", references.short(paper)), paper


def test_citation_matches_citation_cff(pytestconfig):
    stated = (pytestconfig.rootpath / "CITATION.cff").read_text()
    assert f'title: "{methods.TITLE}"' in stated
    assert f'- name: "{methods.AUTHORS}"' in stated
    assert f"version {re.search(r'^version: (.+)$', stated, re.M)[1]}," in methods.citation()


PLANNED = {"half_widths": {"1": {"p": [0.05, 0.02]}}, "devices": [1000, 10000]}
CALIBRATED = {"parameters": {"p": {"covered_90": 0.91}}, "studies": 100, "n": 1000, "ok": True, "reasons": []}
CHECK = {"name": "noise", "passed": True, "made": True, "detail": "ok"}
AUDITED = {"question": "ever", "passed": True, "epsilon": "1.0", "lower_bound": "0.9", "checks": [CHECK]}


def earlier(tmp_path, digest=STUDY.digest, calibrated=CALIBRATED, audited=AUDITED):
    for name, entry in (("plan", PLANNED), ("calibration", calibrated)):
        (tmp_path / name).mkdir(exist_ok=True)
        document = {"study_digest": digest, "seed": 0, "questions": {"ever": entry}}
        (tmp_path / name / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "audit.json").write_text(json.dumps([{"study_digest": digest, **audited}]))
    return [str(tmp_path / name) for name in ("plan", "calibration", "audit.json")]


def test_every_input_and_earlier_file_has_its_digest(tmp_path):
    made = replace(made_now(), inputs=(Input("a", "1" * 64), Input("a", "2" * 64)))
    made = replace(made, beside=read_earlier(STUDY, *earlier(tmp_path))(POSTERIORS).files)
    rows = citation_of(STUDY, POSTERIORS, made)["provenance"]
    assert [said for what, said in rows if what == "Read: a"] == [f"SHA-256 {digit * 64}" for digit in "12"]
    told = [what for what, _ in rows if what.startswith("Beside it: ")]
    assert told == [f"Beside it: {name}.json" for name in ("plan", "calibration", "audit")]


def test_headline_gives_the_unit_of_a_number():
    study = Study(studies.document({**studies.AGE, "unit": "years"}))
    says = headline(study.question("age"), posterior_of("age", ["mean", "sd"], study=study)).says
    assert says.startswith("The mean is 0.3 years (")


def test_boxes_are_printed_under_their_list_title():
    boxes = [{**studies.YES_NO, "id": name, "text": name.upper()} for name in ("asa", "ibu")]
    listed = [{"title": "Pills you take", "questions": ["asa", "ibu"], "any_of": True}]
    study = Study(studies.document(*boxes, sections=listed))
    assert headline(study.question("ibu"), POSTERIORS["ever"]).text == "Pills you take: IBU"
    (said,) = lists_in_words(study, {"asa"})
    assert said.startswith("“Pills you take” is a list")
    assert said.endswith("2 boxes cost epsilon 2 together.")
    assert lists_in_words(study, set()) == []


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


def test_headline_separates_share_of_answers_from_refusals():
    found = posterior_of("ever", ["p", "refused"])
    says = headline(STUDY.question("ever"), found).says
    assert says.startswith("The share of yes among those who say is 30.0 % (")
    assert "the share who prefer not to say is 30.1 % (" in says


def test_plan_of_sample_one_study_is_stated_in_devices(tmp_path):
    study = Study({**STUDY.document, "sample_one_question": True})
    one = {"ever": replace(POSTERIORS["ever"], questions=10, n=400)}
    found = read_earlier(study, *earlier(tmp_path, study.digest))(one)
    said = {line.what: line.says for line in found.lines if line.question == "ever"}
    assert "from 400 reports, as of about 4,000 devices that answer one of 10 questions each" in said["plan"]
    assert re.search(r"simulated studies of [\d,]+ answers to it 90 %", said["calibration"])


def test_result_shows_plan_calibration_and_audit(tmp_path, pictures):
    found = read_earlier(STUDY, *earlier(tmp_path))(POSTERIORS)
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
    found = read_earlier(STUDY, *earlier(tmp_path, **wrong))(POSTERIORS)
    assert not found.ok
    assert "Not all of this may be believed" in render_page(
        STUDY, POSTERIORS, pictures=pictures, earlier=found
    )


def test_failed_earlier_check_is_in_json_and_csv(tmp_path):
    (tmp_path / "given").mkdir()
    failed = {**CALIBRATED, "ok": False, "reasons": ["ranks of p"]}
    found = read_earlier(STUDY, *earlier(tmp_path / "given", calibrated=failed))(POSTERIORS)
    save_report(STUDY, POSTERIORS, tmp_path, earlier=found)
    said = json.loads((tmp_path / "posterior.json").read_text())["earlier"]
    assert said["ok"] is False
    (bad,) = [one for one in said["says"] if one["state"] == "bad"]
    assert (bad["question"], bad["what"]) == ("ever", "calibration")
    rows = list(csv.DictReader((tmp_path / "tables.csv").read_text().splitlines()))
    of_ever = [row for row in rows if row["question"] == "ever"]
    told = f"calibration: {bad['says']}"
    assert {(row["ok"], row["verdict"]) for row in of_ever} == {("false", told)}
    assert all(row["verdict"] != told for row in rows if row["question"] != "ever")
    # Where people look first, too: beside the number.
    page = (tmp_path / "report.md").read_text()
    (line,) = [
        one
        for one in page.splitlines()
        if one.endswith("What was done before speaks against these numbers |")
    ]
    assert line.startswith("| Ever")
    assert (
        "Do not use these numbers as they stand: what was done before speaks against these numbers." in page
    )
    printed = "\n".join(verdict_lines(found.on(POSTERIORS), USUAL))
    assert "NOT OK: what was done before speaks against these numbers\n" in printed
    assert printed.count(told) == 1


def test_earlier_checks_of_another_study_are_rejected(tmp_path):
    plan, calibration, audit = earlier(tmp_path, digest="0" * 64)
    for given in ({"plan": plan}, {"calibration": calibration}, {"audit": audit}):
        with raises(InputError, "result.input_of_other_study"):
            read_earlier(STUDY, **given)
    (tmp_path / "audit.json").write_text(json.dumps([AUDITED]))
    with raises(InputError, "result.not_a_result"):
        read_earlier(STUDY, audit=audit)
    with raises(InputError, "result.not_a_result"):
        read_earlier(STUDY, plan=audit)
