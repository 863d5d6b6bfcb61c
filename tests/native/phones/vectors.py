"""The vectors as compiled studies, which an app answers through its wrapper and a ledger."""

import math

from conformance.native import CHOICE, MISSING, NUMBER
from ldp_client import mechanism_for
from ldp_client.documents.canonical import to_base64
from ldp_client.documents.report import report_id_of
from ldpkit.compiling import RECORD_BYTES, RECORD_QUESTION_BYTES, question_in_c
from ldpkit.native import question_table
from tests.native.vectors_in_c import bytes_in_c, drawn_cases

SECRET = bytes(range(16))
TAIL = "}"
REFUSED = "refused"
PROGRAM = """
#include <string.h>
#include "ldpkit.h"

{tables}
static const unsigned char *const RANDOM[] = {{{random}}};
static const ldp_study *const STUDIES[] = {{{studies}}};
static const unsigned char *next_byte;

static size_t fill(void *context, unsigned char *out, size_t size) {{
    (void)context;
    memcpy(out, next_byte, size);
    next_byte += size;
    return size;
}}

/* The linker puts it in place of ldp_random_begin. */
ldp_result __wrap_ldp_random_begin(ldp_random *random, ldp_fill other, void *context);
ldp_result __wrap_ldp_random_begin(ldp_random *random, ldp_fill other, void *context) {{
    (void)other;
    ldp_random_begin_recorded(random, fill, context);
    return LDP_OK;
}}

/* The study of a vector, whose random bytes follow. */
const ldp_study *vector_study(unsigned index);
const ldp_study *vector_study(unsigned index) {{
    next_byte = RANDOM[index];
    return STUDIES[index];
}}
"""


def write_vectors(folder):
    """Write vectors.c and vectors.txt to a folder. Return how many vectors there are.

    A line of vectors.txt has the answers, a tab, and the report or `refused`. Vectors of an answer that an
    app's types exclude are left out.
    """
    tables = []
    names = {}
    lines, random, used = [], [], []
    for question, values, case, expected in drawn_cases():
        if any(value.kind == MISSING for value in values):
            continue
        if question not in names:
            names[question] = f"v{len(names)}"
            tables += study_in_c(question, names[question])
        answers = " ".join(map(shown, values))
        lines.append(f"{answers}\t{report(question, expected) if 'payload' in expected else REFUSED}")
        random.append(bytes_in_c(bytes.fromhex(case["random"])[: expected["bytes"]] + SECRET))
        used.append(f"&{names[question]}")
    text = PROGRAM.format(tables="\n".join(tables), random=", ".join(random), studies=", ".join(used))
    (folder / "vectors.c").write_text(text)
    (folder / "vectors.txt").write_text("".join(f"{line}\n" for line in lines))
    return len(lines)


def report(question, expected):
    payload = to_base64(bytes.fromhex(expected["payload"]))
    return f'{{"id":"{report_id_of(SECRET)}","payloads":{{"{question.id}":"{payload}"}}{TAIL}'


def study_in_c(question, name):
    table, size = question_table(question), mechanism_for(question).payload_size
    permanent = 1 + size if question.repeats else 0
    length = len(report(question, {"payload": bytes(size).hex()}))
    study = {
        **{"id": '"v"', "version": 1, "digest": '""', "key": bytes_in_c(bytes(16))},
        "questions": f"(const ldp_question[]){{{question_in_c(question, '', '')}}}",
        **{"question_count": 1, "head": '"{\\"id\\":\\""', "tail": f'"{TAIL}"'},
        **{"report_size": length, "permanent_size": permanent},
        "work_words": (size + 7) // 8 + table.get("work_words", 0),
        "record_size": RECORD_BYTES + RECORD_QUESTION_BYTES + permanent + length,
    }
    stated = ", ".join(f".{member} = {value}" for member, value in study.items())
    return [f"static const ldp_study {name} = {{{stated}}};"]


def shown(value):
    """An answer for vectors.txt: `n` and a number, `c` and a choice, or `r`."""
    if value.kind == NUMBER:
        special = "NaN" if math.isnan(value.number) else "Infinity" if value.number > 0 else "-Infinity"
        return f"n{value.number.hex() if math.isfinite(value.number) else special}"
    return f"c{value.choice}" if value.kind == CHOICE else "r"
