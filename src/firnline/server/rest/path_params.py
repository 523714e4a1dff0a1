"""Names in paths as route parameters; see `firnline.client.paths` for the encoding."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path

from firnline.client.paths import RULE, unescape_name
from firnline.server.limits import PATH_NAME_CHARS_MAX


def _conversation(
    conversation: Annotated[
        str,
        Path(
            description=f"The conversation's name. {RULE}",
            min_length=1,
            max_length=PATH_NAME_CHARS_MAX,
            examples=["support-4711"],
        ),
    ],
) -> str:
    return unescape_name(conversation)


def _project(
    project: Annotated[
        str,
        Path(
            description=f"The project's name. {RULE}",
            min_length=1,
            max_length=PATH_NAME_CHARS_MAX,
            examples=["garden"],
        ),
    ],
) -> str:
    return unescape_name(project)


def _person(
    person: Annotated[
        str,
        Path(
            description=f"The person's name. {RULE}",
            min_length=1,
            max_length=PATH_NAME_CHARS_MAX,
            examples=["ana"],
        ),
    ],
) -> str:
    return unescape_name(person)


Conversation = Annotated[str, Depends(_conversation)]
"""The name of a conversation in the path."""
PersonName = Annotated[str, Depends(_person)]
"""The name of a person in the path."""
ProjectName = Annotated[str, Depends(_project)]
"""The name of a project in the path."""
