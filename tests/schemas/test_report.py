import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.documents.errors import ReportError
from schemas import Report
from tests.kit.errors import raises

reports = st.builds(
    Report,
    id=st.binary(min_size=16, max_size=16).map(bytes.hex),
    study=st.from_regex(r"\A[a-z0-9][a-z0-9._-]{0,20}\Z"),
    version=st.integers(1, 10**6),
    digest=st.binary(min_size=32, max_size=32).map(bytes.hex),
    payloads=st.dictionaries(st.sampled_from(["a", "b-2", "c.x"]), st.binary(max_size=40), min_size=1),
    public=st.dictionaries(st.sampled_from(["age", "region"]), st.sampled_from(["42", "é"])),
)
GOOD = Report("ab" * 16, "survey", 2, "cd" * 32, {"q": b"\x01\x02"}).to_document()


@settings(max_examples=30)
@given(reports)
def test_round_trip(report):
    assert Report.from_json(report.to_json()) == report
    assert Report.from_json(report.to_json()).to_json() == report.to_json()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": "AB" * 16}, "id"),
        ({"id": "ab" * 15}, "id"),
        ({"version": 0}, "version"),
        ({"version": "1"}, "version"),
        ({"digest": "x" * 64}, "digest"),
        ({"format": "ldpkit.report/9"}, "format"),
        ({"payloads": {}}, "payloads"),
        ({"payloads": {"q": "AQ"}}, "payloads.q"),
        ({"payloads": {"q": "AQI=\n"}}, "payloads.q"),
        ({"payloads": {"q": "A*QI="}}, "payloads.q"),
        ({"payloads": {"q": "AR=="}}, "payloads.q"),
        ({"payloads": {"q": 5}}, "payloads.q"),
        ({"payloads": {"Q": "AQI="}}, "payloads.Q"),
        ({"payloads": {"a\n\x1bä": "AQI="}}, "payloads.a???"),
        ({"time": "12:00"}, "time"),
        ({"public": {}}, "public"),
        ({"public": []}, "public"),
        ({"public": None}, "public"),
        ({"public": {"Region": "north"}}, "public.Region"),
        ({"public": {"age": 42}}, "public.age"),
        ({"public": {"age": ""}}, "public.age"),
        ({"public": {"age": "4" * 201}}, "public.age"),
        ({"public": {f"f{n}": "1" for n in range(17)}}, "public"),
    ],
)
def test_bad_reports_name_their_field(change, field):
    with pytest.raises(ReportError) as caught:
        Report.from_json(json.dumps({**GOOD, **change}))
    assert caught.value.field == field


@pytest.mark.parametrize("key", sorted(GOOD))
def test_every_field_is_needed(key):
    with raises(ReportError, "report.invalid", field=key):
        Report.from_document({name: value for name, value in GOOD.items() if name != key})


@pytest.mark.attack(16)
def test_editing_payloads_does_not_change_a_report():
    """Use one mapping for many reports, and change it: each report keeps its own."""
    payloads, public = {"ever": b"1"}, {"side": "n"}
    report = Report("0" * 32, "habits", 1, "0" * 64, payloads, public=public)
    payloads["ever"], public["side"] = b"0", "s"
    assert (report.payloads, report.public) == ({"ever": b"1"}, {"side": "n"})
