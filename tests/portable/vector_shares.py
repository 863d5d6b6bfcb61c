"""Write the vectors of secret shares: `python -m tests.portable.vector_shares`.

What becomes of a sum's vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.secure_sum import SEED_BYTES, split
from schemas import Study
from tests import studies
from tests.portable.make_vectors import PROTOCOL, render
from tests.portable.stream import Stream

WORDS = (0, 1, -1, 2**63 - 1, -(2**63), 12345678901234, -98765, 7, 2**40)
VECTOR = b"".join((word % 2**64).to_bytes(8, "little") for word in WORDS)
MARGINALS = {"name": "summed_gaussian", "statistic": "marginals", "share": "0.2"}
BUDGETS = ({"epsilon": "0.2", "delta": "2e-7"}, {"epsilon": "10", "delta": "1e-4"})
ANSWERS = ({"age": -100, "years": 5, "rate": 2.75}, {"age": 41.9, "years": 100, "rate": 5})


def share_pieces() -> Iterator[dict[str, Any]]:
    for expansion in ("chacha20", "shake_256"):
        for nodes in (2, 3, 5):
            random = Stream(b"", f"pieces {nodes}").read(SEED_BYTES * (nodes - 1))
            left = [random]

            def source(size: int, left: list[bytes] = left) -> bytes:
                taken, left[0] = left[0][:size], left[0][size:]
                return taken

            found = split(VECTOR, nodes, expansion, NotForRealAnswers(source))
            yield {
                "expansion": expansion,
                "nodes": nodes,
                "vector": VECTOR.hex(),
                "random": random.hex(),
                "pieces": [piece.hex() for piece in found],
                "bytes": len(random),
            }


def marginals() -> Iterator[dict[str, Any]]:
    asked = {key: value for key, value in studies.LINEAR.items() if key != "norm"}
    for budget in BUDGETS:
        question = {**asked, "mechanism": {**MARGINALS, **budget}, "model": {"name": "marginals"}}
        mechanism: Any = mechanism_for(Study(studies.document(question, protocol=PROTOCOL)).questions[0])
        for answer in ANSWERS:
            stream = Stream(b"", "marginals")
            payload = mechanism.noisy_vector(mechanism.quantise(answer), NotForRealAnswers(stream.read))
            random = Stream(b"", "marginals").read(stream.taken).hex()
            found = {"payload": payload.hex(), "bytes": stream.taken}
            yield {"question": question, "protocol": PROTOCOL, "answer": answer, "random": random, **found}


FILE = Path(__file__).parents[1] / "golden" / "shares.json"
TEXT = (
    "pieces: with the bytes `random`, all of which are read, a vector of little-endian words is split for so "
    "many nodes. marginals: the vector of a record's marginal moments. Bytes are in hexadecimal."
)


def shares_file() -> str:
    """The file's text."""
    lists = {"pieces": share_pieces(), "marginals": marginals()}
    return render({"about": TEXT, **{name: list(entries) for name, entries in lists.items()}})


if __name__ == "__main__":
    FILE.write_text(shares_file(), encoding="utf-8")
