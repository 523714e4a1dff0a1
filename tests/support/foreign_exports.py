"""Files as other programs write them, with invented text: samples, and exports of any size."""

import json
import random
import zipfile
from datetime import UTC, datetime, timedelta

WORDS = [
    "glacier",
    "tea",
    "ferry",
    "Thursday",
    "budget",
    "ladder",
    "kitchen",
    "window",
    "paint",
    "garden",
    "invoice",
    "train",
    "seven",
    "blue",
    "harbour",
    "violin",
    "recipe",
    "salt",
    "cousin",
    "market",
    "engine",
    "letter",
    "winter",
    "ticket",
    "yellow",
    "bridge",
]
START = datetime(2025, 3, 1, 9, 0, tzinfo=UTC)


def dumped(value):
    return json.dumps(value, ensure_ascii=False).encode()


def lines(values):
    return b"".join(dumped(value) + b"\n" for value in values)


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


# -- ChatGPT ----------------------------------------------------------------------------------


def node(key, parent, role="user", text="", *, children=(), **more):
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    message = {
        "id": key,
        "author": {"role": role, "name": more.pop("name", None), "metadata": {}},
        "create_time": START.timestamp() + len(key),
        "content": content,
        "status": "finished_successfully",
        "weight": 1.0,
        "recipient": "all",
        "metadata": {},
        **more,
    }
    return {"id": key, "parent": parent, "children": list(children), "message": message}


def chatgpt(nodes, current, key="conv-1", title="Tea"):
    mapping = {one["id"]: one for one in nodes}
    for one in nodes:
        if one["parent"] in mapping and one["id"] not in mapping[one["parent"]]["children"]:
            mapping[one["parent"]]["children"].append(one["id"])
    return {
        "id": key,
        "conversation_id": key,
        "title": title,
        "create_time": START.timestamp(),
        "update_time": START.timestamp() + 60,
        "current_node": current,
        "mapping": mapping,
    }


def branched(key="conv-1"):
    """A conversation with a regenerated answer and an edited question."""
    return chatgpt(
        [
            {"id": "root", "parent": None, "children": [], "message": None},
            node("q1", "root", text="Which tea is good in the evening?"),
            node("a1", "q1", "assistant", "Rooibos; it has no caffeine."),
            node("q2", "a1", text="And in the morning?"),
            node("a2-old", "q2", "assistant", "Coffee."),
            node("a2-new", "q2", "assistant", "Assam, with milk."),
            node("q1-edited", "root", text="Which tea helps me sleep?"),
            node("a1-edited", "q1-edited", "assistant", "Camomile."),
        ],
        "a2-new",
        key,
    )


HIDDEN = {"is_visually_hidden_from_conversation": True}


def with_tool():
    code = {"content_type": "code", "language": "python", "text": "print(6 * 7)"}
    output = {"content_type": "execution_output", "text": "42"}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "multiply"}]}
    picture = {
        "content_type": "multimodal_text",
        "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"},
            "What is six times seven, as in the picture?",
        ],
    }
    return chatgpt(
        [
            node("s", None, "system", ""),
            node("u", "s", content=picture),
            node("t", "u", "assistant", content=thoughts),
            node("c", "t", "assistant", content=code, recipient="python"),
            node("r", "c", "tool", content=output, name="python"),
            node("r2", "r", "tool", "and a plot", name="python"),
            node("w", "r2", "assistant", content={"content_type": "brand_new", "thing": 1}),
            node(
                "h", "w", "user", "hidden", metadata={"is_visually_hidden_from_conversation": True}
            ),
            node("a", "h", "assistant", "42."),
        ],
        "a",
        "conv-2",
    )


