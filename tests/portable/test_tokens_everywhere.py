"""A board makes the same token requests, and takes the blinding off what it gets."""

import json
from pathlib import Path

from tests.portable.platforms import run_micropython

VECTORS = Path(__file__).parents[1] / "golden" / "rfc" / "rfc9578_public.json"
CHECK = """
import json
from binascii import hexlify, unhexlify

from ldp_client.core.sha384 import sha384
from ldp_client.core.tokens import Asking, header_of, token_in
from ldp_client.documents.channel import TokenKey

def urandom(size):
    return bytes([7 + size % 5]) * size


vector = json.loads(open("/data/vector.json").read())
read = {name: unhexlify(vector[name]) for name in vector}
key = TokenKey({"key": read["pkS"], "public": None})
factor = int.from_bytes(read["blind"], "big")
asking = Asking(key, read["token_challenge"], read["nonce"], read["salt"], factor)
token = asking.token(read["token_response"], urandom)
print(hexlify(sha384(b"abc")).decode()[:16])
print(asking.body == read["token_request"], token == read["token"], token_in(header_of(token)) == token)
print(asking.token(b"\\x00" + read["token_response"][1:], urandom))
"""


def test_micropython_makes_the_tokens_of_rfc_9578(tmp_path):
    (tmp_path / "vector.json").write_text(json.dumps(json.loads(VECTORS.read_text())[0]))
    said = run_micropython(tmp_path, CHECK).split()
    assert said == ["cb00753f45a35e8b", "True", "True", "True", "None"]
