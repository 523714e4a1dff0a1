"""What is known of projects."""

from __future__ import annotations

import json
from functools import partial

from firnline.log.entry import Project
from firnline.log.message import encode_json
from firnline.store.mongo.connection import Database


async def list_all(database: Database, tenant: str) -> list[Project]:
    """The tenant's projects by name."""
    docs = await database.read(
        lambda: database["projects"].find({"tenant": tenant}).sort("name", 1).to_list()
    )
    return [
        Project(
            doc["name"], doc["status"], doc["schedule"], doc["task"], json.loads(doc["metadata"])
        )
        for doc in docs
    ]


async def save(database: Database, tenant: str, project: Project) -> None:
    """Create or replace a project."""
    known = {"tenant": tenant, "name": project.name}
    new = {
        "status": project.status,
        "schedule": project.schedule,
        "task": project.task,
        "metadata": encode_json(project.metadata),
    }
    await database.read(lambda: database["projects"].update_one(known, {"$set": new}, upsert=True))


async def tenants(database: Database) -> list[str]:
    """Whoever has anything."""
    found: set[str] = set()
    for name in ("conversations", "projects", "cards"):
        found |= set(await database.read(partial(database[name].distinct, "tenant")))
    return sorted(found, key=str.encode)
