"""The server's log: complete lines, no secrets, no text of users."""

import asyncio
import io
import json
import logging

import pytest

from firnline.errors import InputError, ModelError, StoreUnavailable
from firnline.log import limits
from firnline.server import logs
from support.http_server import logged

KEY = "fl_0123456789abcdef_" + "5ec2e7" * 10
BOT = "123456789:AAH" + "k3yOfAB0t-" * 3 + "_x"

logger = logging.getLogger("firnline.server")


def throw(error):
    raise error


def test_a_line_is_a_json_object_with_the_request_and_what_else_is_known():
    with logged() as log:
        token = logs.current_request.set(logs.RequestInfo("r-1"))
        logs.set_tenant("acme")
        logger.info("done %d", 5, extra={"fields": {"status": 200, "ms": 1.5}})
        logs.current_request.reset(token)
        logger.info("nobody's")
    first, second = log.records()
    assert list(first)[:4] == ["time", "level", "logger", "message"]
    assert first["time"].endswith("Z")
    del first["time"], second["time"]
    assert first == {
        "level": "INFO",
        "logger": "firnline.server",
        "message": "done 5",
        "request_id": "r-1",
        "tenant": "acme",
        "status": 200,
        "ms": 1.5,
    }
    assert second == {"level": "INFO", "logger": "firnline.server", "message": "nobody's"}


def test_the_tenant_is_the_one_whom_the_gate_let_in():
    class Caller:
        tenant = "globex"

    state = {}
    with logged() as log:
        token = logs.current_request.set(logs.RequestInfo("r-1", state))
        logger.info("before")
        state["caller"] = Caller()
        logger.info("after")
        logs.current_request.reset(token)
    assert [record.get("tenant") for record in log.records()] == [None, "globex"]


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer {}",
        "authorization: Basic {}",
        "{{'authorization': 'Bearer {}', 'host': 'x'}}",
        "[(b'authorization', b'Bearer {}')]",
        '{{"Authorization": "{}"}}',
        "AUTHORIZATION={}",
        "proxy-authorization: Digest {}",
        "got a bearer   {} from somebody",
        "x-api-key: {}",
        "https://host/?api_key={}&x=1",
        "the password: {}",
        "X-Telegram-Bot-Api-Secret-Token: {}",
        "https://someone:{}@host/v1",
        "cookie: {}",
    ],
)
def test_what_has_the_name_or_the_place_of_a_secret_is_blanked(text):
    secret = "s3cr3t.V4lu3~"
    told = logs.redact(text.format(secret))
    assert "s3cr3t" not in told
    assert "V4lu3" not in told
    assert "***" in told
    assert told.split("***")[0], "the rest can be read"


@pytest.mark.parametrize("secret", [KEY, BOT, BOT.replace(":", "%3A"), "sk-proj-" + "a1" * 12])
@pytest.mark.parametrize("text", ["{}", "key={}.", "https://api/{}/send", '"{}"', "x({})"])
def test_keys_and_tokens_are_blanked_wherever_they_are(text, secret):
    told = logs.redact(text.format(secret))
    assert secret[-12:] not in told
    assert "***" in told


def test_they_are_even_in_the_middle_of_a_word():
    assert logs.redact(f"https://api/bot{BOT}/send") == "https://api/bot***/send"
    assert logs.redact(f"x{KEY}") == "xfl_***"


def test_what_is_harmless_stays():
    text = "flow: 12:30:45 of 2026-01-02, file_name fl_ok, the bearers, https://host:80/v1, sk-1"
    assert logs.redact(text) == text


def test_secrets_are_blanked_in_messages_values_fields_and_exceptions():
    with logged(secrets=["hunter2-hunter2"]) as log:
        logger.warning("key %s", KEY)
        logger.warning("%s", {"authorization": f"Bearer {KEY}"})
        logger.warning("the pass is hunter2-hunter2")
        logger.info("x", extra={"fields": {"given": KEY, "how": "hunter2-hunter2"}})
        try:
            throw(StoreUnavailable(f"cannot reach https://u:hunter2-hunter2@host with {KEY}"))
        except StoreUnavailable:
            logger.exception("failed for %s", BOT)
    assert len(log.lines) == 5
    for secret in (KEY, KEY[-20:], BOT, "hunter2"):
        assert secret not in log.getvalue()
    assert "cannot reach https://***@host with fl_***" in log.records()[-1]["exception"]


def test_an_exception_logs_its_kind_and_place_and_no_foreign_text():
    def mistake():
        raise KeyError("what the user said")

    with logged() as log:
        try:
            try:
                mistake()
            except KeyError as error:
                raise InputError("limit: 5 is too small") from error
        except InputError:
            logger.exception("sorry")
        try:
            throw(ModelError("the endpoint says: what the user said", status=500))
        except ModelError:
            logger.exception("again")
        try:
            throw(
                ExceptionGroup(
                    "what the user said", [FileNotFoundError(2, "what the user said", "f")]
                )
            )
        except ExceptionGroup:
            logger.exception("several")
    first, second, third = (record["exception"].splitlines() for record in log.records())
    assert first[0] == "InputError: limit: 5 is too small"
    assert first[1].startswith("  tests/server/test_logs.py:")
    assert first[2:4] == ["caused by", "KeyError"]
    assert first[-1].endswith("in mistake")
    assert second[0] == "ModelError (status 500)"
    assert third[0] == "ExceptionGroup"
    assert "FileNotFoundError: No such file or directory" in third
    assert "what the user said" not in log.getvalue()


