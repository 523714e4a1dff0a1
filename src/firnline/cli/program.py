"""The program: parses the arguments, runs the command, and maps errors to exit codes."""

from __future__ import annotations

import argparse
import gc
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from firnline import __version__
from firnline.cli import (
    benchmark,
    contexts,
    demo,
    digests,
    erase,
    hook,
    important,
    keys,
    log,
    maintenance,
    people,
    proofs,
    search,
    serve,
    telegram,
    worker,
)
from firnline.cli.arguments import shared_options
from firnline.cli.terminal import plain
from firnline.errors import (
    BudgetError,
    ConflictError,
    FirnlineError,
    InputError,
    ModelError,
    StoreCorrupt,
    StoreError,
    UnknownConversation,
    UnknownPerson,
)

EXIT_CODES: Final = """exit codes:
  0  done; nothing checked is damaged
  1  something is damaged or does not work (verify, doctor), or part of a file could not be read
     (import)
  2  the command or its input is invalid
  3  the conversation or person does not exist
  4  conflict: another process changed the conversation first
  5  the store cannot be used (locked, full, read-only, not a store, newer version)
  6  the store is damaged
  7  the required parts of the context do not fit into the budget
  8  the model failed; stored data is unchanged
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    if arguments is None:
        gc.freeze()  # imported modules stay until the process ends
    _open_output()
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    words: list[str] | None = getattr(options, options.words) if options.words else None
    if words is None or any(word.startswith("-") for word in rest):
        options = parser.parse_args(arguments)  # fails if there are unknown arguments
    else:
        words += rest  # argparse does not expect words after an option
    try:
        code = int(options.run(options) or 0)
        sys.stdout.flush()  # now, while a full disk can still be reported
    except FirnlineError as error:
        _print_error(error, as_json=options.json)
        return _exit_code(error)
    except BrokenPipeError:
        # The reader closed the pipe; keep the interpreter from reporting it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"firnline: cannot write the output: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return code


def _open_output() -> None:
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for terminals that only support ASCII


def _exit_code(error: FirnlineError) -> int:
    codes: tuple[tuple[type[FirnlineError], int], ...] = (
        (UnknownConversation, 3),
        (UnknownPerson, 3),
        (InputError, 2),
        (ConflictError, 4),
        (StoreCorrupt, 6),
        (StoreError, 5),
        (BudgetError, 7),
        (ModelError, 8),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), 2)


def _print_error(error: FirnlineError, *, as_json: bool) -> None:
    if as_json:
        problem = {"error": error.code, "message": str(error), "retryable": error.retryable}
        facts = {"context": error.context} if error.context else {}
        print(json.dumps({**problem, **facts}, ensure_ascii=False, default=str), file=sys.stderr)
        return
    print(f"firnline: {plain(str(error))}", file=sys.stderr)
    if isinstance(error, BudgetError):
        print(_budget_advice(error), file=sys.stderr)


def _budget_advice(error: BudgetError) -> str:
    floor, blockers = error.context["floor"], error.context["blockers"]
    ways = [f"allow at least {floor:,} tokens plus the reserve (--budget, --reserve)"]
    ways += ["unpin a message (firnline unpin)"] * bool(blockers.get("pinned"))
    return f"firnline: required parts are never shortened: {', or '.join(ways)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="firnline",
        description="The conversation memory that can prove it lost nothing.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"firnline {__version__}")
    shared = shared_options()
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[..., int | None], text: str, words: str = "", *, store: bool = True
    ) -> argparse.ArgumentParser:
        parents = [shared] if store else []
        added = commands.add_parser(name, help=text, description=text, parents=parents)
        added.set_defaults(run=run, words=words)
        return added

    for topic in (
        log,
        contexts,
        search,
        digests,
        worker,
        serve,
        keys,
        telegram,
        maintenance,
        proofs,
        hook,
        people,
        important,
        erase,
        benchmark,
        demo,
    ):
        topic.add(command)
    return parser
