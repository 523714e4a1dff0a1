"""Quality of topic assignment: the results of the calibration are the minimum."""

import hashlib
import random
import zlib
from array import array
from pathlib import Path
from statistics import fmean

import pytest

from firnline.embedding import minilm as minilm_embedder
from firnline.embedding import multilingual, words
from firnline.log.entry import Entry, Topic
from firnline.log.message import Message
from firnline.testing.drafts import START
from firnline.topics import (
    LIKENESS,
    Rules,
    calibrate,
    is_followup,
    match_topics,
    merge_topics,
    replay,
)
from firnline.topics.vectors import pack
from support.subjects import FOLLOWUPS, SUBJECTS, UNSEEN_FOLLOWUPS, UNSEEN_SUBJECTS

TEXTS = [text for block in SUBJECTS for text in block]
SUBJECT = [number for number, block in enumerate(SUBJECTS) for _ in block]
MINILM = minilm_embedder.NAME
FILE = Path(__file__).parents[1] / "support" / "subjects.minilm"


def minilm():
    """The vectors of all texts by MiniLM, in 8 bits: made once, so that no model is needed here."""
    body = FILE.read_bytes()
    assert body[:32] == hashlib.sha256("\n".join(TEXTS).encode()).digest(), "the texts changed"
    flat = array("b", zlib.decompress(body[32:]))
    return [flat[at : at + 384] for at in range(0, len(flat), 384)]


async def own_words():
    """The vectors by the embedder that needs no model."""
    embedder = words.WordEmbedder()
    try:
        return await embedder.embed(TEXTS)
    finally:
        await embedder.close()


def talk(seed, subjects):
    """Places of messages as people talk: a few on one subject, then another, and back again."""
    rng = random.Random(seed)
    chosen = rng.sample(range(len(SUBJECTS)), subjects)
    left = {number: [at for at, s in enumerate(SUBJECT) if s == number] for number in chosen}
    order = []
    while left:
        number = rng.choice(list(left))
        count = rng.randint(1, 4)
        order += left[number][:count]
        left[number] = left[number][count:]
        if not left[number]:
            del left[number]
    return order


def put(order, vectors, model):
    """The topic of each message."""
    entries = [
        Entry(seq, Message.user(TEXTS[at], created_at=START), 1, seq + 1, "", "o200k_base")
        for seq, at in enumerate(order)
    ]
    given = {seq: vectors[at] for seq, at in enumerate(order)}
    steps = list(replay(entries, given, model=model))
    return [step.topic for step in steps], steps[-1].state


def f1(order, found):
    """Of all pairs of messages: are those together that should be?"""
    pairs = [(i, j) for i in range(len(order)) for j in range(i)]
    same = [found[i] == found[j] for i, j in pairs]
    true = [SUBJECT[order[i]] == SUBJECT[order[j]] for i, j in pairs]
    both = sum(a and b for a, b in zip(same, true, strict=True))
    return 2 * both / (sum(same) + sum(true))


# Means over these orders lie about 0.05 above the floors; a single order varies by 0.03 to 0.12.
@pytest.mark.parametrize(("subjects", "floor"), [(5, 0.82), (10, 0.80)])
def test_messages_find_their_topics(subjects, floor):
    assert _quality(minilm(), MINILM, subjects) > floor


@pytest.mark.parametrize(("subjects", "floor"), [(5, 0.51), (10, 0.41)])
async def test_without_a_model_they_find_them_less_well(subjects, floor):
    assert _quality(await own_words(), words.NAME, subjects) > floor


def _quality(vectors, model, subjects):
    orders = [talk(seed, subjects) for seed in range(16)]
    return fmean(f1(order, put(order, vectors, model)[0]) for order in orders)


def test_our_embedders_are_calibrated_under_their_own_names():
    assert set(LIKENESS) == {MINILM, multilingual.NAME, words.NAME}


def test_without_calibration_nearly_every_message_would_be_a_separate_topic():
    order = talk(1, 10)
    unknown, _ = put(order, minilm(), "unheard-of")
    known, _ = put(order, minilm(), MINILM)
    assert len(set(known)) < 25 < len(set(unknown))


def test_all_subjects_at_once_and_merging_does_no_harm():
    before, after = [], []
    for seed in range(6):
        order = talk(seed, len(SUBJECTS))
        found, state = put(order, minilm(), MINILM)
        whole = merge_topics(state).state
        before.append(f1(order, found))
        after.append(f1(order, [whole.current(topic).id for topic in found]))
    assert fmean(before) > 0.64
    assert fmean(after) > fmean(before) - 0.01


def test_unseen_followups_are_detected_less_well():
    assert sum(map(is_followup, UNSEEN_FOLLOWUPS)) >= 25  # of 40; the rest is left to the vectors
    assert sum(map(is_followup, UNSEEN_SUBJECTS)) <= 3  # of 40


def test_followups_differ_from_messages_with_a_subject():
    assert [text for text in FOLLOWUPS if not is_followup(text)] == []
    assert [text for text in TEXTS if is_followup(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Was ist Docker?",
        "¿Qué es Docker?",
        "C'est quoi Docker ?",
        "Wie backe ich Sauerteigbrot?",
        "Können Sie mir den Vertrag prüfen?",
        "¿Cómo hago una tortilla?",
        "Comment réparer un robinet qui fuit ?",
        "Quel temps fait-il à Paris ?",
        "I need one Docker image",
        "Can you review this contract?",
        "My landlord raised the rent, can he do that?",
        "Is it going to rain in Lisbon tomorrow?",
        "東京の天気を教えてください",
        "Расскажи про Лиссабон",
        "x" * 5_000,
    ],
)
def test_what_has_a_subject_is_no_followup(text):
    assert not is_followup(text)


@pytest.mark.parametrize("text", ["", "  ", "?", "👍", "🙂🙂", "…", "and that?", "OK!!!"])
def test_what_has_no_words_is_a_followup(text):
    assert is_followup(text)


def test_calibration_goes_through_its_points_and_only_grows():
    for at in LIKENESS.values():
        assert calibrate(-1, at) == 0
        assert calibrate(at, at) == pytest.approx(0.7)
        assert calibrate(1, at) == pytest.approx(1)
        scale = [calibrate(n / 100, at) for n in range(-120, 121)]
        assert scale == sorted(scale)
        assert min(scale) == 0
        assert max(scale) <= 1


def test_a_caller_can_calibrate_its_own_model():
    old = Topic(
        id=0, title="", created_at=START, last_active_at=START, model="mine", vectors=1,
        vector=pack([1.0, 0.0]),
    )  # fmt: skip
    (match,) = match_topics([0.8, 0.6], "mine", [old], Rules(likeness={"mine": 0.8}))
    assert (match.topic, match.raw) == (0, pytest.approx(0.8))
    assert match.similarity == pytest.approx(0.7)
