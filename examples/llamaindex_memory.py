"""A LlamaIndex memory block that keeps and finds what leaves short-term memory."""

import asyncio

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory as ShortTerm

from firnline import Memory
from firnline.adapters.llamaindex import FirnlineMemoryBlock


async def main() -> None:
    async with Memory.open("sqlite:///llamaindex.db") as memory:
        blocks = [FirnlineMemoryBlock(memory=memory, tokens=500)]
        # With our own tokenizer, because LlamaIndex downloads its default one.
        sizes = {"token_limit": 400, "token_flush_size": 100, "tokenizer_fn": str.split}
        short = ShortTerm.from_defaults(session_id="ticket-42", memory_blocks=blocks, **sizes)
        await short.aput(ChatMessage("The boathouse's gate code is 7319."))
        for number in range(80):
            await short.aput(ChatMessage(f"Question {number} about ropes"))
            await short.aput(ChatMessage(f"Answer {number}, at length", role="assistant"))
        (remembered, *_) = await short.aget(input="What is the gate code of the boathouse?")
        print("7319" in remembered.content, "- the code is in the prompt")
        print(len(await memory.read("ticket-42")), "messages in the log")


asyncio.run(main())
