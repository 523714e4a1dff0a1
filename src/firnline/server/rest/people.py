"""People: whom conversations are with, the facts they state, and their profiles."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from firnline.client.paths import person_path
from firnline.digest.fact import Fact
from firnline.engine.person import Person, Profile
from firnline.server.auth import Administering, Reading, Writing, person_of
from firnline.server.bodies import etag_response, json_response, read_cursor
from firnline.server.rest import responses, schemas
from firnline.server.rest.erasure import without_exports
from firnline.server.rest.openapi import FOUND, problems, router
from firnline.server.rest.path_params import PersonName
from firnline.server.rest.requests import Cursor, Limit

routes = router("people")

_PERSON = "/people/{person}"
AtTime = Annotated[
    str | None,
    Query(max_length=40, description="A time with a zone, or a date: the end of that day in UTC."),
]
FactId = Annotated[str, Path(max_length=64, description="The id of a fact.")]


@routes.get("/people", response_model=schemas.PersonPage, responses=FOUND)
async def list_people(
    request: Request, memory: Reading, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """List the people by name, with the number of their conversations."""
    after = read_cursor(cursor, str) or ""
    own = person_of(request)
    every = [one for one in await memory.people() if own in (None, one.person)]
    found = [one for one in every if one.person > after]
    following = found[limit - 1].person if len(found) > limit else None
    return etag_response(request, responses.page(list(map(_person, found[:limit])), following))


@routes.get(_PERSON, response_model=schemas.Profile, responses=FOUND)
async def get_profile(request: Request, memory: Reading, person: PersonName) -> Response:
    """What holds of a person now: the text that contexts carry, and the facts it rests on."""
    return etag_response(request, _profile(await memory.profile(person)))


@routes.get(f"{_PERSON}/facts", response_model=schemas.Facts, responses=FOUND)
async def list_facts(
    request: Request,
    memory: Reading,
    person: PersonName,
    as_of: AtTime = None,
    known_at: AtTime = None,
    history: Annotated[bool, Query(description="Ended and reverted facts, too.")] = False,
) -> Response:
    """What a person stated in all their conversations, with quotes and times; what holds now.

    `as_of`: what held at that time. `known_at`: what was known then.
    """
    found = await memory.facts(person=person, as_of=as_of, known_at=known_at, history=history)
    return etag_response(request, {"data": list(map(_fact, found))})


@routes.post(
    f"{_PERSON}/facts/{{fact}}/revert", response_model=schemas.Fact, responses=problems(422)
)
async def revert_fact(memory: Writing, person: PersonName, fact: FactId) -> Response:
    """Withdraw a fact: what it replaced holds again. Both are kept."""
    return json_response(_fact(await memory.revert_fact(person, fact)))


@routes.delete(_PERSON, response_model=schemas.ErasedPerson)
async def erase_person(request: Request, memory: Administering, person: PersonName) -> Response:
    """Erase a person: conversations, their branches, facts, profile and prompts.

    Returns one certificate. Finished exports of the tenant are deleted too.
    """
    async with without_exports(request):
        erased = await memory.erase_person(person)
    return json_response(responses.plain(erased))


def _person(one: Person) -> dict[str, Any]:
    return responses.fill(schemas.Person, one, url=person_path(one.person))


def _profile(one: Profile) -> dict[str, Any]:
    facts = list(map(_fact, one.facts))
    return responses.fill(schemas.Profile, one, facts=facts, url=person_path(one.person))


def _fact(one: Fact) -> dict[str, Any]:
    return responses.fill(schemas.Fact, one)