@pytest.mark.parametrize("as_json", [True, False])
def test_a_value_cannot_start_a_new_line(as_json):
    evil = "x\n2026-01-01T00:00:00Z ERROR firnline: all is lost\r\x1b[2J\x7f\u2028\u202e\x85"
    with logged(as_json=as_json) as log:
        token = logs.current_request.set(logs.RequestInfo("r-1", named=evil))
        logger.info("said %s", evil, extra={"fields": {"given": evil}})
        logs.current_request.reset(token)
    (line,) = log.getvalue().removesuffix("\n").split("\n")
    assert line.isprintable()
    assert line.isascii()
    if as_json:
        assert json.loads(line)["given"] == evil


def test_half_of_a_character_is_escaped_too():
    assert logs.escape("\udcff é") == "\\udcff é"


def test_on_a_terminal_a_line_is_for_people():
    with logged(as_json=False) as log:
        token = logs.current_request.set(logs.RequestInfo("r-1"))
        try:
            throw(InputError("no\nway"))
        except InputError:
            logger.exception("sorry", extra={"fields": {"status": 400}})
        logs.current_request.reset(token)
    first, *rest = log.lines
    assert first.endswith("Z ERROR   firnline.server: sorry request_id=r-1 status=400")
    assert rest[0] == "    InputError: no\\nway"
    assert [line[:4] for line in rest] == ["    "] * 3


def test_json_unless_it_is_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    with logged():
        for stream, as_json in ((io.StringIO(), True), (Terminal(), False)):
            logs.configure("info", stream=stream)
            logger.info("hello")
            assert stream.getvalue().startswith("{") == as_json
    assert len([h for h in logging.getLogger().handlers if isinstance(h, logs.LogHandler)]) == 0


def test_other_libraries_are_not_asked_for_what_they_say_below_warning():
    with logged("debug") as log:
        logging.getLogger("httpx2").info("POST https://host/?q=secret")
        logging.getLogger("mcp.server").debug("received: what the user said")
        logging.getLogger("uvicorn.access").info("GET /?q=secret")
        logging.getLogger("uvicorn.error").info("started")
        logging.getLogger("anything").warning("hm")
        logger.debug("ours")
    assert [record["message"] for record in log.records()] == ["started", "hm", "ours"]


def test_the_level_is_ours():
    with logged("warning") as log:
        logger.info("no")
        logging.getLogger("uvicorn.error").info("no")
        logger.warning("yes")
    assert [record["message"] for record in log.records()] == ["yes"]


def test_a_bad_or_unwritable_log_line_stops_nothing(capsys):
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    wrong = logging.LogRecord("x", 20, "f", 1, "%d", ("what the user said",), None)
    line = json.loads(logs.LogFormatter(as_json=True).format(wrong))
    assert line["message"] == "%d (its arguments do not match)"
    with logged():
        logs.configure("info", True, stream=Gone())
        logger.error("what the user said")
    assert "what the user said" not in "".join(capsys.readouterr())


def test_a_long_line_is_cut_and_no_half_of_a_secret_is_left():
    with logged() as log:
        logger.info("%s %s", "x" * 7_980, KEY)
    message = log.records()[0]["message"]
    assert len(message) <= 8_001
    assert "0123456789abcdef" not in message


async def test_each_task_has_the_request_that_started_it():
    async def work(name):
        logs.current_request.set(logs.RequestInfo(name))
        await asyncio.sleep(0)
        logger.info("work")
        assert logs.request_id() == name

    with logged() as log:
        await asyncio.gather(*(asyncio.create_task(work(f"r-{i}")) for i in range(5)))
    assert sorted(record["request_id"] for record in log.records()) == [f"r-{i}" for i in range(5)]


# -- how many -----------------------------------------------------------------------------------


def test_repeated_warnings_are_logged_in_part_and_counted(monkeypatch):
    """However many connections, requests or retries fail, a disk is not filled with it."""
    now, made = [1_800_000_000.0], logging.getLogRecordFactory()

    def dated(*given, **named):  # by a clock that a slow machine does not move
        record = made(*given, **named)
        record.created = now[0]
        return record

    monkeypatch.setattr(logging, "_logRecordFactory", dated)
    flooded, asyncio_ = logging.getLogger("firnline.flooded"), logging.getLogger("asyncio")
    with logged(level="info") as log:
        for number in range(1_000):
            flooded.warning("chat %d failed", number)
            asyncio_.error(f"accept failed, fd={number} at 0x{number:x}")
            flooded.info("request %d", number)
        flooded.error("another kind")
        now[0] += limits.REPEAT_SECONDS
        flooded.info("later")
    lines = log.records()
    assert sum(line["level"] == "INFO" for line in lines) == 1_001
    assert sum(line["level"] != "INFO" for line in lines) == 2 * limits.REPEATS_MAX + 1 + 2
    counted = {line["message"] for line in lines if "repeated" in line}
    assert counted == {
        "970 more like this: chat 999 failed",
        "970 more like this: accept failed, fd=999 at 0x3e7",
    }
    assert all("request_id" not in line for line in lines)


def test_what_was_counted_is_logged_at_the_end():
    with logged() as log:
        for _ in range(limits.REPEATS_MAX + 5):
            logging.getLogger("firnline.flooded").error("again")
        handler = next(h for h in logging.getLogger().handlers if isinstance(h, logs.LogHandler))
        handler.close()
    assert log.records()[-1]["message"] == "5 more like this: again"
    assert log.records()[-1]["repeated"] == 5
