"""Clients that name their conversation and send their history: nothing is stored twice."""

import json
from contextlib import ExitStack

import httpx2
import pytest

from firnline import Message
from firnline.log.message import ToolCall
from firnline.server.proxy.align import agree, overlap
from firnline.server.proxy.request import fingerprint
from firnline.testing import call_tool
from support.entries import entry
from support.response_site import MODEL, WAYS, Site

SESSION = {"session-id": "01a1f44c-session"}


@pytest.fixture
def site():
    with ExitStack() as stack:
        yield Site(stack, "chat")


def post(site, *messages, **headers):
    """The status of a request with this history; texts are the user's."""
    sent = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    url = f"{site.server.url}/v1/chat/completions"
    headers = {**SESSION, **headers}
    return httpx2.post(url, json={"model": MODEL, "messages": sent}, headers=headers, timeout=60)


def texts(site):
    (name,) = site.heads()
    assert name == SESSION["session-id"]
    return [message.text for message in site.log(name)]


def test_questions_that_failed_are_stored_once_when_more_follow(site):
    site.model.fail("500", repeat=True)
    for count in (1, 2, 3):
        assert post(site, *[f"q{n}" for n in range(count)]).status_code == 500
    site.model.heal()
    assert post(site, "q0", "q1", "q2", "q3").status_code == 200
    assert texts(site) == ["q0", "q1", "q2", "q3", "You said: q3"]
    assert [m["content"] for m in site.model.requests[-1]["messages"]] == ["q0", "q1", "q2", "q3"]


def test_questions_that_failed_in_the_middle_of_a_conversation_are_stored_once(site):
    post(site, "a")
    site.model.fail("500", repeat=True)
    assert post(site, "b").status_code == 500
    site.model.heal()
    assert post(site, "b", "c").status_code == 200
    assert texts(site) == ["a", "You said: a", "b", "c", "You said: c"]


def test_the_same_question_after_an_answer_is_a_new_one(site):
    for _ in range(2):
        post(site, "hi")
    post(site, "hi", "and?")
    answer = "You said: hi"
    assert texts(site) == ["hi", answer, "hi", answer, "hi", "and?", "You said: and?"]


# -- what clients change in what they send again ----------------------------------------------


def reordered(value):
    """The same JSON with the keys of its objects in another order, and nulls."""
    if isinstance(value, dict):
        return {"zz": None, **{key: reordered(each) for key, each in reversed(value.items())}}
    return [reordered(each) for each in value] if isinstance(value, list) else value


def test_the_order_of_keys_makes_no_other_message():
    action = {"type": "search", "query": "q", "sources": [{"url": "u", "type": "url"}]}
    parts = [{"type": "web_search_call", "id": "ws_1", "action": action}]
    call = {"id": "c1", "name": "look", "arguments": {"a": 1, "b": {"c": 2, "d": [{"e": 3}]}}}
    for extra in ({"content": parts}, {"content": None, "tool_calls": [call_of(call)]}):
        message = {"role": "assistant", **extra}
        changed = {"tool_calls": [call_of({**call, "arguments": reordered(call["arguments"])})]}
        other = changed if extra["content"] is None else {"content": reordered(parts)}
        again = Message.from_openai({**message, **other})
        assert fingerprint(again) == fingerprint(Message.from_openai(message))


def call_of(call):
    function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
    return {"id": call["id"], "type": "function", "function": function}


TOOL_TURN = [
    Message.user("What time is it?"),
    Message.assistant("Let me look.", tool_calls=[ToolCall.of("c1", "clock", "{}")]),
    Message.tool("12:00", tool_call_id="c1"),
    Message.assistant(tool_calls=[ToolCall.of("c2", "zone", "{}")]),
    Message.tool("UTC", tool_call_id="c2"),
    Message.assistant("It is noon."),
]
ASKED, LOOK, ANSWER = TOOL_TURN[0], Message.assistant("Let me look."), TOOL_TURN[-1]
NEXT = Message.user("And in Rome?")
LOG = [entry(seq, message) for seq, message in enumerate(TOOL_TURN)]


