"""Undoing a body's content encoding, never to more bytes than allowed."""

from __future__ import annotations

import zlib

from collector.problems import BODY_TOO_LARGE, MALFORMED_ENCODING, MEDIA_TYPE_UNSUPPORTED, ProblemError

GZIP_WINDOW = 31
ZSTD_WINDOW_BYTES = 8 << 20
# A block of 4 bytes can stand for 128 KiB, so a step inflates to 8 MiB at most.
ZSTD_STEP_BYTES = 256
IDENTITY = "identity"
# Ids and noise are random: real reports shrink to a tenth at most, zeros to a thousandth. A short body may
# grow to SMALL_BYTES whatever it is.
MOST_GROWTH = 64
SMALL_BYTES = 1 << 16


def inflated_limit(length: int, encoding: str, limit: int) -> int:
    """How many bytes a body of that length and encoding may become, `limit` at most."""
    return limit if encoding == IDENTITY else min(limit, max(SMALL_BYTES, MOST_GROWTH * length))


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """The body without its encoding: identity, gzip or zstd.

    Raises ProblemError for another encoding, for a body that is not in it, or more than `limit` bytes or
    MOST_GROWTH times its own.
    """
    if encoding == IDENTITY:
        return body
    limit = inflated_limit(len(body), encoding, limit)
    if encoding == "gzip":
        return _gunzip(body, limit)
    if encoding == "zstd":
        return _unzstd(body, limit)
    raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the content encoding is {encoding[:64]!r}")


def _gunzip(body: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(GZIP_WINDOW)
    try:
        inflated = stream.decompress(body, limit + 1)
    except zlib.error:
        raise ProblemError(MALFORMED_ENCODING, "the body is not gzip") from None
    if len(inflated) > limit:
        raise _too_large(limit)
    if not stream.eof or stream.unused_data:
        raise ProblemError(MALFORMED_ENCODING, "the body is not one whole gzip member")
    return inflated


def _unzstd(body: bytes, limit: int) -> bytes:
    import zstandard

    stream = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES).decompressobj()
    inflated = bytearray()
    try:
        for start in range(0, len(body), ZSTD_STEP_BYTES):
            inflated += stream.decompress(body[start : start + ZSTD_STEP_BYTES])
            if len(inflated) > limit:
                raise _too_large(limit)
    except zstandard.ZstdError:
        raise ProblemError(MALFORMED_ENCODING, "the body is not one whole zstd frame") from None
    if not stream.eof or stream.unused_data:
        raise ProblemError(MALFORMED_ENCODING, "the body is not one whole zstd frame")
    return bytes(inflated)


def _too_large(limit: int) -> ProblemError:
    return ProblemError(BODY_TOO_LARGE, f"the inflated body is above {limit} bytes")
