"""Readers of other programs' files: what is read, what is reported, and no file breaks them."""

import io
import json
import os
from datetime import UTC, datetime
from fnmatch import fnmatch
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.transfer.formats import HTML, OWN, READERS, detect_format
from firnline.transfer.formats.compactions import read_compactions
from firnline.transfer.formats.records import (
    ConversationTree,
    LinearConversation,
    Notes,
    SourceFile,
    TreeNode,
    tree_paths,
)
from support import foreign_exports
from support.message_strategies import clean, json_values

EXAMPLES = 1_000 if os.environ.get("FIRNLINE_TORTURE") else 15


def found(name, data, *, file="x.json", notes=None, **more):
    """Everything a reader gives for these bytes: lines and trees as lists of messages."""
    notes = Notes() if notes is None else notes
    conversations = {}
    for item in READERS[name](SourceFile(file, io.BytesIO(data), **more), notes):
        said = item.messages if isinstance(item, LinearConversation) else _main(item)
        conversations[item.id] = [one.message for one in said]
    return conversations, notes


def _main(tree):
    return [said for name in tree_paths(tree)[0].nodes for said in tree.nodes[name].messages]


def spoken(messages):
    return [(message.role, message.text) for message in messages]


# -- recognition ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", foreign_exports.SAMPLES)
def test_a_format_is_recognized_by_what_is_in_the_file(name):
    assert detect_format(io.BytesIO(foreign_exports.SAMPLES[name])) == name
    assert detect_format(io.BytesIO(b"\xef\xbb\xbf" + foreign_exports.SAMPLES[name])) == name, (
        "with a mark"
    )


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (foreign_exports.dumped(foreign_exports.TELEGRAM_CHAT), "telegram"),
        (foreign_exports.dumped(foreign_exports.branched()), "chatgpt"),
        (foreign_exports.dumped(foreign_exports.LANGCHAIN_DUMPED), "langchain"),
        (foreign_exports.dumped({"messages": foreign_exports.LANGCHAIN}), "langchain"),
        (foreign_exports.dumped(foreign_exports.FINETUNE), "finetune"),
        (json.dumps(foreign_exports.FINETUNE[0], indent=2).encode(), "finetune"),
        (foreign_exports.lines(foreign_exports.SHAREGPT), "sharegpt"),
        (foreign_exports.lines(foreign_exports.CODEX_OLD), "codex"),
        (foreign_exports.dumped(foreign_exports.MEM0["results"]), "mem0"),
        (foreign_exports.WHATSAPP_ANDROID.encode(), "whatsapp"),
        (foreign_exports.WHATSAPP_GERMAN.encode(), "whatsapp"),
        (foreign_exports.WHATSAPP_FINNISH.encode(), "whatsapp"),
        (foreign_exports.WHATSAPP_ISO.encode(), "whatsapp"),
        (b'{"firnline":1,"tenant":"default"}\n', OWN),
        (b"<!doctype html><html>", HTML),
    ],
)
def test_other_spellings_are_recognized_too(data, name):
    assert detect_format(io.BytesIO(data)) == name


@pytest.mark.parametrize(
    "data",
    [
        *(
            b"",
            b"[]",
            b"{}",
            b"[1]",
            b"[[]]",
            b"{",
            b'{"a":',
            b"\xff\xfe",
            b"hello",
            b"[" * 100_000,
        ),
        *(b'{"messages":[]}', b'[{"mapping":1}]', b"null", b'{"memory":"x"}'),
    ],
)
def test_what_is_none_of_them_is_not_recognized(data):
    assert detect_format(io.BytesIO(data)) is None


# -- what readers take ------------------------------------------------------------------------


def test_chatgpt_keeps_the_way_to_the_current_node_and_the_others():
    notes = Notes()
    source = SourceFile("x", io.BytesIO(foreign_exports.dumped([foreign_exports.branched()])))
    (tree,) = READERS["chatgpt"](source, notes)
    main, edited, old = tree_paths(tree)
    assert (main.first, main.nodes) == (None, ("root", "q1", "a1", "q2", "a2-new"))
    assert (edited.parent, edited.nodes) == ("root", ("q1-edited", "a1-edited"))
    assert (old.parent, old.nodes) == ("q2", ("a2-old",))
    assert not notes.not_understood