@pytest.mark.parametrize(
    ("sent", "seqs"),
    [
        ([ASKED, ANSWER, NEXT], (0, 5)),
        ([ASKED, LOOK, ANSWER, NEXT], (0, 1, 5)),
        ([*TOOL_TURN, NEXT], (0, 1, 2, 3, 4, 5)),
        ([*TOOL_TURN[:3], ANSWER, NEXT], (0, 1, 2, 5)),
    ],
)
def test_calls_and_results_that_a_client_leaves_out_are_no_difference(sent, seqs):
    assert agree(sent, LOG) == (seqs, 6)
    assert overlap(sent, LOG) == (seqs, 6)


@pytest.mark.parametrize("sent", [[ASKED, Message.assistant("Another answer."), NEXT], [ASKED]])
def test_an_answer_that_is_another_one_is_a_difference(sent):
    assert agree(sent, LOG) == ((0,), 1)


def test_an_anonymous_client_must_send_the_calls():
    # Another caller may have got the same answer by other calls.
    assert agree([ASKED, ANSWER, NEXT], LOG, strict=True) == ((0,), 1)


@pytest.mark.parametrize("named", [{"conversation": "vercel"}, {"user": "ann"}])
def test_a_client_that_keeps_only_texts_stays_in_its_conversation(site, named):
    body = {"user": named["user"]} if "user" in named else {}
    path = f"/c/{named['conversation']}" if "conversation" in named else ""

    def ask(messages):
        sent = {"model": MODEL, "messages": messages, **body}
        found = httpx2.post(f"{site.server.url}{path}/v1/chat/completions", json=sent, timeout=60)
        return found.json()["choices"][0]["message"]

    history = []
    for turn in range(3):
        history.append({"role": "user", "content": f"q{turn}"})
        site.model.say(call_tool("clock", {}), f"It is {turn} o'clock.")
        call = ask(history)
        result = {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "12"}
        history.append(ask([*history, call, result]))
    (name,) = site.heads()
    roles = [message.role for message in site.log(name)]
    assert roles == ["user", "assistant", "tool", "assistant"] * 3


# -- clients that compact their history -------------------------------------------------------

SUMMARY = "SUMMARY: the staging database is set up, and the mill is next to the bridge."
CONTINUED = "This session is being continued from a previous conversation that ran out of context."


