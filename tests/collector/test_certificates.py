"""https by a certificate's files: the server, with a device that trusts it; what is refused; the hint."""

import os
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives import serialization

from collector.server import check_certificate
from ldp_client.documents.errors import InputError, UsageError
from schemas import Study
from tests import studies
from tests.kit.certificates import write_certificate
from tests.kit.collectors import REPOSITORY, TOKEN, Server
from tests.kit.errors import raises


@pytest.mark.slow
def test_device_that_trusts_the_certificate_answers_over_https(tmp_path):
    chain, key = write_certificate(tmp_path)
    server = Server(tmp_path, "--tls-certificate", str(chain), "--tls-key", str(key))
    operator = {"PYTHONPATH": str(REPOSITORY), "LDPKIT_TOKEN": TOKEN}
    (tmp_path / "study.json").write_text(Study(studies.document(studies.YES_NO)).to_json())
    there = ["--collector", server.url]
    answer = ["answer", "--max-epsilon", "8", f"{server.url}/v1/studies/survey", "--set", "ever=yes", "--yes"]
    trusting = {"SSL_CERT_FILE": str(chain)}
    try:
        for words, environment, code, said in (
            (["publish", "study.json", *there], trusting, 0, "survey"),
            ([*answer, "--folder", "trusting"], trusting, 0, "1 report sent"),
            ([*answer, "--folder", "other"], {}, 5, ""),
            (["status", "survey", *there], trusting, 0, "1 report"),
        ):
            command = [sys.executable, "-m", "ldpkit", *words]
            told = {**os.environ, **operator, **environment}
            done = subprocess.run(
                command, cwd=tmp_path, env=told, capture_output=True, text=True, check=False
            )
            assert done.returncode == code, done.stderr
            assert said in done.stdout + done.stderr
    finally:
        server.kill()
    assert "without https" not in server.log.read_text()


PASSWORD = serialization.BestAvailableEncryption(b"password")


def test_bad_certificate_is_rejected_before_listening(tmp_path):
    chain, key = write_certificate(tmp_path)
    check_certificate(None, None)
    check_certificate(chain, key)
    other, none = write_certificate(tmp_path, "other")[1], tmp_path / "none"
    locked = write_certificate(tmp_path, "locked", lock=PASSWORD)
    for files, named in (
        ((chain, other), (other, chain)),
        (locked, locked[1:]),
        ((key, key), (key,)),
        ((chain, chain), (chain,)),
        ((chain, none), (none,)),
        ((none, key), (none,)),
    ):
        with raises(InputError, ("server.certificate_not_usable", *map(str, named))):
            check_certificate(*files)
    with raises(UsageError, "server.certificate_and_key", "--tls-certificate", "--tls-key"):
        check_certificate(chain, None)
