"""Logging to stderr: JSON or text, one access line a request, one redaction point, no message of a foreign exception.

An exception's text may quote what it failed on, and that may be a prompt. So a trace shows types and places; only
kvgate's own errors, which promise to hold neither prompts nor keys, also show their message.
"""

from __future__ import annotations

import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType

import msgspec

from gateway import clock
from gateway.errors import GatewayError
from gateway.telemetry.line_writer import LineSink, LineWriter, StreamSink
from gateway.telemetry.redaction import Redactor
from gateway.telemetry.text_line import text_line
from gateway.wire.inbound import AccessNote

__all__ = ["AccessLog", "Log", "log_failure", "log_warning", "safe_trace"]

_LOGGER = logging.getLogger("kvgate")
_Fields = dict[str, object]


def safe_trace(exc: BaseException) -> list[str]:
    """Where an exception came from, outermost first, without its text; causes follow."""
    lines: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        name = type(current).__qualname__
        known = f": {current.message}" if isinstance(current, GatewayError) else ""
        lines.append(f"{name}{known}")
        frames = traceback.extract_tb(current.__traceback__)
        lines.extend(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return lines


def log_failure(message: str, exc: BaseException, **fields: object) -> None:
    """Log an unexpected error with its trace and these fields; `message` is a sentence of ours."""
    _LOGGER.error(message, extra={"fields": {**fields, "trace": safe_trace(exc)}})


def log_warning(message: str, **fields: object) -> None:
    """Log what an operator should look at, with these fields; `message` is a sentence of ours."""
    _LOGGER.warning(message, extra={"fields": fields})


class AccessLog:
    """One object a request, to the same lines as everything else. Health checks are written at debug level only."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def write(self, route: str, method: str, client: str | None, status: int, seconds: float, note: AccessNote) -> None:
        """Queue the line of one finished request; `status` 0 means that nobody was left to answer (written as 499)."""
        log = self._log
        if log.level > logging.INFO or (route.startswith("/health/") and log.level > logging.DEBUG):
            return
        shown = 499 if note.outcome == "client_closed" else status
        fields: _Fields = {
            "at": clock.wall(),
            "level": "info",
            "event": "request",
            "id": note.request_id,
            "client": client,
            "method": method if method.isalpha() and len(method) <= 16 else "other",
            "route": route,
            "model": note.model,
            "backend": note.backend,
            "status": shown,
            "outcome": note.outcome or ("completed" if 0 < status < 400 else "refused"),
            "reason": note.reason,
            "seconds": round(seconds, 6),
            "queue_s": note.queue_s,
            "ttft_s": round(note.ttft_s, 6) if note.ttft_s is not None else None,
            "prompt_tokens": note.prompt_tokens,
            "completion_tokens": note.completion_tokens,
            "cached_tokens": note.cached_tokens,
        }
        log.emit({key: value for key, value in fields.items() if value is not None})


class Log:
    """The process's log: takes over the root logger between `open` and `close`, writes from a thread.

    `format` is "json" or "text"; `level` a name of the logging module, lower-case.
    """

    def __init__(
        self,
        *,
        level: str = "info",
        format: str = "json",
        redactor: Redactor | None = None,
        sink: LineSink | None = None,
    ) -> None:
        self.level: int = logging.getLevelNamesMapping()[level.upper()]
        self.redactor = redactor if redactor is not None else Redactor()
        self._json = format == "json"
        self._writer: LineWriter[_Fields] = LineWriter(
            sink if sink is not None else StreamSink(lambda: sys.stderr), self._render, name="log"
        )
        self._handler = _ToLog(self)
        self._previous: tuple[int, list[logging.Handler]] | None = None

    @property
    def dropped(self) -> int:
        """Lines that could not be written."""
        return self._writer.dropped

    def open(self) -> Log:
        """Send everything that Python logs here, and nowhere else."""
        root = logging.getLogger()
        self._previous = (root.level, root.handlers[:])
        root.handlers[:] = [self._handler]
        root.setLevel(self.level)
        return self

    def close(self) -> None:
        """Give the root logger back and write what is queued."""
        if self._previous is not None:
            root = logging.getLogger()
            root.setLevel(self._previous[0])
            root.handlers[:] = self._previous[1]
            self._previous = None
        self._writer.close()

    def __enter__(self) -> Log:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything so far is written; False after `timeout` seconds."""
        return self._writer.flush(timeout)

    def emit(self, fields: _Fields) -> None:
        """Queue one line of these fields (`at` in seconds since the epoch)."""
        self._writer.put(fields)

    def _render(self, fields: _Fields) -> bytes:
        at = fields.get("at")
        stamp = datetime.fromtimestamp(at if isinstance(at, float) else clock.wall(), UTC).isoformat(
            timespec="milliseconds"
        )
        if self._json:
            text = msgspec.json.encode({**fields, "at": stamp}, enc_hook=str).decode()
        else:
            text = text_line(stamp.replace("+00:00", "Z"), fields)
        return self.redactor(text).encode("utf-8", "replace")


class _ToLog(logging.Handler):
    """The standard library's records as lines of the log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        fields: _Fields = {"at": record.created, "level": record.levelname.lower(), "logger": record.name}
        try:
            fields["message"] = record.getMessage()
        except Exception:
            fields["message"] = "unprintable message"
        extra = getattr(record, "fields", None)
        if isinstance(extra, dict):
            fields.update(extra)
        if record.exc_info and record.exc_info[1] is not None:
            fields["trace"] = safe_trace(record.exc_info[1])
        self._log.emit(fields)
