"""The command line: the same verbs as the library. Tables for people, --json for machines."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final, TextIO

from firnline import __version__
from firnline.errors import (
    BadURL,
    ConflictError,
    FirnlineError,
    InputError,
    StoreCorrupt,
    StoreError,
    UnknownConversation,
)
from firnline.log import Entry, Head
from firnline.message import ROLES, Message, format_time
from firnline.protocols import Progress
from firnline.store import missing_file
from firnline.sync import Memory
from firnline.terminal import cut, plain, progress_bar, table
from firnline.wire import load_json, load_openai

DEFAULT_STORE: Final = "sqlite:///firnline.db"

EXIT_CODES: Final = """exit codes:
  0  done; everything checked is whole
  1  damage was found (verify, doctor)
  2  the command or its input is wrong
  3  there is no such conversation
  4  a conflict: somebody else was first
  5  the store cannot be used (locked, full, read-only, foreign, too new)
  6  the store is damaged
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that knows only ASCII
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    words: list[str] | None = getattr(options, options.words) if options.words else None
    if words is None or any(word.startswith("-") for word in rest):
        options = parser.parse_args(arguments)  # complains about the rest, if there is any
    else:
        words += rest  # argparse takes words behind an option for strangers
    try:
        code = int(options.run(options) or 0)
        sys.stdout.flush()  # now, while a full disk can still be reported
    except FirnlineError as error:
        _complain(error, as_json=options.json)
        return _exit_code(error)
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"firnline: the output cannot be written: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return code


def _exit_code(error: FirnlineError) -> int:
    codes: tuple[tuple[type[FirnlineError], int], ...] = (
        (UnknownConversation, 3),
        (BadURL, 2),
        (InputError, 2),
        (ConflictError, 4),
        (StoreCorrupt, 6),
        (StoreError, 5),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), 1)


