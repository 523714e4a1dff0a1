"""The reference at /docs shows the OpenAPI document, and loads nothing."""

import re
from html.parser import HTMLParser

import httpx2
import pytest

from firnline.server.reference import render_reference
from support.live_server import running


@pytest.fixture(scope="module")
def answers():
    with running() as server, httpx2.Client(base_url=server.url, timeout=60) as http:
        yield http.get("/docs"), http.get("/openapi.json").json()


class Elements(HTMLParser):
    """The elements of a page with their attributes; those without an end tag are left out."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_operation_and_type_is_shown_and_every_link_leads_there(answers):
    page, document = answers
    found = Elements(page.text)
    assert found.open == []
    ids = [attributes["id"] for _, attributes in found.seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    operations = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    assert operations | {f"type-{name}" for name in document["components"]["schemas"]} <= set(ids)
    links = {attributes["href"] for tag, attributes in found.seen if tag == "a"}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


def test_it_needs_no_script_and_no_other_host(answers):
    page, _ = answers
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    tags = {tag for tag, _ in Elements(page.text).seen}
    assert not tags & {"script", "link", "img", "iframe", "form"}
    assert not re.search(r"(?:href|src)=\"(?!#|/openapi\.json)", page.text)


def test_texts_of_a_document_are_no_markup():
    bad = "<script>alert(1)</script>"
    operation = {"summary": bad, "operationId": '"x', "responses": {"200": {"description": bad}}}
    document = {"info": {"title": bad, "version": bad}, "paths": {f"/{bad}": {"get": operation}}}
    page = render_reference(document)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 5
    assert 'id="&quot;x"' in page
