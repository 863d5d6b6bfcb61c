"""Fetching a study document from a collector."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

from ldp_client.device.budget import read_new
from ldp_client.device.exchange import MOST_CHARACTERS
from ldp_client.device.upload import CLOSED, STUDY_STATE, document_of, identity_of, problem_of
from ldp_client.documents.errors import RefusedError, TransferError, UsageError
from ldp_client.documents.fields import IDENTIFIER_CHARACTERS, printable
from ldp_client.documents.signed import MAX_BYTES as MAX_SIGNED_BYTES
from ldp_client.documents.signed import SignedStudy
from ldp_client.documents.study import MAX_BYTES, Study

if TYPE_CHECKING:
    from ldp_client.device.exchange import Answer
    from ldp_client.device.transport import Transport

STUDIES_PATH = "/v1/studies/"


def split_study_url(url: str) -> tuple[str, str]:
    """Return (collector's base URL, study id) of http(s)://host/v1/studies/ID. Raises InputError."""
    base, path, study_id = url.partition(STUDIES_PATH)
    is_id = study_id and not set(study_id) - set(IDENTIFIER_CHARACTERS)
    if not base.lower().startswith(("http://", "https://")) or not path or not is_id:
        raise UsageError.say("device.study_url", url=url, path=STUDIES_PATH)
    return base, study_id


def fetch_document(transport: Transport, collector: str, study_id: str) -> tuple[Study, str, bool]:
    """Return the unsigned study of that id, the collector's identity, and whether the study is closed.

    The identity is "" if the collector states none. Raises TransferError, StudyError, and RefusedError for a
    study that needs a newer ldpkit.
    """
    url = f"{collector}{STUDIES_PATH}{study_id}"
    answer = _get(transport, url, MAX_BYTES)
    study = _same(url, study_id, read_new(Study.from_json, answer.body))
    return study, identity_of(answer), _is_closed(answer)


def fetch_signed(transport: Transport, collector: str, study_id: str) -> tuple[SignedStudy, str, bool]:
    """Return the study of that id with its unverified signatures, and the rest as `fetch_document` does.

    Raises as `fetch_document` does.
    """
    url = f"{collector}{STUDIES_PATH}{study_id}/signed"
    answer = _get(transport, url, MAX_SIGNED_BYTES, "device.http_absent_signed")
    signed = read_new(SignedStudy.from_json, answer.body)
    _same(url, study_id, signed.study)
    return signed, identity_of(answer), _is_closed(answer)


def _is_closed(answer: Answer) -> bool:
    said: str = answer.headers.get(STUDY_STATE, "")
    return said == CLOSED


def _same(url: str, study_id: str, study: Study) -> Study:
    if study.id != study_id:
        raise TransferError.say("device.another_study", url=url, study=study.id)
    return study


def _get(transport: Transport, url: str, most: int, absent: str = "device.http_absent") -> Answer:
    try:
        answer = transport.exchange(urllib.request.Request(url, headers={"User-Agent": "ldpkit"}), most)
    except (TransferError, ValueError) as error:
        raise TransferError.say(
            "device.unreachable", url=url, reason=printable(error, MOST_CHARACTERS)
        ) from None
    if problem_of(answer, document_of(answer)) == "study-deleted":
        raise RefusedError.say("device.deleted", url=url)
    if answer.status != 200:
        key = absent if answer.status == 404 else "device.http_status"
        raise TransferError.say(key, url=url, status=answer.status)
    return answer
