"""LlamaIndex's memory with our block, in its own agent workflow with its own mock model."""

from contextlib import asynccontextmanager

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory as ShortTerm
from llama_index.core.storage.chat_store.sql import MessageStatus
from openai.types.chat import ChatCompletionMessageFunctionToolCall

from firnline import Memory
from firnline.adapters.llamaindex import FirnlineMemoryBlock, from_llamaindex
from firnline.errors import InputError
from firnline.log.tokens import counter


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        yield memory


@asynccontextmanager
async def short_term(block):
    short = ShortTerm.from_defaults(
        session_id="c",
        token_limit=400,
        token_flush_size=100,
        chat_history_token_ratio=0.5,
        memory_blocks=[block],
        tokenizer_fn=str.split,
    )
    yield short
    await short.sql_store._async_engine.dispose()  # it has no close() of its own


async def test_what_leaves_the_short_term_memory_is_kept_and_found_again(memory):
    block = FirnlineMemoryBlock(memory=memory, tokens=300)
    async with short_term(block) as short:
        assert await block.aget([], session_id="c") == ""
        await short.aput(ChatMessage(role="user", content="The boathouse's gate code is 7319."))
        for number in range(60):
            await short.aput(
                ChatMessage(role="user", content=f"message number {number} with words")
            )
            await short.aput(ChatMessage(role="assistant", content=f"reply {number}"))
        log = await memory.read("c")
        assert log[0].message.text == "The boathouse's gate code is 7319."
        texts = [entry.message.text for entry in log]
        kept = [message.content for message in await short.aget_all(MessageStatus.ACTIVE)]
        assert len(texts) + len(kept) == 121
        shown = await short.aget(input="What is the gate code of the boathouse?")
        assert shown[0].role == "system"
        assert "7319" in shown[0].content
        assert counter().text(await block.aget(shown[-1:], session_id="c")) <= 300


@pytest.mark.promise("within-budget")
@pytest.mark.parametrize("replies", [[], ["A contract."]])
async def test_a_long_message_of_the_past_is_shortened(memory, replies):
    block = FirnlineMemoryBlock(memory=memory, tokens=500)
    paste = ChatMessage(role="user", content="The rent is due. " + "word " * 800)
    answers = [ChatMessage(role="assistant", content=text) for text in replies]
    await block.aput([paste, *answers], session_id="c", from_short_term_memory=True)
    for asked in (None, [ChatMessage(role="user", content="so what is the rent?")]):
        told = await block.aget(asked, session_id="c")
        assert "The rent is due." in told
        assert counter().text(told) <= 500


# LlamaIndex's workflows look at every attribute of themselves, deprecated ones of pydantic's too.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
async def test_it_works_in_an_agent_workflow(memory):
    block = FirnlineMemoryBlock(memory=memory, tokens=300)
    async with short_term(block) as short:
        agent = FunctionAgent(llm=MockFunctionLLM(), tools=[], system_prompt="SYS")
        for number in range(12):
            await agent.run(f"{number}: " + "word " * 30, memory=short)
        said = [entry.message.text for entry in await memory.read("c")]
        assert any(text.startswith("0: word") for text in said)


class MockFunctionLLM(MockLLM):
    """LlamaIndex's mock, which can be asked for tools it never calls."""

    @property
    def metadata(self):
        told = super().metadata
        told.is_function_calling_model = True
        return told

    async def astream_chat_with_tools(self, tools, chat_history=None, **kwargs):
        return await self.astream_chat(chat_history or [])

    def get_tool_calls_from_response(self, response, **kwargs):
        return []


async def test_a_block_that_is_too_long_loses_its_oldest_part(memory):
    block = FirnlineMemoryBlock(memory=memory)
    text = "\n\n".join(f"user: part {number}" for number in range(10))
    shorter = await block.atruncate(text, 20)
    assert text.endswith(shorter)
    assert counter().text(shorter) <= counter().text(text) - 20
    assert await block.atruncate("one", 100) is None


async def test_it_must_be_known_which_conversation_it_is(memory):
    with pytest.raises(InputError, match="no conversation; set"):
        await FirnlineMemoryBlock(memory=memory).aput([ChatMessage(role="user", content="x")])


def test_calls_and_results_are_distinguished():
    call = ToolCallBlock(tool_call_id="c", tool_name="f", tool_kwargs={"a": 1})
    message = from_llamaindex(ChatMessage(role="assistant", blocks=[call]))
    assert (message.tool_calls[0].id, message.tool_calls[0].arguments) == ("c", '{"a":1}')
    kwargs = {"tool_call_id": "c", "name": "f"}
    result = from_llamaindex(ChatMessage(role="tool", content="2", additional_kwargs=kwargs))
    assert (result.role, result.tool_call_id, result.metadata) == ("tool", "c", {})
    assert result.name == "f"


def test_calls_next_to_a_message_are_calls():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    for calls in ([call], [ChatCompletionMessageFunctionToolCall.model_validate(call)]):
        message = from_llamaindex(
            ChatMessage(role="assistant", additional_kwargs={"tool_calls": calls, "seed": 1})
        )
        (found,) = message.tool_calls
        assert (found.id, found.name, found.arguments) == ("c", "f", '{"a": 1}')
        assert message.metadata == {"llamaindex": {"seed": 1}}
    odd = from_llamaindex(ChatMessage(role="assistant", additional_kwargs={"tool_calls": "none"}))
    assert odd.metadata == {"llamaindex": {"tool_calls": "none"}}
