"""Stored text is shown and never executed: no script, no request to another server."""

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from firnline import Message
from firnline.log.text import clean_name
from support.hostile_texts import PAYLOADS
from support.page_site import is_shown, settle

TABS = ["turns", "digests", "important", "topics", "manage", ""]
GUARD = """
Object.defineProperty(window, '__pwned', { set(v) { window.__ran = (window.__ran || 0) + 1; } });
for (const name of ['alert', 'confirm', 'prompt', 'print', 'open']) window[name] = () => { window.__pwned = 1; };
addEventListener('securitypolicyviolation', (e) => console.error(`refused: ${e.violatedDirective} ${e.blockedURI}`));
"""  # noqa: E501
HARMLESS = """() => {
  const wrong = [];
  for (const e of document.querySelectorAll('#app *')) {
    if (/^(SCRIPT|IFRAME|OBJECT|EMBED|BASE|LINK|META|STYLE|FRAME|PORTAL|AUDIO|VIDEO|SOURCE|MATH|TEMPLATE|MARQUEE|FOREIGNOBJECT|USE|IMAGE|ANIMATE|SET)$/i.test(e.tagName)) wrong.push(e.outerHTML);
    for (const a of e.attributes) {
      if (/^on/i.test(a.name) || /^(srcdoc|formaction|ping|background|poster|srcset|is)$/i.test(a.name)) wrong.push(e.outerHTML);
      if (/^(href|src|action|xlink:href)$/i.test(a.name) && !/^(#|https?:|mailto:|\\/favicon\\.svg$|\\/api\\/v1\\/|data:image\\/(png|jpeg|gif|webp);base64,)/i.test(a.value)) wrong.push(e.outerHTML);
    }
    if (/^(IMG)$/.test(e.tagName) && !/^(\\/favicon\\.svg$|data:image\\/)/.test(e.getAttribute('src'))) wrong.push(e.outerHTML);
    if (e.tagName === 'A' && /^https?:/.test(e.getAttribute('href') || '') && !/noopener/.test(e.rel)) wrong.push(e.outerHTML);
  }
  if (window.__ran) wrong.push(`ran ${window.__ran} times`);
  const [top] = document.elementsFromPoint(20, 20);
  if (top && !top.closest('header.top, .skip, dialog')) wrong.push(`covered by ${top.outerHTML}`);
  if (!document.querySelector('header.top')?.checkVisibility({ visibilityProperty: true, opacityProperty: true })) wrong.push('without a frame');
  return wrong.map((one) => one.slice(0, 300));
}"""  # noqa: E501

pytestmark = pytest.mark.own_page


@pytest.fixture
def page(page):
    """A page that records every script that runs."""
    page.add_init_script(GUARD)
    page.on("dialog", lambda dialog: dialog.dismiss())
    return page


def is_harmless(page):
    """No script runs, no foreign element is there, and none covers the page or its frame."""
    assert page.evaluate(HARMLESS) == []


def works(page, site, name):
    """The page can still be used."""
    before = site.server.run(site.memory().head(name))
    page.get_by_label("Your message").fill("Is all well?")
    page.get_by_label("Your message").press("Enter")
    question = page.locator(f'.chat [data-seq="{before.seq + 1}"]')
    expect(question).to_contain_text("Is all well?", timeout=30_000)
    expect(page.locator(f'.chat [data-seq="{before.seq + 2}"]')).to_be_visible()
    is_harmless(page)


def append(site, name, messages):
    site.server.run(site.memory().append(name, messages))


def names():
    """Those of the texts that can be names."""
    fitting = []
    for text in PAYLOADS:
        try:
            fitting.append(clean_name(text, "name"))
        except Exception:  # noqa: BLE001 - refused, as it should be
            continue
    return fitting


def test_there_are_three_hundred():
    assert len(set(PAYLOADS)) >= 300
    assert len(names()) >= 250


def test_messages_are_shown_and_never_run(site, page):
    append(site, "hostile", [Message.user(text) for text in PAYLOADS])
    site.open(page, site.path(conversation="hostile"))
    for seq in range(0, len(PAYLOADS), 12):
        field = page.get_by_label("Go to a date or a number")
        field.fill(f"#{seq}")
        field.press("Enter")
        is_shown(page, seq)
        is_harmless(page)
    page.locator('.chat [data-seq="0"]').wait_for(state="detached")
    works(page, site, "hostile")


def test_what_is_typed_as_html_is_shown_as_it_was_typed(site, page):
    append(site, "typed", [Message.user(text) for text in PAYLOADS[:40]])
    site.open(page, f"{site.path(conversation='typed')}?seq=13")
    is_shown(page, 13)
    expect(page.locator('.chat [data-seq="13"] .text')).to_have_text(PAYLOADS[13])


