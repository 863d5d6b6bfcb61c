"""Public values at the collector: held against the study, stored, exported, filled in from invitations.

Defence: The collector: 422 or 403 that names the field, nothing stored, the invitation unused; the fast
path judges as the plain one does.
"""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.operator.inviting import disable, invite, revoke
from collector.remote.writing import write_reports
from collector.reports.rules import Rules
from collector.reports.running_summary import recount
from collector.storage.invitations import delete_used_invitations
from collector.storage.packing import PublicPlaces
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError, LdpkitError
from ldp_client.mechanisms import mechanisms_of
from schemas import Report
from summaries import Summary, summarize
from summaries.reading import ReportFiles
from tests.collector.answered import Pair, problem
from tests.collector.conftest import ANSWERS, INVITATION_KEY, build_study, count_invitations
from tests.kit.errors import raises

FUZZ = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
REGION = {"id": "region", "choices": ["north", 'the "south", {"digest":"', "west"]}
AGE = {"id": "age", "bounds": ["18", "99"], "step": "0.5"}
STRATUM = {"id": "stratum", "choices": ["town", "country"], "source": "invitation"}
VALUES = {"region": "north", "age": 42.5}


def study_of(*fields, version=1, **changes):
    return build_study(version, public=list(fields or (REGION, AGE)), **changes)


STUDY = study_of()
INVITED = study_of(REGION, STRATUM)


def report_of(study, **values):
    """A report as a device makes it, its id's secret and its padding included."""
    answers = {name: value for name, value in {**VALUES, **values}.items() if value is not None}
    known = {field.id for field in study.public}
    mine = {name: value for name, value in answers.items() if name in known}
    asked = {question.id: ANSWERS[question.id] for question in study.questions}
    return perturb_answers(study, mechanisms_of(study), {**asked, **mine})


def put(harness, report, invitation=None):
    headers = {} if invitation is None else {"LDPKit-Invitation": invitation}
    path = f"/v1/studies/habits/reports/{report.id}"
    body = report.to_json()
    return harness.app.test_client().put(path, data=body, content_type="application/json", headers=headers)


@pytest.fixture
def pair(make_harness):
    made = Pair(make_harness("fast.sqlite3"), make_harness("plain.sqlite3"))
    made.publish(STUDY)
    made.put(report_of(STUDY))
    return made


@pytest.mark.parametrize("sample_one_question", [False, True])
def test_reports_are_read_without_a_parser_and_written_as_they_were(sample_one_question):
    study = study_of(sample_one_question=sample_one_question)
    rules = Rules.of(study)
    for region in REGION["choices"]:
        report = report_of(study, region=region)
        body = report.to_json().encode()
        assert len(body) <= rules.form.size
        packed = rules.form.read(body)
        assert packed == rules.pack(report)
        assert rules.form.write(packed) == body.rstrip()
        assert rules.form.read(json.dumps(report.to_document()).encode()) is None


def test_single_and_batch_uploads_store_the_same_reports(pair):
    reports = [report_of(STUDY, region=region) for region in REGION["choices"] for _ in range(4)]
    assert [pair.put(report) for report in (reports[0], reports[0])] == ["201 CREATED", "200 OK"]
    assert pair.post(reports) == {"stored": 11, "duplicates": 1, "failed": []}
    assert pair.taken == 3
    other = Report(
        reports[0].id, "habits", 1, STUDY.digest, reports[0].payloads, public={**reports[0].public}
    )
    other.public["region"] = "west"
    assert pair.put(other) == "409 CONFLICT"
    for harness in (pair.fast, pair.plain):
        kept = {report.id: report for report in harness.exported()}
        assert all(kept[report.id] == report for report in reports)


BAD = [
    ({"region": "east", "age": "42"}, "public.region"),
    ({"region": "north", "age": "42.0"}, "public.age"),
    ({"region": "north", "age": "17"}, "public.age"),
    ({"region": "north"}, "public.age"),
    ({}, "public.region"),
    ({"region": "north", "age": "42", "ever": "yes"}, "public.ever"),
    ({"region": "north", "age": 42}, "public.age"),
]


