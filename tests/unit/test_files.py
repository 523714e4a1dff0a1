"""Atomic file writes: complete or not at all."""

import os
import stat
import threading

import pytest

from firnline.errors import InputError
from firnline.store.files import atomic_write


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("old")
    with atomic_write(path) as half_done:
        half_done.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [found.name for found in tmp_path.iterdir()] == ["a.jsonl"]


def test_what_fails_leaves_everything_as_it_was(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("old")
    beside = tmp_path / "a.jsonl.partial"
    beside.write_text("somebody's own")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as half_done:
        half_done.write_text("new")
        raise ZeroDivisionError
    assert (path.read_text(), beside.read_text()) == ("old", "somebody's own")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.jsonl", "a.jsonl.partial"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("target")
    with atomic_write(link) as half_done:
        half_done.write_text("new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    dangling = tmp_path / "dangling"
    dangling.symlink_to("later")
    with atomic_write(dangling) as half_done:
        half_done.write_text("there")
    assert (tmp_path / "later").read_text() == "there"


def test_a_pipe_is_written_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with atomic_write(pipe) as target, target.open("w") as file:
        file.write("all of it")
    reader.join(30)
    assert read == ["all of it"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_failed_write_is_reported(tmp_path):
    with pytest.raises(InputError, match="is a folder"), atomic_write(tmp_path):
        pass
    with (
        pytest.raises(InputError, match="cannot be written"),
        atomic_write(tmp_path / "no" / "where"),
    ):
        pass
    (tmp_path / "there").touch()
    with (
        pytest.raises(InputError, match="already exists"),
        atomic_write(tmp_path / "there", new=True),
    ):
        pass
    (tmp_path / "link").symlink_to("nowhere")
    with (
        pytest.raises(InputError, match="already exists"),
        atomic_write(tmp_path / "link", new=True),
    ):
        pass


def test_a_file_gets_the_usual_permissions(tmp_path):
    with atomic_write(tmp_path / "a") as half_done:
        half_done.write_text("x")
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode
