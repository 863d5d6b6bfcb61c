"""Write the test vectors: `python -m tests.portable.make_vectors`.

Vectors never change once a release has them; a new mechanism brings new ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ldp_client import mechanism_for
from ldp_client.core.strips import Strips, _half_square, _identity
from schemas import Study
from tests import studies
from tests.portable import crafted
from tests.portable.run_vectors import integers, outcome, report_outcome, study_outcome
from tests.portable.stream import IN_WORDS

GOLDEN = Path(__file__).parents[1] / "golden"
FOLDER = GOLDEN / "vectors"
SEEDS = ("a", "b")
GOOD = ("all-kinds", "smallest", "prior-of-concentration")
LAPLACE_STRIPS = Strips(_identity, tail=True)
UNDECIDED = ((0, False), (0, True), (17, True), (100, False))
NORMAL_STRIPS = Strips(_half_square, tail=False)

NODES = [f"https://{name}.example#{name[-1] * 128}" for name in ("node-a", "node-b")]
ROUTE = {"name": "secure_sum", "nodes": NODES, "clients": 20, "tolerate": 5}

MECHANISM_TEXT = (
    "studies: each has one question, and the integers of its mechanism as decimal strings. "
    "draws: with this answer and this stream the mechanism gives `payload` (hexadecimal), or refuses the "
    "answer and names the field in `refused`. The strings NaN, Infinity and -Infinity stand for numbers. "
) + IN_WORDS
REPORT_TEXT = (
    "The noise of the questions is read in the order of the study, then 16 bytes for the report's id. "
) + IN_WORDS
STUDY_TEXT = (
    'A text is a study with this canonical form and digest, or its field `refused` is wrong (all of it: ""). '
    "needs_strict_json: MicroPython's parser lets duplicate keys and loose syntax pass, and keeps the halves "
    "of an escaped surrogate pair apart."
)


def build() -> dict[str, dict[str, Any]]:
    """{file name: its document}."""
    files = {
        "laplace": _mechanism_file(
            _laplace_studies(), _number_draws("laplace", _laplace_studies(), _laplace_heads())
        ),
        "randomized_response": _mechanism_file(_response_studies(), _choice_draws(_response_studies())),
        "oue": _mechanism_file(_oue_studies(), _choice_draws(_oue_studies())),
        "sue": _mechanism_file(_sue_studies(), _choice_draws(_sue_studies())),
        "subset_selection": _mechanism_file(_subset_studies(), _choice_draws(_subset_studies())),
        "olh": _mechanism_file(_large_studies("olh"), _choice_draws(_large_studies("olh"))),
        "hadamard": _mechanism_file(_large_studies("hadamard"), _choice_draws(_large_studies("hadamard"))),
        "gaussian": _mechanism_file(
            _gaussian_studies(), _number_draws("gaussian", _gaussian_studies(), _normal_heads())
        ),
        "memoized": _mechanism_file(_memoized_studies(), _choice_draws(_memoized_studies())),
        "gaussian_statistics": _mechanism_file(_record_studies(), _record_draws()),
        "gaussian_record": _mechanism_file(_noisy_studies(), _noisy_draws()),
        "summed_gaussian": _mechanism_file(_summed_studies(), _summed_draws()),
    }
    files["reports"] = {"about": REPORT_TEXT, "reports": list(_reports())}
    files["studies"] = {"about": STUDY_TEXT, "studies": list(_study_texts())}
    return files


def _document(question: dict[str, Any]) -> dict[str, Any]:
    summed = question["mechanism"]["name"] == "summed_gaussian"
    return studies.document(question, **({"route": ROUTE} if summed else {}))


def _mechanism_file(questions: dict[str, Any], draws: Iterator[dict[str, Any]]) -> dict[str, Any]:
    documents = {name: _document(question) for name, question in questions.items()}
    mechanisms = {name: mechanism_for(Study(document).questions[0]) for name, document in documents.items()}
    return {
        "about": MECHANISM_TEXT,
        "studies": {
            name: {"study": documents[name], "integers": integers(mechanisms[name])} for name in documents
        },
        "draws": [{**draw, **outcome(mechanisms[draw["study"]], draw)} for draw in draws],
    }


def _draw(study: str, answer: Any, seed: str, head: bytes = b"") -> dict[str, Any]:
    draw = {"study": study, "answer": answer, "seed": seed}
    return {**draw, "head": head.hex()} if head else draw


def _number(epsilon: str, low: str, high: str) -> dict[str, Any]:
    return {**studies.with_epsilon(studies.NUMBER, epsilon), "bounds": [low, high]}


def _laplace_studies() -> dict[str, Any]:
    return {
        "plain": _number("1", "0", "12"),
        "fractions": _number("0.1", "-5.5", "17.25"),
        "wide": _number("64", "-1e-3", "1e6"),
        "least": _number("0.000001", "0", "1"),
    }


NUMBER_ANSWERS = [0, 12, 3.5, 1e-3, -7, 1e300, None, "NaN", "Infinity", "-Infinity"]


def _number_draws(name: str, questions: dict[str, Any], heads: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    for study in questions:
        for answer in NUMBER_ANSWERS:
            for seed in SEEDS:
                yield _draw(study, answer, f"{name} {seed}")
    for answer in (True, "3", [3]):
        yield _draw("plain", answer, f"{name} refused")
    for head in heads:
        for answer in (0, 12):
            yield _draw("plain", answer, f"{name} head", head)


def _gaussian_studies() -> dict[str, Any]:
    def study(epsilon: str, delta: str, *bounds: str) -> dict[str, Any]:
        stated = {"name": "gaussian", "epsilon": epsilon, "delta": delta}
        return {**studies.NUMBER, "bounds": list(bounds), "mechanism": stated}

    return {
        "plain": study("1", "1e-6", "0", "12"),
        "fractions": study("0.1", "1e-30", "-5.5", "17.25"),
        "wide": study("64", "0.5", "-1e-3", "1e6"),
    }


def _normal_heads() -> Iterator[bytes]:
    for strip, kept in UNDECIDED:
        yield crafted.one_draw(*crafted.undecided(NORMAL_STRIPS, strip, kept))
    for word in (crafted.rejected_word(NORMAL_STRIPS, 40), crafted.tail_word(NORMAL_STRIPS)):
        yield crafted.one_draw(word, 0xFFFFFFFF)
    yield bytes(12)
    yield b"\xff" * 12


def _laplace_heads() -> Iterator[bytes]:
    strips = LAPLACE_STRIPS
    for strip, kept in UNDECIDED:
        yield crafted.one_draw(*crafted.undecided(strips, strip, kept))
    tail = crafted.tail_word(strips)
    for tails in (1, 2, crafted.saturating_tails()):
        yield crafted.one_draw(tail, 0) * tails + crafted.one_draw(5 << 55, 0)
        yield crafted.one_draw(tail, 1) * tails + crafted.one_draw(5 << 55, 1)
    for strip in (0, 40):
        yield crafted.one_draw(crafted.rejected_word(strips, strip), 0xFFFFFFFF)
    yield bytes(12)
    yield b"\xff" * 12


def _response_studies() -> dict[str, Any]:
    labels = [f"choice {number}" for number in range(300)]
    return {
        "yes-no": studies.YES_NO,
        "yes-no-strong": studies.with_epsilon(studies.YES_NO, "0.01"),
        "three": studies.ONE_OF,
        "many": {**studies.with_epsilon(studies.ONE_OF, "4"), "choices": labels},
    }


def _oue_studies() -> dict[str, Any]:
    labels = [f"choice {number}" for number in range(1024)]
    return {
        "three": studies.CHOICE,
        "thirteen": {**studies.with_epsilon(studies.CHOICE, "0.5"), "choices": labels[:13]},
        "many": {**studies.with_epsilon(studies.CHOICE, "3"), "choices": labels},
    }


def _of(name: str, epsilon: str, choices: Any) -> dict[str, Any]:
    return {**studies.CHOICE, "choices": choices, "mechanism": {"name": name, "epsilon": epsilon}}


def _sue_studies() -> dict[str, Any]:
    return {
        "three": _of("sue", "1", studies.CHOICE["choices"]),
        "thirteen": _of("sue", "0.5", {"count": 13}),
        "many": _of("sue", "3", {"count": 1024}),
    }


def _subset_studies() -> dict[str, Any]:
    return {
        "three": _of("subset_selection", "1", studies.CHOICE["choices"]),
        "thirteen": _of("subset_selection", "0.5", {"count": 13}),
        "many": _of("subset_selection", "4", {"count": 1000}),
    }


def _large_studies(name: str) -> dict[str, Any]:
    return {
        "three": _of(name, "0.5", studies.CHOICE["choices"]),
        "hundred": _of(name, "2", {"count": 100}),
        "million": _of(name, "4", {"count": 1_000_000}),
        "most": _of(name, "64", {"count": 1 << 20}),
    }


def _choice_answers(question: dict[str, Any]) -> list[Any]:
    if question["ask"] == "yes_no":
        return ["no", "yes", True, False]
    if isinstance(question["choices"], dict):
        last = question["choices"]["count"] - 1
        return [0, 1, last // 2, str(last)]
    labels = question["choices"]
    return [labels[0], labels[len(labels) // 2], labels[-1]]


def _choice_draws(questions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for study, question in questions.items():
        for answer in _choice_answers(question):
            for seed in SEEDS:
                yield _draw(study, answer, f"choice {seed}")
            for head in (bytes(64), b"\xff" * 8, b"\xff" * 64):
                yield _draw(study, answer, "choice head", head)
        numbered = isinstance(question.get("choices"), dict)
        for answer in ("nobody", None, -1, 1 << 20, "01234567", True) if numbered else ("nobody", None, 1):
            yield _draw(study, answer, "choice refused")


def _record_studies() -> dict[str, Any]:
    features = [{"id": f"f{number}", "bounds": ["-1", "1.5"]} for number in range(10)]
    strong = {"name": "gaussian_statistics", "epsilon": "0.2", "delta": "1e-9"}
    return {
        "linear": studies.LINEAR,
        "logistic": studies.LOGISTIC,
        "wide-norm": {**studies.LINEAR, "norm": "1.75", "mechanism": strong},
        "ten": {**studies.LINEAR, "features": features},
        "one-logistic": {**studies.LOGISTIC, "features": studies.FEATURES[:1], "mechanism": strong},
    }


def _record_answers(question: dict[str, Any]) -> list[dict[str, Any]]:
    features = [feature["id"] for feature in question["features"]]
    response = question["response"]["id"]
    binary = "ask" in question["response"]
    ends: list[list[Any]] = [["no", "yes"], [True, False]] if binary else [[1, 5], [2.75, None]]
    return [
        {**dict.fromkeys(features, -100), response: ends[0][0]},
        {**dict.fromkeys(features, 100), response: ends[0][1]},
        {**dict.fromkeys(features, 0.37), response: ends[1][0]},
        {**dict.fromkeys(features, "NaN"), features[0]: "-Infinity", response: ends[1][1]},
    ]


def _record_draws() -> Iterator[dict[str, Any]]:
    for study, question in _record_studies().items():
        for answer in _record_answers(question):
            for seed in SEEDS:
                yield _draw(study, answer, f"record {seed}")
    plain = _record_answers(studies.LINEAR)[2]
    for answer in (
        {**plain, "more": 1},
        {"age": 30, "years": 3},
        {**plain, "age": "30"},
        {**plain, "rate": True},
        3,
    ):
        yield _draw("linear", answer, "record refused")
    coordinates = len(mechanism_for(Study(studies.document(studies.LINEAR)).questions[0]).coordinates)
    for strip, kept in UNDECIDED:
        start = crafted.undecided(NORMAL_STRIPS, strip, kept)
        yield _draw("linear", plain, "record head", crafted.many_draws(coordinates, *start, seed="others"))
    rejected = crafted.rejected_word(NORMAL_STRIPS, 40)
    for start in ((rejected, 0xFFFFFFFF, b""), (crafted.tail_word(NORMAL_STRIPS), 0, b"")):
        yield _draw("linear", plain, "record head", crafted.many_draws(coordinates, *start, seed="others"))


def _noisy_studies() -> dict[str, Any]:
    features = [{"id": f"f{number}", "bounds": ["-1", "1.5"]} for number in range(10)]
    strong = {"name": "gaussian_record", "epsilon": "0.2", "delta": "1e-9", "response_share": "0.875"}
    return {
        "linear": studies.RECORD,
        "logistic": studies.YES_NO_RECORD,
        "small-norm": {**studies.RECORD, "norm": "0.002", "mechanism": strong},
        "ten-logistic": {**studies.YES_NO_RECORD, "features": features, "norm": "3", "mechanism": strong},
    }


def _noisy_draws() -> Iterator[dict[str, Any]]:
    for study, question in _noisy_studies().items():
        for answer in _record_answers(question):
            for seed in SEEDS:
                yield _draw(study, answer, f"noisy {seed}")
            yield _draw(study, answer, "noisy head", b"\xff" * 24)
    yield _draw("logistic", {"age": 30, "years": 3}, "noisy refused")


def _summed_studies() -> dict[str, Any]:
    stated = {"name": "summed_gaussian", "epsilon": "1", "delta": "1e-6"}
    return {
        "moments": {**studies.NUMBER, "mechanism": stated},
        "cells": {**studies.NUMBER, "mechanism": {**stated, "cells": 5}},
        "three": {**studies.CHOICE, "mechanism": stated},
        "yes-no": {**studies.YES_NO, "mechanism": stated},
        "linear": {**studies.LINEAR, "mechanism": {**stated, "epsilon": "0.2", "delta": "1e-9"}},
        "logistic": {**studies.LOGISTIC, "mechanism": stated},
    }


def _summed_answers(question: dict[str, Any]) -> list[Any]:
    kinds = {"number": lambda _: NUMBER_ANSWERS, "record": _record_answers}
    return list(kinds.get(question["ask"], _choice_answers)(question))


def _summed_draws() -> Iterator[dict[str, Any]]:
    for study, question in _summed_studies().items():
        for answer in _summed_answers(question):
            yield _draw(study, answer, "summed a")
        yield _draw(study, ["wrong"], "summed refused")


def _memoized_studies() -> dict[str, Any]:
    kept = studies.KEPT
    return {
        "yes-no": studies.MEMOIZED,
        "three-bits": studies.MEMOIZED_BITS,
        "many": {**studies.CHOICE, "choices": {"count": 300}, "mechanism": {**kept, "epsilon": "5"}},
        "many-bits": {**studies.CHOICE, "choices": {"count": 100}, "mechanism": {**kept, "of": "sue"}},
    }


def _reports() -> Iterator[dict[str, Any]]:
    whole = json.loads((GOLDEN / "studies" / "all-kinds.json").read_text(encoding="utf-8"))
    small = json.loads((GOLDEN / "studies" / "smallest.json").read_text(encoding="utf-8"))
    small_answers = {question["id"]: studies.ANSWERS.get(question["id"]) for question in small["questions"]}
    for document, answers in ((whole, studies.ANSWERS), (small, small_answers)):
        for seed in SEEDS:
            entry = {"study": document, "answers": answers, "seed": f"report {seed}"}
            yield {**entry, **report_outcome(entry)}
    one = studies.document(*studies.NEWER[:5], studies.NUMBER, ask_one=True)
    for seed in (*SEEDS, "c", "d"):
        entry = {"study": one, "answers": {**studies.NEWER_ANSWERS, "hours": 3.5}, "seed": f"report {seed}"}
        entry["answers"] = {question["id"]: entry["answers"][question["id"]] for question in one["questions"]}
        yield {**entry, **report_outcome(entry)}


def _study_texts() -> Iterator[dict[str, Any]]:
    good = {name: (GOLDEN / "studies" / f"{name}.json") for name in GOOD}
    texts = {name: file.read_text(encoding="utf-8") for name, file in good.items()}
    for file in sorted((GOLDEN / "studies" / "bad").glob("*.json")):
        bad = json.loads(file.read_text(encoding="utf-8"))
        if bad["document"].get("unit") != "holder":  # such studies are not for devices
            texts[file.stem] = json.dumps(bad["document"], separators=(",", ":"))
    texts.update(_odd_texts())
    for name, text in texts.items():
        entry: dict[str, Any] = {"name": name, "text": text, **study_outcome(text)}
        if name in NEEDS_STRICT_JSON:
            entry["needs_strict_json"] = True
        yield entry


NEEDS_STRICT_JSON = {
    "duplicate-key",
    "missing-comma",
    "trailing-comma",
    "title-lone-surrogate",
    "escaped-surrogate-pair",
}


def _odd_texts() -> dict[str, str]:
    plain = studies.document(studies.YES_NO)
    text = json.dumps(plain)
    tiny = studies.document(studies.with_epsilon(studies.NUMBER, "1e-9"))
    crowd = studies.with_epsilon(studies.ONE_OF, "1e-12")
    faint = {**studies.LINEAR, "mechanism": {**studies.GAUSSIAN, "epsilon": "1e-6", "delta": "1e-30"}}
    gaussian = {"name": "gaussian", "epsilon": "1e-9", "delta": "1e-30"}
    return {
        "many-choices": json.dumps(studies.document(_of("olh", "1", {"count": 1_000_000}))),
        "too-many-bits": json.dumps(studies.document(studies.YES_NO, _of("oue", "1", {"count": 65_537}))),
        "noise-too-large-for-number": json.dumps(studies.document({**studies.NUMBER, "mechanism": gaussian})),
        "escapes": json.dumps({**plain, "title": 'tab\t quote" back\\ bell\x07 ü'}),
        "escaped-surrogate-pair": json.dumps({**plain, "title": "𝄞"}),
        "escapes-in-utf-8": json.dumps({**plain, "title": "tab\t / ü 𝄞"}, ensure_ascii=False, indent=3),
        "solidus": text.replace("A survey", "A\\/survey"),
        "leap-day": json.dumps({**plain, "opens": "2028-02-29", "closes": "2400-02-29"}),
        "no-leap-day": json.dumps({**plain, "opens": "2026-02-29"}),
        "century-no-leap-day": json.dumps({**plain, "opens": "2100-02-29"}),
        "duplicate-key": text.replace('"version": 1', '"version": 1, "version": 1'),
        "missing-comma": text.replace('1, "title"', '1 "title"'),
        "trailing-comma": text[:-1] + ",}",
        "single-quotes": text.replace('"', "'"),
        "cut": text[:-1],
        "two-values": text + "{}",
        "empty": "",
        "a-list": "[]",
        "version-exponent": text.replace('"version": 1', '"version": 1e0'),
        "epsilon-below-the-grid": json.dumps(tiny),
        "epsilon-too-small-for-choices": json.dumps(studies.document(crowd)),
        "noise-too-large-for-record": json.dumps(studies.document(faint)),
        "decimal-too-long": text.replace('"epsilon": "1"', f'"epsilon": "1.{"0" * 39}"'),
        "decimal-plus": text.replace('"epsilon": "1"', '"epsilon": "+1"'),
        "decimal-bare-point": text.replace('"epsilon": "1"', '"epsilon": "1."'),
        "decimal-exponents": text.replace('"epsilon": "1"', '"epsilon": "0100.0E-2"'),
    }


def render(document: dict[str, Any]) -> str:
    """JSON with one line for each entry of each list or object inside."""
    parts = []
    for name, value in document.items():
        if isinstance(value, str):
            parts.append(f"{_line(name)}: {_line(value)}")
            continue
        lines = [_line(entry) for entry in value] if isinstance(value, list) else _pairs(value)
        open_mark, close_mark = "[]" if isinstance(value, list) else "{}"
        parts.append(f"{_line(name)}: {open_mark}\n" + ",\n".join(lines) + f"\n{close_mark}")
    return "{" + ",\n".join(parts) + "}\n"


def _pairs(value: dict[str, Any]) -> list[str]:
    return [f"{_line(name)}: {_line(entry)}" for name, entry in value.items()]


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Write every file."""
    FOLDER.mkdir(exist_ok=True)
    for name, document in build().items():
        (FOLDER / f"{name}.json").write_text(render(document), encoding="utf-8")


if __name__ == "__main__":
    main()