@pytest.mark.parametrize(("public", "field"), BAD)
def test_bad_value_is_422_with_its_field_and_not_stored(pair, public, field):
    document = report_of(STUDY).to_document()
    document.pop("public")
    document.update({"public": public} if public else {})
    path = f"/v1/studies/habits/reports/{document['id']}"
    status, _, body = pair.send("PUT", path, json.dumps(document, sort_keys=True, separators=(",", ":")))
    said = json.loads(body)
    assert (status[:3], said["type"]) == ("422", "urn:ldpkit:problem:report-invalid")
    assert said["field"] == field
    batch = json.dumps({"reports": [document]}, sort_keys=True, separators=(",", ":"))
    failed = json.loads(pair.send("POST", "/v1/studies/habits/reports", batch)[2])["failed"]
    assert [one["field"] for one in failed] == [f"reports[0].{field}"]
    assert len(pair.fast.exported()) == 1


def test_study_without_public_fields_rejects_values(habits, study):
    report = report_of(study)
    report.public = {"region": "north"}
    answer = put(habits, report)
    assert (answer.status_code, answer.json["field"]) == (422, "public.region")


@FUZZ
@given(
    place=st.integers(0, 10**4), noise=st.binary(max_size=3), removed=st.integers(0, 3), many=st.booleans()
)
def test_fast_and_plain_paths_judge_damaged_bodies_alike(pair, place, noise, removed, many):
    one, other = (report_of(STUDY, region=REGION["choices"][1]).to_json().encode() for _ in range(2))
    body = b'{"reports":[' + one + b"," + other + b"]}" if many else one
    place %= len(body)
    damaged = body[:place] + noise + body[place + removed :]
    report_id = Report.from_json(one).id
    path = "/v1/studies/habits/reports"
    pair.send(*(("POST", path) if many else ("PUT", f"{path}/{report_id}")), damaged)


def test_withdrawal_deletes_the_public_values(empty):
    empty.publish(STUDY)
    report = report_of(STUDY)
    put(empty, report)
    assert empty.withdraw(report.id, secret=report.secret).status_code == 200
    assert empty.exported() == []
    assert empty.summary().json["questions"]["ever"]["n"] == 0


@pytest.mark.parametrize("sample_one_question", [False, True])
def test_every_export_has_the_values(empty, tmp_path, sample_one_question):
    later = study_of(REGION, version=2, sample_one_question=sample_one_question)
    first = study_of(sample_one_question=sample_one_question)
    reports = []
    for study in (first, later):
        empty.publish(study)
        reports += [report_of(study, region=region) for region in REGION["choices"]]
    for report in reports:
        assert put(empty, report).status_code == 201
    expected = {report.id: report.public for report in reports}
    rows = list(csv.DictReader(io.StringIO(empty.export(format="csv").text)))
    assert {row["report_id"]: row["public.region"] for row in rows} == {
        name: values["region"] for name, values in expected.items()
    }
    assert {row["public.age"] for row in rows} == {"42.5", ""}
    table = pa.ipc.open_stream(empty.export(format="arrow").data).read_all()
    found = dict(zip(table["report_id"].to_pylist(), table["public"].to_pylist()))
    assert {name: {k: v for k, v in one.items() if v is not None} for name, one in found.items()} == expected
    for name in ("reports.csv", "reports.parquet"):
        assert write_reports(empty.exported(), tmp_path / name) == 6
    with (tmp_path / "reports.csv").open(newline="") as file:
        written = [(row["report_id"], row["public.region"]) for row in csv.DictReader(file)]
    assert sorted(written) == sorted((row["report_id"], row["public.region"]) for row in rows)
    (tmp_path / "export.parquet").write_bytes(empty.export(format="parquet").data)
    for name in ("reports.parquet", "export.parquet"):
        read = {one.id: one.public for one in ReportFiles(first, [str(tmp_path / name)])}
        assert read == {one.id: one.public for one in reports[:3]}