def test_chatgpt_calls_of_tools_have_their_results():
    conversations, notes = found("chatgpt", foreign_exports.dumped([foreign_exports.with_tool()]))
    user, thought, call, result, more, unknown, answer = conversations["conv-2"]
    assert user.text == "What is six times seven, as in the picture?"
    assert user.content[0].fields["file"]["file_id"] == "file-service://file-1"
    assert thought.content[0].kind == "reasoning"
    assert [(one.name, one.arguments) for one in call.tool_calls] == [("python", "print(6 * 7)")]
    assert (result.role, result.tool_call_id, result.text) == ("tool", call.tool_calls[0].id, "42")
    assert (more.role, more.name) == ("assistant", "python"), "a second result has no call"
    assert unknown.content[0].fields["thing"] == 1, "what is not known is kept as it is"
    assert answer.text == "42."
    assert answer.created_at == datetime(2025, 3, 1, 9, 0, 1, tzinfo=UTC)
    assert {what: noted.count for what, noted in notes.left_out.items()} == {
        "an empty message": 1,
        "a hidden message": 1,
    }
    assert notes.not_understood["content of type 'brand_new', kept unchanged"].examples == [
        "x.json, item 0, conv-2, w"
    ]


def test_chatgpt_calls_keep_results_that_are_empty():
    nothing = {"content_type": "execution_output", "text": ""}
    code = {"content_type": "code", "language": "unknown", "text": '{"name": "x"}'}
    nodes = [
        foreign_exports.node("u", None, text="Write it down."),
        foreign_exports.node(
            "c", "u", "assistant", content=code, recipient="canmore.create_textdoc"
        ),
        foreign_exports.node("r", "c", "tool", "", name="canmore.create_textdoc"),
        foreign_exports.node("d", "r", "assistant", "", recipient="python"),
        foreign_exports.node("s", "d", "tool", content=nothing, name="python"),
        foreign_exports.node("e", "s", "assistant", ""),
        foreign_exports.node("a", "e", "assistant", "Done."),
    ]
    conversations, notes = found(
        "chatgpt", foreign_exports.dumped([foreign_exports.chatgpt(nodes, "a")])
    )
    _, call, result, second, output, answer = conversations["conv-1"]
    assert [one.id for one in (*call.tool_calls, *second.tool_calls)] == ["c", "d"]
    for message, key in ((result, "c"), (output, "d")):
        assert (message.role, message.content, message.tool_call_id) == ("tool", "", key)
    assert answer.text == "Done."
    assert {what: noted.count for what, noted in notes.left_out.items()} == {"an empty message": 1}


def test_chatgpt_calls_have_a_result_on_each_branch():
    code = {"content_type": "code", "language": "python", "text": "dice()"}
    nodes = [
        foreign_exports.node("u", None, text="Throw."),
        foreign_exports.node("c", "u", "assistant", content=code, recipient="python"),
        foreign_exports.node("r1", "c", "tool", "3", name="python"),
        foreign_exports.node("a1", "r1", "assistant", "Three."),
        foreign_exports.node("r2", "c", "tool", "5", name="python"),
        foreign_exports.node("a2", "r2", "assistant", "Five."),
    ]
    source = SourceFile(
        "x", io.BytesIO(foreign_exports.dumped([foreign_exports.chatgpt(nodes, "a2")]))
    )
    (tree,) = READERS["chatgpt"](source, Notes())
    main, other = tree_paths(tree)
    assert (main.nodes, other.nodes) == (("u", "c", "r2", "a2"), ("r1", "a1"))
    for name in ("r1", "r2"):
        (said,) = tree.nodes[name].messages
        assert (said.message.role, said.message.tool_call_id) == ("tool", "c")


def test_claude_takes_apart_what_one_message_holds():
    conversations, notes = found("claude", foreign_exports.dumped(foreign_exports.CLAUDE))
    question, call, result, answer, last = conversations["cl-1"]
    assert question.text == "How long is the ladder?"
    assert call.content[0].kind == "reasoning"
    assert result.tool_call_id == call.tool_calls[0].id
    assert (result.text, answer.text) == ("ladder: 4 m", "Four metres.")
    assert "red ladder: 2 m" in last.text
    assert last.content[-1].fields["file"]["filename"] == "ladder.png"
    assert spoken(conversations["cl-2"]) == [("user", "Hello")]
    assert not notes.not_understood


def test_claude_without_parents_is_a_line():
    messages = [
        foreign_exports.claude_message(
            str(n), "human" if n % 2 else "assistant", f"m{n}", minutes=n
        )
        for n in range(5)
    ]
    conversations, _ = found("claude", foreign_exports.dumped([foreign_exports.claude(messages)]))
    assert [text for _, text in spoken(conversations["cl-1"])] == ["m0", "m1", "m2", "m3", "m4"]


