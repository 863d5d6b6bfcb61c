"""A study is what its digest says: edited, foreign and wrong-version documents are refused, by `fit` too.

Each part of a study's document is changed by itself: every word, number, yes or no, and order of a list.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inference import fit, fitting
from ldp_client import Device, mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import (
    InputError,
    LdpkitError,
    RefusedError,
    SummaryError,
)
from schemas import Report, Study
from summaries import Summary, summarize
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server
from tests.promises.edited import spellings, studies_beside

Patch = pytest.MonkeyPatch
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
SMALL = studies.document(studies.YES_NO)


def accepted_by(study: Study, folder: Path, server: Server) -> Callable[[str, Study], list[str]]:
    """How a device takes another document if it knows this study's digest, or answered this study before."""
    knowing = Device(folder / "knowing", "9", server.url, require_consent=False, known_digests=[study.digest])
    before = Device(folder / "before", "99", server.url, require_consent=False, max_delta="0.1")
    consenting = Device(folder / "consenting", "9", server.url)
    public = {field.id: field.choices[0] for field in study.public}
    before.answer(
        study, {question.id: studies.ANSWERS[question.id] for question in study.questions}, public=public
    )
    consenting.consent(study)

    def accepted(name: str, edited: Study) -> list[str]:
        tries: dict[str, Callable[[], object]] = {
            "accepts": lambda: knowing.accept(edited),
            "answers": lambda: knowing.answer(edited, {}),
            "answers without consent to": lambda: consenting.answer(edited, {}),
        }
        if edited.version == study.version and edited.id == study.id:
            tries["accepts after an answer to the genuine one"] = lambda: before.accept(edited)
            server.content = edited.canonical()
            tries["fetches"] = lambda: knowing.fetch(study.id)
        return [
            f"a device {what} it: {name}" for what, act in tries.items() if not refuses(act, RefusedError)
        ]

    return accepted


def refuses(act: Callable[[], object], *kinds: type[LdpkitError]) -> bool:
    """Whether it is refused, in the words of its kind."""
    try:
        act()
    except LdpkitError as error:
        return isinstance(error, kinds)
    return False


def read_by(study: Study, folder: Path) -> Callable[[str, Study], list[str]]:
    """How a document takes what was made of another one: reports, a file of them, and a summary."""
    mechanisms = mechanisms_of(study)
    answers = {question.id: studies.ANSWERS[question.id] for question in study.questions}
    public = {field.id: field.choices[0] for field in study.public}
    reports = [perturb_answers(study, mechanisms, {**answers, **public}) for _ in range(3)]
    summary = summarize(study, reports)
    text, file = summary.to_json(), folder / "reports.ndjson"
    file.write_text("".join(report.to_json() + "\n" for report in reports))

    def read(name: str, edited: Study) -> list[str]:
        wrong = InputError, SummaryError
        tries: dict[str, Callable[[], object]] = {
            "fit takes reports": lambda: fit(edited, reports),
            "fit takes a summary": lambda: fit(edited, summary),
            "a summary is read": lambda: Summary.from_json(text, edited),
            "summaries are merged": lambda: Summary.empty(edited).merge(summary),
        }
        taken = [f"{what}: {name}" for what, act in tries.items() if not refuses(act, *wrong)]
        is_read = not refuses(lambda: summarize(edited, [str(file)]), InputError)
        return taken + ([f"a file is read: {name}"] if is_read else [])

    return read


def problems(document: Any, folder: Path, server: Server, only: str = "") -> list[str]:
    """Where another document passes for this one. only: which edits are tried; all without it."""
    study = Study(document)
    beside = [(name, edited) for name, edited in studies_beside(document) if only in name]
    wrong = [f"the digest stays: {name}" for name, edited in beside if edited.digest == study.digest]
    if wrong:
        return wrong
    folder.mkdir(exist_ok=True)
    accepted, read = accepted_by(study, folder, server), read_by(study, folder)
    for name, edited in beside:
        wrong += accepted(name, edited) + read(name, edited)
    return wrong


def test_each_part_changes_digest_and_other_document_is_rejected(tmp_path: Path, server: Server) -> None:
    assert len(list(studies_beside(WHOLE))) > 60
    assert problems(WHOLE, tmp_path, server) == []


def test_version_that_does_not_match_digest_is_rejected() -> None:
    study = Study(SMALL)
    report = perturb_answers(study, mechanisms_of(study), {"ever": True})
    for change in ({"version": 2}, {"study": "other"}, {"digest": "0" * 64}):
        fields = {"study": study.id, "version": 1, "digest": study.digest, **change}
        other = Report(report.id, fields["study"], fields["version"], fields["digest"], report.payloads)
        with pytest.raises(InputError, match=r"1 of 1 reports|no report answers"):
            fit(study, [other])
        document = json.loads(summarize(study, [report]).to_json()) | change
        if "version" not in change and "study" not in change:
            with raises(SummaryError, "summary.of_other_study"):
                Summary.from_json(json.dumps(document), study)


def test_digest_does_not_depend_on_json_spelling(tmp_path: Path) -> None:
    document = {**SMALL, "title": 'Ünder 18/"over" 18, tab\tand \u2028'}
    study = Study(document)
    device = Device(tmp_path, "9", require_consent=False, known_digests=[study.digest])
    for name, text in spellings(document).items():
        again = Study.from_json(text)
        assert (again.digest, again.canonical()) == (study.digest, study.canonical()), name
        assert device.accept(again) == study


def test_a_planted_fit_that_ignores_the_digest_is_found(
    tmp_path: Path, server: Server, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(fitting, "check_evidence", lambda _study, _summary: None)
    wrong = problems(SMALL, tmp_path, server, "title")
    assert any(problem.startswith("fit takes a summary") for problem in wrong)
