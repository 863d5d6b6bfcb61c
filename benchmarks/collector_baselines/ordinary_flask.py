"""An ordinary Flask collector: gunicorn with threads, SQLAlchemy's ORM, JSON checked by hand, a commit
per request. It promises what ldpkit's collector promises: durable and once.
"""

from __future__ import annotations

import argparse
import base64
import socket
from datetime import date
from pathlib import Path
from typing import Any

from flask import Flask, jsonify, request
from gunicorn.app.base import BaseApplication
from sqlalchemy import LargeBinary, String, create_engine, event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

PAYLOAD_BYTES = 128


class Base(DeclarativeBase):
    """The tables."""


class Stored(Base):
    """One report."""

    __tablename__ = "reports"
    study: Mapped[str] = mapped_column(String, primary_key=True)
    id: Mapped[str] = mapped_column(String, primary_key=True)
    day: Mapped[date]
    payload: Mapped[bytes] = mapped_column(LargeBinary)


def make_app(database: str) -> Flask:
    """The application."""
    engine = create_engine(database, pool_size=64)

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, _record: object) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "busy_timeout = 30000"):
            connection.execute(f"PRAGMA {pragma}")

    Base.metadata.create_all(engine)
    engine.dispose()
    app = Flask(__name__)

    @app.post("/v1/studies")
    def publish() -> Any:
        return jsonify(ok=True), 201

    @app.put("/v1/studies/<study>/reports/<report_id>")
    def put(study: str, report_id: str) -> Any:
        row = _row(study, request.get_json())
        if row["id"] != report_id:
            return jsonify(error="id"), 422
        with Session(engine) as session, session.begin():
            session.execute(insert(Stored).values(row).on_conflict_do_nothing())
        return jsonify(id=report_id), 201

    @app.post("/v1/studies/<study>/reports")
    def post(study: str) -> Any:
        rows = [_row(study, report) for report in request.get_json()["reports"]]
        with Session(engine) as session, session.begin():
            session.execute(insert(Stored).on_conflict_do_nothing(), rows)
        return jsonify(stored=len(rows)), 200

    return app


def _row(study: str, report: dict[str, Any]) -> dict[str, Any]:
    if report["study"] != study or len(report["id"]) != 32:
        raise ValueError("not a report")
    payload = base64.b64decode(report["payloads"]["q"], validate=True)
    if len(payload) != PAYLOAD_BYTES:
        raise ValueError("not a payload")
    return {"study": study, "id": report["id"], "day": date.today(), "payload": payload}


class _Gunicorn(BaseApplication):  # type: ignore[misc]
    def __init__(self, app: Flask, options: dict[str, Any]) -> None:
        self.options, self.app = options, app
        super().__init__()

    def load_config(self) -> None:
        for name, value in self.options.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return self.app


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ready-file", type=Path, required=True)
    arguments = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", arguments.port), backlog=2048)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    options = {
        "bind": f"fd://{listener.detach()}",
        "worker_class": "gthread",
        "threads": 8,
        "loglevel": "warning",
        "when_ready": lambda _arbiter: arguments.ready_file.write_text(url),
    }
    _Gunicorn(make_app(arguments.database), options).run()


if __name__ == "__main__":
    main()