def test_gemini_makes_a_conversation_of_each_day():
    conversations, notes = found("gemini", foreign_exports.dumped(foreign_exports.GEMINI))
    assert spoken(conversations["2025-03-01"]) == [
        ("user", "Is there a ferry?"),
        ("assistant", "Yes."),
        ("user", "And back?"),
        ("assistant", "At five."),
    ]
    assert conversations["2025-03-02"][1].text == "The noon ferry.\n- 12:00 & 14:00"
    assert set(notes.left_out) == {
        "an activity of another product",
        "an activity that is not a question",
    }


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            "<p>So:</p><pre><code>if x:\n    y()\n\n\tz()\n</code></pre><p>Good.</p>",
            "So:\nif x:\n    y()\n\n\tz()\nGood.",
        ),
        ("<pre>\n  a<br>  b</pre>", "  a\n  b"),
        ("<pre><div>a</div><div>  b</div></pre>", "a\n  b"),
        (" a  <p> b</pre> ", "a\nb"),
        (
            "<table><tr><th>Y</th><th>No</th></tr>\n<tr><td>2024</td> <td><p>12</p></td></tr>End",
            "Y | No\n2024 | 12\nEnd",
        ),
        ("<table><tr><td>a<td>\nb\n<tr><td>c<br>d<td></table>e", "a | b\nc d |\ne"),
    ],
)
def test_gemini_keeps_blanks_of_code_and_separates_cells(html, text):
    activity = {**foreign_exports.GEMINI[0], "safeHtmlItem": [{"html": html}]}
    ((_, answer),) = found("gemini", foreign_exports.dumped([activity]))[0].values()
    assert answer.text == text


def test_claude_code_keeps_calls_with_results_and_where_the_user_went_back():
    notes = Notes()
    source = SourceFile("x", io.BytesIO(foreign_exports.lines(foreign_exports.CLAUDE_CODE)))
    tree, side = READERS["claude_code"](source, notes)
    assert (tree.id, tree.title, side.id) == ("s-1", "Painting the window", "s-1/side-side")
    main, dropped = tree_paths(tree)
    said = [one.message for name in main.nodes for one in tree.nodes[name].messages]
    assert [message.role for message in said] == [
        *("user", "assistant", "assistant", "tool", "tool", "assistant", "user", "assistant")
    ]
    assert [said[3].tool_call_id, said[4].tool_call_id] == ["t1", "t2"]
    assert tree.nodes[dropped.nodes[0]].messages[0].message.text == "No, stop."
    assert spoken(one.message for one in side.messages) == [
        ("user", "look in the shed"),
        ("assistant", "empty"),
    ]


def claude_line(key, parent, text="", **more):
    message = {"message": {"role": "user", "content": text}} if text else {"subtype": "other"}
    about = {"type": "user" if text else "system", "uuid": key, "parentUuid": parent}
    return {"sessionId": "s", **about, **message, **more}


@pytest.mark.parametrize(
    "boundary",
    [
        claude_line("x", None, subtype="compact_boundary", logicalParentUuid="not on disk"),
        claude_line("x", None, subtype="compact_boundary", logicalParentUuid="b"),
        claude_line("x", None, subtype="compact_boundary"),
        claude_line("x", "lost"),
    ],
)
def test_claude_code_goes_on_behind_a_compaction_and_a_lost_line(boundary):
    lines = [
        claude_line("a", None, "one"),
        claude_line("b", "a", "two"),
        boundary,
        claude_line("c", "x", "three"),
        claude_line("d", "never there", "four"),
        claude_line("e", None, "from the start"),
    ]
    source = SourceFile("x", io.BytesIO(foreign_exports.lines(lines)))
    (tree,) = READERS["claude_code"](source, Notes())
    paths = [
        [one.message.text for name in path.nodes for one in tree.nodes[name].messages]
        for path in tree_paths(tree, ["a", "b", "c", "d"])
    ]
    assert paths == [["one", "two", "three", "four"], ["from the start"]]


def compactions_in(name, lines):
    return read_compactions(name, SourceFile("x", io.BytesIO(foreign_exports.lines(lines))))


