"""CPU of one upload inside the process, as a ratio to a Flask route that does nothing.

python -m benchmarks.collector [--share 1]

No socket and no commit: the WSGI application is called, and the writer answers at once. So the ratio holds
on a busy machine too. Each way handles the same reports in turns, and the median turn counts.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from flask import Flask

from benchmarks.collector_load.bodies import STUDY, fresh_reports
from collector import create_app
from collector.db import Database
from collector.migrations import make
from collector.reports.intake import Receipt
from collector.settings import Settings
from collector.studies import publish
from schemas import Report

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

TURNS = 9
REPORTS = 300
BARE = "bare Flask route"


def bare_app() -> Flask:
    """A Flask application whose one route reads the body and answers a small JSON document."""
    app = Flask(__name__)

    @app.put("/v1/studies/<study_id>/reports/<report_id>")
    def put(study_id: str, report_id: str) -> tuple[dict[str, str], int]:
        from flask import request

        request.get_data()
        return {"id": report_id, "result": study_id}, 201

    return app


def environ_of(report: Report, is_chunked: bool) -> dict[str, Any]:
    """The WSGI environment of an upload."""
    body = report.to_json().encode()
    framing: dict[str, Any] = {"CONTENT_LENGTH": str(len(body))}
    if is_chunked:
        framing = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
    return {
        **framing,
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": f"/v1/studies/{report.study}/reports/{report.id}",
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": "application/json",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(body),
        "wsgi.errors": BytesIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }


def seconds_of(app: WSGIApplication, environs: Iterable[dict[str, Any]]) -> float:
    """CPU seconds in which an application stores all of these uploads."""

    def start_response(
        status: str, _headers: Sequence[tuple[str, str]], *_error: object
    ) -> Callable[..., None]:
        assert status.startswith("201")
        return lambda _data: None

    start = time.process_time()
    for environ in environs:
        for _part in app(environ, start_response):
            pass
    return time.process_time() - start


def ratios(turns: int = TURNS, reports: int = REPORTS) -> dict[str, float]:
    """CPU of an upload by the WSGI shortcut and by the Flask view, each divided by that of a bare route."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(database=f"sqlite:///{folder}/bare.sqlite3", token="token-for-the-benchmark")
        make(Database(settings.database, settings.lock_timeout))
        app = create_app(settings)
        collector = app.extensions["ldpkit"]
        with collector.database.write() as session:
            publish(session, STUDY)
        collector.writer.upload = lambda upload: [Receipt.STORED] * len(upload.reports)
        # The shortcut leaves a chunked upload to the view.
        ways: dict[str, tuple[WSGIApplication, bool]] = {
            BARE: (bare_app().wsgi_app, False),
            "shortcut": (app.wsgi_app, False),
            "Flask view": (app.wsgi_app, True),
        }
        found: dict[str, list[float]] = {way: [] for way in ways}
        for _turn in range(turns + 1):
            sent = list(fresh_reports(reports))
            for way, (application, is_chunked) in ways.items():
                found[way].append(seconds_of(application, [environ_of(one, is_chunked) for one in sent]))
        collector.close()
    # The first turn loads what is loaded once.
    middle = {way: statistics.median(seconds[1:]) for way, seconds in found.items()}
    return {way: seconds / middle[BARE] for way, seconds in middle.items()}


def main(argv: Sequence[str] | None = None) -> None:
    """Print the ratio of each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1, help="of the reports of each turn")
    share = parser.parse_args(argv).share
    for way, ratio in ratios(reports=max(20, round(REPORTS * share))).items():
        print(f"{way}: {ratio:.2f} of a bare Flask route", flush=True)


if __name__ == "__main__":
    main()
