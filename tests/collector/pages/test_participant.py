"""Every visitor gets the study's page for the day, in words that are true, and cheap to repeat."""

import html
import itertools
import re
from datetime import date, timedelta

import pytest

from collector.pages import participant
from collector.pages.illustration import HALF_WIDTH, hundred_of
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldp_client.explain import odds
from schemas import Study
from tests import studies
from tests.kit.answers import client_of
from tests.kit.collectors import QUESTIONS, build_study
from tests.kit.errors import raises
from tests.ldp_client.issuers import channel_of
from tests.statistics import seeded


@pytest.mark.parametrize("fields", [{}, {"questions": [studies.TABLE], **studies.HOLDER, "id": "habits"}])
@pytest.mark.parametrize(
    ("day", "words"),
    [
        (date(2026, 6, 8), "opens on June 10, 2026"),
        (date(2026, 6, 9), ""),  # today somewhere on earth
        (date(2026, 6, 20), ""),
        (date(2026, 6, 21), "is over"),
    ],
)
def test_the_page_asks_on_the_studys_days_only(empty, fields, day, words):
    empty.publish(build_study(opens="2026-06-10", closes="2026-06-20", **fields))
    empty.day = day
    text = empty.client.get("/s/habits").text
    asks = '<form id="answers"' in text or "--table table.csv" in text
    assert (asks, words in text) == (not words, True)


@pytest.mark.parametrize("path", ["/s/habits", "/v1/studies/habits", "/v1/studies/habits/summary"])
def test_unchanged_page_document_or_summary_is_sent_once(habits, path):
    tag = habits.client.get(path, headers=habits.operator).headers["ETag"]
    habits.day += timedelta(1)
    again = habits.client.get(path, headers={"If-None-Match": tag, **habits.operator})
    assert (again.status_code, again.data) == (304, b"")


def test_assets_are_immutable_only_under_their_content_hash(habits):
    for name in ("page.js", "participant.css"):
        address = address_of(habits, name)
        assert "immutable" in habits.client.get(address).headers["Cache-Control"]
        for other in (f"/assets/{name}", f"/assets/{name}?v=0"):
            assert habits.client.get(other).headers["Cache-Control"] == "no-store"


def address_of(harness, name):
    page = harness.client.get("/s/habits").text
    return next(part for part in page.split('"') if f"/assets/{name}?v=" in part)


def test_worker_address_changes_with_its_content_policy(habits, monkeypatch):
    """Browsers take the policy with the script, and fetch neither again from an address that they know."""
    monkeypatch.setattr(participant, "LIFETIME", 0.0)

    def worker():
        """The address of the page's worker, and what it may connect to."""
        address = address_of(habits, "worker.js")
        answer = habits.client.get(address)
        assert "immutable" in answer.headers["Cache-Control"]
        return address, answer.headers["Content-Security-Policy"].split("connect-src ")[1]

    before, allowed = worker()
    assert allowed == "'self'"
    assert habits.publish(build_study(id="plain")).status_code == 201
    assert worker() == (before, allowed)
    study = build_study(id="later", channel=channel_of("https://issuer.example"))
    assert habits.publish(study).status_code == 201
    after, allowed = worker()
    assert (after != before, allowed) == (True, "'self' https://issuer.example")
    assert habits.client.get(before).headers["Cache-Control"] == "no-store"


TOGETHER, ONCE = "This holds for all reports to these questions together", "leaves, once"


@pytest.mark.parametrize(
    ("document", "said", "unsaid"),
    [
        # Each round draws another question, until all are answered.
        (
            studies.document(studies.MEMOIZED, {**studies.MEMOIZED, "id": "other"}, sample_one_question=True),
            [odds(4.0), "In each round this browser draws one"],
            [odds(2.0), ONCE],
        ),
        # An earlier or later version may ask others, which cost more.
        (
            studies.document(studies.MEMOIZED),
            [f"{odds(2.0)} {TOGETHER}", "that this study asked before, or asks later, add to it."],
            [ONCE],
        ),
        (
            studies.document(studies.MEMOIZED, studies.YES_NO),
            ["To 1 of these questions a noisy answer is drawn once and kept"],
            [ONCE, "answer only once"],
        ),
        (studies.document(studies.YES_NO), [ONCE], [TOGETHER]),
    ],
    ids=["draws one of two memoized", "memoized", "mixed", "plain"],
)
def test_page_promises_what_the_mechanisms_give(empty, document, said, unsaid):
    assert empty.publish(document).status_code == 201
    page = empty.client.get(f"/s/{document['id']}").text
    (text,) = re.findall(r'<section class="promise".*?</section>', page, re.S)
    hint = re.findall(r'<p class="hint">(Nothing is sent yet.*?)</p>', page, re.S)
    text = " ".join(html.unescape(re.sub("<[^>]+>", " ", text + " ".join(hint))).split())
    assert [words for words in (*said, *unsaid) if words in text] == said


def test_pages_do_not_list_a_million_choices(empty):
    fruit = {**QUESTIONS[1], "choices": {"count": 1_000_000}, "mechanism": {"name": "olh", "epsilon": "2"}}
    assert empty.publish(build_study(questions=[fruit])).status_code == 201
    page, overview = empty.client.get("/s/habits").text, client_of(empty).get("/").text
    assert max(len(page), len(overview)) < 20_000
    assert "a whole number from 0 to 999,999" in page