def test_the_compactions_of_claude_code_and_what_it_keeps():
    def compacted(**about):
        return claude_line("x", None, subtype="compact_boundary", compactMetadata=about)

    lines = [claude_line(key, None, key) for key in "abcd"]
    span = {"headUuid": "c", "tailUuid": "d"}
    summary = claude_line("s", "x", "All of it.", isCompactSummary=True)
    (one,) = compactions_in("claude_code", [*lines, compacted(preservedSegment=span), summary])
    assert (one.key, one.summary, one.kept) == ("x", "All of it.", {"c", "d"})
    assert one.before == {*"abcd"}
    listed = compacted(preservedMessages={"allUuids": ["d", "gone"]}, trigger="auto")
    (one,) = compactions_in("claude_code", [*lines, listed])  # its summary is not written yet
    assert (one.summary, one.trigger, one.kept & one.before) == ("", "auto", {"d"})
    (one,) = compactions_in("claude_code", [*lines, summary, claude_line("e", None, "e")])
    assert (one.key, one.before) == ("s", {*"abcd"})  # as older versions wrote it
    assert compactions_in("claude_code", lines) == []


def test_the_compactions_of_codex_and_what_it_keeps():
    def item(text, **more):
        said = {"type": "message", "role": "user", "content": [{"type": "x", "text": text}], **more}
        return {"type": "response_item", "payload": said}

    lines = [item("a", id="msg_1"), item("b"), item("c", id="msg_3"), item("d")]
    stayed = [lines[1]["payload"], {"type": "message", "id": "msg_3"}]
    compacted = {"message": "All of it.", "replacement_history": stayed}
    lines.insert(3, {"type": "compacted", "payload": compacted})
    (one,) = compactions_in("codex", lines)
    assert one == ("3", {"0", "1", "2"}, {"1", "2"}, "All of it.", "")


kinds = st.sampled_from(["user", "system", "compacted", "response_item", "compact_boundary"])
ids = st.sampled_from(["a", "b", "c"])
wild_lines = st.lists(
    st.dictionaries(
        st.sampled_from(
            ["type", "subtype", "uuid", "message", "payload", "isCompactSummary", "compactMetadata"]
        ),
        st.one_of(kinds, ids, json_values),
    ),
    max_size=6,
)


@given(st.sampled_from(["claude_code", "codex"]), wild_lines)
def test_no_transcript_breaks_the_search_for_compactions(name, lines):
    for record in compactions_in(name, [{"type": "compacted"}, *lines]):
        assert isinstance(record.summary, str)


@pytest.mark.parametrize("sample", [foreign_exports.CODEX, foreign_exports.CODEX_OLD])
def test_codex_in_its_new_and_its_old_form(sample):
    conversations, notes = found("codex", foreign_exports.lines(sample))
    assert not notes.not_understood
    if sample is foreign_exports.CODEX_OLD:
        assert spoken(conversations["cx-0"]) == [("user", "Old?"), ("assistant", "Yes.")]
        return
    user, call, result, thought, answer = conversations["cx-1"]
    assert (user.text, answer.text) == ("List the shed.", "A ladder and paint.")
    assert (call.tool_calls[0].name, result.tool_call_id) == ("shell", "call_1")
    assert thought.content[0].fields["thinking"] == "Two things."


def test_fine_tuning_lines_are_messages_as_they_are():
    conversations, notes = found("finetune", foreign_exports.lines(foreign_exports.FINETUNE))
    given = [one["messages"] for one in foreign_exports.FINETUNE]
    assert [[m.to_openai() for m in said] for said in conversations.values()] == given
    assert list(notes.left_out) == ["the field 'tools' of a line"]


def test_sharegpt_with_ids_that_are_not_its_own():
    conversations, _ = found("sharegpt", foreign_exports.dumped(foreign_exports.SHAREGPT))
    assert len(conversations) == 2
    first, second = conversations.values()
    assert [role for role, _ in spoken(first)] == ["system", "user", "assistant", "assistant"]
    assert spoken(second) == [("user", "Another with that id")]


def test_langchain_in_each_way_it_is_dumped():
    conversations, _ = found("langchain", foreign_exports.dumped(foreign_exports.LANGCHAIN))
    (said,) = conversations.values()
    assert [message.role for message in said] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert said[2].tool_calls[0].arguments == '{"place": "here"}'
    assert said[3].tool_call_id == "c1"
    (dumped,) = found("langchain", foreign_exports.dumped(foreign_exports.LANGCHAIN_DUMPED))[
        0
    ].values()
    assert spoken(dumped) == [("user", "Rain?"), ("assistant", "Soon.")]
    two = foreign_exports.lines(
        [{"messages": foreign_exports.LANGCHAIN}, {"messages": foreign_exports.LANGCHAIN_DUMPED}]
    )
    assert len(found("langchain", two)[0]) == 2


