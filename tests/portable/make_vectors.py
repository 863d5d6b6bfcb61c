"""Write the test vectors: `python -m tests.portable.make_vectors`.

Vectors never change once a release has them; a new mechanism brings new ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ldp_client import mechanism_for
from ldp_client.documents.report import report_id_of
from schemas import Study
from tests import studies
from tests.portable import vector_choices as choices
from tests.portable import vector_numbers as numbers
from tests.portable import vector_records as records
from tests.portable.run_vectors import integers, outcome
from tests.portable.stream import IN_WORDS
from tests.portable.vector_askers import asker_studies, sectioned_studies
from tests.portable.vector_authors import author_studies
from tests.portable.vector_channels import channel_studies
from tests.portable.vector_draws import laplace_heads, normal_heads
from tests.portable.vector_edges import edge_draws
from tests.portable.vector_languages import language_reports, language_studies
from tests.portable.vector_public import public_reports, public_studies
from tests.portable.vector_refusals import number_draws as refusable_draws
from tests.portable.vector_refusals import number_questions as refusable_questions
from tests.portable.vector_refusals import number_studies as refusable_studies
from tests.portable.vector_refusals import refusal_draws, refusal_questions, refusal_studies
from tests.portable.vector_texts import GOLDEN, reports, study_texts

FOLDER = GOLDEN / "vectors"
NODES = [f"https://{name}.example#{name[-1] * 128}" for name in ("node-a", "node-b")]
PROTOCOL = {"name": "secure_sum", "nodes": NODES, "devices": 20, "max_faulty": 5}

MECHANISM_TEXT = (
    "studies: each has one question, and the integers of its mechanism as decimal strings. "
    "draws: with this answer and this stream the mechanism gives `payload` (hexadecimal), or refuses the "
    "answer and names the field in `refused`. The strings NaN, Infinity and -Infinity stand for numbers. "
) + IN_WORDS
MISSING_TEXT = (
    "studies: as of a mechanism. draws: what is no finite number is refused before any noise, and its field "
    "named. The strings NaN, Infinity and -Infinity stand for numbers."
)
LEVELS_TEXT = "Of sampled products whose features have levels; as of a mechanism, nothing in an older form."
SEVERAL_TEXT = "Of sampled products, several a report; as of a mechanism, nothing in an older form."
REPORT_TEXT = (
    "The noise of the questions is read in the order of the study, then 16 bytes for the report's id. "
) + IN_WORDS
ID_TEXT = (
    "A report's id is the first 16 bytes of the SHA-256 digest of `ldpkit.report-id/1`, a zero byte, and the "
    "16 bytes of its device's secret; both in hexadecimal. In reports.json, which is older, what is drawn "
    "for the secret stands in the id's place."
)
SECRETS = ("00" * 16, "ff" * 16, bytes(range(16)).hex(), bytes(range(240, 256)).hex(), "0123456789abcdef" * 2)
STUDY_TEXT = (
    'A text is a study with this canonical form and digest, or its field `refused` is wrong (all of it: "").'
)

AUTHORS_TEXT = (
    "As in studies.json: a device reads these studies, whatever their models and priors are. It need "
    "not know `author_refused`, the field that the study's author must change."
)
SECTIONS_TEXT = "As in studies.json: of studies with sections, or with wrong ones."
CHANNELS_TEXT = "As in studies.json: of studies that state how reports leave, or state it wrongly."
ASKERS_TEXT = "As in studies.json: of studies that say who asks, or say it wrongly."
REFUSAL_TEXT = (
    "Of questions that offer refusal, null; as of a mechanism, nothing in an older form. refusal: as in "
    "studies.json."
)
REFUSABLE_TEXT = (
    "Of numbers that may be refused, by null; as refusal.json, its studies under refusable_numbers."
)
PUBLIC_TEXT = (
    "studies: as in studies.json. public: with these answers and the stream of this seed the report is "
    "`report`, with the spaces behind it, or the answer to `refused` is not taken. "
) + IN_WORDS
LANGUAGES_TEXT = (
    "studies: as in studies.json. languages: with these answers, in the labels of the study's own language, "
    "and the stream of this seed the report is `report`, or the answer to `refused` is not taken. "
) + IN_WORDS


def build() -> dict[str, dict[str, Any]]:
    """{file name: its document}."""
    files = {name: _mechanism_file(questions, draws) for name, questions, draws in _mechanisms()}
    files["levels"] = _mechanism_file(records.leveled_studies(), records.leveled_draws(), LEVELS_TEXT)
    files["several"] = _mechanism_file(records.several_studies(), records.several_draws(), SEVERAL_TEXT)
    files["missing"] = _mechanism_file(numbers.missing_studies(), numbers.missing_draws(), MISSING_TEXT)
    files["reports"] = {"about": REPORT_TEXT, "reports": list(reports())}
    ids = [{"secret": secret, "id": report_id_of(bytes.fromhex(secret))} for secret in SECRETS]
    files["report_ids"] = {"about": ID_TEXT, "report_ids": ids}
    files["studies"] = {"about": STUDY_TEXT, "studies": list(study_texts())}
    files["authors"] = {"about": AUTHORS_TEXT, "authors": list(author_studies())}
    files["sections"] = {"about": SECTIONS_TEXT, "sections": list(sectioned_studies())}
    files["channels"] = {"about": CHANNELS_TEXT, "channels": list(channel_studies())}
    files["askers"] = {"about": ASKERS_TEXT, "askers": list(asker_studies())}
    files["refusable_numbers"] = {
        **_mechanism_file(refusable_questions(), refusable_draws(), REFUSABLE_TEXT),
        "refusable_numbers": list(refusable_studies()),
    }
    files["refusal"] = {
        **_mechanism_file(refusal_questions(), refusal_draws(), REFUSAL_TEXT),
        "refusal": list(refusal_studies()),
    }
    files["public"] = {
        "about": PUBLIC_TEXT,
        "studies": list(public_studies()),
        "public": list(public_reports()),
    }
    files["languages"] = {
        "about": LANGUAGES_TEXT,
        "studies": list(language_studies()),
        "languages": list(language_reports()),
    }
    return files


def _mechanisms() -> Iterator[tuple[str, dict[str, Any], Iterator[dict[str, Any]]]]:
    """Of each mechanism its name, {name: question} and its draws."""
    for name, questions, heads in (
        ("laplace", numbers.laplace_studies(), laplace_heads()),
        ("gaussian", numbers.gaussian_studies(), normal_heads()),
    ):
        yield name, questions, numbers.number_draws(name, questions, heads)
    for name, questions in choices.choice_studies().items():
        yield name, questions, choices.choice_draws(questions)
    yield "gaussian_statistics", records.record_studies(), records.record_draws()
    yield "gaussian_record", records.noisy_studies(), records.noisy_draws()
    yield "sampled_products", records.product_studies(), records.product_draws()
    yield "summed_gaussian", records.summed_studies(), records.summed_draws()


def _document(question: dict[str, Any]) -> dict[str, Any]:
    summed = question["mechanism"]["name"] == "summed_gaussian"
    return studies.document(question, **({"protocol": PROTOCOL} if summed else {}))


def _mechanism_file(
    questions: dict[str, Any], draws: Iterator[dict[str, Any]], about: str = MECHANISM_TEXT
) -> dict[str, Any]:
    documents = {name: _document(question) for name, question in questions.items()}
    asked = {name: Study(document).questions[0] for name, document in documents.items()}
    mechanisms = {name: mechanism_for(question) for name, question in asked.items()}
    older = asked if about == MECHANISM_TEXT else {}

    def drawn(draws: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {**draw, **outcome(mechanisms[draw["study"]], draw, older.get(draw["study"]))} for draw in draws
        ]

    found = drawn(draws)
    return {
        "about": about,
        "studies": {
            name: {"study": documents[name], "integers": integers(mechanisms[name])} for name in documents
        },
        "draws": [*found, *drawn(edge_draws(mechanisms, found))],
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