def counted(study, harness):
    """The running summary, which must be that of the export."""
    text = harness.summary().text
    assert text == summarize(study, harness.exported()).to_json()
    return Summary.from_json(text, study)


@pytest.mark.parametrize("steps", [2, 4000])
def test_the_running_summary_is_kept_by_cell(make_harness, steps):
    """Small summaries are written with every commit; larger ones are counted from the reports on request."""
    age = {"id": "age", "bounds": ["0", str(steps)], "step": "1"}
    kinds = [question for question in build_study().document["questions"] if question["id"] == "ever"]
    fields = [{**REGION, "choices": ["north", "south"]}, age] if steps == 2 else [age]
    study = study_of(*fields, questions=kinds)
    harness = make_harness()
    harness.publish(study)
    assert Rules.of(study).tally.is_kept == (steps == 2)
    reports = [report_of(study, age=n % 3, region=["north", "south"][n % 2]) for n in range(20)]
    assert harness.post([report.to_document() for report in reports]).json["stored"] == 20
    summary = counted(study, harness)
    assert len(summary.cells) == (6 if steps == 2 else 3)
    assert summary.questions["ever"].n == 20
    for report in reports[::6]:
        harness.withdraw(report.id)
    assert len(counted(study, harness).cells) == (3 if steps == 4000 else 5)


def test_recounting_finds_the_cells_right(empty):
    empty.publish(STUDY)
    for region in REGION["choices"]:
        put(empty, report_of(STUDY, region=region))
    with empty.collector.database.write() as session:
        assert recount(session) == []
    assert len(counted(STUDY, empty).cells) == 3


def test_operators_page_lists_fields_sent_in_clear(empty, token):
    empty.publish(STUDY)
    page = empty.client.get("/", auth=("operator", token)).text
    assert "in 489 cells, of which at least 489 have fewer than 20 reports" in page
    assert "age: sent as it is, a number from 18 to 99 in steps of 0.5" in page


def made(harness, count, **public):
    with harness.collector.database.write() as session:
        return invite(session, "habits", count, b"", public)


def left(harness):
    with harness.collector.database.read() as session:
        return count_invitations(session, 1)


REFUSED = (403, "invitation-needed")


@pytest.fixture
def either(make_harness, database_url):
    harness = make_harness(database=database_url, lock_timeout=10)
    harness.publish(INVITED)
    return harness


def test_invitation_supplies_its_public_values(either):
    (town,), (country,) = made(either, 1, stratum="town"), made(either, 1, stratum="country")
    one, other = report_of(INVITED), report_of(INVITED)
    assert problem(put(either, one)) == REFUSED
    assert [put(either, one, town).status_code for _ in range(3)] == [201, 200, 200]
    assert put(either, one).status_code == 200
    assert put(either, other, country).status_code == 201
    assert {report.id: report.public["stratum"] for report in either.exported()} == {
        one.id: "town",
        other.id: "country",
    }
    either.withdraw(one.id)
    assert problem(put(either, one, town)) == (410, "report-withdrawn")


def test_report_that_contradicts_its_invitation_is_rejected(either):
    (invitation,) = made(either, 1, stratum="town")
    wrong, right = report_of(INVITED, stratum="country"), report_of(INVITED, stratum="town")
    answer = put(either, wrong, invitation)
    assert (problem(answer), answer.json["field"]) == (REFUSED, "public.stratum")
    assert left(either) == 1
    assert put(either, right, invitation).status_code == 201
    assert either.exported()[0].public["stratum"] == "town"


