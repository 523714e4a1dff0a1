"""The panels beside the chat, each against the real server."""


def test_the_page_opens(site, page, shot):
    site.open(page, site.path("turns"))
    shot(page, "try")