def _complain(error: FirnlineError, *, as_json: bool) -> None:
    if as_json:
        problem = {"error": error.code, "message": str(error), "retryable": error.retryable}
        print(json.dumps(problem, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"firnline: {plain(str(error))}", file=sys.stderr)


# -- the commands -----------------------------------------------------------------------------


def _append(options: argparse.Namespace) -> None:
    text = " ".join(options.text) if options.text else _standard_input().read().removesuffix("\n")
    if options.openai:
        messages = load_openai(load_json(text))
    else:
        if not text and not options.text:
            raise InputError("there is no message: give one, or pipe one in")
        messages = [Message(options.role, text, options.name, tool_call_id=options.tool_call_id)]
    with _memory(options, create=True) as memory:
        appended = memory.append(
            options.conversation, messages, idempotency_key=options.idempotency_key
        )
    again = ", stored before" if appended.replayed else ""
    for entry in appended:
        if options.json:
            _print_json({**_entry(entry), "replayed": appended.replayed})
        else:
            print(f"{options.conversation} {entry.seq}: {entry.tokens} tokens, {entry.hash}{again}")


def _show(options: argparse.Namespace) -> None:
    with _memory(options) as memory:
        head = _known(memory, options.conversation)
        first = max(options.first, 0)
        if not options.all:
            first = max(first, head.entries - options.last)
        for start in range(first, head.entries, 1_000):
            for entry in memory.read(options.conversation, first_seq=start, limit=1_000):
                if options.json:
                    _print_json(_entry(entry))
                else:
                    print(_human_entry(entry))
        if not options.json and first > max(options.first, 0):
            print(f"({first:,} earlier entries; --all shows them)", file=sys.stderr)


def _conversations(options: argparse.Namespace) -> None:
    rows = []
    with _memory(options) as memory:
        for head in _all_heads(memory, options.project):
            if options.json:
                _print_json(_head(head))
            rows.append(
                (
                    head.conversation,
                    f"{head.entries:,}",
                    f"{head.archived:,}",
                    f"{head.tokens:,}",
                    f"{head.updated_at:%Y-%m-%d %H:%M}",
                    head.project or "",
                )
            )
    if not options.json and rows:
        names = ("conversation", "entries", "archived", "tokens", "last message", "project")
        print(table(names, rows, right=(1, 2, 3)))
    elif not options.json:
        print("No conversations yet. Try: firnline append hello 'My first message'")


def _search(options: argparse.Namespace) -> None:
    with _memory(options) as memory:
        hits = memory.recall(options.conversation, " ".join(options.query), limit=options.limit)
    for hit in hits:
        if options.json:
            _print_json({"conversation": hit.conversation, "score": hit.score, **_entry(hit.entry)})
        else:
            print(f"{hit.conversation} {_human_entry(hit.entry)}")
    if not hits and not options.json:
        print("Nothing found.")


def _verify(options: argparse.Namespace) -> int:
    damaged = 0
    if options.anchor and len(options.conversations) != 1:
        raise InputError("--anchor belongs to one conversation: name it")
    with _memory(options) as memory:
        names = options.conversations or [head.conversation for head in _all_heads(memory, None)]
        for name in names:
            with _progress(f"verifying {name}") as progress:
                result = memory.verify(name, anchor=options.anchor, progress=progress)
            damaged += not result.ok
            if options.json:
                problems = [str(problem) for problem in result.problems]
                _print_json({**asdict(result), "ok": result.ok, "problems": problems})
            else:
                print(plain(str(result)))
    if not options.json:
        whole = len(names) - damaged
        print(f"{whole:,} of {len(names):,} conversations whole" + (", DAMAGE" * bool(damaged)))
    return 1 if damaged else 0


def _export(options: argparse.Namespace) -> None:
    with _memory(options) as memory, _progress("exporting") as progress:
        manifest = memory.export(
            options.file, conversations=options.conversations or None, progress=progress
        )
    _report(options, f"{options.file}: ", asdict(manifest), ("conversations", "entries", "tokens"))


def _import(options: argparse.Namespace) -> None:
    with _memory(options, create=True) as memory, _progress("importing") as progress:
        manifest = memory.import_(options.file, progress=progress)
    _report(options, f"{options.file}: ", asdict(manifest), ("conversations", "entries", "added"))


def _backup(options: argparse.Namespace) -> None:
    with _memory(options) as memory, _progress("copying") as progress:
        memory.backup(options.file, progress=progress)
    _report(options, f"the store was copied to {options.file}", {"file": options.file}, ())


def _archive(options: argparse.Namespace) -> None:
    with _memory(options) as memory:
        done = memory.archive(options.conversation, keep=options.keep)
    names = ("entries", "segments", "plain_bytes", "stored_bytes")
    _report(options, f"{options.conversation} archived: ", asdict(done), names)


def _restore(options: argparse.Namespace) -> None:
    with _memory(options) as memory:
        restored = memory.restore(options.conversation)
    _report(options, f"{options.conversation} restored: ", {"entries": restored}, ("entries",))


def _erase(options: argparse.Namespace) -> None:
    with _memory(options) as memory:
        head = _known(memory, options.conversation)
        if not options.yes and not _confirmed(head):
            raise InputError("nothing was erased; say --yes to erase without being asked")
        erased = memory.erase(options.conversation)
    fields = {**asdict(erased), "erased_at": format_time(erased.erased_at)}
    _report(options, f"{erased.conversation} erased: ", fields, ("entries", "digests", "tokens"))


def _doctor(options: argparse.Namespace) -> int:
    with _memory(options) as memory:
        if options.rebuild_index:
            _rebuild_index(memory)
        findings = memory.check(thorough=not options.quick)
    if options.json:
        _print_json([finding._asdict() for finding in findings])
    else:
        print(table(("check", "state", "detail"), findings))
    return 1 if any(finding.state == "broken" for finding in findings) else 0


def _rebuild_index(memory: Memory) -> None:
    with _progress("indexing") as progress:
        memory.rebuild_index(progress=progress)


# -- their pieces -----------------------------------------------------------------------------


def _memory(options: argparse.Namespace, *, create: bool = False) -> Memory:
    missing = missing_file(options.store)
    if missing and not create:
        raise InputError(f"there is no store at {missing}; `firnline append` makes one")
    return Memory.open(options.store, tenant=options.tenant)


def _known(memory: Memory, conversation: str) -> Head:
    head = memory.head(conversation)
    if head is None:
        raise UnknownConversation(
            f"there is no conversation {conversation!r}; `firnline conversations` lists them"
        )
    return head


def _all_heads(memory: Memory, project: str | None) -> Iterator[Head]:
    after = ""
    while page := memory.conversations(project=project, after=after, limit=1_000):
        yield from page
        after = page[-1].conversation


def _entry(entry: Entry) -> dict[str, Any]:
    message = entry.message
    return {
        "seq": entry.seq,
        "created_at": format_time(message.created_at) if message.created_at else None,
        "tokens": entry.tokens,
        "tokenizer": entry.tokenizer,
        "hash": entry.hash,
        "archived": entry.archived,
        "metadata": message.metadata,
        "message": message.to_openai(),
    }


def _head(head: Head) -> dict[str, Any]:
    times = {name: format_time(getattr(head, name)) for name in ("created_at", "updated_at")}
    return {**asdict(head), "entries": head.entries, **times}


def _human_entry(entry: Entry) -> str:
    message = entry.message
    when = f"{message.created_at:%Y-%m-%d %H:%M}" if message.created_at else ""
    who = f"{message.role} ({message.name})" if message.name else message.role
    calls = [f"→ {call.name}({cut(call.arguments, 200)})" for call in message.tool_calls]
    text = "\n".join(filter(None, (message.text, *calls)))
    indented = plain(text).replace("\n", "\n     ")
    return f"{entry.seq:>4} {when}  {plain(who)}: {indented}"


def _report(
    options: argparse.Namespace, what: str, fields: dict[str, Any], shown: Sequence[str]
) -> None:
    if options.json:
        _print_json(fields)
    else:
        numbers = ", ".join(f"{fields[name]:,} {name.replace('_', ' ')}" for name in shown)
        print(plain(f"{what}{numbers}"))


def _print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, default=_plain_time))


