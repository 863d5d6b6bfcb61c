"""Every visitor gets the study's page for the day, in words that are true, and cheap to repeat."""

import html
import re
from datetime import date, timedelta
from types import SimpleNamespace

import pytest

from collector.pages import participant
from ldp_client.documents.errors import InputError
from ldp_client.explain import odds
from schemas import Study
from tests import studies
from tests.kit.answers import client_of
from tests.kit.collectors import TODAY, build_study
from tests.kit.errors import raises
from tests.ldp_client.issuers import keys
from tests.studies import MEMOIZED, YES_NO

DAYS = {"opens": "2026-06-10", "closes": "2026-06-20"}


def page(harness, **headers):
    return harness.client.get("/s/habits", headers=headers)


@pytest.mark.parametrize("document", [{}, {"questions": [studies.TABLE], **studies.HOLDER, "id": "habits"}])
@pytest.mark.parametrize(
    ("day", "words"),
    [
        (date(2026, 6, 8), "opens on June 10, 2026"),
        (date(2026, 6, 9), ""),  # today somewhere on earth
        (date(2026, 6, 20), ""),
        (date(2026, 6, 21), "is over"),
    ],
)
def test_the_page_asks_on_the_studys_days_only(empty, document, day, words):
    empty.publish(build_study(**DAYS, **document))
    empty.day = day
    text = page(empty).text
    asks = '<form id="answers"' in text or "--table table.csv" in text
    assert asks == (not words)
    assert words in text


def test_the_page_and_the_document_are_sent_once(habits):
    for path in ("/s/habits", "/v1/studies/habits"):
        first = habits.client.get(path)
        again = habits.client.get(path, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.data) == (304, b"")
    habits.day = TODAY + timedelta(days=1)
    assert page(habits, **{"If-None-Match": page(habits).headers["ETag"]}).status_code == 304


def test_assets_are_immutable_only_under_their_content_hash(habits):
    page(habits)
    text = page(habits).text
    for name in ("page.js", "participant.css"):
        address = next(part for part in text.split('"') if f"/assets/{name}?v=" in part)
        assert "immutable" in habits.client.get(address).headers["Cache-Control"]
        assert habits.client.get(f"/assets/{name}").headers["Cache-Control"] == "no-store"
        assert habits.client.get(f"/assets/{name}?v=0").headers["Cache-Control"] == "no-store"


def worker_of(harness):
    """The address of the page's worker, and what it may connect to."""
    address = next(part for part in page(harness).text.split('"') if "/assets/worker.js?v=" in part)
    answer = harness.client.get(address)
    assert "immutable" in answer.headers["Cache-Control"]
    return address, answer.headers["Content-Security-Policy"].split("connect-src ")[1]


def test_worker_address_changes_with_its_content_policy(habits, monkeypatch):
    """Browsers take the policy with the script, and fetch neither again from an address that they know."""
    times = iter(range(100))
    # That module's clock alone: by everybody's, whoever waits for the database would wait for too long.
    clock = SimpleNamespace(monotonic=lambda: 10.0 * next(times))
    monkeypatch.setattr("collector.pages.participant.time", clock)
    before, allowed = worker_of(habits)
    assert allowed == "'self'"
    assert habits.publish(build_study(id="plain")).status_code == 201
    assert worker_of(habits) == (before, allowed)
    tokens = {"issuer": "https://issuer.example", "keys": [{"key": keys()[0].text}]}
    study = build_study(id="later", channel={"batches": {"hours": 24}, "tickets": tokens})
    assert habits.publish(study).status_code == 201
    after, allowed = worker_of(habits)
    assert (after != before, allowed) == (True, "'self' https://issuer.example")
    assert habits.client.get(before).headers["Cache-Control"] == "no-store"


OTHER = {**MEMOIZED, "id": "other"}


@pytest.fixture
def promise(empty):
    """A function study document → the words of the page's promise and of the hint below the form."""

    def of(document):
        assert empty.publish(document).status_code == 201
        page = empty.client.get(f"/s/{document['id']}").get_data(as_text=True)
        (text,) = re.findall(r'<section class="promise".*?</section>', page, re.S)
        hint = re.findall(r'<p class="hint">(Nothing is sent yet.*?)</p>', page, re.S)
        return " ".join(html.unescape(re.sub("<[^>]+>", " ", text + " ".join(hint))).split())

    return of