def test_report_without_the_invitations_value_is_rejected(either):
    """Not before an invitation exists, not in a batch, and not after an attempt to lift the restriction."""
    reports = [report_of(INVITED), report_of(INVITED, stratum="town")]
    assert [problem(put(either, report)) for report in reports] == [REFUSED] * 2
    assert len(either.post([report.to_document() for report in reports]).json["failed"]) == 2
    made(either, 1, stratum="town")
    with either.collector.database.write() as session:
        with raises(InputError, "ticket.disable_carries_values", "stratum"):
            disable(session, "habits", "ann")
        assert count_invitations(session, 1) == 1
        revoke(session, "habits", "ann")
        assert count_invitations(session, 1) == 0
    assert [problem(put(either, report)) for report in reports] == [REFUSED] * 2
    later = study_of(REGION, {**STRATUM, "choices": ["town", "village"]}, version=2)
    (older,) = made(either, 1, stratum="country")
    either.publish(later)
    answer = put(either, report_of(later), older)
    assert (problem(answer), answer.json["field"]) == (REFUSED, "public.stratum")
    assert left(either) == 1
    assert either.exported() == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--count", "2"], "stratum: its value is missing"),
        (["--count", "2", "--public", "stratum=village"], "stratum: must be one of its choices"),
        (["--count", "2", "--public", "region=north"], "region: .* carry stratum"),
        (["--count", "2", "--public", "stratum"], "must be FIELD=VALUE"),
        (["--count", "2", "--public", "stratum=town", "--public", "stratum=town"], "must be FIELD=VALUE"),
        (["--disable", "--public", "stratum=town"], "go with --count"),
    ],
)
def test_invite_requires_every_invitation_value(make_harness, options, says):
    empty = make_harness(invitation_key=INVITATION_KEY)
    empty.publish(INVITED)
    with pytest.raises(LdpkitError, match=says):
        empty.operate("invite", "habits", *options)


def test_invite_creates_invitations_for_a_value(make_harness, capsys):
    harness = make_harness(invitation_key=INVITATION_KEY)
    harness.publish(INVITED)
    harness.operate("invite", "habits", "--count", "2", "--public", "stratum=town")
    for link in capsys.readouterr().out.split():
        assert put(harness, report_of(INVITED), link.partition("=")[2]).status_code == 201
    assert [report.public["stratum"] for report in harness.exported()] == ["town"] * 2


def test_used_invitations_are_deleted_in_batches_per_stratum(either):
    """A used invitation that is deleted alone could be linked to its stratum's only new report."""
    for stratum, count in (("town", 12), ("country", 9)):
        used = made(either, count, stratum=stratum)
        for invitation in used:
            assert put(either, report_of(INVITED), invitation).status_code == 201
    with either.collector.database.write() as session:
        assert delete_used_invitations(session, 1, b"") == 12
        assert delete_used_invitations(session, 1, b"") == 0
    for invitation in used:
        assert put(either, report_of(INVITED), invitation).status_code == 403
    (tenth,) = made(either, 1, stratum="country")
    put(either, report_of(INVITED), tenth)
    with either.collector.database.write() as session:
        assert delete_used_invitations(session, 1, b"") == 10


def test_public_values_are_packed_by_place():
    places = PublicPlaces(study_of(REGION, AGE, STRATUM).public)
    packed = places.pack({"region": "west", "age": "99"})
    assert (packed, places.size) == (bytes([3, 163, 0]), 3)
    assert places.unpack(packed) == {"region": "west", "age": "99"}
    assert places.filled(packed + b"xy", {"stratum": "country", "other": "x"}) == bytes([3, 163, 2]) + b"xy"
    assert places.agrees(packed + b"x", bytes([3, 163, 2]) + b"x")
    assert not places.agrees(packed + b"x", bytes([3, 162, 2]) + b"x")
    assert not places.agrees(packed + b"x", bytes([3, 163, 2]) + b"y")
    assert list(places.cells([bytes([1, 1, 1]), bytes([1, 1, 2]), bytes([3, 163, 2])])) == [0, 1, 977]
