"""Keys do what they say: a read key cannot delete, and wrong keys cost a bounded amount.

One table has every address of the collector, and what it answers to each kind of key.
"""

import re
from collections import Counter
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest

from collector import keys, limiter
from collector.keys import Role, add_key
from collector.limiter import TokenBucket
from tests.kit.collectors import TICKET_KEY, TOKEN, build_report, build_study
from tests.kit.connections import before_each

REQUESTS = 200
# Fifty wrong keys at once are looked up one by one.
MOST_STATEMENTS = 2 * 50 + REQUESTS // 5
WRONG = "a-word-that-is-no-key"
STUDY = "/v1/studies/<study_id>"
# Keys for one study, but for the last three; "elsewhere" may do everything to another study.
KINDS = ("none", "wrong", "expired", "read", "publish", "operate", "elsewhere", "reader", "operator", "token")
# fmt: off
ANSWERS = {
    # In the order of KINDS.
    f"DELETE {STUDY}/reports/<report_id>":        "401 401 401 403 403 200 403 403 200 200",
    "DELETE /v1/keys/<name>":                     "401 401 401 403 403 403 403 403 403 200",
    "GET /":                                      "401 401 401 200 403 200 200 200 200 200",
    "GET /new":                                   "401 401 401 403 403 200 200 403 200 200",
    "GET /share/<study_id>":                      "401 401 401 200 403 200 403 200 200 200",
    "GET /metrics":                               "401 401 401 403 403 403 403 200 200 200",
    "GET /v1/audit-log":                          "401 401 401 403 403 200 200 403 200 200",
    "GET /v1/health":                             "401 401 401 403 403 403 403 403 200 200",
    "GET /v1/keys":                               "401 401 401 403 403 403 403 403 403 200",
    "GET /v1/studies":                            "401 401 401 200 403 200 200 200 200 200",
    f"GET {STUDY}/export":                        "401 401 401 200 403 200 403 200 200 200",
    f"GET {STUDY}/status":                        "401 401 401 200 403 200 403 200 200 200",
    f"GET {STUDY}/summary":                       "401 401 401 200 403 200 403 200 200 200",
    "POST /new/preview":                          "401 401 401 403 200 200 403 403 200 200",
    "POST /sign-in":                              "401 401 401 303 403 303 303 303 303 303",
    "POST /v1/check":                             "401 401 401 403 200 200 403 403 200 200",
    "POST /v1/keys":                              "401 401 401 403 403 403 403 403 403 201",
    "POST /v1/studies":                           "401 401 401 403 200 200 403 403 200 200",
    f"POST {STUDY}/close":                        "401 401 401 403 200 200 403 403 200 200",
    f"POST {STUDY}/open":                         "401 401 401 403 200 200 403 403 200 200",
    f"POST {STUDY}/expire":                       "401 401 401 403 403 200 403 403 200 200",
    f"POST {STUDY}/tickets":                  "401 401 401 403 403 200 403 403 200 200",
    # It has no tickets to revoke.
    f"POST {STUDY}/tickets/revoke":           "401 401 401 403 403 422 403 403 422 422",
    f"POST {STUDY}/tickets/disable":             "401 401 401 403 403 200 403 403 200 200",
    "POST /v1/upkeep":                            "401 401 401 403 403 403 403 403 200 200",
    # Last, as no report is taken after it.
    f"DELETE {STUDY}":                            "401 401 401 403 403 200 403 403 200 200",
}
# fmt: on
# What needs no key is answered alike to all; that address of a file, a signature and a gateway are absent.
ALIKE = {
    200: ["GET /healthz", "GET /readyz", "GET /openapi.json", "GET /s/<study_id>", f"GET {STUDY}"],
    201: [f"PUT {STUDY}/reports/<report_id>"],
    303: ["POST /sign-out"],
    404: ["GET /.well-known/ohttp-gateway", "POST /ohttp", f"GET {STUDY}/signed", "GET /assets/<name>"],
}
ALIKE[200] += [f"POST {STUDY}/reports"]
ALIKE[404] += ["GET /assets/operator/<path:filename>", "GET /assets/logo"]
for status, requests in ALIKE.items():
    ANSWERS |= {request: " ".join([str(status)] * len(KINDS)) for request in requests}
BODIES = {
    **dict.fromkeys(("POST /new/preview", "POST /v1/check", "POST /v1/studies"), build_study().document),
    f"POST {STUDY}/tickets": {"count": 1},
    "POST /v1/keys": {"name": "new", "role": "read"},
    f"POST {STUDY}/expire": {"before": "2026-01-01"},
    "POST /v1/upkeep": {},
    f"POST {STUDY}/reports": {"reports": []},
}
# Pages of a browser that signed in.
PAGES = ("GET /", "GET /new", "GET /share/<study_id>")
# What the operator's page sends with its cookie.
OF_PAGE = {"LDPKit-Page": "1", "Sec-Fetch-Site": "same-origin"}