def test_a_study_that_draws_one_memoized_question_promises_the_sum(promise):
    """Each round draws another question, until all are answered."""
    said = promise(studies.document(MEMOIZED, OTHER, sample_one_question=True))
    assert odds(4.0) in said
    assert odds(2.0) not in said
    assert "In each round this browser draws one" in said


def test_promise_covers_only_these_questions(promise):
    """An earlier or later version may ask others, which cost more."""
    said = promise(studies.document(MEMOIZED))
    assert f"{odds(2.0)} This holds for all reports to these questions together" in said
    assert "Other questions that this study asked before, or asks later, add to it." in said


def test_mixed_study_does_not_promise_a_single_answer(promise):
    said = promise(studies.document(MEMOIZED, YES_NO))
    assert "To 1 of these questions a noisy answer is drawn once and kept" in said
    assert "leaves, once" not in said
    assert "answer only once" not in said
    plain = promise(studies.document(YES_NO, id="plain"))
    assert "leaves, once" in plain
    assert "these questions together" not in plain


PLANTS = Study(studies.document(*studies.TABLES, **studies.HOLDER, opens="2026-01-01"))


@pytest.fixture
def plants(empty):
    assert empty.publish(PLANTS).status_code == 201
    return empty


def test_the_page_of_the_study_says_how_a_holder_answers(plants):
    page = plants.client.get("/s/plants").text
    for words in (
        "This study is for data holders",
        "ldpkit answer http://localhost/v1/studies/plants --table table.csv",
        "<code>power.pe</code>",
        "Whatever one record of the table holds",
    ):
        assert words in page
    assert "<form" not in page
    assert "<script" not in page
    plants.close("plants")
    assert "takes no more reports" in plants.client.get("/s/plants").text


def test_pages_do_not_list_a_million_choices(empty):
    (question,) = (one for one in build_study().document["questions"] if one["id"] == "fruit")
    mechanism = {"name": "olh", "epsilon": "2"}
    study = build_study(questions=[{**question, "choices": {"count": 1_000_000}, "mechanism": mechanism}])
    assert empty.publish(study).status_code == 201
    page = empty.client.get("/s/habits").text
    assert len(page) < 20_000
    assert "a whole number from 0 to 999,999" in page
    overview = client_of(empty, empty.operator["Authorization"].split()[1]).get("/").text
    assert len(overview) < 20_000


@pytest.mark.attack(15)
def test_page_is_rendered_once_for_all_hosts(plants):
    """Ask for a page with ever other Host headers: it is rendered once, and none can write into it."""
    participant._rendered.cache_clear()
    tags = set()
    for number in range(50):
        host = f"host-{number}.example.org"
        answer = plants.client.get("/s/plants", headers={"Host": host})
        assert f"ldpkit answer https://{host}/v1/studies/plants" in answer.text
        assert participant.ADDRESS not in answer.text
        tags.add(answer.headers["ETag"])
    assert len(tags) == 50
    assert "<b>" not in plants.client.get("/s/plants", headers={"Host": 'x"><b>'}).text
    found = participant._rendered.cache_info()
    assert (found.misses, found.currsize) == (1, 1)


def test_operators_logo_is_shown_and_its_script_never_runs(make_harness, habits, tmp_path):
    assert 'class="logo"' not in page(habits).text
    assert habits.client.get("/assets/logo").status_code == 404
    file = tmp_path / "logo.svg"
    file.write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    harness = make_harness("logo.sqlite3", logo=str(file))
    harness.publish(build_study())
    assert '<img class="logo" src="/assets/logo" alt="">' in page(harness).text
    image = harness.client.get("/assets/logo")
    assert (image.data, image.mimetype) == (file.read_bytes(), "image/svg+xml")
    assert "default-src 'none'" in image.headers["Content-Security-Policy"]


@pytest.mark.parametrize(("name", "size"), [("logo.pdf", 1), ("logo.png", (1 << 18) + 1)])
def test_logo_of_another_format_or_too_large_is_refused(make_harness, tmp_path, name, size):
    (tmp_path / name).write_bytes(bytes(size))
    with raises(InputError, code="settings.wrong_logo"):
        make_harness(logo=str(tmp_path / name))
