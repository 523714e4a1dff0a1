"""Random messages for property tests."""

from hypothesis import strategies as st

from firnline import Message, Part, ToolCall
from firnline.log.message import from_microseconds

anything = st.text(st.characters(), max_size=60)  # surrogates and NUL too
clean = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)

_floats = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | _floats | clean,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(clean, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(clean, json_values, max_size=3)
times = st.integers(-(10**15), 10**16).map(from_microseconds)

_KNOWN = {"role", "content", "name", "tool_calls", "tool_call_id"}
openai_parts = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, clean),
    st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, clean),
    st.builds(lambda more: {**more, "type": "brand_new"}, json_objects),
)
openai_calls = st.builds(
    lambda i, name, arguments, more: {
        "id": i,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **{key: value for key, value in more.items() if key not in {"id", "type", "function"}},
    },
    clean,
    clean,
    clean,
    json_objects,
)
openai_messages = st.builds(
    lambda role, known, extra: {
        "role": role,
        **known,
        **{key: value for key, value in extra.items() if key not in _KNOWN},
    },
    st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    st.fixed_dictionaries(
        {},
        optional={
            "content": st.none() | clean | st.lists(openai_parts, max_size=3),
            "name": st.none() | clean,
            "tool_calls": st.none() | st.lists(openai_calls, max_size=2),
            "tool_call_id": st.none() | clean,
            "refusal": st.none() | clean,
        },
    ),
    json_objects,
)

messages = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    content=st.none() | clean | st.lists(openai_parts.map(Part), max_size=3).map(tuple),
    name=st.none() | clean,
    tool_calls=st.lists(openai_calls.map(ToolCall), max_size=2).map(tuple),
    tool_call_id=st.none() | clean,
    metadata=json_objects,
    created_at=st.none() | times,
    extra=json_objects,
)
