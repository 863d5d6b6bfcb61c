"""A study as source code for apps: `ldpkit compile study.json --to c|kotlin|swift`.

An app ships one version of a study. Its integers are compiled in, because a device cannot tell whether
thresholds that a collector sends add noise.
"""

from __future__ import annotations

import hashlib
import json
import re
import string
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import Any, NamedTuple

from ldp_client import mechanism_for
from ldp_client.device.arguments import checked_url, origin_of
from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import InputError
from ldp_client.documents.question import Question
from ldp_client.documents.report import FORMAT
from ldp_client.documents.study import Study
from ldp_client.explain import describe, report_size
from ldpkit.native import KEY_BYTES, question_table

MOST_PUBLIC_VALUES = 1000
EPSILON_BITS, DELTA_BITS = 32, 63
# Bytes of an answer's record in c/ledger.c: head, fixed part and checksum; each question.
RECORD_BYTES, RECORD_QUESTION_BYTES = 8 + 94 + 8, 36
# Without question marks: two of them begin a trigraph.
PLAIN = (string.ascii_letters + string.digits + " !#$%&'()*+,-./:;<=>@[]^_`{|}~").encode()
# The members of a question that are arrays, and of what.
ARRAYS = {
    "fields": "ldp_field",
    "entries": "ldp_entry",
    "products": "ldp_product",
    "ends": "uint32_t",
    "memory": "unsigned char",
}


class Expression(str):
    """An expression in C, which is written as it is."""


class Array(NamedTuple):
    """A constant array in C. kind: of its values."""

    kind: str
    values: Sequence[Any]


def compile_study(study: Study, collector: str, language: str) -> dict[str, str]:
    """Write a study as source code.

    Args:
        study: one version of a study.
        collector: the base URL of its collector. Its origin and the study's id name the study in ledgers.
        language: "c", "kotlin" or "swift".

    Returns:
        {file name: text}: the tables in C for every language, a file of words for Kotlin or Swift, and for
        Kotlin a file in C by which it finds the tables.

    Raises:
        InputError: the core in C cannot answer the study; the error names the alternative.
    """
    _refuse_unsupported(study)
    base, _, _ = checked_url(collector)
    name = "study_" + re.sub(r"\W", "_", study.id)
    files = {f"{name}.h": _header(study, base, name)}
    camel = "".join(part.capitalize() for part in name.split("_"))
    # The study's words in the app's language; its tables are in the header.
    if language == "kotlin":
        files[f"{camel}.kt"] = KOTLIN.format(name=camel, **_words(study, base, "listOf({})", _kotlin_text))
        files[f"{name}_jni.c"] = JNI.format(name=name, object=camel)
    if language == "swift":
        words = _words(study, base, "[{}]", _swift_text)
        files[f"{camel}.swift"] = SWIFT.format(name=camel, table=name, **words)
    return files


def _refuse_unsupported(study: Study) -> None:
    """Raise InputError for what the core does not have."""
    channel = study.channel
    kept = any(question.repeats for question in study.questions)
    if study.protocol is not None:
        what, instead = "secure sums", "use the Python library"
    elif channel is not None and channel.tickets is not None:
        what, instead = "blind tickets", "use direct tickets, or the Python or JavaScript library"
    elif channel is not None:
        what, instead = "batches", "use the Python or JavaScript library"
    elif study.sample_one_question and kept:
        what, instead = "memoized questions in a study that samples one question", "ask all questions"
    elif any(field.size > MOST_PUBLIC_VALUES for field in study.public):
        what, instead = f"public fields with more than {MOST_PUBLIC_VALUES} values", "use a larger step"
    else:
        return
    raise InputError(f"the core in C has no {what}: {instead}", code="compile.unsupported")


def _key(*names: str) -> Array:
    """Return 16 bytes that name a study, or a question of it."""
    digest = hashlib.sha256("\0".join(("ldpkit.ledger/1", *names)).encode()).digest()
    return Array("unsigned char", list(digest[:KEY_BYTES]))


