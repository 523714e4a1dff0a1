"""Paths of a database, and the SQLite library."""

from pathlib import Path

import apsw
import pytest

from firnline.errors import BadURL, StoreError
from firnline.store import SqliteStore
from firnline.store.sqlite import connection
from firnline.store.sqlite.connection import check_filesystem, check_library, filesystem_of

pytestmark = pytest.mark.promise("typed-failure")

MOUNTS = r"""
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
//nas/share /mnt/my\040share cifs rw 0 0
/dev/sdb1 /home/local xfs rw 0 0
garbage
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/x.db", "ext4"),
        ("/home/ana/x.db", "nfs4"),
        ("/home/local/x.db", "xfs"),
        ("/homework/x.db", "ext4"),
        ("/mnt/my share/x.db", "cifs"),
    ],
)
def test_the_file_system_is_the_innermost_mount(path, kind):
    assert filesystem_of(Path(path), MOUNTS) == kind


def test_network_file_systems_are_rejected():
    check_filesystem(Path("/var/lib/x.db"), MOUNTS)
    with pytest.raises(BadURL, match="network file system"):
        check_filesystem(Path("/home/ana/x.db"), MOUNTS)


def test_a_sqlite_that_can_corrupt_is_rejected(monkeypatch):
    check_library()
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.40.1")
    with pytest.raises(StoreError, match="newer apsw"):
        check_library()


@pytest.mark.promise("durable")
async def test_a_driver_that_keeps_snapshots_is_rejected(tmp_path, monkeypatch):
    """As apsw 3.54.0.0 does: what is appended later would be hidden."""
    assert not connection._keeps_snapshots()
    monkeypatch.setattr(connection, "_keeps_snapshots", lambda: True)
    with pytest.raises(StoreError, match=f"apsw {apsw.apsw_version()} keeps the snapshot"):
        await SqliteStore(tmp_path / "x.db").open()
