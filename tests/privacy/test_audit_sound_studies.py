"""The audit fails no sound study, whatever else it states and whichever Node.js is installed."""

import stat

import pytest

from ldp_client.mechanisms import mechanisms_of
from schemas import Study
from tests import studies
from tests.ldp_client.issuers import channel_of
from tests.privacy.checks import javascript
from tests.privacy.checks.auditing import sample_checks
from tests.privacy.checks.javascript import PORT
from tests.privacy.checks.reports import possible_answers
from tests.privacy.checks.whole import path_checks

HERE = "http://127.0.0.1:8100"
ASKED = {**studies.MEMOIZED, "text": "Are you old?"}
REGION = {"id": "region", "choices": ["n", "s"]}
LIKE_IT = {"id": "old", "text": "are you OLD", "choices": ["a", "b"]}
SECTIONS = [{"title": "One", "questions": ["habit"]}, {"title": "Two", "questions": ["ever"]}]
SOUND = {
    "an issuer of this machine, in a trial": ([studies.YES_NO], {"channel": channel_of(HERE)}),
    "batches": ([studies.YES_NO], {"channel": {"batches": {"hours": 1}}}),
    "a field in clear with the words of a memoized question": ([ASKED], {"public": [REGION, LIKE_IT]}),
    "a memoized question in a section of its own": (
        [studies.MEMOIZED, studies.YES_NO],
        {"sections": SECTIONS},
    ),
    "the last version that there can be": ([studies.MEMOIZED], {"version": 10**6}),
}


def checks_of(study, port=PORT):
    mechanisms = mechanisms_of(study)
    possible = {name: possible_answers(mechanisms[name], study.question(name)) for name in mechanisms}
    return list(path_checks(study, mechanisms, possible, sample_checks, port))


def told(checks):
    return [(check.name, check.detail) for check in checks if not check.passed]


@pytest.mark.needs("node")
@pytest.mark.parametrize("what", SOUND)
def test_sound_study_with_further_settings_passes_audit(what):
    questions, more = SOUND[what]
    checks = checks_of(Study(studies.document(*questions, **more)))
    assert told(checks) == []
    assert any(check.name.startswith("in JavaScript: same reports by a device") for check in checks)


def test_old_node_js_is_reported_as_unchecked(tmp_path, monkeypatch):
    old = tmp_path / "node"
    old.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo v16.20.2 && exit\necho 'SyntaxError: ??=' >&2\nexit 1\n"
    )
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    study = Study(studies.document(studies.YES_NO))
    question = study.questions[0]
    mechanism = mechanisms_of(study)[question.id]
    one = javascript.javascript_checks(study, question.id, mechanism, [True, False], 1000, sample_checks)
    whole = [check for check in checks_of(study) if "JavaScript" in check.name]
    for check in [*one, *whole]:
        assert (check.passed, check.made) == (True, False)
        assert check.detail == "node 18 or later is needed, and here is v16.20.2"
    assert (len(one), len(whole)) == (1, 1)