def _header(study: Study, base: str, name: str) -> str:
    """Return the study's tables in C."""
    origin, macro = origin_of(base), name.upper()
    lines = [f"/* {_comment(study.title)}", " *"]
    lines += [f" * {_comment(line)}" for line in describe(study)]
    lines += [" *", " * Written by `ldpkit compile`: do not change. Include it in one source file. */"]
    lines += [f"#ifndef LDPKIT_{macro}_H", f"#define LDPKIT_{macro}_H", "", '#include "ldpkit.h"', ""]
    for key, value in _constants(study, base).items():
        lines.append(f"#define {macro}_{key.upper()} {in_c(value)}")
    # The words to show: the study's description, and each question's text and labels.
    words = {"about": describe(study), "texts": _texts(study)}
    for question in study.questions:
        words["labels_" + re.sub(r"\W", "_", question.id)] = _labels(question)
    for key, texts in words.items():
        if texts:
            lines.append(f"static const char *const {name}_{key}[] = {in_c((*texts, 0))};")
    lines.append(f"static const ldp_study {name} = {{")
    lines += [f"    .{key} = {in_c(value)}," for key, value in _study_members(study, origin).items()]
    return "\n".join([*lines, "};", "", "#endif", ""])


def _constants(study: Study, base: str) -> dict[str, str]:
    """Return the address of the study's reports, which a report's id follows, and the study's days."""
    url = f"{base}/v1/studies/{study.id}/reports/"
    return {"url": url, "opens": study.opens or "", "closes": study.closes or ""}


def _texts(study: Study) -> list[str]:
    return [question.full_text or question.id for question in study.questions]