def test_langchain_as_langchain_itself_dumps_it():
    messages = pytest.importorskip("langchain_core.messages")
    load = pytest.importorskip("langchain_core.load")
    said = [
        messages.HumanMessage("Rain?", id="h"),
        messages.AIMessage("", tool_calls=[{"name": "sky", "args": {}, "id": "c"}], id="a"),
        messages.ToolMessage("grey", tool_call_id="c"),
    ]
    for dump in (messages.messages_to_dict(said), [load.dumpd(one) for one in said]):
        data = foreign_exports.dumped(dump)
        assert detect_format(io.BytesIO(data)) == "langchain"
        ((human, call, result),) = found("langchain", data)[0].values()
        assert (human.text, call.tool_calls[0].name) == ("Rain?", "sky")
        assert (result.role, result.tool_call_id) == ("tool", "c")


@pytest.mark.parametrize("value", [foreign_exports.TELEGRAM, foreign_exports.TELEGRAM_CHAT])
def test_telegram_one_chat_or_all(value):
    conversations, notes = found("telegram", foreign_exports.dumped(value))
    said = conversations["4711"]
    assert [(m.name, m.text) for m in said] == [
        ("Ana", "Did you see the ferry?"),
        ("Bob", "Yes, https://ferry.example"),
        ("Bob", ""),
        ("Ana", "Nice."),
    ]
    assert said[2].content[0].fields["file"]["file_id"] == "photos/1.jpg"
    assert said[3].metadata["reply_to"] == 4
    assert said[0].created_at == foreign_exports.START
    assert "a message of type 'wonder'" in notes.not_understood
    assert len(conversations) == (1 if value is foreign_exports.TELEGRAM_CHAT else 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            foreign_exports.WHATSAPP_IOS,
            ("Ana Maria", "hello\nsecond line", (2025, 1, 13, 10, 1, 2)),
        ),
        (foreign_exports.WHATSAPP_ANDROID, ("Ana", "late", (2025, 1, 13, 21, 6, 0))),
        (foreign_exports.WHATSAPP_GERMAN, ("Änne", "spät", (2025, 1, 13, 21, 5, 0))),
        (foreign_exports.WHATSAPP_FINNISH, ("Matti", "hei", (2025, 1, 13, 14, 8, 18))),
        (foreign_exports.WHATSAPP_ISO, ("Ana", "iso", (2025, 1, 13, 14, 8, 0))),
        ("2025/1/13 下午2:08 - 安娜: 好\n", ("安娜", "好", (2025, 1, 13, 14, 8, 0))),
    ],
)
def test_whatsapp_in_the_spellings_of_its_languages(text, expected):
    conversations, _ = found("whatsapp", text.encode(), file="WhatsApp Chat with Ana.txt")
    message = conversations["Ana"][0]
    who, what, when = expected
    assert (message.name, message.text) == (who, what)
    assert message.created_at == datetime(*when, tzinfo=UTC)


def test_whatsapp_finds_out_which_number_is_the_day():
    early = "03/04/25, 10:00 - Ana: x\n"
    for late, month in (("25/04/25, 10:00 - Ana: y\n", 4), ("04/25/25, 10:00 - Ana: y\n", 3)):
        conversations, _ = found("whatsapp", (early + late).encode(), file="Ana.txt")
        assert conversations["Ana"][0].created_at.month == month


def test_whatsapp_times_are_in_the_zone_that_is_named():
    data = foreign_exports.WHATSAPP_GERMAN.encode()
    zone = ZoneInfo("Europe/Berlin")
    conversations, notes = found("whatsapp", data, file="_chat.txt", zone=zone, owner="B.zip")
    assert conversations["B"][0].created_at == datetime(2025, 1, 13, 20, 5, tzinfo=UTC)
    assert not notes.left_out


