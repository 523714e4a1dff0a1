"""100,000 messages: the document stays small, and every message is where it belongs."""

import re

import pytest
from playwright.sync_api import expect

from firnline import Memory, Message
from firnline.log import limits
from firnline.server.rest import paging
from support.live_server import running
from support.page_site import Site, apart
from support.rest_client import Api

COUNT = 100_000
BATCH = 10_000
NODES_MAX = 3_000
BLOCK = 20
FRAME = 16  # milliseconds, of a page that is drawn as quickly as it should be
TOP = "document.querySelector('.scroller').scrollTop"


def text(seq):
    """Of many lengths, so that no code can rely on the height of a message."""
    return f"message {seq}. " + "Snow falls, settles and is pressed to firn. " * (seq * 7919 % 9)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('long')}/long.db"

    async def fill():
        async with Memory.open(url, embedder=None) as memory:
            for first in range(0, COUNT, BATCH):
                roles = (Message.user, Message.assistant)
                batch = [roles[n % 2](text(n)) for n in range(first, first + BATCH)]
                await memory.append("long", batch)

    apart(fill())
    return url


@pytest.fixture
def site(store, ports):
    """In place of the sample: the long conversation, and no model."""
    with running(store=store, port=ports[0], background=False) as server, Api(server.url) as api:
        yield Site(server, api, None, "long")


@pytest.fixture
def blocks(page):
    """Which blocks of messages were asked for."""
    asked = []

    def note(request):
        found = re.search(r"/messages\?first_seq=(\d+)&last_seq=(\d+)", request.url)
        if found:
            asked.append(int(found[1]))

    page.on("request", note)
    return asked


def nodes(page):
    return page.evaluate("document.querySelectorAll('*').length")


def shown(page):
    """The numbers in the document, which must follow each other, and those in the window."""
    listed = page.evaluate(
        """() => {
          const box = document.querySelector('.scroller').getBoundingClientRect();
          return [...document.querySelectorAll('.scroller [data-seq]')].map((e) => {
            const r = e.getBoundingClientRect();
            return [Number(e.dataset.seq), r.bottom > box.top && r.top < box.bottom, e.innerText];
          });
        }"""
    )
    seqs = [seq for seq, _, _ in listed]
    assert seqs == sorted(set(seqs))
    for seq, _, words in listed:
        assert f"message {seq}." in words
    return [seq for seq, visible, _ in listed if visible]


def settled(page):
    """No request is pending, and the window is filled from top to bottom."""
    page.wait_for_function(
        """() => {
          const box = document.querySelector('.scroller').getBoundingClientRect();
          return ![...document.querySelectorAll('.waiting')].some((e) => {
            const r = e.getBoundingClientRect();
            return r.bottom > box.top + 1 && r.top < box.bottom - 1;
          });
        }"""
    )


def frames(page, count):
    """Let the browser draw so many times."""
    page.evaluate(
        """async (count) => {
          const frame = () => new Promise((done) => requestAnimationFrame(done));
          for (let n = 0; n < count; n += 1) await frame();
        }""",
        count,
    )


def wheel(page, pixels):
    """Turn the wheel, and wait until the page has moved and come to rest."""
    before = page.evaluate(TOP)
    page.mouse.wheel(0, pixels)
    page.wait_for_function(f"before => {TOP} !== before", arg=before)
    page.evaluate(
        """async () => {
          const box = document.querySelector('.scroller');
          const frame = () => new Promise((done) => requestAnimationFrame(done));
          for (let still = 0, last = -1; still < 6; last = box.scrollTop) {
            await frame();
            still = box.scrollTop === last ? still + 1 : 0;
          }
        }"""
    )
    settled(page)


def jump(page, seq):
    field = page.get_by_label("Go to a date or a number")
    field.fill(f"#{seq}")
    field.press("Enter")
    expect(page.locator(f'[data-seq="{seq}"]')).to_be_in_viewport()
    settled(page)


@pytest.mark.requirement("X1")
def test_the_document_stays_small_at_every_place(site, page, blocks):
    site.open(page, site.path())
    settled(page)
    assert shown(page)[-1] == COUNT - 1
    assert nodes(page) < NODES_MAX
    for seq in (50_000, 3, 99_990, 0, 77_777):
        jump(page, seq)
        assert seq in shown(page)
        assert nodes(page) < NODES_MAX
        assert len(shown(page)) == shown(page)[-1] - shown(page)[0] + 1
    page.get_by_role("button", name="Newest").click()
    expect(page.locator(f'[data-seq="{COUNT - 1}"]')).to_be_in_viewport()
    expect(page.get_by_role("button", name="Newest")).to_have_count(0)
    assert nodes(page) < NODES_MAX
    assert len(blocks) < 40


