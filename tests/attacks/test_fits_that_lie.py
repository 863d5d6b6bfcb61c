"""A fit looks sound but is not: another version's reports, false reports, or a wrong distribution.

Defence: The analysis: inputs without payloads are refused, and the printed line says how answers get
their noise.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from inference import fit, summarize
from inference.false_reports.far_out import false_report_reasons
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from schemas import Study
from summaries import QuestionSummary, Summary
from tests import studies
from tests.kit.errors import raises

STUDY = Study(studies.document(studies.YES_NO))
NEWER = Study(studies.document(studies.YES_NO, version=2))


def reports(study, count=30):
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    return [perturb_answers(study, mechanisms, {"ever": True}) for _ in range(count)]


@pytest.fixture
def files(tmp_path):
    for name, study in (("study.json", STUDY), ("newer.json", NEWER)):
        (tmp_path / name).write_text(study.to_json())
    return tmp_path


def run_fit(folder, study, found, *more):
    path = folder / "reports.ndjson"
    path.write_text("".join(report.to_json() + "\n" for report in found))
    return main(
        [
            "fit",
            str(folder / study),
            str(path),
            "--out",
            str(folder / "out"),
            "--method",
            "gaussian_approx",
            *more,
        ]
    )


def test_reports_of_the_wrong_version_are_rejected(files, capsys):
    assert run_fit(files, "newer.json", reports(STUDY)) == 3
    said = capsys.readouterr().err
    assert "30 answer survey version 1 with digest " + STUDY.digest in said
    assert NEWER.digest in said
    assert not (files / "out").exists()


def test_fit_without_reports_is_rejected(files, capsys):
    assert run_fit(files, "study.json", []) == 3
    assert "there are no reports" in capsys.readouterr().err
    with raises(InputError, "reports.none_in_series"):
        fit(STUDY, summarize(STUDY, []))


@pytest.mark.slow
def test_reports_of_other_versions_are_noted_in_the_result(files, capsys):
    run_fit(files, "study.json", [*reports(STUDY, 400), *reports(NEWER, 7)])
    notes = json.loads((files / "out" / "posterior.json").read_text())["questions"]["ever"]["notes"]
    assert any("7 reports answer other versions of the study (version 2)" in note for note in notes)
    assert "7 reports" in capsys.readouterr().out
    assert "7 reports" in (files / "out" / "report.html").read_text()


def test_json_output_and_exit_code_report_a_bad_fit(files, capsys):
    assert run_fit(files, "study.json", reports(STUDY, 1), "--json", "--quiet") == 4
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["ok"], err) == (False, "")
    assert found["result"] == json.loads((files / "out" / "posterior.json").read_text())


def test_fit_that_learnt_nothing_exits_with_4(files, capsys):
    assert run_fit(files, "study.json", reports(STUDY, 1)) == 4
    document = json.loads((files / "out" / "posterior.json").read_text())["questions"]["ever"]
    assert document["ok"] is False
    assert document["verdict"]["informativeness"]["state"] == "bad"
    assert document["verdict"]["fit"]["state"] == "good"
    assert "NOT OK: nothing was learnt" in capsys.readouterr().out
    assert "nothing was learnt" in (files / "out" / "report.html").read_text()


def test_report_page_does_not_claim_who_added_the_noise(files):
    """These reports were made on one machine, which knew the answers."""
    run_fit(files, "study.json", reports(STUDY, 400))
    page = (files / "out" / "report.html").read_text()
    for claim in ("nobody collected", "itself", "locally private", "sampling is sound"):
        assert claim not in page


def payloads(found):
    return np.asarray(found, dtype=np.uint8)


def noise_of(mechanism, n, random):
    """Payloads of n people whose products are all zero, as the mechanism's law of noise has them."""
    entries = len(mechanism.coordinates)
    return np.rint(random.normal(size=(n, entries)) * (1 << 20)).astype(np.int64)


def packed(entries):
    return entries.astype(">i4").view(np.uint8).reshape(len(entries), -1)