@pytest.mark.attack(15)
def test_page_of_data_holders_is_rendered_once_for_all_hosts(empty):
    """Ask for a page with ever other Host headers: it is rendered once, and none can write into it."""
    document = studies.document(*studies.TABLES, **studies.HOLDER, opens="2026-01-01")
    assert empty.publish(document).status_code == 201
    participant._rendered.cache_clear()
    tags = set()
    for number in range(50):
        host = f"host-{number}.example.org"
        answer = empty.client.get("/s/plants", headers={"Host": host})
        assert f"ldpkit answer https://{host}/v1/studies/plants --table table.csv" in answer.text
        tags.add(answer.headers["ETag"])
    assert len(tags) == 50
    assert "This study is for data holders" in answer.text
    unwanted = (participant.ADDRESS, "<form", "<script", "<b>")
    wrong = empty.client.get("/s/plants", headers={"Host": 'x"><b>'})
    assert not [part for part in unwanted if part in answer.text + wrong.text]
    found = participant._rendered.cache_info()
    assert (found.misses, found.currsize) == (1, 1)
    empty.close("plants")
    assert "takes no more reports" in empty.client.get("/s/plants").text


def test_operators_logo_is_shown_and_its_script_never_runs(make_harness, habits, tmp_path):
    assert 'class="logo"' not in habits.client.get("/s/habits").text
    assert habits.client.get("/assets/logo").status_code == 404
    file = tmp_path / "logo.svg"
    file.write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    harness = make_harness(logo=str(file))
    assert '<img class="logo" src="/assets/logo" alt="">' in harness.client.get("/s/habits").text
    image = harness.client.get("/assets/logo")
    assert (image.data, image.mimetype) == (file.read_bytes(), "image/svg+xml")
    assert "default-src 'none'" in image.headers["Content-Security-Policy"]
    for name, size in (("logo.pdf", 1), ("logo.png", (1 << 18) + 1)):
        (tmp_path / name).write_bytes(bytes(size))
        with raises(InputError, "settings.wrong_logo"):
            make_harness(logo=str(tmp_path / name))


def built(asked):
    """A question's sentence about a hundred reports with its picture, and its mechanism."""
    (question,) = Study(studies.document(asked)).questions
    mechanism = mechanism_for(question)
    return hundred_of(question, mechanism), mechanism


PRODUCTS = {**studies.PRODUCTS, "mechanism": {"name": "sampled_products", "epsilon": "4", "products": 3}}
# Never all or none.
CERTAIN = studies.with_epsilon(studies.YES_NO, "8")


@pytest.mark.parametrize(
    "question", [studies.YES_NO, studies.PRODUCTS, PRODUCTS, studies.MEMOIZED, CERTAIN], ids=str
)
def test_dots_and_sentences_show_the_mechanisms_probability(question):
    hundred, mechanism = built(question)
    told = min(99, round(100 * float(mechanism.p)))
    assert hundred.truthful == told
    assert f"about {told} " in hundred.sentence
    assert built(studies.RECORD)[0] is None


@pytest.mark.parametrize("name", HALF_WIDTH)
def test_the_band_holds_90_of_100_reports_of_the_exact_law(name):
    stated = {"name": name, "epsilon": "2", **({"delta": "1e-6"} if name == "gaussian" else {})}
    hundred, mechanism = built({**studies.NUMBER, "mechanism": stated})
    (width,) = re.findall(r"within ([\d.]+) of it", hundred.sentence)
    low, high = map(float, mechanism.bounds)
    half, source = float(width) / (high - low), seeded(name)
    reports = [mechanism.perturb((low + high) / 2, source) for _ in range(4000)]
    off = [abs(int.from_bytes(report, "big", signed=True) / mechanism.levels - 0.5) for report in reports]
    # 7 standard deviations.
    assert abs(sum(each <= half for each in off) / 4000 - 0.9) < 7 * (0.09 / 4000) ** 0.5
    assert hundred.start == pytest.approx(max(0, 0.5 - half), abs=0.01)


@pytest.mark.attack(2)
@pytest.mark.parametrize("epsilon", ["1", "3", "7"])
@pytest.mark.parametrize("name", ["oue", "randomized_response", "subset_selection", "hadamard"])
@pytest.mark.parametrize("k", [2, 3, 4, 6, 20])
def test_sentence_states_how_often_others_have_the_answer(name, k, epsilon):
    """Show people a wrong rate of equal reports by others before they decide: the page states it."""
    hundred, m = built(studies.choice_of(name, k, epsilon))
    told, *others = map(int, re.findall(r"(?:about|to) (\d+)", hundred.sentence))
    if "among" not in hundred.sentence:
        assert f"{100 - told} say another" in hundred.sentence
        others = [(100 - told) / (k - 1)]
    pairs = itertools.permutations(range(k), 2)
    shares = [100 * float(m.support_probability(true, index)) for true, index in pairs]
    # Never all or none.
    exact = [min(max(share, 1), 99) for share in (100 * float(m.p), min(shares), max(shares))]
    room = 0.5 if name != "randomized_response" else 1
    assert (told, others[0], others[-1]) == pytest.approx(exact, abs=room + 1e-9)


def test_page_states_reports_per_randomly_drawn_question(empty):
    asked = [{**studies.YES_NO, "id": f"q{place}"} for place in range(5)]
    document = studies.document(*asked, sample_one_question=True)
    assert empty.publish(document).status_code == 201
    page = empty.client.get(f"/s/{document['id']}").get_data(as_text=True)
    assert page.count("what follows is of these alone. Of 100 reports of people who answer yes") == 5
