"""Studies that state how their reports leave, good and bad: every device takes or refuses the same ones."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from ldp_client.documents.channel import SPKI_HEAD, SPKI_TAIL
from tests import studies
from tests.portable.run_vectors import study_outcome

ISSUER = "https://issuer.example"
REGION = {"id": "region", "choices": ["north", "south"], "source": "ticket"}
AGE = {"id": "age", "bounds": ["18", "99"], "step": "0.5", "source": "ticket"}
HAND = {"id": "hand", "choices": ["left", "right"]}
NORTH, SOUTH = {"region": "north"}, {"region": "south"}


def spki(seed: int = 1, first: int = 0x80, last: int = 1, tail: bytes = SPKI_TAIL, length: int = 256) -> str:
    """A key of that form; nobody knows its factors."""
    modulus = bytes([first]) + bytes([seed]) * (length - 2) + bytes([last])
    return b64encode(SPKI_HEAD + modulus + tail).decode()


def key(public: Any = None, **parts: int) -> dict[str, Any]:
    """What a study states of one."""
    return {"key": spki(**parts), **({} if public is None else {"public": public})}


def tokens(*keys: Any, issuer: Any = ISSUER) -> dict[str, Any]:
    return {"batches": {"hours": 24}, "tickets": {"issuer": issuer, "keys": list(keys) or [key()]}}


CHANNELS: dict[str, Any] = {
    "one-key": tokens(),
    "other-lengths": {**tokens(), "batches": {"hours": 168}},
    "a-top-byte": tokens(key(first=0xFF, last=0xFF)),
    "sixty-four": tokens(*[key({"age": f"{18 + place}"}, seed=place) for place in range(64)]),
    "nothing": None,
    "a-list": [],
    "empty": {},
    "batches-alone": {"batches": {"hours": 24}},
    "tokens-are-null": {"batches": {"hours": 24}, "tickets": None},
    "without-batches": {"tickets": tokens()["tickets"]},
    "no-hours": {**tokens(), "batches": {}},
    "zero-hours": {**tokens(), "batches": {"hours": 0}},
    "nine-days": {**tokens(), "batches": {"hours": 169}},
    "half-an-hour": {**tokens(), "batches": {"hours": 0.5}},
    "hours-in-words": {**tokens(), "batches": {"hours": "24"}},
    "more-of-batches": {**tokens(), "batches": {"hours": 24, "size": 10}},
    "unknown": {**tokens(), "mixnet": {}},
    "no-keys": {"batches": {"hours": 24}, "tickets": {"issuer": ISSUER}},
    "empty-keys": {"batches": {"hours": 24}, "tickets": {"issuer": ISSUER, "keys": []}},
    "sixty-five": tokens(*[key({"age": f"{18 + place}"}, seed=place) for place in range(65)]),
    "the-same-key": tokens(key(), key()),
    "an-even-key": tokens(key(last=2)),
    "short": tokens(key(length=255)),
    "long": tokens(key(length=257)),
    "top-bit": tokens(key(first=0x7F)),
    "cut": tokens({"key": spki()[:-8]}),
    "a-blank": tokens({"key": spki()[:200] + " " + spki()[201:]}),
    "a-line": tokens({"key": spki() + "\n"}),
    "of-the-web": tokens({"key": spki(seed=255).replace("/", "_")}),
    "padded": tokens({"key": spki() + "===="}),
    "a-number": tokens({"key": 7}),
    "in-a-list": tokens({"key": [spki()]}),
    "another-exponent": tokens(
        {"key": b64encode(SPKI_HEAD + b"\x81" * 256 + b"\x02\x03\x01\x00\x03").decode()}
    ),
    "more-of-a-key": tokens({**key(), "until": "2030-01-01"}),
    "public-without-fields": tokens(key(NORTH)),
    "public-is-empty": tokens(key({})),
    "public-is-a-list": tokens(key([])),
    "public-is-a-text": tokens(key("north")),
    "public-is-null": tokens({"key": spki(), "public": None}),
    "two-without-public": tokens(key(), key(seed=2)),
    "keys-of-no-list": {"batches": {"hours": 24}, "tickets": {"issuer": ISSUER, "keys": {"key": spki()}}},
}
ADDRESSES: dict[str, Any] = {
    "port": "https://issuer.example:8443",
    "path": "https://issuer.example/a/b/",
    "slash": "https://issuer.example/",
    "loopback": "http://127.0.0.1:8000",
    "signs": "https://issuer.example/~a!'()*;=@[x]{y}%20",
    "long": "https://issuer.example/" + "a" * 477,
    "too-long": "https://issuer.example/" + "a" * 478,
    "capital": "https://Issuer.example",
    "scheme": "HTTPS://issuer.example",
    "other-scheme": "ftp://issuer.example",
    "bare": "issuer.example",
    "user": "https://a@issuer.example",
    "query": "https://issuer.example/?a",
    "fragment": "https://issuer.example/#a",
    "query-at-once": "https://issuer.example?a",
    "no-port": "https://issuer.example:",
    "long-port": "https://issuer.example:123456",
    "no-host": "https:///a",
    "final-dot": "https://issuer.example.",
    "here-with-a-dot": "https://localhost.",
    "dots": "https://..",
    "long-label": f"https://{'a' * 63}.example",
    "label-too-long": f"https://{'a' * 64}.example",
    "long-host": f"https://{'-'.join('a' * 31)}.{'a.' * 95}a:8443/{'a' * 99}",
    "host-too-long": f"https://{'-'.join('a' * 31)}.{'a.' * 95}aa:8443",
    "host-too-long-alone": f"https://{'-'.join('a' * 31)}.{'a.' * 95}aa",
    "two-dots": "https://issuer..example",
    "dot-first": "https://.example",
    "dot-last": "https://issuer.example.:8443",
    "blank": "https://issuer.example/a b",
    "line": "https://issuer.example\n",
    "umlaut": "https://issuér.example",
    "other-digits": "https://issuer.example:٨",
    "none": "",
    "null": None,
    "list": [ISSUER],
}
STRATA: dict[str, Any] = {
    "north": tokens(key(NORTH)),
    "north-and-south": tokens(key(NORTH), key(SOUTH, seed=2)),
    "public-is-missing": tokens(key()),
    "one-lacks-it": tokens(key(NORTH), key(seed=2)),
    "north-twice": tokens(key(NORTH), key(NORTH, seed=2)),
    "east": tokens(key({"region": "east"})),
    "a-number": tokens(key({"region": 1})),
    "of-another-field": tokens(key({**NORTH, "hand": "left"})),
    "of-no-field": tokens(key({**NORTH, "job": "x"})),
    "of-what-is-no-name": tokens(key({**NORTH, "Job": "x"})),
    "inherited": tokens(key({"constructor": "x"})),
}
AGES = {
    "whole": "18",
    "half": "18.5",
    "by-zeros": "18.50",
    "plus": "+18",
    "outside": "17.5",
    "between": "18.2",
}


def channel_studies() -> Iterator[dict[str, Any]]:
    """Each with what it says, or the field that is refused."""
    for name, document in _documents():
        text = json.dumps(document, separators=(",", ":"))
        yield {"name": name, "text": text, **study_outcome(text)}


def _documents() -> Iterator[tuple[str, dict[str, Any]]]:
    def document(channel: Any, *public: Any, **more: Any) -> dict[str, Any]:
        fields = {"public": list(public)} if public else {}
        return studies.document(studies.YES_NO, channel=channel, **fields, **more)

    for name, channel in CHANNELS.items():
        yield name, document(channel, *([AGE] if name.startswith("sixty") else []))
    for name, address in ADDRESSES.items():
        yield f"issuer-{name}", document(tokens(issuer=address))
    for name, channel in STRATA.items():
        yield f"stratum-{name}", document(channel, REGION, HAND)
    for name, age in AGES.items():
        yield f"age-{name}", document(tokens(key({"age": age})), AGE)
    yield "without-strata", document(tokens(), HAND)
    yield "one-asked", document(tokens(), sample_one_question=True)
    labels = [{"en": "north", "de": "Nord"}, {"en": "south", "de": "Süd"}]
    spoken = {"languages": ["en", "de"], "title": {"en": "Habits", "de": "Gewohnheiten"}}
    yield "in-two-languages", document(tokens(key(NORTH)), {**REGION, "choices": labels}, **spoken)
    yield (
        "in-the-other-one",
        document(tokens(key({"region": "Nord"})), {**REGION, "choices": labels}, **spoken),
    )
