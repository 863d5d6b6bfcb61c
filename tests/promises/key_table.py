"""What each address of the collector answers to each kind of key, and how a request with a key is sent."""

from __future__ import annotations

import re
from typing import Any

from collector import keys
from collector.keys import Role, add_key
from tests.kit.collectors import TOKEN, Harness, build_report, build_study

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
BODIES: dict[str, Any] = {
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


def words_of(harness: Harness) -> dict[str, str]:
    """A key of each kind."""
    with harness.collector.database.write() as session:
        made = {role.value: add_key(session, role.value, role, ["habits"]) for role in Role}
        made["elsewhere"] = add_key(session, "elsewhere", Role.OPERATE, ["other"])
        made["reader"] = add_key(session, "reader", Role.READ)
        made["operator"] = add_key(session, "operator", Role.OPERATE)
        yesterday = harness.day.replace(day=harness.day.day - 1)
        made["expired"] = add_key(session, "expired", Role.OPERATE, None, yesterday)
    return {"none": "", "wrong": WRONG, "token": TOKEN, **made}


def requests_of(harness: Harness) -> list[str]:
    """Every method and address that the application has, those last that end what others need."""
    made = [
        f"{method} {rule.rule}"
        for rule in harness.app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]
    return sorted(made, key=lambda made: (made == f"DELETE {STUDY}", "report_id" not in made, made))


def status_of(harness: Harness, request: str, word: str, in_page: bool = False) -> int:
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
    options: dict[str, Any] = {}
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
