"""Questions that depend on the conversation ("and there?"), rewritten to stand alone."""

from __future__ import annotations

import logging
from typing import Final

from firnline import topics
from firnline.engine.topic_assigner import TopicAssigner
from firnline.errors import FirnlineError, ModelError, outline
from firnline.log import limits
from firnline.log.entry import Entry, Head, Key, Topic
from firnline.protocols import ChatModel, Store

logger: Final = logging.getLogger("firnline.recall")

_LOOK_BACK: Final = 13  # entries that a question may refer to
_ANSWER_TOKENS: Final = 200


class QuestionRewriter:
    """Rewrites questions, by a model or by rules."""

    def __init__(self, store: Store, assigner: TopicAssigner) -> None:
        self._store, self._assigner = store, assigner

    async def standalone(self, key: Key, question: str, model: ChatModel | None = None) -> str:
        """The question with what it leaves to the conversation; unchanged if it stands alone."""
        if not topics.depends_on_context(question):
            return question
        entries, title = await self._before(key, question)
        if model is None:
            return topics.standalone(question, entries, title)
        try:
            messages = topics.standalone_messages(question, entries)
            completion = await model.complete(messages, max_tokens=_ANSWER_TOKENS)
            answer = completion.message.text
        except ModelError as error:
            logger.warning("rewritten by rules, the model failed: %s", outline(error))
            answer = ""
        return topics.check_rewrite(answer, question, entries, title)

    async def _before(self, key: Key, question: str) -> tuple[list[Entry], str]:
        """The newest entries of the active topic before the question, and the topic's title."""
        head = await self._store.head(key)
        if head is None:
            return [], ""
        topic = await self._active_topic(key, head)
        if topic is None:
            newest = await self._store.read(key, max(head.entries - _LOOK_BACK, 0))
        else:
            first = max(head.entries - limits.QUESTION_LOOK_BACK, 0)
            seqs = await self._store.members(key, topic.id, first)
            newest = await self._store.at(key, seqs[-_LOOK_BACK:])
        if newest and newest[-1].message.text == question:
            newest = newest[:-1]
        return newest, topic.title if topic else ""

    async def _active_topic(self, key: Key, head: Head) -> Topic | None:
        """The active topic, if most of the conversation's entries are assigned to topics."""
        assigned = await self._store.topics(key)
        if not assigned.topics or head.entries - assigned.next_seq > limits.ASSIGN_PAGE:
            return None
        try:
            return await self._assigner.active(key)
        except FirnlineError as error:
            logger.warning("%s: no topic for the question: %s", key.conversation, outline(error))
            return None
