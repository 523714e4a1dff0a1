"""What becomes of every field of OpenAI's Responses API. Pure data; docs/responses.md shows it.

An endpoint that speaks the Responses API gets what the client sent. For any other endpoint, a
request is translated: then a field without a counterpart is refused, or it has no effect there, and
the header ``X-Firnline-Unused`` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Fate: TypeAlias = Literal["supported", "passed on", "refused", "no effect"]


class Field(NamedTuple):
    """What becomes of a field: for an endpoint of the same protocol, and for any other."""

    native: Fate
    translated: Fate
    note: str = ""


_PASSED: Final = Field("passed on", "refused")
_BOTH: Final = Field("passed on", "supported")
_OURS: Final = Field("supported", "supported")
_OPENAIS: Final = Field("passed on", "no effect")

FIELDS: Final[Mapping[str, Field]] = {
    "access_programs": _PASSED,
    "background": Field("supported", "supported", "poll with `retrieve`; `cancel` ends it"),
    "client_metadata": Field("passed on", "no effect", "sent by Codex"),
    "context_management": Field("passed on", "no effect", "contexts always fit the window"),
    "conversation": Field("supported", "supported", "an id or an object with one"),
    "image": _PASSED,
    "include": Field("passed on", "supported", "what an endpoint does not have is not included"),
    "input": _OURS,
    "instructions": Field("supported", "supported", "of this request only, as at OpenAI"),
    "max_output_tokens": _BOTH,
    "max_tool_calls": Field("passed on", "no effect", "limits tools that are refused"),
    "metadata": _OURS,
    "model": _BOTH,
    "moderation": _PASSED,
    "parallel_tool_calls": _BOTH,
    "previous_response_id": Field("supported", "supported", "not with `conversation`"),
    "prompt": Field("passed on", "refused", "the template is stored at OpenAI"),
    "prompt_cache_key": Field("passed on", "supported", "no effect with Anthropic's endpoint"),
    "prompt_cache_options": _OPENAIS,
    "prompt_cache_retention": _OPENAIS,
    "reasoning": Field("passed on", "supported", "`effort`; the rest has no effect"),
    "safety_identifier": _BOTH,
    "service_tier": _BOTH,
    "store": Field("supported", "supported", "false: no id to retrieve or continue"),
    "stream": _OURS,
    "stream_options": _OPENAIS,
    "temperature": _BOTH,
    "text": Field("passed on", "supported", "`format` and `verbosity`"),
    "tool_choice": Field("passed on", "supported", "of functions and custom tools"),
    "tools": Field("passed on", "supported", "functions, custom tools, namespaces; see below"),
    "top_logprobs": Field("passed on", "supported", "refused with Anthropic's endpoint"),
    "top_p": _BOTH,
    "truncation": Field("passed on", "no effect", "contexts always fit the window"),
    "user": _BOTH,
}
"""Every field of a request to create a response."""

EVENTS_WRITTEN: Final = (
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.content_part.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
    "response.output_item.done",
    "response.completed",
    "response.incomplete",
    "error",
)
"""The events of an answer that is translated. All events of a Responses endpoint are passed on."""
