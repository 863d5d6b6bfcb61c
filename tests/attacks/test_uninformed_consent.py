"""A person agrees to hidden terms, to an epsilon that hides nothing, or to a personalised document.

Attack: To publish another document for each person, so that a report's digest tells whose it is: the
device, where its owner gives `known_digests` (`ldpkit answer --digest`, `ldpkit check`). Known
limit: without such a list, nothing shows that others were given another document.

Attack: To get consent to what was not shown: another purpose, collector, choices, an ε that hides nothing:
`ldpkit answer` shows them, `ldpkit check` warns above ε = 8, or δ = 0.0001, a question or in all; an
answer beyond the bounds is said before consent. Known limit: an app's own words.

Attack: Have invitations carry a number that identifies one person, as a part of the sample: the device: the
page says which values a field that the invitation carries may have; `ldpkit check` and `ldpkit
invite` warn above 1,000, of a field or of all that an invitation carries together. Known limit: which value
an invitation carries, only the collector knows until it stores the report.
"""

import json
import math

import pytest

from ldp_client import Device
from ldp_client.documents.errors import RefusedError
from ldp_client.explain import odds
from ldpkit.cli import main
from ldpkit.dossier import sections_of
from schemas import Study
from schemas.study_warnings import warnings_of
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting

QUESTION = {**studies.ONE_OF, "text": "What are you?", "choices": ["a spy", "a thief"]}
WEAK = studies.with_epsilon(studies.NUMBER, "64")


def asked(tmp_path, monkeypatch, capsys, *questions, **fields):
    study = Study(studies.document(*questions, **fields))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    with Server(study.canonical()) as server:
        arguments = ["--set", "colour=a spy", "--set", "hours=3", "--folder", str(tmp_path)]
        assert main(["answer", "--max-epsilon", "8", f"{server.url}/v1/studies/survey", *arguments]) == 3
        return capsys.readouterr().out, server.url


def test_study_terms_are_shown_before_consent_question(tmp_path, monkeypatch, capsys):
    shown, url = asked(tmp_path, monkeypatch, capsys, QUESTION, WEAK, purpose="To sell it.")
    for text in ("A survey", "purpose: To sell it.", "What are you?", "a spy | a thief", "from 0 to 12", url):
        assert text in shown
    assert "digest: " in shown
    assert "warning: hours: epsilon 64 is hardly any privacy" in shown


@pytest.mark.parametrize(("epsilon", "said"), [("64", "100 %"), ("9", "99.99 %"), ("8", "")])
def test_large_epsilon_warns(tmp_path, capsys, epsilon, said):
    document = studies.document(studies.with_epsilon(studies.NUMBER, epsilon), **studies.ASKER)
    (tmp_path / "study.json").write_text(json.dumps(document))
    assert main(["check", str(tmp_path / "study.json")]) == 0
    told = capsys.readouterr().err
    assert (said in told and "hardly any privacy" in told) if said else told == ""


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        (
            [{**studies.NUMBER, "mechanism": {"name": "gaussian", "epsilon": "1", "delta": "0.99"}}],
            "hours: delta 0.99",
        ),
        (
            [{**studies.with_epsilon(studies.NUMBER, "8"), "id": f"q{place}"} for place in range(100)],
            "all questions together: epsilon 800",
        ),
    ],
)
def test_large_delta_or_total_warns(tmp_path, capsys, questions, said):
    (tmp_path / "study.json").write_text(json.dumps(studies.document(*questions)))
    assert main(["check", str(tmp_path / "study.json")]) == 0
    assert f"warning: {said} is hardly any privacy" in capsys.readouterr().err


def test_question_warning_does_not_hide_total_warning():
    study = Study(studies.document(WEAK, studies.with_epsilon(studies.YES_NO, "8")))
    said = warnings_of(study)
    assert [line.split(":")[1].strip() for line in said] == ["hours", "all questions together"]


def test_end_of_input_is_not_consent(tmp_path, monkeypatch, capsys):
    def end(_):
        raise EOFError

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", end)
    with Server(Study(studies.document(studies.NUMBER)).canonical()) as server:
        given = ["--set", "hours=3", "--folder", str(tmp_path)]
        assert main(["answer", "--max-epsilon", "8", f"{server.url}/v1/studies/survey", *given]) == 3
        assert server.asked("PUT") == []
    assert "no consent: nothing was answered" in capsys.readouterr().err


def test_memoized_question_notes_that_changed_answers_are_not_seen(tmp_path, capsys):
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.MEMOIZED)))
    assert main(["check", str(tmp_path / "study.json")]) == 0
    assert (
        "note: habit: later rounds repeat the first answer, so a changed answer is never seen"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(("hours", "said"), [("480", True), ("12", False)])
def test_answer_beyond_bounds_warns_before_consent(tmp_path, monkeypatch, capsys, hours, said):
    study = Study(studies.document(studies.NUMBER))
    told = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: told.append(capsys.readouterr().err) or "n")
    with Server(study.canonical()) as server:
        url = f"{server.url}/v1/studies/survey"
        assert (
            main(["answer", "--max-epsilon", "8", url, "--set", f"hours={hours}", "--folder", str(tmp_path)])
            == 3
        )
    assert ("warning: hours is beyond the study's bounds" in told[0]) == said
    assert hours not in told[0].replace(str(tmp_path), "").replace(url, "")