QUOTED = (
    "12/03/2024, 14:05 - Bob: here is the log:\n"
    "2024-03-12 14:05:33 - ERROR: disk full\n"
    "2024-03-12, 14:05 - ERROR: disk full\n"
    "12.03.2024, 14:05 - ERROR: disk full\n"
    "12/03/24, 14:05 - ERROR: disk full\n"
    "12/03/2024, 14:05:33 - ERROR: disk full\n"
    "12/03/2024, 2:05 pm - ERROR: disk full\n"
    "12/03/2024 14:05 - ERROR: disk full\n"
    "[12/03/2024, 14:05] ERROR: disk full\n"
    "41/03/2024, 14:05 - ERROR: disk full\n"
    "12/03/2024, 24:05 - ERROR: disk full\n"
    "what do you think?\n"
    "13/03/2024, 14:07 - Ana: buy a bigger one\n"
)


def test_whatsapp_lines_of_another_style_belong_to_the_message_they_are_in():
    conversations, notes = found("whatsapp", QUOTED.encode(), file="Bob.txt")
    quoted, last = conversations["Bob"]
    assert f"12/03/2024, 14:05 - Bob: {quoted.text}\n" == QUOTED[: QUOTED.index("13/03")]
    assert (last.name, last.text) == ("Ana", "buy a bigger one")
    assert not notes.not_understood
    dates = "[01.04.24, 09:00:00] Ana: When?\n1.4.2024, 10:00 - Zahnarzt: Dr. Weiß\n"
    conversations, _ = found("whatsapp", dates.encode(), file="Ana.txt")
    (message,) = conversations["Ana"]
    assert (message.name, message.text) == ("Ana", "When?\n1.4.2024, 10:00 - Zahnarzt: Dr. Weiß")


@pytest.mark.parametrize("quoted", ['"Team: Q3"', "“Team: Q3”", "„Team: Q3“", "«Team: Q3»"])
def test_whatsapp_notes_that_quote_a_colon_are_notes(quoted):
    start = "13/01/2025, 10:00 - "
    said = ['Bob "B": see', 'Bob 5": it is 3" long', 'Ana: call it "Team: Q3"']
    notes_in_it = (f"Ana created group {quoted}", f'Ana changed "A" to {quoted}')
    text = "".join(f"{start}{line}\n" for line in (*notes_in_it, *said))
    conversations, notes = found("whatsapp", text.encode(), file="Team.txt")
    assert [f"{m.name}: {m.text}" for m in conversations["Team"]] == said
    assert notes.left_out["a notice of WhatsApp, such as who joined"].count == 2


@pytest.mark.parametrize(
    ("first", "second", "expected", "guessed"),
    [
        ("1/2/24, 3:04 PM", "1/3/24, 9:10 AM", (1, 2), "the month"),
        ("1/2/24, 3:04 PM", "2/2/24, 9:10 AM", (1, 2), "the month"),
        ("1/2/24, 3:04 pm", "2/2/24, 9:10 am", (2, 1), "the day"),
        ("01/02/24, 3:04 PM", "02/02/24, 9:10 AM", (2, 1), "the day"),
        ("1/2/24, 3:04 pm", "1/3/24, 9:10 am", (1, 2), "the month"),
        ("01/02/2024, 15:04", "01/03/2024, 09:10", (2, 1), "the day"),
        ("1-2-2024 15:04", "1-3-2024 09:10", (2, 1), "the day"),
        ("1.2.24, 15:04", "1.3.24, 09:10", (2, 1), None),
        ("3/4/24, 3:04 PM", "2/5/24, 9:10 AM", (4, 3), None),
        ("1/2/24, 3:04 PM", "1/13/24, 9:10 AM", (1, 2), None),
        ("2/2/24, 3:04 PM", "3/3/24, 9:10 AM", (2, 2), None),
        ("2024/1/2, 15:04", "2024/1/3, 09:10", (1, 2), None),
    ],
)
def test_whatsapp_says_if_it_guesses_which_number_is_the_day(first, second, expected, guessed):
    text = f"{first} - Bob: hi\n{second} - Ana: ok\n"
    conversations, notes = found("whatsapp", text.encode(), file="Ana.txt", zone=ZoneInfo("CET"))
    time = conversations["Ana"][0].created_at.astimezone(ZoneInfo("CET"))
    assert (time.month, time.day) == expected
    what = f"the order of day and month is ambiguous; {guessed} first is assumed"
    assert list(notes.left_out) == ([what] if guessed else [])


