"""Small question sets in the formats of the public ones, with invented text."""

from __future__ import annotations

from typing import Any


def locomo() -> list[dict[str, Any]]:
    """One conversation of two sessions; five questions, of which three count."""
    return [
        {
            "sample_id": "talk-1",
            "conversation": {
                "speaker_a": "Ana",
                "speaker_b": "Ben",
                "session_2": [
                    {"speaker": "Ben", "dia_id": "D2:1", "text": "The ferry to Corsica was late."},
                    {"speaker": "Ana", "dia_id": "D2:2", "text": "I adopted a parrot, Quixote!"},
                    {"speaker": "Ben", "dia_id": "D2:3", "text": "Yes!"},
                ],
                "session_2_date_time": "12:05 am on 3 June, 2023",
                "session_1": [
                    {"speaker": "Ana", "dia_id": "D1:1", "text": "Hello Ben, long time no see."},
                    {
                        "speaker": "Ben",
                        "dia_id": "D1:2",
                        "text": "Look at my kayak.",
                        "blip_caption": "a red kayak on a lake",
                        "img_url": ["x"],
                    },
                    {"speaker": "Ana", "dia_id": "D1:3", "text": "Lovely, where did you buy it?"},
                ],
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_3_date_time": "1:56 pm on 9 June, 2023",
            },
            "qa": [
                {"question": "Which kayak has Ben?", "evidence": ["D1:2"], "category": 4},
                {
                    "question": "What are Ana's parrot and Ben's kayak?",
                    "evidence": ["D:2:02; D1:2", "D9:9"],
                    "category": 1,
                },
                {"question": "When was the ferry late?", "evidence": ["D2:1"], "category": 2},
                {"question": "Who sang?", "evidence": [], "category": 3},
                {"question": "Who has a dog?", "evidence": ["D2:2"], "category": 5},
            ],
            "event_summary": {"unknown": "fields are fine"},
        }
    ]


def realtalk() -> dict[str, Any]:
    """One chat; each turn has its own time."""
    return {
        "name": {"speaker_1": "Cleo", "speaker_2": "Dov"},
        "session_1": [
            {
                "clean_text": "Morning! I start at the bakery today.",
                "speaker": "Cleo",
                "date_time": "29.12.2023, 22:42:04",
                "img_file": [],
                "dia_id": "D1:1",
            },
            {
                "clean_text": "Good luck with the sourdough.",
                "speaker": "Dov",
                "date_time": "30.12.2023, 00:32:20",
                "dia_id": "D1:2",
            },
            {
                "clean_text": "Thanks.",
                "speaker": "Cleo",
                "date_time": "30.12.2023, 00:33:00",
                "dia_id": "D1:3",
                "blip_caption": "a loaf",
            },
        ],
        "events_session_1": {},
        "qa": [
            {"question": "Where does Cleo work?", "evidence": ["D1:1-D1:3."], "category": 1},
            {"question": "What does Dov wish?", "evidence": "D 1:2", "category": 3},
            {"question": "Who?", "evidence": ["D58"], "category": 2},
        ],
    }


def longmemeval() -> list[dict[str, Any]]:
    """Evidence by turn, evidence by session, and a question that has no answer."""
    haystack = {
        "haystack_dates": ["2023/05/21 (Sun) 10:00", "2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["late", "early"],
        "question_date": "2023/06/01 (Thu) 00:00",
        "answer": "a piano",
    }
    early = [
        {"role": "user", "content": "I play the piano.", "has_answer": True},
        {"role": "assistant", "content": "Wonderful.", "has_answer": False},
    ]
    late = [{"role": "user", "content": "Any recipe for soup?"}]
    unmarked = [{"role": turn["role"], "content": turn["content"]} for turn in early]
    return [
        {
            "question_id": "q1",
            "question_type": "single-session-user",
            "question": "What do I play?",
            "haystack_sessions": [late, early],
            "answer_session_ids": ["early"],
            **haystack,
        },
        {
            "question_id": "q2",
            "question_type": "multi-session",
            "question": "What do I play?",
            "haystack_sessions": [late, unmarked],
            "answer_session_ids": ["early", "gone"],
            **haystack,
        },
        {
            "question_id": "q3_abs",
            "question_type": "multi-session",
            "question": "Which harp do I play?",
            "haystack_sessions": [late, early],
            "answer_session_ids": ["early"],
            **haystack,
        },
    ]


def beam() -> dict[str, Any]:
    """A chat in batches of turns, and probing questions by kind."""
    turn = [
        {
            "role": "user",
            "id": 0,
            "content": "My sprint ends on Friday.",
            "time_anchor": "March-15-2024",
            "question_type": "main_question",
        },
        {"role": "assistant", "id": 1, "content": "Noted."},
    ]
    later = [
        {"role": "user", "id": 2, "content": "It ends on Monday now."},
        {"role": "assistant", "id": 3, "content": "Moved."},
    ]
    return {
        "chat": [{"batch_number": 1, "turns": [turn, later], "time_anchor": None}],
        "probing_questions": {
            "abstention": [{"question": "Who is the owner?", "rubric": []}],
            "knowledge_update": [
                {
                    "question": "When does the sprint end?",
                    "source_chat_ids": {"original_info": [0], "updated_info": [2, 2]},
                }
            ],
            "information_extraction": [{"question": "Which day?", "source_chat_ids": [2]}],
        },
    }


SETS = {"locomo": locomo, "realtalk": realtalk, "longmemeval": longmemeval, "beam": beam}
