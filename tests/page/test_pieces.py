"""The page's pure functions, in the browser that runs them."""

import json

import pytest

pytestmark = pytest.mark.looks


@pytest.fixture
def call(site, page):
    """Call a function of one of the page's modules."""
    site.open(page)

    def called(module, function, *arguments):
        return page.evaluate(
            """async ([module, name, given]) => {
              const found = await __module(module);
              return JSON.stringify(found[name](...given));
            }""",
            [module, function, list(arguments)],
        )

    return lambda *given: json.loads(called(*given))


def test_spans_and_what_lies_between_them(call):
    assert call("glacier", "spans", [7, 0, 2, 1, 9]) == [[0, 2], [7, 7], [9, 9]]
    assert call("glacier", "spans", []) == []
    assert call("glacier", "bare", 10, [[0, 2], [5, 6]]) == [[3, 4], [7, 9]]
    assert call("glacier", "bare", 10, [[4, 9], [0, 5]]) == []
    assert call("glacier", "bare", 3, []) == [[0, 2]]
    assert call("glacier", "bare", 0, []) == []


def test_costs_add_up(call):
    points = [
        {"turns": 2, "sent": 8, "digest_tokens": 2, "whole": 30, "since": "a", "until": "b"},
        {"turns": 1, "sent": 5, "digest_tokens": 0, "whole": 40, "since": "c", "until": "d"},
    ]
    assert call("costs", "totals", points) == [
        {"turns": 0, "paid": 0, "whole": 0, "until": "a"},
        {"turns": 2, "paid": 10, "whole": 30, "until": "b"},
        {"turns": 3, "paid": 15, "whole": 70, "until": "d"},
    ]
    tops = [call("costs", "roundUp", n) for n in (1, 3, 9, 10, 11, 249, 251, 999_999)]
    assert tops == [1, 5, 10, 10, 20, 250, 500, 1_000_000]


def test_excerpts_mark_words_and_lose_none(site, page):
    site.open(page)
    told = page.evaluate(
        """async () => {
          const { pattern, excerpt } = await __module("search");
          const all = (q, text) => excerpt(text, pattern(q));
          const marked = (q, text) => all(q, text).filter(([, m]) => m).map(([t]) => t);
          const text = (q, t) => excerpt(t, pattern(q)).map(([piece]) => piece).join('');
          return {
            forms: marked('orders arrived', 'One order ARRIVES, the other arriving; reorder no.'),
            odd: marked('c++ (x) [y] 4711', 'c++ (x) [y] and 4711-X'),
            none: pattern('a of'),
            empty: excerpt('', pattern('x y')),
            whole: text('beans', 'The beans   are\\n here.'),
            cjk: text('氷河', `${'漢字'.repeat(400)}氷河は動く${'漢字'.repeat(400)} end`),
            tail: text('needle', `${'x'.repeat(900)}-needle and much later`),
            emoji: text('氷河', `a${'🏔'.repeat(400)}氷河`),
            far: text('needle', `${'hay '.repeat(400)}needle${' hay'.repeat(400)}`),
          };
        }"""
    )
    assert told["forms"] == ["order", "ARRIVES", "arriving"]
    assert told["odd"] == ["4711"]
    assert told["none"] is None
    assert "".join(text for text, _ in told["empty"]) == ""
    assert told["whole"] == "The beans are here."
    assert "needle" in told["far"]
    assert told["far"].startswith("… ")
    assert told["far"].endswith(" …")
    assert "氷河は動く" in told["cjk"]
    assert "needle and" in told["tail"]
    assert told["emoji"].endswith("🏔氷河")
    assert "\ufffd" not in told["emoji"].encode("utf-8", "replace").decode()
    assert told["emoji"].startswith("… 🏔")
    assert len(told["far"]) < 400


def test_a_family_is_found_wherever_one_stands(call):
    def one(name, of=None, at=1, when="1"):
        about = {} if of is None else {"branch": {"of": of, "at": at}}
        return {"conversation": name, "metadata": about, "created_at": when}

    known = [one("a"), one("b", "a", when="2"), one("c", "b", when="3"), one("x"), one("y", "x")]
    for name in "abc":
        found = call("chat", "familyOf", name, None, known)
        assert found["root"] == "a"
        assert [branch["conversation"] for branch in found["branches"]] == ["b", "c"]
    assert call("chat", "familyOf", "x", None, known)["root"] == "x"
    circle = [one("p", "q"), one("q", "p")]
    assert call("chat", "familyOf", "p", None, circle)["root"] in ("p", "q")
    strange = [one("s", {"of": 1}), one("t", 5), one("u", "s", "no number")]
    assert call("chat", "familyOf", "s", None, strange)["branches"] == []


def test_blocks_lie_without_gaps_however_many_there_are(site, page):
    site.open(page)
    told = page.evaluate(
        """async () => {
          const { BLOCK, layout } = await __module("scroller");
          const wrong = [];
          for (const count of [0, 1, 19, 20, 21, 1000, 100000, 5000000]) {
            const sizes = new Map([[0, 11], [3, 5000], [40, 1]]);
            const { total, size, offset, between } = layout(count, sizes);
            const whole = offset(total);
            if (total !== Math.ceil(count / BLOCK)) wrong.push([count, 'total']);
            if (whole > 12_100_000) wrong.push([count, 'too tall', whole]);
            for (const top of [-900, 0, 777, whole / 2, whole - 500, whole + 900]) {
              const { near, before, after } = between(top, top + 2500);
              const inside = near.reduce((y, n) => y + size(n), 0);
              if (Math.abs(before + inside + after - whole) > 1) wrong.push([count, top, 'sum']);
              if (near.some((n, i) => i && n !== near[i - 1] + 1)) wrong.push([count, top, 'gap']);
              const first = near.length ? offset(near[0]) : before;
              if (Math.abs(before - first) > 1) wrong.push([count, top, 'offset']);
            }
          }
          return wrong;
        }"""
    )
    assert told == []
