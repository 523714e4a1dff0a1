"""Requests that have no input of their own: what they continue is in the log."""

import json
from contextlib import ExitStack

import openai
import pytest

from firnline.log.tokens import counter
from support.response_site import MODEL, WAYS, Site, create


@pytest.fixture(params=WAYS)
def site(request):
    with ExitStack() as stack:
        yield Site(stack, request.param)


def without_input(sdk, *, stream=False, **more):
    if not stream:
        return sdk.responses.create(model=MODEL, **more)
    return list(sdk.responses.create(model=MODEL, stream=True, **more))[-1].response


def test_a_response_continues_without_input(site):
    first = create(site.sdk, "Order 1138 never arrived.")
    site.model.say("It will be sent again.", "By post.")
    for stream in (False, True):
        again = without_input(site.sdk, stream=stream, previous_response_id=first.id)
        assert again.output_text
    assert site.seen() == ["user", "assistant"]
    assert len(site.heads()) == 2  # two answers to the same: a branch
    for name in site.heads():
        assert [m.role for m in site.log(name)] == ["user", "assistant", "assistant"]


def test_a_conversation_is_answered_after_items_were_added(site):
    made = site.sdk.conversations.create(items=[{"role": "user", "content": "The ferry is late."}])
    assert without_input(site.sdk, conversation=made.id).output_text.endswith("ferry is late.")
    site.sdk.conversations.items.create(made.id, items=[{"role": "user", "content": "And now?"}])
    answer = without_input(site.sdk, stream=True, conversation=made.id)
    assert answer.output_text == "You said: And now?"
    (name,) = site.heads()
    assert [m.role for m in site.log(name)] == ["user", "assistant"] * 2


def test_what_has_nothing_to_answer_is_an_error(site):
    made = site.sdk.conversations.create()
    for more in ({}, {"conversation": made.id}, {"instructions": "Be brief."}):
        with pytest.raises(openai.BadRequestError, match="input: must not be empty"):
            without_input(site.sdk, **more)


def test_a_history_is_compacted_by_the_id_of_its_last_response(site):
    first = create(site.sdk, [{"role": "developer", "content": "Rhyme."}, ASKED])
    second = create(site.sdk, "And the bill?", previous_response_id=first.id)
    for previous in (first, second):
        compacted = site.sdk.responses.compact(model=MODEL, previous_response_id=previous.id)
        item = compacted.output[0].model_dump(exclude_none=True)
        create(site.sdk, [item, {"role": "user", "content": "Which?"}])
        text = json.dumps(site.model.requests[-1])
        assert "1138" in text
        assert text.count("Rhyme.") == 1
        assert ("bill" in text) == (previous is second)
        assert compacted.usage.input_tokens > 0
        with pytest.raises(openai.NotFoundError):
            site.sdk.responses.retrieve(compacted.id)
    again = site.sdk.responses.compact(model=MODEL, input=[item])
    create(site.sdk, [again.output[0].model_dump(exclude_none=True), ASKED])
    assert "bill" in json.dumps(site.model.requests[-1])


ASKED = {"role": "user", "content": "Order 1138 never arrived."}


def test_tokens_are_those_of_the_whole_thread(site):
    count = site.sdk.responses.input_tokens.count
    first = create(site.sdk, "Order 1138 never arrived. " * 20)
    whole = count(model=MODEL, input=[ASKED]).input_tokens
    thread = count(model=MODEL, previous_response_id=first.id).input_tokens
    assert thread >= counter().text("Order 1138 never arrived. " * 20)
    more = count(model=MODEL, previous_response_id=first.id, input=[ASKED]).input_tokens
    assert thread < more <= thread + whole
    made = site.sdk.conversations.create(items=[ASKED])
    assert count(model=MODEL, conversation=made.id).input_tokens > 0
    assert count(model=MODEL, input=[ASKED], personality="friendly").input_tokens == whole