@pytest.mark.parametrize(
    ("file", "owner", "name"),
    [
        ("WhatsApp Chat with Ana.txt", "x", "Ana"),
        ("2024/WhatsApp Chat with 491511.txt", "x", "491511"),
        ("_chat.txt", "WhatsApp Chat - Ana.zip", "Ana"),
        ("_chat.txt", "WhatsApp Chat - Ana", "Ana"),
        ("WhatsApp Chat - Ana/_chat.txt", "chats.zip", "Ana"),
        ("_chat.txt", "Downloads", "Downloads-*"),
        ("Ana/_chat.txt", "chats.zip", "Ana-*"),
        ("_chat.txt", "WhatsApp", "WhatsApp-*"),
        ("_chat (1).txt", "WhatsApp Chat - Ana", "Ana-*"),
        ("_CHAT.TXT", "", "chat-*"),
        ("input", "", "chat-*"),
        ("WhatsApp Chat.txt", "", "chat-*"),
    ],
)
def test_whatsapp_names_tell_chats_apart(file, owner, name):
    starts = ("1.4.24, 10:00 - Ana: a\n", "1.4.24, 10:00 - Ana: b\n")
    names = []
    for text in (*starts, starts[0] + starts[1]):
        ((found_name,),) = [found("whatsapp", text.encode(), file=file, owner=owner)[0]]
        assert fnmatch(found_name, name)
        names.append(found_name)
    assert names[0] == names[2], "a longer export is of the same chat"
    assert (names[0] != names[1]) == name.endswith("*")


def test_mem0_memories_are_those_of_their_user_oldest_first():
    conversations, _ = found("mem0", foreign_exports.dumped(foreign_exports.MEM0))
    assert [m.text for m in conversations["sam"]] == ["Is called Sam", "Prefers the noon ferry"]
    assert conversations["sam"][0].metadata["categories"] == ["personal_details"]
    assert [m.text for m in conversations["ana/guide"]] == ["Speaks Finnish"]


def test_mem0_memories_without_a_user_are_those_of_an_unknown_one():
    memory = {"id": "1", "memory": "Lives in Oslo.", "created_at": "2025-01-01T00:00:00Z"}
    conversations, _ = found("mem0", foreign_exports.dumped([memory]))
    assert list(conversations) == ["unknown"]


# -- what is wrong with a file ----------------------------------------------------------------


@pytest.mark.parametrize("name", foreign_exports.SAMPLES)
def test_a_file_that_is_cut_off_gives_what_it_has_and_a_note(name):
    whole, _ = found(name, foreign_exports.SAMPLES[name])
    data = foreign_exports.SAMPLES[name].rstrip()
    for part in (3, 5, 7, 9):
        conversations, notes = found(name, data[: len(data) * part // 10])
        assert sum(map(len, conversations.values())) <= sum(map(len, whole.values()))
        if name != "whatsapp":  # a text may end anywhere
            assert any("JSON" in what for what in notes.not_understood), part
            assert sum(noted.count for noted in notes.not_understood.values()) <= 3


def test_a_line_that_is_not_json_is_noted_and_the_rest_is_read():
    data = foreign_exports.lines(foreign_exports.FINETUNE[:1]) + b'{"messages": [oops\n' + b"\xff\n"
    conversations, notes = found(
        "finetune", data + foreign_exports.lines(foreign_exports.FINETUNE[1:])
    )
    assert len(conversations) == 2
    noted = notes.not_understood["a line that is not JSON"]
    assert noted.count == 2
    assert noted.examples[0].startswith("x.json, item 1: not JSON at byte ")


def test_an_array_that_is_not_json_is_read_up_to_there():
    data = foreign_exports.dumped([foreign_exports.branched()])[:-1] + b", {oops}]"
    conversations, notes = found("chatgpt", data)
    assert list(conversations) == ["conv-1"]
    assert "not JSON at byte" in str(
        notes.not_understood["the rest of a file that is not valid JSON"]
    )


def _check_result(name, data):
    """Whatever the bytes are, there are conversations of messages with a role and a text."""
    assert detect_format(io.BytesIO(data)) in {None, "firnline", "html", *READERS}
    conversations, _ = found(name, data)
    for conversation, messages in conversations.items():
        assert isinstance(conversation, str)
        for message in messages:
            assert message.role in {"system", "developer", "user", "assistant", "tool"}
            assert isinstance(message.text, str)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=EXAMPLES)
@given(data=st.recursive(json_values, lambda v: st.lists(v, max_size=3)))
def test_no_json_breaks_a_reader(name, data):
    _check_result(name, foreign_exports.dumped([data]))
    _check_result(name, foreign_exports.lines([data, data]))


@pytest.mark.parametrize("name", [*foreign_exports.SAMPLES])
@settings(max_examples=2 * EXAMPLES)
@given(st.data())
def test_no_odd_value_in_a_file_breaks_its_reader(name, data):
    """A value anywhere in a good file is another one, of any type."""
    text = foreign_exports.SAMPLES[name]
    if name == "whatsapp":
        at = data.draw(st.integers(0, len(text)))
        _check_result(name, text[:at] + data.draw(st.binary(max_size=5)) + text[at:])
        return
    many = name in ("claude_code", "codex", "finetune")
    value = [json.loads(line) for line in text.splitlines()] if many else json.loads(text)
    _replace(value, data)
    odd = foreign_exports.lines(value) if many else foreign_exports.dumped(value)
    _check_result(name, odd)


def _replace(value, data):
    while True:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = data.draw(st.sampled_from(list(keys)))
        inner = value[key]
        if isinstance(inner, dict | list) and inner and data.draw(st.integers(0, 4)):
            value = inner
        else:
            value[key] = data.draw(json_values)
            return


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=EXAMPLES)
@given(data=st.binary(max_size=200))
def test_no_bytes_break_a_reader(name, data):
    _check_result(name, data)