def item(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


class Codex:
    """Sends its whole history under its session's id, as Codex does; see its recorded traffic."""

    def __init__(self, site):
        self.site, self.history = site, [item("developer", "Rules."), item("user", "<cwd>/a</cwd>")]

    def ask(self, text, answer, *, keep=True):
        self.site.model.say(answer)
        sent = [*self.history, item("user", text)]
        body = {"model": MODEL, "input": sent, "store": False, "instructions": "Be brief."}
        url = f"{self.site.server.url}/v1/responses"
        answered = httpx2.post(url, json=body, headers=SESSION, timeout=60)
        assert answered.status_code == 200, answered.text
        if keep:
            self.history = [*sent, *answered.json()["output"]]
        return answered

    def compact(self):
        """It keeps its newest prompts, and the summary that the model wrote."""
        self.ask("You are performing a CONTEXT CHECKPOINT COMPACTION.", SUMMARY, keep=False)
        prompts = [each for each in self.history if each["role"] == "user"][-2:]
        opening = "Another model wrote this summary of its work"
        self.history = [*prompts, *self.history[:2], item("user", f"{opening}:\n{SUMMARY}")]


@pytest.fixture(params=WAYS)
def codex(request):
    with ExitStack() as stack:
        yield Codex(Site(stack, request.param))


def sent_upstream(site):
    """The texts of the last request to the model, without its instructions."""
    request = site.model.requests[-1]
    items = request.get("input") or request["messages"]
    return [json.dumps(each) for each in items if each.get("role") not in ("system", "developer")]


def test_a_client_that_compacts_its_history_stores_nothing_twice(codex):
    for turn in range(6):
        codex.ask(f"Question {turn} about the mill.", f"Answer {turn}: {'blue ' * 50}")
    for again in range(2):
        codex.compact()
        for turn in range(3):
            number = 6 + 3 * again + turn
            codex.ask(f"Question {number} about the mill.", f"Answer {number}: {'blue ' * 50}")
            own = json.dumps(codex.history[:-1]).count("Answer")
            assert own <= json.dumps(sent_upstream(codex.site)).count("Answer") <= own + 3
    (name,) = codex.site.heads()
    asked = [m.text for m in codex.site.log(name) if m.role == "user" and "Question" in m.text]
    assert asked == [f"Question {number} about the mill." for number in range(12)]
    answers = [m.text for m in codex.site.log(name) if m.text.startswith("Answer")]
    assert len(answers) == 12


def test_what_a_client_has_dropped_is_found_again(codex):
    codex.ask("The staging database is db-17.internal, port 6543.", "It is noted.")
    for turn in range(6):
        codex.ask(f"We walked along the river for {turn} hours.", f"A nice walk, {turn}.")
    codex.compact()
    codex.ask("And on Sunday?", "No idea.")
    assert "6543" not in json.dumps(codex.history)
    codex.ask("Which port does the staging database have?", "6543.")
    text = json.dumps(sent_upstream(codex.site))
    assert "6543" in text
    assert "walked along the river for 1 hours" not in text


def test_a_compacted_history_that_failed_can_be_sent_again(codex):
    for turn in range(3):
        codex.ask(f"Question {turn} about the mill.", f"Answer {turn}.")
    codex.compact()
    codex.site.model.fail("500", repeat=True)
    sent = {"model": MODEL, "input": [*codex.history, item("user", "And now?")], "store": False}
    url = f"{codex.site.server.url}/v1/responses"
    for _ in range(2):
        assert httpx2.post(url, json=sent, headers=SESSION, timeout=60).status_code >= 500
    codex.site.model.heal()
    codex.ask("And now?", "All is well.")
    (name,) = codex.site.heads()
    texts = [message.text for message in codex.site.log(name)]
    assert [text for text in texts if texts.count(text) > 1] == []
    assert texts[-2:] == ["And now?", "All is well."]


def test_the_session_of_claude_code_goes_on_behind_its_compaction():
    session = {"user_id": "user_a_account__session_0b9e6a4e-1111-4222-8333-123456789abc"}
    with ExitStack() as stack:
        site = Site(stack, "anthropic")
        history = []

        def ask(text, answer):
            history.append({"role": "user", "content": text})
            site.model.say(answer)
            body = {"model": "claude-sonnet-5", "max_tokens": 99, "metadata": session}
            url = f"{site.server.url}/v1/messages"
            done = httpx2.post(url, json={**body, "messages": history}, timeout=60)
            history.append({"role": "assistant", "content": done.json()["content"]})

        ask("The staging database has port 6543.", "It is noted.")
        for turn in range(4):
            ask(f"Question {turn} about the mill.", f"Answer {turn}.")
        ask("Summarize, text only.", "<summary>All is set up.</summary>")
        history[:] = [{"role": "user", "content": f"{CONTINUED}\nAll is set up."}, *history[-3:-2]]
        ask("Which port does the staging database have?", "6543.")
        ask("And the mill?", "Later.")
        history[:] = []
        ask(f"{CONTINUED}\nAll is ready.", "Understood.")
        ask("What was the port of the staging database?", "It was 6543.")
        assert "6543" in json.dumps(site.model.requests[-1])
        assert "Question 1" not in json.dumps(site.model.requests[-1])
        (name,) = site.heads()
        texts = [message.text for message in site.log(name)]
        assert [text for text in texts if texts.count(text) > 1] == []


@pytest.mark.parametrize("text", ["You said: yes, in the evening, when all of them are here. Why?"])
def test_a_client_that_sends_only_what_is_new_may_quote_an_answer(site, text):
    site.model.say("yes, in the evening, when all of them are here.")
    post(site, "Is there a train?")
    post(site, text)
    assert len(site.model.requests[-1]["messages"]) == 3