def _plain_time(value: object) -> str:
    if isinstance(value, datetime):
        return format_time(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _confirmed(head: Head) -> bool:
    if not sys.stdin.isatty():
        return False
    question = f"Erase {head.entries:,} entries of {head.conversation!r} for good? Type its name: "
    return input(question).strip() == head.conversation


def _standard_input() -> TextIO:
    if sys.stdin.isatty():
        print("The message, ended by Ctrl-D:", file=sys.stderr)
    return sys.stdin


@contextmanager
def _progress(what: str) -> Iterator[Progress]:
    with progress_bar(what, sys.stderr) as progress:
        yield progress


# -- the grammar ------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="firnline",
        description="The conversation memory that can prove it lost nothing.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"firnline {__version__}")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--store",
        default=os.environ.get("FIRNLINE_STORE", DEFAULT_STORE),
        metavar="URL",
        help="where the conversations are (default: $FIRNLINE_STORE, else %(default)s)",
    )
    shared.add_argument("--tenant", default="default", help="whose they are (default: %(default)s)")
    shared.add_argument("--json", action="store_true", help="print JSON, one object a line")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[..., int | None], text: str, words: str = ""
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, parents=[shared])
        added.set_defaults(run=run, words=words)
        return added

    _add_reading(command)
    _add_keeping(command)
    return parser


def _add_reading(command: Callable[..., argparse.ArgumentParser]) -> None:
    append = command("append", _append, "Add a message; durable when this returns.", "text")
    append.add_argument("conversation")
    append.add_argument(
        "text", nargs="*", help="the message; without it, standard input (less its last newline)"
    )
    append.add_argument("--openai", action="store_true", help="the text is JSON: OpenAI messages")
    append.add_argument("--role", choices=ROLES, default="user")
    append.add_argument("--name", help="who speaks")
    append.add_argument("--tool-call-id", help="for --role tool: the call this answers")
    append.add_argument("--idempotency-key", metavar="KEY", help="a retry with it adds nothing")

    show = command("show", _show, "Print a conversation, word for word.")
    show.add_argument("conversation")
    show.add_argument("--last", type=int, default=50, help="so many entries (default: %(default)s)")
    show.add_argument("--all", action="store_true", help="all of them")
    show.add_argument("--first", type=int, default=0, metavar="SEQ", help="from this entry on")

    conversations = command("conversations", _conversations, "List the conversations.")
    conversations.add_argument("--project", help="only those of this project")

    search = command("search", _search, "Find entries by their words, best first.", "query")
    search.add_argument("query", nargs="+")
    search.add_argument("--conversation", help="only in this one")
    search.add_argument("--limit", type=int, default=10)

    verify = command("verify", _verify, "Derive every hash again.", "conversations")
    verify.add_argument("conversations", nargs="*", help="which ones; without any, all")
    verify.add_argument("--anchor", metavar="HASH", help="a hash noted earlier; must be in the log")


def _add_keeping(command: Callable[..., argparse.ArgumentParser]) -> None:
    export = command("export", _export, "Write conversations to a file.", "conversations")
    export.add_argument("file")
    export.add_argument("conversations", nargs="*", help="which ones; without any, all")

    imports = command("import", _import, "Read such a file; doing it again adds nothing.")
    imports.add_argument("file")

    backup = command("backup", _backup, "Copy the whole store to a new file, also while in use.")
    backup.add_argument("file")

    archive = command("archive", _archive, "Compress old entries; nothing else changes.")
    archive.add_argument("conversation")
    archive.add_argument("--keep", type=int, default=1_000, help="so many stay live (%(default)s)")

    restore = command("restore", _restore, "Take archived entries back.")
    restore.add_argument("conversation")

    erase = command("erase", _erase, "Destroy a conversation: no byte of it is left.")
    erase.add_argument("conversation")
    erase.add_argument("--yes", action="store_true", help="do not ask")

    doctor = command("doctor", _doctor, "Check the health of the store.")
    doctor.add_argument("--quick", action="store_true", help="do not read every page")
    doctor.add_argument("--rebuild-index", action="store_true", help="make the search index anew")


if __name__ == "__main__":
    sys.exit(main())