def _study_members(study: Study, origin: str) -> dict[str, Any]:
    """Return the members of the study's `ldp_study`."""
    sizes = {question.id: mechanism_for(question).payload_size for question in study.questions}
    tables = [question_table(question) for question in study.questions]
    permanent = sum(sizes[question.id] + 1 for question in study.questions if question.repeats)
    carried = sorted((field for field in study.public if not field.from_ticket), key=lambda field: field.id)
    size = report_size(study, carried)
    tail = canonical_json({"study": study.id, "version": study.version})
    public = []
    for field in carried:
        values = [json.dumps(field.value(index), ensure_ascii=False) for index in range(field.size)]
        public.append((field.id, Array("char *const", values), field.size))
    questions = [question_in_c(question, origin, study.id) for question in study.questions]
    return {
        "id": study.id,
        "version": study.version,
        "digest": study.digest,
        "key": _key(origin, study.id),
        "questions": Array("ldp_question", questions),
        "question_count": len(tables),
        "sample_one_question": int(study.sample_one_question),
        "head": f'{{"digest":"{study.digest}","format":"{FORMAT}","id":"',
        "tail": "," + tail[1:],
        "report_size": size,
        "permanent_size": permanent,
        "work_words": max((each["payload_size"] + 7) // 8 + each.get("work_words", 0) for each in tables),
        "record_size": RECORD_BYTES + RECORD_QUESTION_BYTES * len(tables) + permanent + size,
        **({"public_fields": Array("ldp_public", public), "public_count": len(public)} if public else {}),
    }


def question_in_c(question: Question, origin: str, study: str) -> Expression:
    """Write a question in C, as an initializer of its `ldp_question`.

    Args:
        question: the question.
        origin: the origin of its study's collector.
        study: the study's id.
    """
    table = question_table(question)
    table |= {"mechanism": Expression(table["mechanism"]), "field_count": len(table["fields"])}
    table["fields"] = [
        (
            *(field["id"], field.get("choices", 0), field.get("low", 0.0), field.get("high", 0.0)),
            Array("double", field["cuts"]) if field.get("cuts") else 0,
        )
        for field in table["fields"]
    ]
    for key, kind in ARRAYS.items():
        if key in table:
            table[key] = Array(kind, table[key])
    privacy, stated = mechanism_for(question).privacy, question.mechanism
    for cost, bits in (("epsilon", EPSILON_BITS), ("delta", DELTA_BITS)):
        # In units of 2**-bits, rounded up.
        table[cost] = ceil(max(getattr(privacy, cost), getattr(stated, cost)) * (1 << bits))
    return Expression(in_c({**table, "key": _key(origin, study, question.id)}))


def in_c(value: Any) -> str:
    """Return a C initializer. A dictionary names the members of a struct; a tuple has them in order."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, Array):
        return f"(const {value.kind}[]){in_c(tuple(value.values))}"
    if isinstance(value, dict):
        return "{" + ", ".join(f".{key} = {in_c(each)}" for key, each in value.items() if each) + "}"
    if isinstance(value, tuple):
        return "{" + ", ".join(map(in_c, value)) + "}"
    return f"UINT64_C({value})" if value >> 31 else str(value)


def _words(study: Study, base: str, listed: str, text: Callable[[str], str]) -> dict[str, str]:
    """Return the study's words in a language.

    Args:
        study: the study.
        base: the collector's address.
        listed: a list in the language, with {} for its members.
        text: writes a text in the language.
    """

    def joined(values: Iterable[str]) -> str:
        return listed.format(", ".join(map(text, values)))

    return {
        "title": _comment(study.title),
        **{key: text(value) for key, value in _constants(study, base).items()},
        "about": joined(describe(study)),
        "questions": joined(question.id for question in study.questions),
        "texts": joined(_texts(study)),
        "labels": listed.format(", ".join(joined(_labels(question)) for question in study.questions)),
    }


def _labels(question: Question) -> list[str]:
    return [] if question.numbered else [str(label) for label in question.choices]


def _comment(text: str) -> str:
    return " ".join(text.replace("*/", "* /").split())


def _text(text: str) -> str:
    """Return a C string: UTF-8, in octal what is not plain ASCII, and what would end or escape it."""
    return '"' + "".join(chr(byte) if byte in PLAIN else f"\\{byte:03o}" for byte in text.encode()) + '"'


def _kotlin_text(text: str) -> str:
    """Return a Kotlin string, whose escapes are those of JSON and of $, without that of a form feed."""
    escaped = "".join("\\u000c" if char == "\f" else json.dumps(char)[1:-1] for char in text)
    return '"' + escaped.replace("$", "\\$") + '"'


def _swift_text(text: str) -> str:
    """Return a Swift string, with numbers for what does not print, and for what would end or escape it."""
    plain = {char for char in text if char.isprintable()} - {'"', "\\"}
    return '"' + "".join(char if char in plain else f"\\u{{{ord(char):x}}}" for char in text) + '"'


KOTLIN = """\
// {title}. Written by `ldpkit compile`: do not change.
package ldpkit

object {name} : Study {{
    const val url = {url}
    const val opens = {opens}
    const val closes = {closes}
    val about: List<String> = {about}
    val questions: List<String> = {questions}
    val texts: List<String> = {texts}
    val labels: List<List<String>> = {labels}
    external override fun table(): Long
}}
"""
SWIFT = """\
// {title}. Written by `ldpkit compile`: do not change.
enum {name} {{
    static let url = {url}
    static let opens = {opens}
    static let closes = {closes}
    static let about: [String] = {about}
    static let questions: [String] = {questions}
    static let texts: [String] = {texts}
    static let labels: [[String]] = {labels}
    static var table: ldp_study {{ {table} }}
}}
"""
# By this file Kotlin finds the tables.
JNI = """\
/* Written by `ldpkit compile`: do not change. */
#include <jni.h>

#include "{name}.h"

JNIEXPORT jlong JNICALL Java_ldpkit_{object}_table(JNIEnv *env, jobject self) {{
    (void)env;
    (void)self;
    return (jlong)(intptr_t)&{name};
}}
"""