def test_answers_that_stream_in_are_never_run(site, page):
    """Every third: they become the same messages, which the tests above try with all."""
    site.open(page, site.path(conversation="stream"))
    some = PAYLOADS[::3]
    for start in range(0, len(some), 38):
        site.model.say("\n\n".join(some[start : start + 38]))
        page.get_by_label("Your message").fill("\n".join(some[start : start + 3]))
        page.get_by_label("Your message").press("Enter")
        expect(page.get_by_role("button", name="Send")).to_be_visible()
        is_harmless(page)
    works(page, site, "stream")


def test_names_tools_files_and_metadata_are_never_run(site, page, complaints):
    complaints.expected.append("422")  # so many pictures fit no window
    png = "data:image/png;base64,iVBORw0KGgo="
    said = []
    for number, text in enumerate(PAYLOADS):
        call = {"id": f"c{number}", "type": "function"}
        about = {"name": text[:60], "arguments": json.dumps({text: text})}
        said += [
            {"role": "assistant", "content": text, "tool_calls": [{**call, "function": about}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": text},
            {
                "role": "user",
                "name": text[:60],
                "content": [
                    {"type": "text", "text": text},
                    {"type": "file", "file": {"filename": text, "file_id": text}},
                    {"type": "image_url", "image_url": {"url": text}},
                    {"type": "image_url", "image_url": {"url": f"{png}{text}"}},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": text, "data": text},
                    },
                    {"type": "document", "title": text, "source": {"type": "url", "url": text}},
                    {"type": text, "x": text},
                ],
            },
        ]
    vnode = {"type": "script", "props": {"children": "window.__pwned=1"}, "constructor": None}
    messages = [
        Message.from_openai(one, metadata={"interrupted": vnode if n % 2 else PAYLOADS[n // 3]})
        for n, one in enumerate(said)
    ]
    append(site, "parts", messages)
    branch = {"branch": {"of": vnode, "at": vnode}, **{text: text for text in PAYLOADS}}
    site.api.patch("/conversations/parts", {"metadata": branch})
    site.open(page, site.path("manage", "parts"))
    is_harmless(page)
    for seq in range(0, len(said), 60):
        field = page.get_by_label("Go to a date or a number")
        field.fill(f"#{seq}")
        field.press("Enter")
        is_shown(page, seq)
        page.evaluate("document.querySelectorAll('.chat details').forEach((d) => { d.open = 1; })")
        is_harmless(page)
    works(page, site, "parts")


def test_conversations_by_any_name_are_listed_and_opened(site, page):
    async def fill(memory):
        for name in names():
            await memory.append(name, [Message.user(f"I am {name}")])

    site.server.run(fill(site.memory()))
    site.open(page)
    is_harmless(page)
    listed = page.locator(".conversations .title").all_inner_texts()
    assert set(names()[:200]) <= {*listed}
    for name in names()[:: len(names()) // 12]:
        page.locator(".conversations").get_by_role("searchbox").fill(name)
        page.locator(".conversations .title").get_by_text(name, exact=True).click()
        expect(page.locator(".chat h1")).to_have_text(name)
        expect(page.locator('.chat [data-seq="0"]')).to_be_visible()
        is_harmless(page)
    works(page, site, name)


def test_projects_by_any_name_are_shown(site, page):
    for name in names():
        told = {"status": name[:60], "schedule": name, "task": name, "metadata": {name: name}}
        site.api.http.put(f"/api/v1/projects/{_segment(name)}", json=told).raise_for_status()
    site.open(page)
    expect(page.locator(".project")).to_have_count(len(names()) + 1)
    is_harmless(page)
    page.locator(".project").nth(7).get_by_role("button", name="Edit").click()
    is_harmless(page)
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    site.open(page, "#/search")
    is_harmless(page)


def _segment(name):
    return quote(name.replace("~", "~0").replace("/", "~1"), safe="")


@pytest.fixture
def derived(site):
    """Digests, important data, tags and recorded prompts that are all full of it."""
    name = site.conversation
    facts = {
        "user_preferences": {text: text for text in PAYLOADS},
        "important_facts": PAYLOADS,
        "key_decisions": PAYLOADS,
        "entities": PAYLOADS,
        "source_urls": [text for text in PAYLOADS if "script:" in text],
        "custom_fields": {text: {text: text} for text in PAYLOADS[:50]},
    }
    summary = "\n".join(PAYLOADS)
    site.api.post(f"{site.about}/important", {"important_data": facts, "summary": summary})
    for word in ("Zeppelins", "Violins", "Umbrellas", "Waterfalls"):  # a topic has at most 50 tags
        site.api.say(name, f"{word} {word.lower()}?", "Noted.")
    topics = [one["topic_id"] for one in site.api.get(f"{site.about}/topics")["data"]]
    some = [names()[first : first + 50] for first in range(0, len(names()), 50)]
    assert len(topics) >= len(some)
    for topic, tags in zip(topics, some, strict=False):
        site.api.patch(f"{site.about}/topics/{topic}/tags", {"add": tags, "remove": []})
    append(site, name, [Message.user(text) for text in PAYLOADS])
    site.api.post(f"{site.about}/turns", {"message": "What is all this?", "budget": 30_000})
    return site


def test_panels_show_it_and_never_run_it(derived, page):
    for tab in TABS:
        derived.open(page, derived.path(tab))
        panel = page.get_by_role("tabpanel")
        expect(panel).not_to_contain_text("Loading")
        for summary in panel.locator("details:not([open]) > summary").all()[:40]:
            if summary.is_visible():
                summary.click()
        settle(page)
        is_harmless(page)
        works(page, derived, derived.conversation)


def test_searching_for_it_and_addresses_made_of_it_run_nothing(site, page, complaints):
    complaints.expected.append("status of 4")  # what no conversation can be called, and odd words
    append(site, "hostile", [Message.user(text) for text in PAYLOADS])
    site.open(page, "#/search")
    for text in PAYLOADS[::9]:
        value = quote(text, safe="")
        page.evaluate("h => { location.hash = h; }", f"#/search?q={value}")
        page.wait_for_timeout(30)
        is_harmless(page)
        page.evaluate("h => { location.hash = h; }", f"#/search?c={value}&when={value}")
        page.wait_for_timeout(30)
        is_harmless(page)
        page.evaluate("h => { location.hash = h; }", f"#/c/{value}/{value}?seq={value}")
        page.wait_for_timeout(30)
        is_harmless(page)
    site.open(page, "#/search?q=window")
    expect(page.locator(".hit mark").first).to_be_visible()
    is_harmless(page)


def test_an_imported_file_by_any_name_runs_nothing(site, page, tmp_path, complaints):
    complaints.expected.append("status of 4")
    file = {
        "name": '"><img src=x onerror=window.__pwned=1>.jsonl',
        "mimeType": "application/jsonl",
        "buffer": json.dumps({"kind": PAYLOADS[0], "x": PAYLOADS}).encode(),
    }
    site.open(page)
    page.get_by_role("button", name="Export and import").click()
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import it").click()
    expect(page.locator(".said.bad, .wrong").first).to_be_visible()
    is_harmless(page)


def test_the_guard_notices_what_runs(site, page, complaints):
    """Break the walls, and these tests fail: they can."""
    complaints.expected.append(".")
    site.open(page)
    is_harmless(page)
    page.evaluate("window.__pwned = 1")
    assert page.evaluate(HARMLESS) == ["ran 1 times"]
    page.evaluate(
        """() => {
          const sheet = document.createElement('object');
          sheet.style = 'position: fixed; inset: 0; z-index: 9999';
          document.querySelector('#app').append(sheet);
        }"""
    )
    told = page.evaluate(HARMLESS)
    assert len(told) == 3
    assert told[0].startswith("<object")
    assert told[2].startswith("covered by <object")
    page.evaluate("document.querySelector('header.top').style.display = 'none'")
    assert page.evaluate(HARMLESS)[-1] == "without a frame"


def test_the_policy_holds_even_where_the_page_would_not(site, page, complaints):
    """A script or a picture that got in would still be refused by the browser."""
    complaints.expected.append("refused|Refused|violates|Content Security|Trusted")
    site.open(page)
    told = page.evaluate(
        """async () => {
          const told = {};
          try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); told.html = 'put in'; }
          catch (error) { told.html = error.name; }
          told.eval = await new Promise((done) => setTimeout(() => {
            try { eval('1'); done('ran'); } catch (error) { done(error.name); }
          }));
          try { trustedTypes.createPolicy('mine', { createHTML: (x) => x }); told.policy = 'made'; }
          catch (error) { told.policy = error.name; }
          const image = new Image();
          told.image = await new Promise((done) => {
            image.onload = () => done('loaded');
            image.onerror = () => done('refused');
            image.src = 'https://evil.example/x.png';
          });
          told.fetch = await fetch('https://evil.example/x').then(() => 'sent', (e) => e.name);
          return told;
        }"""
    )
    assert told == {
        "html": "TypeError",
        "eval": "EvalError",
        "policy": "TypeError",
        "image": "refused",
        "fetch": "TypeError",
    }
    complaints.heard = [one for one in complaints.heard if "a request to" not in one]
