"""Whole reports, and texts that are good, bad or odd studies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import studies
from tests.portable.run_vectors import report_outcome, study_outcome
from tests.portable.vector_choices import of
from tests.portable.vector_draws import SEEDS

GOLDEN = Path(__file__).parents[1] / "golden"
GOOD = ("all-kinds", "smallest", "prior-of-concentration")
# Bad studies that only their authors refuse: vector_authors.py has them.
OF_AUTHORS = {
    "linear-with-yes-no",
    "logistic-with-number",
    "model-does-not-fit",
    "unknown-model",
    *[file.stem for file in (GOLDEN / "studies" / "bad").glob("prior-*.json")],
}


def reports() -> Iterator[dict[str, Any]]:
    whole = json.loads((GOLDEN / "studies" / "all-kinds.json").read_text(encoding="utf-8"))
    small = json.loads((GOLDEN / "studies" / "smallest.json").read_text(encoding="utf-8"))
    small_answers = {question["id"]: studies.ANSWERS.get(question["id"]) for question in small["questions"]}
    for document, answers in ((whole, studies.ANSWERS), (small, small_answers)):
        for seed in SEEDS:
            entry = {"study": document, "answers": answers, "seed": f"report {seed}"}
            yield {**entry, **report_outcome(entry)}
    one = studies.document(*studies.NEWER[:5], studies.NUMBER, sample_one_question=True)
    for seed in (*SEEDS, "c", "d"):
        entry = {"study": one, "answers": {**studies.NEWER_ANSWERS, "hours": 3.5}, "seed": f"report {seed}"}
        entry["answers"] = {question["id"]: entry["answers"][question["id"]] for question in one["questions"]}
        yield {**entry, **report_outcome(entry)}


def study_texts() -> Iterator[dict[str, Any]]:
    good = {name: (GOLDEN / "studies" / f"{name}.json") for name in GOOD}
    texts = {name: file.read_text(encoding="utf-8") for name, file in good.items()}
    texts |= {name: text for name, text in bad_studies().items() if name not in OF_AUTHORS}
    texts |= _odd_texts()
    for name, text in texts.items():
        yield {"name": name, "text": text, **study_outcome(text)}


def bad_studies() -> dict[str, str]:
    """{name: text} of the bad golden studies that devices may meet."""
    texts = {}
    for file in sorted((GOLDEN / "studies" / "bad").glob("*.json")):
        bad = json.loads(file.read_text(encoding="utf-8"))
        if bad["document"].get("respondent") != "holder":
            texts[file.stem] = json.dumps(bad["document"], separators=(",", ":"))
    return texts


def _with_model(model: Any) -> dict[str, Any]:
    return studies.document({**studies.YES_NO, "model": model})


def _odd_texts() -> dict[str, str]:
    plain = studies.document(studies.YES_NO)
    text = json.dumps(plain)
    tiny = studies.document(studies.with_epsilon(studies.NUMBER, "1e-9"))
    crowd = studies.with_epsilon(studies.ONE_OF, "1e-12")
    faint = {**studies.LINEAR, "mechanism": {**studies.GAUSSIAN, "epsilon": "1e-6", "delta": "1e-30"}}
    gaussian = {"name": "gaussian", "epsilon": "1e-9", "delta": "1e-30"}
    deep: Any = []
    for _ in range(16):
        deep = [deep]
    ignored = {
        "nothing": None,
        "a-fraction": 0.5,
        "a-large-number": 1 << 53,
        "a-name-beyond-ascii": {"name": "bernoulli", "é": "1"},
        "half-a-pair": "\ud800",
        "a-zero-character": ["\0"],
        "too-deep": deep,
    }
    return {
        **{f"model-{name}": json.dumps(_with_model(value)) for name, value in ignored.items()},
        "paper": json.dumps({**plain, "paper": {"questions": []}}),
        "many-choices": json.dumps(studies.document(of("olh", "1", {"count": 1_000_000}))),
        "too-many-bits": json.dumps(studies.document(studies.YES_NO, of("oue", "1", {"count": 65_537}))),
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
