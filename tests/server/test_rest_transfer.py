"""Export and import over HTTP: nothing is lost, and progress is reported."""

import asyncio
import json
import re
import tempfile
import threading
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from firnline.errors import ConflictError, NotFound, TooFast
from firnline.server.jobs import LIFE, Jobs, unnamed_file, watch
from firnline.server.limits import JOBS_KEPT_MAX, JOBS_RECEIVING_MAX, JOBS_RUNNING_MAX
from firnline.store.scratch import ScratchFolder
from firnline.transfer import jsonl
from support import foreign_exports
from support.live_server import running
from support.rest_client import Api, key_for, parse_events

LINES = {"content-type": "application/jsonl"}
LONG = "We spoke of the harbour, the ferry and the price of the tickets at some length. " * 4


@pytest.fixture
def talks(api):
    for name in ("a", "b/c"):
        path = name.replace("/", "~1")
        api.say(path, *(f"{name} {number}: {LONG}" for number in range(30)))
        api.post(f"/conversations/{path}/context", {"budget": 1_500})
    api.put("/projects/p", {"task": "Something."})
    api.put("/conversations/a/pins/3")
    return api


def finished(api, job):
    """The job, once it has come to its end."""
    events = parse_events(api.ask("GET", f"/jobs/{job['id']}/events").text)
    names = [name for name, _ in events]
    assert names[-1] in ("done", "failed")
    assert set(names[:-1]) <= {"progress"}
    shown = api.get(f"/jobs/{job['id']}")
    assert shown == events[-1][1]
    return shown


def imported(api, data):
    response = api.ask("POST", "/import", content=data, headers=LINES)
    assert response.status_code == 202
    assert response.headers["location"] == response.json()["url"]
    return finished(api, response.json())


def copy_of(api):
    """Everything that is visible over the API."""
    found = []
    for head in api.all("/conversations"):
        path = head["url"].removeprefix("/api/v1")
        about = api.get(path)
        del about["created_at"]  # of the copy
        found.append((about, api.all(f"{path}/messages"), api.all(f"{path}/digests")))
    return found, [(p["name"], p["task"]) for p in api.all("/projects")]


@pytest.mark.parametrize("way", ["stream", "job"])
def test_an_export_can_be_imported_elsewhere_without_loss(talks, way, tmp_path):
    if way == "stream":
        data = talks.http.get("/api/v1/export").content
    else:
        begun = talks.ask("POST", "/exports")
        assert begun.status_code == 202
        job = finished(talks, begun.json())
        assert (job["state"], job["done"], job["total"]) == ("done", 60, 60)
        assert job["result"]["entries"] == 60
        response = talks.http.get(job["file"])
        assert response.headers["content-type"] == "application/jsonl"
        assert "attachment" in response.headers["content-disposition"]
        data = response.content
    assert json.loads(data.splitlines()[-1])["manifest"]["conversations"] == 2
    with (
        running(store=f"sqlite:///{tmp_path}/other.db", background=False) as server,
        Api(server.url) as other,
    ):
        job = imported(other, data)
        assert (job["state"], job["result"]["added"]) == ("done", 60)
        assert job["done"] == job["total"] == len(data)
        assert copy_of(other) == copy_of(talks)
        assert imported(other, data)["result"]["added"] == 0
        for name in ("a", "b~1c"):
            assert other.post(f"/conversations/{name}/verify")["ok"]


def test_some_conversations_can_be_exported(talks):
    data = talks.http.get("/api/v1/export", params={"conversation": ["b/c"]}).content
    assert json.loads(data.splitlines()[-1])["manifest"]["conversations"] == 1
    job = finished(talks, talks.post("/exports", {"conversations": ["a", "a"]}))
    assert (job["total"], job["result"]["conversations"]) == (30, 1)
    for response in (
        talks.ask("GET", "/export", params={"conversation": "nobody"}),
        talks.ask("POST", "/exports", {"conversations": ["nobody"]}),
    ):
        assert response.status_code == 404