def test_personalised_document_is_rejected_by_digest(tmp_path):
    published = Study(studies.document(studies.YES_NO))
    personal = Study(studies.document(studies.YES_NO, title="A survey "))
    device = consenting(tmp_path, "4", known_digests=[published.digest.upper() + "\n"])
    for refuse in (device.accept, lambda study: device.answer(study, {"ever": True})):
        with raises(RefusedError, "device.unpublished", personal.digest):
            refuse(personal)
    assert device.ledger.spent() == []
    device.answer(device.accept(published), {"ever": True})
    with pytest.raises(RefusedError):
        Device(tmp_path / "none", "4", known_digests=[]).accept(published)


def test_the_command_line_compares_digests(tmp_path, capsys):
    study = Study(studies.document(studies.YES_NO))
    (tmp_path / "study.json").write_text(study.to_json())
    assert main(["check", str(tmp_path / "study.json"), "--json"]) == 0
    digest = json.loads(capsys.readouterr().out)["digest"]
    with Server(study.canonical()) as server:
        url = f"{server.url}/v1/studies/survey"
        arguments = [
            "answer",
            "--max-epsilon",
            "8",
            url,
            "--yes",
            "--set",
            "ever=yes",
            "--folder",
            str(tmp_path / "device"),
        ]
        assert main([*arguments, "--digest", "0" * 64]) == 3
        assert main([*arguments, "--digest", digest]) == 0


@pytest.mark.parametrize("epsilon", [101.0, 709.0, 1000.0, 4096.0])
def test_huge_epsilon_gives_printable_odds(epsilon):
    """Many questions at a large ε give odds beyond the range of floats."""
    said = odds(epsilon)
    assert f"1e+{math.ceil(epsilon / math.log(10))}" in said
    assert "100 %" in said


def test_invitation_field_that_identifies_person_warns():
    """The person is not asked for the field, which the study calls a part of the sample."""
    stratum = {"id": "part", "bounds": ["0", "999999"], "step": "1", "source": "invitation"}
    (line,) = warnings_of(Study(studies.document(studies.YES_NO, public=[stratum])))
    assert "part has 1,000,000 values, and invitations carry them" in line
    coarse = {**stratum, "bounds": ["0", "9"]}
    asked = {name: stratum[name] for name in ("id", "bounds", "step")}
    for field in (coarse, asked):
        assert not warnings_of(Study(studies.document(studies.YES_NO, public=[field])))


def test_invitation_fields_that_together_identify_person_warn():
    """No field alone has many values."""
    fields = [
        {"id": name, "bounds": ["0", str(most)], "step": "1", "source": "invitation"}
        for name, most in (("stratum", 99), ("cluster", 10))
    ]
    (line,) = warnings_of(Study(studies.document(studies.YES_NO, public=fields)))
    assert "stratum, cluster together have 1,100 combinations" in line
    fields[1]["bounds"] = ["0", "9"]
    assert not warnings_of(Study(studies.document(studies.YES_NO, public=fields)))


def consent_of(*questions, **fields):
    (section,) = [
        one
        for one in sections_of(Study(studies.document(*questions, **fields)))
        if one.title.startswith("Consent")
    ]
    return section.parts


def test_drafted_consent_has_total_of_all_questions():
    """Each of six questions alone leaves an observer 73.2 % sure, and all six together 99.76 %."""
    six = [{**studies.YES_NO, "id": f"q{place}"} for place in range(6)]
    parts = consent_of(*six, **studies.ASKER)
    rows = next(part.rows for part in parts if part.kind == "table")
    assert [row[0] for row in rows][-1] == "all questions together"
    assert "99.76 % sure" in rows[-1][1]
    assert "73.2 % sure" in rows[0][1]
    assert len(next(part.rows for part in consent_of(studies.YES_NO) if part.kind == "table")) == 1


def test_drafted_consent_has_stated_facts_and_blanks():
    said = [part.text for part in consent_of(studies.YES_NO, **studies.ASKER)]
    assert "contact: study@example.org" in said
    assert "reports are deleted 365 days after the day they arrived" in said
    assert "For participants: where to complain." in said
    assert any("whom to ask, how long" in part.text for part in consent_of(studies.YES_NO))


def test_consent_pack_lists_repeated_questions():
    mixed = Study(studies.document(studies.MEMOIZED, studies.YES_NO))
    asked = next(one for one in sections_of(mixed) if one.title.startswith("What is asked"))
    told = " ".join(part.text for part in asked.parts)
    assert "answers habit (memoized) once in each version" in told
    assert "the other questions once in all versions" in told
    alone = consent_of(studies.MEMOIZED)
    assert any("all reports of these together" in part.text for part in alone)
    assert not any("other questions" in part.text for part in alone)