# -- round trips ------------------------------------------------------------------------------

texts = clean.filter(lambda text: text.strip() and "\r" not in text)
talk = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), texts), min_size=1, max_size=6)


@given(talk)
def test_every_word_of_a_chatgpt_export_arrives(said):
    nodes, before = [], None
    for number, (role, text) in enumerate(said):
        nodes.append(foreign_exports.node(f"n{number}", before, role, text))
        before = f"n{number}"
    conversations, notes = found(
        "chatgpt", foreign_exports.dumped([foreign_exports.chatgpt(nodes, before)])
    )
    assert spoken(conversations["conv-1"]) == said
    assert not notes.not_understood


@given(talk)
def test_every_word_of_a_claude_export_arrives(said):
    senders = {"user": "human", "assistant": "assistant"}
    messages = [
        foreign_exports.claude_message(
            f"m{n}", senders[role], text, f"m{n - 1}" if n else foreign_exports.ROOT, n
        )
        for n, (role, text) in enumerate(said)
    ]
    conversations, _ = found("claude", foreign_exports.dumped([foreign_exports.claude(messages)]))
    assert spoken(conversations["cl-1"]) == said


@given(talk)
def test_every_word_of_a_telegram_export_arrives(said):
    messages = [foreign_exports.telegram_message(n, text) for n, (_, text) in enumerate(said)]
    data = foreign_exports.dumped({**foreign_exports.TELEGRAM_CHAT, "messages": messages})
    conversations, _ = found("telegram", data)
    assert [m.text for m in conversations["4711"]] == [text for _, text in said]


# -- paths through a tree -------------------------------------------------------------------------

trees = st.lists(st.integers(-1, 30), min_size=1, max_size=30).map(
    lambda parents: {
        str(n): TreeNode(str(parent % n) if n and parent >= 0 else None, ())
        for n, parent in enumerate(parents)
    }
)


@given(trees, st.data())
def test_every_node_is_in_one_way_and_a_newer_file_makes_them_longer(nodes, data):
    current = data.draw(st.sampled_from(sorted(nodes)))
    before = tree_paths(ConversationTree("t", "", nodes, current))
    assert sorted(name for way in before for name in way.nodes) == sorted(nodes)
    assert before[0].nodes[-1] == current
    grown = dict(nodes)
    for n in range(data.draw(st.integers(0, 5))):
        grown[f"new{n}"] = TreeNode(data.draw(st.sampled_from(sorted(grown))), ())
    newest = data.draw(st.sampled_from(sorted(grown)))
    after = {
        way.first: way
        for way in tree_paths(ConversationTree("t", "", grown, newest), before[0].nodes)
    }
    for way in before:
        if way.first in after:
            assert after[way.first].nodes[: len(way.nodes)] == way.nodes
    assert after[None].nodes[: len(before[0].nodes)] == before[0].nodes
    seen = {None}
    for way in after.values():
        assert way.parent in seen, "a way comes after the one it leaves"
        seen |= set(way.nodes)


def test_a_ring_of_nodes_ends():
    nodes = {"a": TreeNode("b", ()), "b": TreeNode("a", ())}
    (main, *_) = tree_paths(ConversationTree("t", "", nodes, "a"))
    assert set(main.nodes) == {"a", "b"}