SPOILT = {
    "cut": lambda data: data[:-200],
    "altered": lambda data: data.replace(b"harbour", b"desert", 1),
    "empty": lambda data: b"",
    "no JSON": lambda data: b"not json\n",
    "another version": lambda data: b'{"firnline": 1}\n' * 5,
    "twice": lambda data: data + data,
    "deep": lambda data: b"[" * 100_000 + b"\n",
    "no text": lambda data: b"\xff\xfe\n",
}


def test_an_incomplete_file_is_rejected(talks):
    data = talks.http.get("/api/v1/export").content
    talks.delete("/conversations/a")
    for name, spoil in SPOILT.items():
        job = imported(talks, spoil(data))
        assert job["state"] == "failed", name
        assert job["error"]["status"] == 400, name
        assert re.match("the file, line |tenant: ", job["error"]["detail"]), name
        assert tempfile.gettempdir() not in json.dumps(job), name
        kept = [head["conversation"] for head in talks.all("/conversations")]
        assert kept == ["b/c"], name


def test_another_conversation_of_that_name_is_a_conflict(talks):
    data = talks.http.get("/api/v1/export").content
    talks.delete("/conversations/a")
    talks.say("a", "Something else.")
    assert imported(talks, data)["error"]["code"] == ConflictError.__name__


def test_the_body_of_an_import_is_the_file_itself(api):
    for kind in ("multipart/form-data; boundary=x", "application/json", "text/plain", ""):
        response = api.ask("POST", "/import", content=b"x", headers={"content-type": kind})
        assert response.status_code == 415


def taken(api, data, name, **query):
    headers = {"content-type": "application/octet-stream"}
    params = {"name": name, **query}
    response = api.ask("POST", "/import", content=data, headers=headers, params=params)
    assert response.status_code == 202
    return finished(api, response.json())


def test_files_of_other_programs_are_imported_once(api):
    known = []
    for sample, data in foreign_exports.SAMPLES.items():
        name = "WhatsApp Chat with Ana.txt" if sample == "whatsapp" else f"{sample}.json"
        job = taken(api, data, name)
        assert (job["state"], job["result"], job["done"]) == ("done", None, len(data))
        report = job["report"]
        assert report["formats"] == [sample]
        assert report["added"] == report["messages"] > 0
        heads = api.all("/conversations")
        assert len(heads) - len(known) == report["conversations"] + report["branches"]
        again = taken(api, data, name)["report"]
        assert (again["added"], again["known"]) == (0, report["messages"])
        known = api.all("/conversations")
        assert known == heads


def test_whatsapp_chats_whose_files_have_the_same_name_are_not_mixed(api):
    chats = ["[13/01/2025, 10:00:00] Ana: a\n", "[13/01/2025, 10:00:05] Bob: b\n"]
    for added in (1, 0):
        reports = [taken(api, text.encode(), "_chat.txt")["report"] for text in chats]
        assert [report["added"] for report in reports] == [added, added]
    assert len(api.all("/conversations")) == 2


def test_our_own_export_is_recognized_too(talks):
    data = talks.http.get("/api/v1/export").content
    assert taken(talks, data, "firnline.jsonl")["report"]["formats"] == ["firnline"]


def test_an_archive_is_imported_with_a_report_of_what_was_skipped(api, tmp_path):
    members = {
        "a.json": foreign_exports.SAMPLES["chatgpt"],
        "photo.png": b"x",
        "../out.json": b"{}",
    }
    foreign_exports.zipped(tmp_path / "x.zip", members)
    report = taken(api, (tmp_path / "x.zip").read_bytes(), "export.zip")["report"]
    assert report["formats"] == ["chatgpt"]
    assert report["left_out"]["a file of another type: .png"]["count"] == 1
    assert ["../out.json"] in [noted["examples"] for noted in report["not_understood"].values()]


def test_a_rejected_file_says_why_and_not_where_it_was(api):
    for data, query in (
        (b"nothing that anybody wrote", {}),
        (b"", {}),
        (b"PK\5\6 broken", {"name": "x.zip"}),
        (foreign_exports.SAMPLES["claude"], {"format": "nonsense"}),
        (foreign_exports.SAMPLES["whatsapp"], {"zone": "Nowhere/Land"}),
    ):
        job = taken(api, data, **{"name": "notes.txt", **query})
        assert (job["state"], job["error"]["status"]) == ("failed", 400)
        assert tempfile.gettempdir() not in json.dumps(job)
    assert api.all("/conversations") == []