@pytest.mark.parametrize(("share", "sds"), [(0.001, 16), (0.001, 6), (0.01, 2)])
def test_false_reports_in_a_regression_are_detected(share, sds):
    """One in a thousand reports at the largest possible coordinates turned a slope from 1 to -0.6."""
    mechanism = mechanism_for(Study(studies.document(studies.LINEAR)).questions[0])
    entries = noise_of(mechanism, 100_000, np.random.default_rng(2))
    honest = QuestionSummary.of(mechanism, packed(entries))
    assert false_report_reasons(mechanism, honest) == ()
    entries[: round(share * len(entries))] = sds << 20
    (reason,) = false_report_reasons(mechanism, QuestionSummary.of(mechanism, packed(entries)))
    assert "they are false" in reason


@pytest.mark.slow
def test_empty_choice_reports_fail_the_model_check():
    """At a large epsilon each of many bits is rarely set, so only their total shows that too few are."""
    choices = [f"c{i}" for i in range(40)]
    mechanism = {"name": "oue", "epsilon": "8"}
    study = Study(studies.document({**studies.CHOICE, "choices": choices, "mechanism": mechanism}))
    (asked,) = study.questions
    for payload, fits in ((np.zeros((400, 5), np.uint8), False), (set_bits(mechanism_for(asked), 400), True)):
        part = QuestionSummary.of(mechanism_for(asked), payload)
        summary = Summary(study.id, study.version, study.digest, {asked.id: part})
        found = fit(study, summary, method="gaussian_approx")[asked.id]
        assert (found.verdict.fit.state == "good") == fits, found.verdict


def set_bits(mechanism, n):
    """Payloads of n people who choose evenly."""
    random = np.random.default_rng(3)
    labels = [f"c{i}" for i in random.integers(0, mechanism.choices, n)]
    return payloads(perturb_many(mechanism, labels, NotForRealAnswers(random.bytes)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("a path", "files.not_readable"),
        (["one", "another"], "files.not_readable"),
        (None, ("reports.unknown_kind", "NoneType")),
        (3, ("reports.unknown_kind", "int")),
        ({"ever": [1]}, ("reports.unknown_kind", "dict")),
        (
            [{"ever": True}],
            ("reports.row_without_payloads", "entry 1", "Answers", "get"),
        ),
        (
            pd.DataFrame({"ever": [True, False]}),
            ("reports.table_column_missing", "ever", "get"),
        ),
        ([True, False], ("reports.entry_not_report", "1", "bool")),
        ([b"a line"], ("reports.many_refused", "JSON")),
    ],
)
def test_wrong_kind_of_reports_is_rejected_in_one_line(wrong, said):
    for job in (lambda: fit(STUDY, wrong), lambda: summarize(STUDY, wrong)):
        with raises(InputError, said) as refused:
            job()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("wrong", [STUDY.document, None])
def test_wrong_kind_of_study_is_rejected(wrong):
    from inference.design.plan import plan

    for job in (lambda: fit(wrong, []), lambda: summarize(wrong, []), lambda: plan(wrong, "ever")):
        with raises(InputError, "reports.study_not_a_study"):
            job()


@pytest.mark.parametrize("seed", [-1, 0.5, "1", True, None])
def test_invalid_seed_is_rejected(seed):
    with raises(InputError, "fit.wrong_seed"):
        fit(STUDY, reports(STUDY, 3), seed=seed)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (["p"], "prior.wrong_study_form"),
        ({"ever": "flat"}, "prior.wrong_study_form"),
        ({3: {}}, ("study.unknown_question", "3")),
    ],
)
def test_malformed_priors_are_rejected(wrong, code):
    with raises(InputError, code):
        fit(STUDY, reports(STUDY, 3), priors=wrong)


def test_calibrate_and_plan_explain_wrong_arguments():
    from inference.design.calibration import calibrate
    from inference.design.plan import plan

    with raises(InputError, "calibrate.not_a_question", "str"):
        calibrate("ever")
    with raises(InputError, "study.unknown_question", "never"):
        plan(STUDY, "never")
    with raises(InputError, "plan.devices_missing"):
        plan(STUDY, "ever", 1000)
