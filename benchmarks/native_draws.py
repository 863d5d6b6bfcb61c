"""CPU time of a Laplace draw in C and in Python: python -m benchmarks.native_draws [--draws N]."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from conformance.native import CORE
from ldp_client import mechanism_for
from ldp_client.documents.study import Study
from tests import studies

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include "ldpkit.h"

static size_t fill(void *context, unsigned char *out, size_t size) {
    (void)context;
    return (size_t)getrandom(out, size, 0);
}

int main(int count, char **words) {
    static ldp_random random;
    const ldp_field field = {"hours", 0, 0.0, 12.0, 0};
    const ldp_question question = {
        .id = "hours", .mechanism = LDP_LAPLACE, .fields = &field, .field_count = 1, .payload_size = 4,
        .levels = 1048576};
    const ldp_value value = {LDP_NUMBER, 0, 3.5};
    long draws = count > 1 ? atol(words[1]) : 1;
    unsigned char payload[4];
    if (ldp_random_begin(&random, fill, NULL)) return 1;
    clock_t start = clock();
    for (long i = 0; i < draws; i++)
        if (ldp_draw(&question, &value, &random, NULL, payload)) return 2;
    printf("%.6f", (double)(clock() - start) / CLOCKS_PER_SEC);
    return 0;
}
"""


def seconds_in_c(draws: int) -> float:
    """The CPU time of all draws in C, with the system's random bytes."""
    with tempfile.TemporaryDirectory() as name:
        source, program = Path(name, "draws.c"), Path(name, "draws")
        source.write_text(PROGRAM)
        files = [str(source), *map(str, sorted(CORE.glob("*.c")))]
        subprocess.run(["cc", "-std=gnu99", "-O2", "-I", str(CORE), "-o", program, *files], check=True)
        return float(subprocess.run([program, str(draws)], check=True, capture_output=True).stdout)


def seconds_in_python(draws: int) -> float:
    """The same in Python."""
    mechanism = mechanism_for(Study(studies.document(studies.NUMBER)).questions[0])
    mechanism.perturb(3.5)
    start = time.process_time()
    for _ in range(draws):
        mechanism.perturb(3.5)
    return time.process_time() - start


def main(argv: Sequence[str] | None = None) -> None:
    """Print both times, in microseconds a draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000)
    draws = parser.parse_args(argv).draws
    print(f"C: {seconds_in_c(draws) / draws * 1e6:.2f} µs a draw")
    print(f"Python: {seconds_in_python(draws) / draws * 1e6:.2f} µs a draw")


if __name__ == "__main__":
    main()