@pytest.mark.thorough
def test_nothing_is_loaded_twice_without_need(site, page, blocks):
    site.open(page, site.path())
    settled(page)
    first = list(blocks)
    assert len(first) == len(set(first)) <= 4
    for _ in range(10):
        page.mouse.move(600, 500)
        wheel(page, -400)
        wheel(page, 400)
    assert len(blocks) == len(set(blocks)) <= 6
    site.api.say("other", "Something elsewhere.")
    page.locator(".scroller").focus()
    page.keyboard.press("End")
    settled(page)
    assert len(blocks) == len(set(blocks)) <= 6


@pytest.mark.thorough
def test_scrolling_shows_every_message_in_turn(site, page, blocks):
    site.open(page, site.path())
    jump(page, 60_000)
    page.mouse.move(600, 500)
    seen = set(shown(page))
    top = min(seen)
    while min(seen) > top - 130:
        wheel(page, -500)
        now = shown(page)
        assert now == list(range(now[0], now[-1] + 1)), "a hole in the window"
        assert now[-1] >= min(seen) - 1, "messages were skipped"
        assert now[0] <= min(seen), "it jumped back"
        seen |= set(now)
        assert nodes(page) < NODES_MAX
    assert seen == set(range(min(seen), max(seen) + 1))
    assert len(blocks) == len(set(blocks))
    while max(shown(page)) < 60_060:
        before = shown(page)
        wheel(page, 500)
        now = shown(page)
        assert before[0] <= now[0] <= before[-1] + 1, "messages were skipped"


def test_what_one_reads_does_not_move_while_the_rest_is_laid_out(site, page):
    """Blocks above get their real height when they come; the reader must not notice."""
    site.open(page, site.path())
    jump(page, 40_000)
    place = "() => document.querySelector('[data-seq=\"40000\"]').getBoundingClientRect().top"
    before = page.evaluate(place)
    frames(page, 40)
    assert page.evaluate(place) == pytest.approx(before, abs=2)
    page.mouse.move(600, 500)
    for _ in range(4):
        wheel(page, -120)
    assert page.evaluate(place) == pytest.approx(before + 480, abs=4)


DRAG = """(part) => new Promise((done) => {
  const s = document.querySelector('.scroller');
  s.addEventListener('scroll', done, { once: true });
  s.scrollTop = s.scrollHeight * part;
})"""


@pytest.mark.thorough
@pytest.mark.own_page
def test_the_full_length_can_be_scrolled(site, page, blocks):
    page.clock.install()
    site.open(page, site.path())
    settled(page)
    page.clock.pause_at(page.evaluate("Date.now()") + 1_000)  # the machine may be slow
    for part in range(1, 60):
        page.evaluate(DRAG, 1 - part / 60)
        page.clock.run_for(FRAME)
    page.clock.resume()
    settled(page)
    assert nodes(page) < NODES_MAX
    middle = shown(page)[0] / COUNT
    assert middle == pytest.approx(1 / 60, abs=0.01)
    assert len(blocks) < 100, "what is only passed is not loaded"


def test_a_page_that_ends_early_leaves_no_hole(site, page, monkeypatch):
    """The server ends a page where messages are large; the rest is asked for."""
    monkeypatch.setattr(limits, "PAGE_BYTES_MAX", 1)
    monkeypatch.setattr(paging, "ENTRIES_READ", 3)
    site.open(page, f"{site.path()}?seq=20005")
    expect(page.locator('.chat [data-seq="20005"]')).to_be_in_viewport()
    settled(page)
    numbers = page.locator(".chat [data-seq]").evaluate_all("a => a.map(e => +e.dataset.seq)")
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) % BLOCK == 0


def test_a_block_that_cannot_be_loaded_is_reported_and_tried_again(site, page, complaints):
    complaints.expected.append("503")
    problem = {"status": 503, "detail": "The store is away.", "code": "x", "retryable": True}
    site.open(page, site.path())
    page.route("**/messages?first_seq=4*", lambda route: route.fulfill(status=503, json=problem))
    field = page.get_by_label("Go to a date or a number")
    field.fill("#40000")
    field.press("Enter")
    expect(page.locator(".scroller").get_by_role("alert").first).to_contain_text("is away")
    page.unroute_all()
    while page.locator(".scroller").get_by_role("button", name="Try again").count():
        page.locator(".scroller").get_by_role("button", name="Try again").first.click()
        page.wait_for_load_state("networkidle")
    expect(page.locator('[data-seq="40000"]')).to_be_in_viewport()
