"""What is quoted together: all of a tool call, a short answer with its question; within a room."""

from hypothesis import given
from hypothesis import strategies as st

from firnline import Message
from firnline.context import quote
from firnline.context.material import Material
from firnline.context.quote import HitGroups
from firnline.context.render import Sizes, render_recalled
from firnline.log.hit import Hit
from firnline.log.message import ToolCall
from firnline.log.tokens import counter
from support.entries import chat, entry

SIZES = Sizes(counter())
CHAT = chat("Which port does the broker use?", "5672.", "Who needs access?", "Marek.", "Good.")
UNITS = {1: CHAT[0:2], 3: CHAT[2:4]}


def _hit(seq: int) -> Hit:
    return Hit("c", CHAT[seq], 1.0, chance=0.5)


def _groups(*seqs: int, pinned: tuple = ()) -> list[list[int]]:
    hits = tuple(map(_hit, seqs))
    material = Material(
        conversation="c", strategy="s", recalled=hits, earned=len(hits), units=UNITS, pinned=pinned
    )
    return [[one.seq for one in group] for group in HitGroups(material, 1_000).best]


def test_a_short_answer_is_quoted_with_its_question():
    assert _groups(1, 3) == [[0, 1], [2, 3]]
    assert _groups(0, 1) == [[0], [1]], "each once, where it is found first"
    assert _groups(1, 0, 4) == [[0, 1], [4]]
    assert _groups(1, pinned=(CHAT[0],)) == [[1]], "the question is shown anyway"


def test_a_tool_call_is_quoted_whole_or_not_at_all():
    call = entry(7, Message(role="assistant", tool_calls=(ToolCall.of("a", "f", "{}"),)))
    result = entry(8, Message.tool("4711", tool_call_id="a"))
    assert quote.not_in(set(), (call, result)) == (call, result)
    assert quote.not_in({7}, (call, result)) == ()
    assert quote.not_in({8}, (call, result)) == ()
    assert quote.not_in({0}, UNITS[1]) == (CHAT[1],)
    assert quote.not_in({1}, UNITS[1]) == ()
    assert quote.not_in({0, 1}, UNITS[1]) == ()


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 30)), max_size=30), st.integers(0, 600)
)
def test_groups_fit_whole_and_never_exceed_their_room(sizes, room):
    groups = []
    for number, (words, asked) in enumerate(sizes):
        answer = entry(2 * number + 1, Message.assistant("red " * words), words + 4)
        question = entry(2 * number, Message.user("who " * asked), asked + 4)
        groups.append((question, answer) if asked else (answer,))
    fitting = quote.fitting(groups, room, SIZES, {})
    assert not fitting or SIZES.of(render_recalled(fitting)) <= room
    there = {one.seq for one in fitting}
    for group in groups:
        seqs = {one.seq for one in group}
        assert seqs <= there or seqs.isdisjoint(there)