def long_chat(number, rng, kilobytes):
    """A conversation of about so many kilobytes, with a branch now and then."""
    nodes = [{"id": "root", "parent": None, "children": [], "message": None}]
    size, before, turn = 0, "root", 0
    while size < kilobytes * 1024:
        text = " ".join(rng.choices(WORDS, k=rng.randrange(5, 40)))
        answer = " ".join(rng.choices(WORDS, k=rng.randrange(60, 300)))
        question, said = f"{number}-{turn}-q", f"{number}-{turn}-a"
        nodes += [node(question, before, text=text), node(said, question, "assistant", answer)]
        if turn and rng.random() < 0.05:
            nodes.append(node(f"{number}-{turn}-b", question, "assistant", answer[::-1]))
        before, turn = said, turn + 1
        size += len(text) + len(answer) + 700
    return chatgpt(nodes, before, f"c{number:06}", f"Chat {number}")


def chatgpt_export(path, megabytes, shards=1, seed=1, kilobytes=60):
    """A zip of about so many megabytes, unpacked; returns how many conversations it has."""
    rng = random.Random(seed)
    number = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("user.json", dumped({"id": "user-1", "email": "sam@example.org"}))
        for shard in range(shards):
            name = "conversations.json" if shards == 1 else f"conversations-{shard:03}.json"
            written, comma = 0, b"["
            with archive.open(name, "w", force_zip64=True) as file:
                while written < megabytes * 1024**2 / shards:
                    data = dumped(long_chat(number, rng, kilobytes))
                    file.write(comma + data)
                    written, comma, number = written + len(data), b",\n", number + 1
                file.write(b"]")
    return number


# -- the others -------------------------------------------------------------------------------

ROOT = "00000000-0000-4000-8000-000000000000"


def at(minutes):
    return (START + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def claude_message(key, sender, text, parent=None, minutes=0, **more):
    message = {
        "uuid": key,
        "text": text,
        "content": [{"type": "text", "text": text}],
        "sender": sender,
        "created_at": at(minutes),
        "attachments": [],
        "files": [],
        **more,
    }
    return message | ({"parent_message_uuid": parent} if parent else {})


def claude(messages, key="cl-1", name="Ladders"):
    about = {"uuid": key, "name": name, "created_at": at(0), "updated_at": at(9)}
    return {**about, "account": {"uuid": "me"}, "chat_messages": messages}


CLAUDE = [
    claude(
        [
            claude_message("m1", "human", "How long is the ladder?", ROOT, 0),
            claude_message("m2", "assistant", "I do not know.", "m1", 1),
            claude_message(
                "m3",
                "assistant",
                "Four metres.",
                "m1",
                2,
                content=[
                    {"type": "thinking", "thinking": "look it up"},
                    {"type": "tool_use", "name": "search", "input": {"query": "ladder"}},
                    {
                        "type": "tool_result",
                        "name": "search",
                        "content": [{"type": "text", "text": "ladder: 4 m"}],
                    },
                    {"type": "text", "text": "Four metres."},
                ],
            ),
            claude_message(
                "m4",
                "human",
                "And this one?",
                "m3",
                3,
                attachments=[{"file_name": "list.txt", "extracted_content": "red ladder: 2 m"}],
                files=[{"file_uuid": "f-1", "file_name": "ladder.png"}],
            ),
        ]
    ),
    claude([claude_message("n1", "human", "Hello", minutes=5)], "cl-2", ""),
]

GEMINI = [
    {
        "header": "Gemini Apps",
        "title": "Prompted Which ferry goes on Sunday?",
        "time": "2025-03-02T10:00:00.000Z",
        "products": ["Gemini Apps"],
        "safeHtmlItem": [
            {"html": "<p>The <b>noon</b> ferry.</p><ul><li>12:00 &amp; 14:00</li></ul>"}
        ],
    },
    {
        "header": "Gemini Apps",
        "title": "Used an Assistant feature",
        "time": "2025-03-01T18:00:00.000Z",
        "products": ["Gemini Apps"],
    },
    {
        "header": "Gemini Apps",
        "title": "Prompted And back?",
        "time": "2025-03-01T10:05:00.000Z",
        "products": ["Gemini Apps"],
        "safeHtmlItem": [{"html": "<p>At five.</p>"}],
    },
    {
        "header": "Gemini Apps",
        "title": "Prompted Is there a ferry?",
        "time": "2025-03-01T10:00:00.000Z",
        "products": ["Gemini Apps"],
        "safeHtmlItem": [{"html": "<p>Yes.</p>"}],
    },
    {"header": "Search", "title": "Searched for ferry", "time": at(0), "products": ["Search"]},
]


def code_line(kind, key, parent, content, **more):
    message = {"role": kind, "content": content}
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": "s-1",
        "type": kind,
        "message": message,
        "uuid": key,
        "timestamp": at(0),
        **more,
    }


