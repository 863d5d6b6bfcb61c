"""A study is what its digest says: edited, foreign and wrong-version documents are refused, by `fit` too.

Each part of a study's document is changed by itself: every word, number, yes or no, and order of a list.
"""

import copy
import json
from contextlib import suppress

import pytest

from inference import fit, fitting
from ldp_client import Device, mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError, RefusedError, StudyError, SummaryError
from schemas import Study
from summaries import Summary, summarize
from tests import studies

MORE = {
    **studies.ASKER,
    "purpose": "To learn how long people work.",
    "opens": "2026-01-01",
    "closes": "2999-01-30",
    "public": [{"id": "region", "choices": ["north", "south"]}],
}
WHOLE = studies.document(
    {**studies.NUMBER, "text": "How long?"}, studies.CHOICE, studies.LINEAR, studies.YES_NO, **MORE
)
OTHER_NAMES = {"oue": "sue", "exponential": "normal", "laplace": "discrete_laplace"}


def changed(value):
    """A value like this one, and another; a list is turned round."""
    if isinstance(value, list):
        return value[::-1]
    if isinstance(value, (bool, int)):
        return not value if isinstance(value, bool) else value + 1
    if value in OTHER_NAMES:
        return OTHER_NAMES[value]
    for last, other in {"0": "1", "1": "2", "5": "6", "6": "7"}.items():
        if value.endswith(last):
            return value[:-1] + other
    return f"{value}2"


def edits(document):
    """The document with each part changed or left out, and what was done to it."""

    def holders(part, path=()):
        for key in (
            list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
        ):
            yield from holders(part[key], (*path, key))
            yield (*path, key)

    for *path, last in holders(document):
        for change in ("changed", "left out"):
            edited = copy.deepcopy(document)
            holder = edited
            for key in path:
                holder = holder[key]
            if change == "left out":
                del holder[last]
            elif not isinstance(holder[last], dict):
                holder[last] = changed(holder[last])
            if edited != document:
                yield f"{'.'.join(map(str, (*path, last)))} {change}", edited


def studies_beside(document):
    """Every valid study that differs in one part."""
    for name, edited in edits(document):
        with suppress(StudyError):
            yield name, Study(edited)


def tries_of(study, folder, server):
    """What those try with another document who know this study, answered it, or have its reports."""
    knowing = Device(folder / "knowing", "9", server.url, require_consent=False, known_digests=[study.digest])
    before = Device(folder / "before", "99", server.url, require_consent=False, max_delta="0.1")
    consenting = Device(folder / "consenting", "9", server.url)
    public = {field.id: field.choices[0] for field in study.public}
    answers = {question.id: studies.ANSWERS[question.id] for question in study.questions}
    before.answer(study, answers, public=public)
    consenting.consent(study)
    reports = [perturb_answers(study, mechanisms_of(study), {**answers, **public}) for _ in range(3)]
    summary, file = summarize(study, reports), folder / "reports.ndjson"
    file.write_text("".join(report.to_json() + "\n" for report in reports))

    def tries(edited):
        found = {
            "a device accepts it": lambda: knowing.accept(edited),
            "a device answers it": lambda: knowing.answer(edited, {}),
            "a device answers it without consent": lambda: consenting.answer(edited, {}),
            "fit takes reports": lambda: fit(edited, reports),
            "fit takes a summary": lambda: fit(edited, summary),
            "a summary is read": lambda: Summary.from_json(summary.to_json(), edited),
            "summaries are merged": lambda: Summary.empty(edited).merge(summary),
            "a file is read": lambda: summarize(edited, [str(file)]),
        }
        if edited.version == study.version and edited.id == study.id:
            found["a device accepts it after an answer to the genuine one"] = lambda: before.accept(edited)
            server.content = edited.canonical()
            found["a device fetches it"] = lambda: knowing.fetch(study.id)
        return found

    return tries


def check_edits(document, folder, server, only=""):
    """No other document passes for this one. only: which edits are tried; all without it."""
    study = Study(document)
    tries = tries_of(study, folder, server)
    for name, edited in studies_beside(document):
        if only in name:
            assert edited.digest != study.digest, name
            for what, act in tries(edited).items():
                with suppress(RefusedError, InputError, SummaryError):
                    act()
                    pytest.fail(f"{what}: {name}")


def test_each_part_changes_digest_and_other_document_is_rejected(tmp_path, server):
    assert len(list(studies_beside(WHOLE))) > 60
    check_edits(WHOLE, tmp_path, server)


@pytest.mark.parametrize(
    "options", [{}, {"indent": 3}, {"ensure_ascii": False, "separators": (" ,", ":\r\n")}]
)
def test_digest_does_not_depend_on_json_spelling(options):
    document = {**WHOLE, "title": 'Ünder 18/"over" 18, tab\tand \u2028'}
    study, turned = Study(document), dict(reversed(document.items()))
    assert Study.from_json(json.dumps(turned, **options)).canonical() == study.canonical()


def test_a_planted_fit_that_ignores_the_digest_is_found(tmp_path, server, monkeypatch):
    monkeypatch.setattr(fitting, "check_evidence", lambda _study, _summary: None)
    with pytest.raises(pytest.fail.Exception, match="fit takes a summary"):
        check_edits(studies.document(studies.YES_NO), tmp_path, server, "title")
