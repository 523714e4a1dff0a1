"""The commands for API keys: create, list, revoke, rotate. Keys cannot be managed over HTTP."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final, TypeVar

from firnline.cli.arguments import Command, add_actions, server_options
from firnline.cli.open import needs_extra
from firnline.cli.output import print_json
from firnline.cli.terminal import plain, table
from firnline.errors import InputError
from firnline.log.message import utc_now
from firnline.memory import DEFAULT_TENANT
from firnline.server.keys import NO_TENANT, SCOPES, ApiKey, Keys
from firnline.store import missing_file, open_store
from firnline.store.cards import TenantCards

T = TypeVar("T")
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DAYS_MAX: Final = 36_500


def _create(options: argparse.Namespace) -> None:
    scopes = [scope for scope in re.split(r"[,\s]+", options.scopes) if scope]
    expires = _span(options.expires) if options.expires else None

    async def make(keys: Keys) -> tuple[ApiKey, str]:
        return await keys.create(
            options.tenant or DEFAULT_TENANT,
            name=options.name,
            scopes=scopes,
            expires_in=expires,
            person=options.person,
        )

    _show_once(options, *_with_keys(options, make, create=True))


def _rotate(options: argparse.Namespace) -> None:
    overlap = _span(options.overlap)
    key, token = _with_keys(options, lambda keys: keys.rotate(options.key, overlap=overlap))
    _show_once(options, key, token)
    if not options.json:
        until = f"{utc_now() + overlap:%Y-%m-%d %H:%M} UTC"
        print(
            plain(f"{options.key} stays valid until {until}, or until it expires."), file=sys.stderr
        )


def _show_once(options: argparse.Namespace, key: ApiKey, token: str) -> None:
    """Print the key; standard output holds nothing else, so that scripts can read it."""
    if options.json:
        print_json({**_json(key), "key": token})
        return
    print(token)
    ends = f", until {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else ""
    whose = f"tenant {key.tenant}" if key.person is None else f"{key.person} in {key.tenant}"
    about = f"key {key.id} of {whose}: {', '.join(key.scopes)}{ends}"
    print(plain(about), file=sys.stderr)
    print(
        "It is shown only once: the store keeps a hash of it. Clients send it as\n"
        "  Authorization: Bearer fl_...   (or as the API key of an OpenAI or Anthropic client)",
        file=sys.stderr,
    )


def _list(options: argparse.Namespace) -> None:
    found = _with_keys(options, lambda keys: keys.all(options.tenant))
    if options.json:
        for key in found:
            print_json(_json(key))
    elif found:
        names = ("id", "tenant", "name", "scopes", "state", "created", "expires")
        print(table(names, [_row(key) for key in found]))
    else:
        print("No keys yet. Try: firnline keys create --name 'my application'")


def _row(key: ApiKey) -> tuple[str, ...]:
    return (
        key.id,
        key.tenant,
        key.name,
        ", ".join(key.scopes),
        key.state(utc_now()),
        f"{key.created_at:%Y-%m-%d %H:%M}",
        f"{key.expires_at:%Y-%m-%d %H:%M}" if key.expires_at else "never",
    )


def _revoke(options: argparse.Namespace) -> None:
    async def revoke(keys: Keys) -> list[ApiKey]:
        return [await keys.revoke(key_id) for key_id in options.keys]

    for key in _with_keys(options, revoke):
        if options.json:
            print_json(_json(key))
        else:
            print(plain(f"key {key.id} of tenant {key.tenant} is revoked"))


def _json(key: ApiKey) -> dict[str, Any]:
    fields = {**asdict(key), "state": key.state(utc_now())}
    del fields["digest"]
    return fields


def _span(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,9})([smhdw])", text.strip())
    if found is None:
        raise InputError(f"{text!r}: expected a duration such as 90d, 12h, or 30m")
    seconds = int(found[1]) * _UNITS[found[2]]
    if seconds > _DAYS_MAX * _UNITS["d"]:
        raise InputError(f"{text}: the limit is {_DAYS_MAX}d")
    return timedelta(seconds=seconds)


def _with_keys(
    options: argparse.Namespace, work: Callable[[Keys], Awaitable[T]], *, create: bool = False
) -> T:
    """Run `work` with the keys of the store that the server would use."""
    with needs_extra("the server", "server"):
        from firnline.server import settings  # noqa: PLC0415 - an optional extra
    chosen = settings.load(options.config, store=options.store)
    missing = missing_file(chosen.store)
    if missing and not create:
        raise InputError(f"there is no store at {missing}; `firnline keys create` creates one")
    secret = chosen.secret.get_secret_value().encode() if chosen.secret else None

    async def run() -> T:
        store = open_store(chosen.store)
        await store.open()
        try:
            return await work(Keys(TenantCards(store, NO_TENANT), secret=secret))
        finally:
            await store.close()

    return asyncio.run(run())


def add(command: Command) -> None:
    """Add these commands to the parser."""
    keys = command("keys", _list, "Create, list, revoke, and rotate API keys.", store=False)
    shared = server_options()
    shared.add_argument("--store", metavar="URL", help="the store (default: the server's setting)")
    action = add_actions(keys, shared)

    create = action("create", _create, "Create a key. It is shown only once.")
    create.add_argument(
        "--tenant", help=f"the tenant it gives access to (default: {DEFAULT_TENANT})"
    )
    create.add_argument("--person", help="only for this person's conversations and facts")
    create.add_argument("--name", default="", help="a description, shown in the list")
    create.add_argument(
        "--scopes", default="read,write", help=f"any of {', '.join(SCOPES)} (default: %(default)s)"
    )
    create.add_argument("--expires", metavar="DURATION", help="for example 90d (default: never)")

    listed = action("list", _list, "List all keys, including revoked ones.")
    listed.add_argument("--tenant", help="only keys of this tenant")

    revoke = action("revoke", _revoke, "Revoke keys; takes effect within a second.")
    revoke.add_argument("keys", nargs="+", metavar="ID")

    rotate = action("rotate", _rotate, "Create a key with the same rights; the old one expires.")
    rotate.add_argument("key", metavar="ID")
    rotate.add_argument(
        "--overlap",
        default="1d",
        metavar="DURATION",
        help="how long the old key stays valid (default: %(default)s)",
    )