CLAUDE_CODE = [
    {"type": "summary", "summary": "Painting the window", "leafUuid": "a3"},
    code_line("user", "u1", None, "Paint the window."),
    code_line(
        "assistant",
        "a1",
        "u1",
        [
            {"type": "text", "text": "I look for paint."},
            {"type": "tool_use", "id": "t1", "name": "Grep", "input": {"pattern": "paint"}},
        ],
    ),
    code_line(
        "assistant", "a1b", "a1", [{"type": "tool_use", "id": "t2", "name": "Ls", "input": {}}]
    ),
    code_line(
        "user", "r1", "a1", [{"type": "tool_result", "tool_use_id": "t1", "content": "blue"}]
    ),
    code_line("user", "r2", "a1b", [{"type": "tool_result", "tool_use_id": "t2", "content": "x"}]),
    code_line("user", "side", None, "look in the shed", isSidechain=True),
    code_line("assistant", "side2", "side", [{"type": "text", "text": "empty"}], isSidechain=True),
    code_line("assistant", "a2", "r2", [{"type": "text", "text": "Blue it is."}]),
    code_line("user", "u2", "a2", "No, stop."),
    {"type": "file-history-snapshot", "messageId": "x"},
    code_line("user", "u2-again", "a2", "Green, please."),
    code_line("assistant", "a3", "u2-again", [{"type": "text", "text": "Green it is."}]),
]

CODEX = [
    {
        "timestamp": at(0),
        "type": "session_meta",
        "payload": {"id": "cx-1", "cwd": "/home/sam/shed"},
    },
    {"timestamp": at(0), "type": "turn_context", "payload": {"model": "m"}},
    {
        "timestamp": at(1),
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "List the shed."}],
        },
    },
    {"timestamp": at(1), "type": "event_msg", "payload": {"type": "user_message"}},
    {
        "timestamp": at(2),
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "shell",
            "arguments": '{"command":["ls"]}',
            "call_id": "call_1",
        },
    },
    {
        "timestamp": at(2),
        "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": "call_1", "output": "ladder paint"},
    },
    {
        "timestamp": at(3),
        "type": "response_item",
        "payload": {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "Two things."}],
            "encrypted_content": "xyz",
        },
    },
    {
        "timestamp": at(3),
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "A ladder and paint."}],
        },
    },
]
CODEX_OLD = [
    {"id": "cx-0", "timestamp": at(0), "instructions": None},
    {"record_type": "state"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Old?"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
]

FINETUNE = [
    {"messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]},
    {
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "Time?"},
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "clock", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "12:00"},
            {"role": "assistant", "content": "Noon.", "weight": 1},
        ],
        "tools": [{"type": "function", "function": {"name": "clock"}}],
    },
]

SHAREGPT = [
    {
        "id": "abc_0",
        "conversations": [
            {"from": "system", "value": "You are kind."},
            {"from": "human", "value": "Hi"},
            {"from": "gpt", "value": "Hello!"},
            {"from": "observation", "value": "rain"},
        ],
    },
    {"id": "abc_0", "conversations": [{"from": "human", "value": "Another with that id"}]},
]

LANGCHAIN = [
    {"type": "system", "data": {"content": "Be short.", "type": "system"}},
    {"type": "human", "data": {"content": "Rain?", "type": "human", "id": "h-1"}},
    {
        "type": "ai",
        "data": {
            "content": "",
            "type": "ai",
            "id": "run-1",
            "tool_calls": [{"name": "sky", "args": {"place": "here"}, "id": "c1"}],
        },
    },
    {"type": "tool", "data": {"content": "grey", "type": "tool", "tool_call_id": "c1"}},
    {"type": "ai", "data": {"content": "Soon.", "type": "ai", "id": "run-2"}},
]
LANGCHAIN_DUMPED = [
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "Rain?", "type": "human"},
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {"content": [{"type": "text", "text": "Soon."}], "tool_calls": []},
    },
]


