"""https by a certificate's files: the server, with a device that trusts it; what is refused; the hint."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from collector.server import check_certificate
from ldp_client.documents.errors import InputError, UsageError
from schemas import Study
from tests import studies
from tests.kit.collectors import REPOSITORY, TOKEN, Server
from tests.kit.errors import raises

NOW = datetime.now(UTC)
NONE = serialization.NoEncryption()


def write_certificate(folder, name="own", lock=NONE):
    """A certificate for this machine that signs itself: (its file, its key's)."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(NOW - timedelta(1))
    builder = builder.not_valid_after(NOW + timedelta(1))
    made = builder.add_extension(names, False).sign(key, hashes.SHA256())
    chain, secret = folder / f"{name}.pem", folder / f"{name}.key"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, lock))
    secret.chmod(0o600)
    return chain, secret


@pytest.mark.slow
def test_device_that_trusts_the_certificate_answers_over_https(tmp_path):
    chain, key = write_certificate(tmp_path)
    server = Server(tmp_path, "--tls-certificate", str(chain), "--tls-key", str(key))
    try:
        assert server.url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=chain)
        study = Study(studies.document(studies.YES_NO))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        headers["Content-Type"] = "application/json"
        asked = urllib.request.Request(f"{server.url}/v1/studies", study.to_json().encode(), headers)
        assert urllib.request.urlopen(asked, context=trusted, timeout=30).status == 201
        address = f"{server.url}/v1/studies/{study.id}"
        command = [
            sys.executable,
            "-m",
            "ldpkit",
            "answer",
            "--max-epsilon",
            "8",
            address,
            "--set",
            "ever=yes",
            "--yes",
        ]
        for environment, code in (({"SSL_CERT_FILE": str(chain)}, 0), ({}, 5)):
            folder = ["--folder", f"device-{code}"]
            done = subprocess.run(
                [*command, *folder],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == code, done.stderr
        asked = urllib.request.Request(f"{address}/export", headers=headers)
        assert urllib.request.urlopen(asked, context=trusted, timeout=30).read().count(b"payloads") == 1
    finally:
        server.kill()
    assert "without https" not in server.log.read_text()


PASSWORD = serialization.BestAvailableEncryption(b"password")


def test_bad_certificate_is_rejected_before_listening(tmp_path):
    chain, key = write_certificate(tmp_path)
    check_certificate(None, None)
    check_certificate(chain, key)
    other, locked = write_certificate(tmp_path, "other"), write_certificate(tmp_path, "locked", lock=PASSWORD)
    for files, code in (
        ((chain, other[1]), ("server.certificate_not_usable", str(other[1]), str(chain))),
        (locked, ("server.certificate_not_usable", str(locked[1]))),
        ((key, key), ("server.certificate_not_usable", str(key))),
        ((chain, chain), ("server.certificate_not_usable", str(chain))),
        ((chain, tmp_path / "none"), ("server.certificate_not_usable", str(tmp_path / "none"))),
        ((tmp_path / "none", key), ("server.certificate_not_usable", str(tmp_path / "none"))),
    ):
        with raises(InputError, code):
            check_certificate(*files)
    with raises(UsageError, "server.certificate_and_key", "--tls-certificate", "--tls-key"):
        check_certificate(chain, None)