def test_any_name_of_a_file_will_do(api, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("../../etc/passwd", "/", "..", "", "a\0b\n.json", "ä" * 400, "C:\\x\\y.json"):
        assert taken(api, foreign_exports.SAMPLES["claude"], name)["report"]["messages"] > 0
        assert list(tmp_path.glob("firnline-*")) == []


def test_nothing_of_an_import_is_left_on_disk(talks, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    data = talks.http.get("/api/v1/export").content
    imported(talks, data)
    imported(talks, data[:-10])
    taken(talks, data, "x.jsonl")
    finished(talks, talks.post("/exports"))
    assert list(tmp_path.glob("firnline-*")) == []


def test_an_import_that_is_too_large_is_rejected(url, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def pieces():
        for _ in range(50):
            yield b"x" * 1_000

    with running(store=url, import_bytes_max=20_000) as server, Api(server.url) as api:
        for body in (b"x" * 50_000, pieces()):  # declared, and chunked
            response = api.ask("POST", "/import", content=body, headers=LINES)
            assert response.status_code == 413
        for _ in range(JOBS_RUNNING_MAX + 1):  # those did not take a place for ever
            imported(api, b"x" * 10_000)
    assert list(tmp_path.glob("*.jsonl")) == []


def test_a_client_that_goes_away_leaves_nothing(url, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with running(store=url) as server, Api(server.url) as api:

        def broken():
            yield b"x" * 1_000
            raise ConnectionError

        for _ in range(JOBS_RUNNING_MAX + 1):
            with pytest.raises(ConnectionError):
                api.http.post("/api/v1/import", content=broken(), headers=LINES)
        wait_for(lambda: all(job["state"] == "failed" for job in api.get("/jobs")["data"]))
        assert imported(api, b"x")["state"] == "failed"
    assert list(tmp_path.glob("*.jsonl")) == []


def wait_for(what):
    waiting = threading.Event()
    for _ in range(500):
        if what():
            return
        waiting.wait(0.02)
    raise AssertionError("it did not come true")


def test_an_erasure_drops_the_exports(talks):
    job = finished(talks, talks.post("/exports"))
    talks.delete("/conversations/a")
    assert talks.http.get(job["file"]).status_code == 404
    assert talks.get(f"/jobs/{job['id']}")["file"] is None


def test_a_broken_export_has_no_manifest(talks, monkeypatch):
    real = jsonl.checked_pages

    def breaks(store, key, head, start):
        if key.conversation != "a":
            raise ConflictError("it was erased")
        return real(store, key, head, start)

    monkeypatch.setattr(jsonl, "checked_pages", breaks)
    with pytest.raises(httpx2.RemoteProtocolError):
        talks.http.get("/api/v1/export")
    job = finished(talks, talks.post("/exports"))
    assert (job["state"], job["error"]["status"]) == ("failed", 409)
    assert talks.http.get(f"/api/v1/jobs/{job['id']}/file").status_code == 404


def test_jobs_are_separate_for_each_tenant(url):
    with (
        running(store=url, auth="required") as server,
        Api(server.url, key_for(server, "ann")) as ann,
        Api(server.url, key_for(server, "bob")) as bob,
    ):
        ann.say("c", "hello")
        job = finished(ann, ann.post("/exports"))
        assert [one["id"] for one in ann.get("/jobs")["data"]] == [job["id"]]
        assert bob.get("/jobs")["data"] == []
        for path in ("", "/file", "/events"):
            mine = ann.ask("GET", f"/jobs/{'0' * 16}{path}")
            theirs = bob.ask("GET", f"/jobs/{job['id']}{path}")
            assert theirs.status_code == 404
            assert theirs.content == mine.content.replace(b"0" * 16, job["id"].encode())


# -- the jobs themselves ----------------------------------------------------------------------


class Clock:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now


async def test_slow_uploads_take_no_places_and_wait_for_one():
    jobs, gate, running_ = Jobs(), asyncio.Event(), []

    async def work(job):
        running_.append(job)
        await gate.wait()

    uploads = [jobs.open("t", "import", receiving=True) for _ in range(JOBS_RECEIVING_MAX)]
    with pytest.raises(TooFast, match="uploads are already arriving"):
        jobs.open("t", "import", receiving=True)
    jobs.start(jobs.open("t", "export"), work)
    for job in uploads:
        jobs.start(job, work)
    await asyncio.sleep(0)
    assert len(running_) == JOBS_RUNNING_MAX
    with pytest.raises(TooFast, match="already running"):
        jobs.open("t", "export")
    gate.set()
    await asyncio.wait(set(jobs._tasks.values()))
    assert {job.state for job in jobs.all("t")} == {"done"}
    assert len(running_) == len(uploads) + 1


async def test_concurrent_and_remembered_jobs_are_limited():
    clock, gate = Clock(), asyncio.Event()
    jobs = Jobs(clock=clock)

    async def work(_):
        await gate.wait()
        return {"ok": True}

    running_ = [jobs.open("t", "export") for _ in range(JOBS_RUNNING_MAX)]
    for job in running_:
        jobs.start(job, work)
    with pytest.raises(TooFast):
        jobs.open("t", "export")
    jobs.open("other", "export")  # each tenant has its own
    gate.set()
    await asyncio.wait(set(jobs._tasks.values()))
    assert [job.state for job in running_] == ["done"] * JOBS_RUNNING_MAX
    for _ in range(JOBS_KEPT_MAX):
        jobs.start(jobs.open("t", "export"), work)
        await asyncio.wait(set(jobs._tasks.values()))
    assert len(jobs.all("t")) == JOBS_KEPT_MAX
    with pytest.raises(NotFound):
        jobs.get("t", running_[0].id)
    clock.now += LIFE + timedelta(seconds=1)
    assert jobs.all("t") == []
    assert "t" not in jobs._jobs, "a tenant that has none takes no room"


async def test_an_internal_error_in_a_job_is_reported_without_its_text(caplog):
    jobs = Jobs()

    async def work(_):
        raise RuntimeError("the text of somebody's message")

    job = jobs.open("t", "import")
    jobs.start(job, work)
    await asyncio.wait(set(jobs._tasks.values()))
    assert job.state == "failed"
    assert "somebody" not in json.dumps(job.error)
    assert "job: internal error" in caplog.text


async def test_the_end_of_a_job_is_reported_without_a_delay(monkeypatch):
    monkeypatch.setattr("firnline.server.jobs.JOB_REPORT_SECONDS", 3600)
    jobs, going_on = Jobs(), asyncio.Event()

    async def work(job):
        job.progress(1, 2)
        await going_on.wait()

    job = jobs.open("t", "import")
    jobs.start(job, work)
    told = []
    async with asyncio.timeout(60):
        async for state in watch(job):
            told.append(state.state)
            going_on.set()
    assert told == ["running", "done"]


async def test_the_end_of_the_server_is_the_end_of_its_jobs():
    jobs, upload = Jobs(), ScratchFolder()
    path = upload.path / "upload"
    path.write_text("x")
    waiting, receiving = jobs.open("t", "export"), jobs.open("t", "import")
    receiving.upload = upload
    jobs.start(waiting, lambda _: asyncio.Event().wait())
    await asyncio.sleep(0)
    await jobs.close()
    assert waiting.state == receiving.state == "failed"
    assert not path.parent.exists()


def test_an_export_that_is_made_while_a_conversation_is_erased_is_not_kept(talks, monkeypatch):
    forget, made = Jobs.forget, []

    async def forgotten(jobs, tenant):
        await forget(jobs, tenant)
        if not made:
            made.append(jobs.open(tenant, "export"))
            made[0].file = unnamed_file()
            made[0].file.write(b"of what is being erased")

    monkeypatch.setattr(Jobs, "forget", forgotten)
    talks.delete("/conversations/a")
    (job,) = made
    assert job.file is None
    assert job.state == "failed"