def telegram_message(key, text, who="Ana", minutes=0, **more):
    return {
        "id": key,
        "type": "message",
        "date": "2025-03-01T10:00:00",
        "date_unixtime": str(int((START + timedelta(minutes=minutes)).timestamp())),
        "from": who,
        "from_id": f"user{len(who)}",
        "text": text,
        "text_entities": [],
        **more,
    }


TELEGRAM_CHAT = {
    "name": "Ana",
    "type": "personal_chat",
    "id": 4711,
    "messages": [
        {"id": 1, "type": "service", "date": "2025-03-01T10:00:00", "action": "create_group"},
        telegram_message(2, "Did you see the ferry?"),
        telegram_message(3, ["Yes, ", {"type": "link", "text": "https://ferry.example"}], "Bob", 1),
        telegram_message(4, "", "Bob", 2, photo="photos/1.jpg"),
        telegram_message(5, "Nice.", minutes=3, reply_to_message_id=4),
        {"id": 6, "type": "wonder", "date": "2025-03-01T10:00:00"},
    ],
}
TELEGRAM = {
    "about": "here is the data",
    "personal_information": {"user_id": 1},
    "chats": {"about": "chats", "list": [TELEGRAM_CHAT, {**TELEGRAM_CHAT, "id": 12, "name": "B"}]},
}

WHATSAPP_IOS = (
    "[13/01/2025, 10:01:02] Ana Maria: hello\r\n"
    "second line\r\n"
    "\u200e[13/01/2025, 10:01:30] Bob: \u200eimage omitted\r\n"
    "[13/01/2025, 10:02:00] \u200eBob: 10:30 at the ferry: ok?\r\n"
    "[14/01/2025, 09:00:00] Ana Maria: ok\r\n"
    "[14/01/2025, 09:00:00] Ana Maria: ok\r\n"
)
WHATSAPP_ANDROID = (
    "1/13/25, 9:05\u202fPM - Messages and calls are end-to-end encrypted.\n"
    "1/13/25, 9:06\u202fPM - Ana: late\n"
    "1/14/25, 12:00\u202fAM - Bob: midnight\n"
)
WHATSAPP_GERMAN = "13.01.25, 21:05 - Änne: spät\n14.01.25, 07:00 - Bob: früh\n"
WHATSAPP_FINNISH = "[13.1.2025 klo 14.08.18] Matti: hei\n"
WHATSAPP_ISO = "2025-01-13, 14:08 - Ana: iso\n"

MEM0 = {
    "results": [
        {
            "id": "mem-2",
            "memory": "Prefers the noon ferry",
            "hash": "x",
            "created_at": "2025-03-02T10:00:00-08:00",
            "user_id": "sam",
        },
        {
            "id": "mem-1",
            "memory": "Is called Sam",
            "created_at": "2025-03-01T10:00:00-08:00",
            "user_id": "sam",
            "categories": ["personal_details"],
        },
        {"id": "mem-3", "memory": "Speaks Finnish", "user_id": "ana", "agent_id": "guide"},
    ],
    "relations": [],
}

SAMPLES = {
    "chatgpt": dumped([branched(), with_tool()]),
    "claude": dumped(CLAUDE),
    "gemini": dumped(GEMINI),
    "claude_code": lines(CLAUDE_CODE),
    "codex": lines(CODEX),
    "finetune": lines(FINETUNE),
    "sharegpt": dumped(SHAREGPT),
    "langchain": dumped(LANGCHAIN),
    "telegram": dumped(TELEGRAM),
    "whatsapp": WHATSAPP_IOS.encode(),
    "mem0": dumped(MEM0),
}
