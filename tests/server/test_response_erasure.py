"""Deleting a response or an item erases what was asked for, and nothing else."""

from contextlib import ExitStack

import openai
import pytest

from firnline.testing import call_tool
from support.response_site import Site, create

ASKED = {"role": "user", "content": "What time is it in Rome?"}
SAID = {"type": "message", "role": "assistant", "content": "Let me see."}
CALL = {"type": "function_call", "call_id": "c1", "name": "clock", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "12:00"}
ANSWER = {"type": "message", "role": "assistant", "content": "It is noon."}
CLOCK = {"type": "function", "name": "clock", "parameters": {"type": "object"}}


@pytest.fixture
def site():
    with ExitStack() as stack:
        yield Site(stack, "native")


class Items:
    """A conversation's items, by what they say."""

    def __init__(self, site, *items):
        self._items = site.sdk.conversations.items
        self._id = site.sdk.conversations.create().id
        self._items.create(self._id, items=items)

    def list(self):
        return list(self._items.list(self._id, order="asc"))

    def kinds(self):
        return [item.type if item.type != "message" else item.role for item in self.list()]

    def delete(self, at):
        self._items.delete(self.list()[at].id, conversation_id=self._id)

    def retrieve(self, item_id):
        return self._items.retrieve(item_id, conversation_id=self._id)


def test_items_are_popped_one_by_one_as_sessions_do(site):
    items = Items(site, ASKED, SAID, CALL, OUTPUT)
    kinds = items.kinds()
    assert kinds == ["user", "assistant", "function_call", "function_call_output"]
    known = [item.id for item in items.list()]
    for left in (3, 2, 1, 0):
        items.delete(-1)
        assert items.kinds() == kinds[:left]
        assert [item.id for item in items.list()] == known[:left]
        for item_id in known[:left]:
            assert items.retrieve(item_id).id == item_id


@pytest.mark.parametrize("at", [1, 2])
def test_the_first_items_of_the_end_are_erased_alone(site, at):
    items = Items(site, ASKED, SAID, CALL, OUTPUT)
    kinds = items.kinds()
    items.delete(at)
    assert items.kinds() == [kind for place, kind in enumerate(kinds) if place != at]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_what_cannot_be_erased_alone_is_a_conflict_and_stays(site, at):
    items = Items(site, ASKED, SAID, CALL, OUTPUT, ANSWER, ASKED)
    before = items.list()
    with pytest.raises(openai.ConflictError, match="cannot be erased alone"):
        items.delete(at)
    assert items.list() == before
    items.delete(4)  # it has nothing to do with the call
    assert len(items.list()) == 5


def test_an_item_erased_meanwhile_is_not_brought_back(site):
    items = Items(site, ASKED, SAID, CALL, OUTPUT)
    gone = items.list()[-1].id
    items.delete(-1)
    with pytest.raises(openai.NotFoundError):
        items.retrieve(gone)


@pytest.fixture
def thread(site):
    """Two responses: a call, and the answer to its result."""
    site.model.say({**call_tool("clock", {}), "content": "Let me see."}, "It is noon.")
    first = create(site.sdk, "What time is it in Rome?", tools=[CLOCK])
    result = {**OUTPUT, "call_id": first.output[-1].call_id}
    second = create(site.sdk, [result], tools=[CLOCK], previous_response_id=first.id)
    return first, second


def test_a_deleted_response_leaves_the_call_that_its_input_answers(site, thread):
    first, second = thread
    site.sdk.responses.delete(second.id)
    found = site.sdk.responses.retrieve(first.id)
    assert [item.type for item in found.output] == ["message", "function_call"]
    assert "noon" not in str(site.log(site.heads()[0]))


def test_a_deleted_response_leaves_the_call_that_another_one_answers(site, thread):
    first, second = thread
    site.sdk.responses.delete(first.id)
    found = site.sdk.responses.retrieve(second.id)
    assert found.output_text == "It is noon."
    inputs = [item.type for item in site.sdk.responses.input_items.list(second.id)]
    assert inputs == ["function_call_output", "function_call", "message"]  # the answer's text


@pytest.mark.promise("erase-total")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_responses_that_are_all_deleted_leave_nothing(site, thread, order):
    for at in order:
        site.sdk.responses.delete(thread[at].id)
    (conversation,) = site.heads()
    assert [message.text for message in site.log(conversation)] == [""] * 4
    for response in thread:
        with pytest.raises(openai.NotFoundError):
            site.sdk.responses.retrieve(response.id)


def test_a_request_that_was_sent_again_shares_its_question(site):
    site.model.fail("cut")
    events = list(site.sdk.responses.create(model="gpt-4o", input="hi", stream=True))
    assert events[-1].type == "error"
    again = create(site.sdk, "hi")
    site.sdk.responses.delete(events[0].response.id)
    items = site.sdk.responses.input_items.list(again.id)
    assert [item.content[0].text for item in items if item.role == "user"] == ["hi"]
    site.sdk.responses.delete(again.id)
    assert "hi" not in [message.text for name in site.heads() for message in site.log(name)]


def test_the_answer_of_a_response_is_found_where_the_rest_of_it_is(site):
    made = site.sdk.conversations.create()
    site.model.say({**call_tool("clock", {}), "content": "Let me see."})
    answer = create(site.sdk, "Time?", tools=[CLOCK], conversation=made.id)
    said, call = answer.output
    site.sdk.conversations.items.delete(call.id, conversation_id=made.id)
    assert [item.id for item in site.sdk.responses.retrieve(answer.id).output] == [said.id]