def words_of(harness):
    """A key of each kind."""
    with harness.collector.database.write() as session:
        made = {role.value: add_key(session, role.value, role, ["habits"]) for role in Role}
        made["elsewhere"] = add_key(session, "elsewhere", Role.OPERATE, ["other"])
        made["reader"] = add_key(session, "reader", Role.READ)
        made["operator"] = add_key(session, "operator", Role.OPERATE)
        yesterday = harness.day.replace(day=harness.day.day - 1)
        made["expired"] = add_key(session, "expired", Role.OPERATE, None, yesterday)
    return {"none": "", "wrong": WRONG, "token": TOKEN, **made}


def requests_of(harness):
    """Every method and address that the application has, those last that end what others need."""
    made = [
        f"{method} {rule.rule}"
        for rule in harness.app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]
    return sorted(made, key=lambda made: (made == f"DELETE {STUDY}", "report_id" not in made, made))


def status_of(harness, request, word, in_page=False):
    """The status of one request with a key, sent as a program or as a browser sends it.

    in_page: the operator's page sends it, after its user signed in with the key.
    """
    method, rule = request.split(" ")
    report = build_report(build_study())
    # A report or a key that the request may delete.
    if request.startswith("DELETE") and "report_id" in request:
        assert harness.put(report).status_code == 201
    if "<name>" in request and "spare" not in [key.name for key in harness.write(keys.list_keys)]:
        harness.write(add_key, "spare", Role.READ)
    names = {"study_id": "habits", "report_id": report.id, "name": "spare"}
    path = re.sub(r"<(?:path:)?(\w+)>", lambda match: names.get(match[1], "absent"), rule)
    client = harness.app.test_client()
    options = {}
    if in_page:
        options["headers"] = OF_PAGE
    elif rule.startswith("/v1") or rule in ("/metrics", "/new/preview"):
        options["headers"] = {"Authorization": f"Bearer {word}"} if word else {}
    if in_page or request in PAGES:
        signed_in = client.post("/sign-in", data={"key": word}).status_code
        if signed_in == 403:
            return signed_in
    if request in BODIES or method == "PUT":
        options["json"] = BODIES.get(request, report.to_document())
    elif method == "POST":
        options["data"] = {"key": word}
    return client.open(path, method=method, **options).status_code


@pytest.fixture(autouse=True)
def clocks(monkeypatch):
    """Clocks that tick when they are read, and one that stands still."""
    monkeypatch.setattr(keys, "TokenBucket", partial(TokenBucket, clock=lambda: 0.0))
    ticks = count(1)
    monkeypatch.setattr(limiter, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))


@pytest.fixture
def harness(make_harness):
    """Two studies at a collector that makes tickets."""
    return make_harness(ticket_key=TICKET_KEY, published=[build_study(), build_study(id="other")])


def check_keys(harness, requests):
    """Each key opens what the table says, which lacks no request."""
    words = words_of(harness)
    seen = {
        request: " ".join(str(status_of(harness, request, words[kind])) for kind in KINDS)
        for request in requests
    }
    assert seen == {request: ANSWERS.get(request) for request in requests}


def test_each_key_opens_only_its_listed_addresses(harness):
    check_keys(harness, requests_of(harness))


def test_the_page_may_do_what_the_key_of_its_user_may(harness):
    words, alike = words_of(harness), {request for requests in ALIKE.values() for request in requests}
    for request in (one for one in requests_of(harness) if " /v1" in one and one not in alike):
        for kind, expected in zip(KINDS, ANSWERS[request].split(), strict=True):
            # Only a key that may read signs in.
            if kind in ("read", "operate", "reader", "token"):
                status = status_of(harness, request, words[kind], in_page=True)
                assert status == int(expected), (request, kind)


def test_a_planted_read_key_that_deletes_is_found(harness, monkeypatch):
    allows = Role.allows
    monkeypatch.setattr(Role, "allows", lambda role, needed: role is Role.READ or allows(role, needed))
    with pytest.raises(AssertionError):
        check_keys(harness, [f"DELETE {STUDY}/reports/<report_id>"])


def check_costs(harness, monkeypatch, log):
    """A flood of wrong keys costs few statements, hashes and lines of the log, and stops no right key."""
    words = [harness.write(add_key, f"key-{number}", Role.READ) for number in range(40)]
    made = Counter()
    before_each(harness.collector.database.engine, lambda: made.update(["statements"]))
    hashed = keys.hash_key
    monkeypatch.setattr(keys, "hash_key", lambda key: (made.update(["hashes"]), hashed(key))[1])
    log.clear()
    for number in range(REQUESTS):
        headers = {"Authorization": f"Bearer {WRONG}-{number}"}
        assert harness.client.get("/v1/studies", headers=headers).status_code in (401, 429)
    assert made["statements"] <= MOST_STATEMENTS
    assert made["hashes"] <= 3 * REQUESTS
    assert len(log.records) <= 3
    right = {"Authorization": f"Bearer {words[-1]}"}
    assert harness.client.get("/v1/studies", headers=right).status_code == 200


def test_wrong_keys_cost_a_bounded_amount(harness, monkeypatch, caplog):
    check_costs(harness, monkeypatch, caplog)


def test_planted_wrong_keys_that_are_all_looked_up_are_found(make_harness, monkeypatch, caplog):
    monkeypatch.setattr(keys, "TokenBucket", lambda _rate: TokenBucket(1e6))
    with pytest.raises(AssertionError):
        check_costs(make_harness(), monkeypatch, caplog)
