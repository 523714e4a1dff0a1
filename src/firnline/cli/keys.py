"""API keys: made, listed, revoked and rotated here and nowhere else, never over the network."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final, TypeVar

from firnline.cli.arguments import Command
from firnline.cli.output import print_json
from firnline.cli.terminal import plain, table
from firnline.errors import FirnlineError, InputError
from firnline.log.message import utc_now
from firnline.memory import DEFAULT_TENANT
from firnline.server.keys import SCOPES, ApiKey, Keys
from firnline.store import missing_file, open_store

T = TypeVar("T")
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DAYS_MAX: Final = 36_500


def _create(options: argparse.Namespace) -> None:
    scopes = [scope for scope in re.split(r"[,\s]+", options.scopes) if scope]
    expires = _span(options.expires) if options.expires else None

    async def make(keys: Keys) -> tuple[ApiKey, str]:
        return await keys.create(
            options.tenant or DEFAULT_TENANT, name=options.name, scopes=scopes, expires_in=expires
        )

    _show_once(options, *_with_keys(options, make, create=True))


def _rotate(options: argparse.Namespace) -> None:
    overlap = _span(options.overlap)
    key, token = _with_keys(options, lambda keys: keys.rotate(options.key, overlap=overlap))
    _show_once(options, key, token)
    if not options.json:
        until = f"{utc_now() + overlap:%Y-%m-%d %H:%M} UTC"
        print(plain(f"{options.key} is valid until {until} at most."), file=sys.stderr)


def _show_once(options: argparse.Namespace, key: ApiKey, token: str) -> None:
    """The token is all there is on standard output, so that a script can take it from there."""
    if options.json:
        print_json({**_json(key), "key": token})
        return
    print(token)
    ends = f", until {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else ""
    about = f"key {key.id} of tenant {key.tenant}: {', '.join(key.scopes)}{ends}"
    print(plain(about), file=sys.stderr)
    print(
        "It is shown this once: only a hash of it is stored. Clients send it as\n"
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
        raise InputError(f"{text!r}: expected a span such as 90d, 12h or 30m")
    seconds = int(found[1]) * _UNITS[found[2]]
    if seconds > _DAYS_MAX * _UNITS["d"]:
        raise InputError(f"{text}: at most {_DAYS_MAX}d")
    return timedelta(seconds=seconds)


def _with_keys(
    options: argparse.Namespace, work: Callable[[Keys], Awaitable[T]], *, create: bool = False
) -> T:
    """What `work` returns for the keys of the store that the server would use."""
    try:
        from firnline.server import settings  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise FirnlineError('keys are for the server: pip install "firnline[server]"') from error
    chosen = settings.load(options.config, store=options.store)
    missing = missing_file(chosen.store)
    if missing and not create:
        raise InputError(f"there is no store at {missing}; `firnline keys create` makes one")
    secret = chosen.secret.get_secret_value().encode() if chosen.secret else None

    async def run() -> T:
        store = open_store(chosen.store)
        await store.open()
        try:
            return await work(Keys(store, secret=secret))
        finally:
            await store.close()

    return asyncio.run(run())


def add(command: Command) -> None:
    """Tell the parser of these commands."""
    keys = command("keys", _list, "Make, list, revoke and rotate API keys.", store=False)
    actions = keys.add_subparsers(title="actions", required=True, metavar="ACTION")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--store", metavar="URL", help="the store (default: the server's)")
    shared.add_argument("--config", metavar="FILE", help="settings as TOML (firnline.toml)")
    shared.add_argument("--json", action="store_true", help="print JSON, one object a line")

    def action(name: str, run: Callable[..., None], text: str) -> argparse.ArgumentParser:
        added = actions.add_parser(name, help=text, description=text, parents=[shared])
        added.set_defaults(run=run, words="")
        return added

    create = action("create", _create, "Make a key. It is shown once.")
    create.add_argument("--tenant", help=f"whose conversations it opens ({DEFAULT_TENANT})")
    create.add_argument("--name", default="", help="what it is for")
    create.add_argument(
        "--scopes", default="read,write", help=f"some of {', '.join(SCOPES)} (%(default)s)"
    )
    create.add_argument("--expires", metavar="SPAN", help="after so long, such as 90d; else never")

    listed = action("list", _list, "List the keys, revoked ones too; their secrets are not stored.")
    listed.add_argument("--tenant", help="only those of this tenant")

    revoke = action("revoke", _revoke, "Refuse keys from now on, within a second.")
    revoke.add_argument("keys", nargs="+", metavar="ID")

    rotate = action("rotate", _rotate, "Make a key with the same rights; the old one runs out.")
    rotate.add_argument("key", metavar="ID")
    rotate.add_argument(
        "--overlap",
        default="1d",
        metavar="SPAN",
        help="how long the old one stays valid (%(default)s)",
    )
