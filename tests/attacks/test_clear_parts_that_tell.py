"""An answer leaks past the audit outside all payloads: in a public value, or in a report's size."""

import re
import shutil

import pytest

from ldp_client import answering
from ldp_client.bulk import perturbing
from ldp_client.mechanisms import mechanisms_of
from schemas import Study
from tests import studies
from tests.privacy.checks.auditing import sample_checks
from tests.privacy.checks.javascript import PORT
from tests.privacy.checks.reports import possible_answers
from tests.privacy.checks.whole import path_checks

PUBLIC = [
    {"id": "region", "choices": ["north", "south", "a longer name"]},
    {"id": "age", "bounds": ["18", "99"], "step": "1"},
]
STUDY = Study(studies.document(studies.YES_NO, studies.NUMBER, public=PUBLIC))
IN_CLEAR = "what stands in clear is what was given as public"
SIZE = "a report's size tells no answer and no value"


def failed(study=STUDY, port=PORT):
    mechanisms = mechanisms_of(study)
    possible = {name: possible_answers(mechanisms[name], study.question(name)) for name in mechanisms}
    checks = list(path_checks(study, mechanisms, possible, sample_checks, port))
    assert len(checks) >= 4
    return [check.name for check in checks if not check.passed]


@pytest.mark.slow
@pytest.mark.parametrize("sample_one_question", [False, True])
@pytest.mark.parametrize("public", [PUBLIC, None])
def test_audit_passes_sound_reports(sample_one_question, public):
    more = {"public": public} if public else {}
    assert (
        failed(
            Study(
                studies.document(
                    studies.MEMOIZED, studies.NUMBER, sample_one_question=sample_one_question, **more
                )
            )
        )
        == []
    )
    assert (
        failed(
            Study(
                studies.document(
                    studies.YES_NO, studies.LINEAR, sample_one_question=sample_one_question, **more
                )
            )
        )
        == []
    )


@pytest.mark.slow
def test_audit_finds_public_value_that_depends_on_answer(monkeypatch):
    """Only the second value of a field depends on the answer."""
    honest = answering.perturb_answers

    def telling(study, mechanisms, answers, *random):
        report = honest(study, mechanisms, answers, *random)
        if report.public["region"] == "south" and answers["ever"]:
            report.public["region"] = "north"
        return report

    monkeypatch.setattr(answering, "perturb_answers", telling)
    assert f"one by one: {IN_CLEAR}" in failed()


@pytest.mark.slow
def test_audit_finds_bulk_report_size_that_varies(monkeypatch):
    honest, told = perturbing.padding_of, iter(range(10**6))
    monkeypatch.setattr(perturbing, "padding_of", lambda *of: honest(*of) + next(told) % 2)
    assert failed() == [f"in bulk: {SIZE}"]


@pytest.mark.slow
@pytest.mark.needs("node")
@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("report.js", "spare + hidden]", "spare + hidden + Number(answers.ever === true)]", SIZE),
        (
            "report.js",
            "return [payloads, clear,",
            "return [payloads, { public: { ...clear.public, age: `${18 + answers.ever}` } },",
            IN_CLEAR,
        ),
    ],
)
def test_audit_finds_leaks_in_javascript(tmp_path, file, old, new, expected):
    shutil.copytree(PORT.parent, tmp_path / "js")
    source = tmp_path / "js" / file
    source.write_text(re.sub(re.escape(old), lambda _: new, source.read_text()))
    assert old not in source.read_text()
    assert f"in JavaScript: {expected}" in failed(port=tmp_path / "js" / "index.js")
    source.write_text("}")
    assert failed(port=tmp_path / "js" / "index.js") == ["in JavaScript: whole reports"]
