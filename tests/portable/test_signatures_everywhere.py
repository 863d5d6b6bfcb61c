"""RSA signatures are verified without any package, on MicroPython too."""

from ldp_client.files.signing import new_key, sign_study
from schemas import Study
from tests import studies
from tests.portable.platforms import run_micropython

STUDY = Study(studies.document(studies.YES_NO))
CHECK = """
from ldp_client.core.public_keys import PublicKey, is_signed_by_rsa
from ldp_client.documents.signed import SignedStudy

key = PublicKey.from_pem(open("/data/public.pem").read())
signed = SignedStudy.from_json(open("/data/signed.json").read())
(signature,) = signed.signatures
message = signed.study.canonical()
print(signature.key == key.id)
print(is_signed_by_rsa(message, signature.value, key.value))
print(is_signed_by_rsa(message + b" ", signature.value, key.value))
"""


def test_micropython_verifies_a_signed_study(tmp_path):
    private, public = new_key()
    (tmp_path / "public.pem").write_text(public)
    (tmp_path / "signed.json").write_text(sign_study(STUDY, private.encode()).to_json())
    assert run_micropython(tmp_path, CHECK).split() == ["True", "True", "False"]
