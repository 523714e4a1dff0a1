"""The words of slots: with which people state them, and ask for them."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and lists stay on one line

from __future__ import annotations

from typing import Final

from firnline.language.statements.patterns import (
    AMOUNT,
    BIRTHDAY,
    CHANGE,
    DATE,
    DIET,
    EMPLOYER,
    HOME,
    JOB,
    NAME,
    RELATIONSHIP,
    STATUS,
    TITLE,
    TOOL,
)

VOCABULARY: Final = {
    HOME: "live lives living home city town moved move moving relocated based reside residence address"
    " wohne wohnen lebe umgezogen gezogen vivo vivir mudé habite habiter déménagé живу жить переехал"
    " переехала 住 搬",
    EMPLOYER: "work works working employed employer job employer company joined started position career"
    " arbeite arbeiten firma trabajo trabajar empresa travaille travailler entreprise работаю работать"
    " компания 工作 上班 公司",
    JOB: "work working engineer teacher developer manager designer nurse job profession occupation role title became promoted position beruf",
    BIRTHDAY: "birthday born birth bday geburtstag geboren cumpleaños nací anniversaire née рождения"
    " родился 生日",
    DIET: "eat eats eating diet vegetarian vegan pescatarian meat fish food meal dinner restaurant"
    " cook recipe esse essen fleisch vegetarisch comer carne vegetariano mange manger viande"
    " végétarien мясо ем вегетарианец 吃 素 肉",
    RELATIONSHIP: "single married engaged divorced relationship partner wife husband girlfriend boyfriend",
    NAME: "name called call heiße llamo appelle зовут 叫",
    TITLE: "called named name renamed rename project heißt umbenannt llama appelle называется 项目",
    STATUS: "status order ticket shipped delivered cancelled pending sent arrived refunded resolved closed",
    DATE: "when date day time moved rescheduled postponed meeting deadline appointment",
    AMOUNT: "budget price cost rent fee much raised",
    CHANGE: "switched instead replaced migrated use renamed left moved",
    TOOL: "use using switched migrated instead tool replaced",
}
"""Words with which people ask for a slot and state it."""

ASKED: Final = {
    HOME: "live living lives city hometown reside wohne lebe vivo habite живу 住",
    EMPLOYER: "employer employed work company arbeite trabajo travaille работаю 工作",
    JOB: "job profession occupation beruf profesión métier профессия профессии 职业",
    BIRTHDAY: "birthday born geburtstag cumpleaños anniversaire рождения 生日",
    DIET: "diet eat vegetarian vegan meat esse comer como mange ем 吃",
    RELATIONSHIP: "married single relationship verheiratet casado casada marié mariée женат замужем 结婚",
}
"""Words of which a question in the first person has one if it asks for the slot."""
OWN_WORDS: Final = frozenset(
    ("i", "my", "we", "our", "ich", "mein", "meine", "yo", "mi", "soy", "vivo", "trabajo", "como")
) | frozenset(("je", "j", "mon", "ma", "mes", "mis", "я", "мой", "мое", "меня", "у", "我"))
"""Words of which a question in the first person has one."""
