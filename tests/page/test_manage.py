"""Managing a conversation on the page: verify, strategies, exports, erase."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from firnline.log.proof_check import check_proof, parse_note
from support import foreign_exports
from support.page_site import apart, come_back, is_shown, unfold_panel


def box(panel, title):
    return panel.get_by_role("region", name=title, exact=True)


def importing(page):
    """The part of the dialog at the top that imports."""
    page.get_by_role("button", name="Export and import").click()
    return page.get_by_role("dialog", name="Export and import").get_by_role("region", name="Import")


@pytest.mark.promise("tamper-evident")
def test_everything_is_verified_and_the_proof_is_shown(site, page, shot):
    panel = site.panel(page, "manage")
    proof = box(panel, "Proof")
    proof.get_by_role("button", name="Verify everything").click()
    head = site.api.get(site.about)
    expect(proof).to_contain_text("Verified. Every hash of 43 messages")
    expect(proof).to_contain_text(head["hash"])
    shot(page, "manage", unfold_panel)
    earlier = site.api.get(f"{site.about}/messages/7")["hash"]
    proof.get_by_label("A hash that you noted").fill(earlier)
    proof.get_by_role("button", name="Verify everything").click()
    expect(proof).to_contain_text("Verified.")
    proof.get_by_label("A hash that you noted").fill("sha256:" + "0" * 64)
    proof.get_by_role("button", name="Verify everything").click()
    expect(proof.get_by_role("alert")).to_contain_text("This hash is not in this chain.")
    expect(proof.get_by_role("alert")).to_contain_text("all 43 messages")


def test_proofs_for_others_are_saved(site, page):
    panel = box(site.panel(page, "manage"), "Proof")
    with page.expect_download() as download:
        panel.get_by_role("button", name="Save a checkpoint").click()
    noted = parse_note(download.value.path().read_text())
    proof = panel.get_by_role("button", name="Prove it")
    expect(proof).to_be_disabled()
    panel.get_by_label("Message").fill("8")
    with page.expect_download() as download:
        proof.click()
    checked = check_proof(download.value.path().read_text(), known=noted)
    assert (checked.seq, download.value.suggested_filename) == (8, "ticket-42-8.proof.json")


def test_what_is_no_hash_is_no_alarm(site, page):
    panel = site.panel(page, "manage")
    proof = box(panel, "Proof")
    noted = proof.get_by_label("A hash that you noted")
    head = site.api.get(site.about)["hash"]
    for mistyped in ("x", "sha256:12", head[:-1], f"{head}0"):
        noted.fill(mistyped)
        expect(proof).to_contain_text("This is not a hash")
        expect(proof.get_by_role("alert")).to_have_count(0)
        expect(proof.get_by_role("button", name="Verify everything")).to_be_disabled()
    for taken in (f"  {head} ", head.removeprefix("sha256:").upper()):
        noted.fill(taken)
        expect(proof).not_to_contain_text("This is not a hash")
        proof.get_by_role("button", name="Verify everything").click()
        expect(proof).to_contain_text("Verified.")


def test_damage_is_reported(site, page, tmp_path, complaints):
    complaints.expected.append("500")  # what the strategy makes of it cannot be shown
    panel = site.panel(page, "manage")
    # By another process: in this one, closing the file would take the server's locks with it.
    change = "UPDATE entry SET tokens = tokens + 1 WHERE id & 4294967295 = 5"
    code = f"from support.damage import damage_rows; damage_rows({str(tmp_path / 'page.db')!r}"
    command = [sys.executable, "-c", f"{code}, {change!r})"]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
    box(panel, "Proof").get_by_role("button", name="Verify everything").click()
    alert = box(panel, "Proof").get_by_role("alert")
    expect(alert).to_contain_text("Stored data has changed")
    expect(alert).to_contain_text("5")


@pytest.mark.requirement("X3")
def test_the_strategy_is_chosen_and_its_parameters_are_changed(site, page):
    panel = box(site.panel(page, "manage"), "Strategy")
    expect(panel).to_contain_text("It is the server's default.")
    panel.get_by_role("combobox", name="Strategy").select_option("window")
    panel.get_by_role("button", name="Use window").click()
    expect(panel.get_by_label("keep last")).to_have_value("4")
    assert site.api.get(site.about)["strategy"]["name"] == "window"
    panel.get_by_label("keep last").fill("6")
    panel.get_by_label("prefix").fill("Before / Zuvor:")
    panel.get_by_role("button", name="Save the parameters").click()
    expect(panel.get_by_role("button", name="Save the parameters")).to_be_disabled()
    expect(panel.get_by_label("keep last")).to_have_value("6")
    expect(panel.locator("[aria-busy=true]")).to_have_count(0)
    strategy = site.api.get(site.about)["strategy"]
    given = strategy["parameters"]
    assert (strategy["own"], given["keep_last"]) == (True, 6)
    assert (given["prefix"], given["trigger"]) == ("Before / Zuvor:", 0.85)


def test_a_wrong_parameter_is_reported(site, page, complaints):
    complaints.expected.append("400")
    before = site.api.get(site.about)["strategy"]["parameters"]
    panel = box(site.panel(page, "manage"), "Strategy")
    panel.get_by_label("tail").fill("as much as you like")
    panel.get_by_role("button", name="Save the parameters").click()
    expect(page.locator(".said.bad")).to_contain_text("tail")
    assert site.api.get(site.about)["strategy"]["parameters"] == before


def test_title_project_person_and_metadata_are_saved(site, page):
    panel = box(site.panel(page, "manage"), "Title, project and person")
    save = panel.get_by_role("button", name="Save")
    expect(save).to_be_disabled()
    panel.get_by_label("Title").fill("A rope")
    panel.get_by_label("Project").fill("ropes")
    panel.get_by_label("With whom").fill("Ana")
    panel.get_by_text("Metadata for programs").click()
    panel.get_by_label("Metadata").fill("[1]")
    expect(panel.get_by_role("alert")).to_contain_text("not a JSON object")
    expect(save).to_be_disabled()
    panel.get_by_label("Metadata").fill('{"customer": "4711"}')
    save.click()
    expect(page.locator(".said")).to_contain_text("Saved.")
    about = site.api.get(site.about)
    assert (about["project"], about["person"]) == ("ropes", "Ana")
    assert about["metadata"] == {"title": "A rope", "customer": "4711"}
    expect(page.locator(".chat h1")).to_have_text("A rope")
    expect(panel.get_by_role("link", name="What Ana has stated")).to_be_visible()


def test_entries_are_pinned_by_number(site, page):
    panel = box(site.panel(page, "manage"), "Pins")
    panel.get_by_label("Message").fill("8")
    panel.get_by_role("button", name="Pin it").click()
    expect(panel.locator(".item")).to_contain_text("for 95 euros")
    assert site.api.get(site.about)["pinned"] == [8]
    panel.get_by_role("button", name="Show message 8").click()
    is_shown(page, 8)
    panel.get_by_role("button", name="Unpin #8").click()
    expect(panel).to_contain_text("Nothing is pinned")
    assert site.api.get(site.about)["pinned"] == []


def test_enter_pins_and_branches(site, page):
    panel = site.panel(page, "manage")
    box(panel, "Pins").get_by_label("Message").fill("8")
    box(panel, "Pins").get_by_label("Message").press("Enter")
    expect(box(panel, "Pins").locator(".item")).to_contain_text("for 95 euros")
    assert site.api.get(site.about)["pinned"] == [8]
    box(panel, "Branches").get_by_label("Name").fill("plan b")
    box(panel, "Branches").get_by_label("Name").press("Enter")
    expect(page.locator(".chat h1")).to_have_text("plan b")


def test_entries_are_archived_and_restored(site, page):
    panel = box(site.panel(page, "manage"), "Archive")
    panel.get_by_label("Keep the newest").fill("3")
    panel.get_by_role("button", name="Archive the rest").click()
    expect(panel).to_contain_text("40 of 43 messages are compressed")
    assert site.api.get(site.about)["archived"] == 40
    panel.get_by_role("button", name="Restore all").click()
    expect(panel).to_contain_text("Nothing is compressed.")
    assert site.api.get(site.about)["archived"] == 0


def test_a_branch_is_made_and_both_know_each_other(site, page):
    panel = box(site.panel(page, "manage"), "Branches")
    expect(panel).to_contain_text("No branches yet")
    panel.get_by_label("Up to message").fill("5")
    panel.get_by_label("Name").fill("plan / b")
    panel.get_by_role("button", name="Branch", exact=True).click()
    expect(page.locator(".chat h1")).to_have_text("plan / b")
    page.get_by_role("tab", name="Manage").click()
    expect(panel).to_contain_text(f"It is a branch of {site.conversation} up to #5")
    panel.get_by_role("link", name=site.conversation).click()
    expect(page.locator(".chat h1")).to_have_text(site.conversation)
    is_shown(page, 5)
    page.get_by_role("tab", name="Manage").click()
    expect(panel.get_by_role("link", name="plan / b")).to_be_visible()
    expect(panel).to_contain_text("from #5, 6 messages")


def test_another_beginning_has_no_number(site, page):
    site.api.say("other", "Order 1139 never arrived.", "I will look.")
    branch = {"metadata": {"branch": {"of": site.conversation, "at": -1}}}
    site.api.patch("/conversations/other", branch)
    site.open(page, site.path("manage", "other"))
    panel = box(page.get_by_role("tabpanel"), "Branches")
    expect(panel).to_contain_text(f"It is another start of {site.conversation}.")
    panel.get_by_role("link", name=site.conversation).click()
    expect(page.locator(".chat h1")).to_have_text(site.conversation)
    page.get_by_role("tab", name="Manage").click()
    expect(panel).to_contain_text("other from the start, 2 messages")
    expect(page.locator(".said")).to_be_empty()


def test_a_branch_goes_up_to_the_newest_entry_by_default(site, page):
    panel = box(site.panel(page, "manage"), "Branches")
    upto = panel.get_by_label("Up to message")
    expect(upto).to_have_value("42")
    site.api.say(site.conversation, "One more.", "Two more.")
    come_back(page)
    expect(upto).to_have_value("44")
    upto.fill("3")
    site.api.say(site.conversation, "Three more.")
    come_back(page)
    expect(upto).to_have_attribute("max", "45")
    expect(upto).to_have_value("3")


def exported(page, out, path):
    """Export it, and keep the file."""
    out.get_by_role("button", name="Export this conversation").click()
    expect(out).to_contain_text("The export is done: 43 of 43 messages")
    with page.expect_download() as download:
        out.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename.endswith(".jsonl")
    download.value.save_as(path)
    manifest = json.loads(path.read_text().splitlines()[-1])["manifest"]
    expect(out).to_contain_text(manifest["sha256"])
    out.scroll_into_view_if_needed()


def test_an_error_is_shown_next_to_its_form(site, page, complaints, accessible):
    complaints.expected.append("403")
    told = {"status": 403, "detail": "the API key lacks the scope admin"}
    page.route(
        f"**{site.about}",
        lambda route: (
            route.fulfill(status=403, json=told)
            if route.request.method == "DELETE"
            else route.continue_()
        ),
    )
    panel = site.panel(page, "manage")
    box(panel, "Erase").get_by_role("button", name="Erase this conversation").click()
    dialog = page.get_by_role("dialog", name="Erase it permanently?")
    dialog.get_by_label(re.compile("^Type")).fill(site.conversation)
    dialog.get_by_role("button", name="Erase it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The API key lacks the scope")
    accessible(page)


@pytest.mark.promise("erase-total")
def test_it_is_erased_when_its_name_is_typed_and_there_is_a_certificate(site, page, shot):
    before = site.api.get(site.about)
    panel = site.panel(page, "manage")
    box(panel, "Erase").get_by_role("button", name="Erase this conversation").click()
    dialog = page.get_by_role("dialog", name="Erase it permanently?")
    yes = dialog.get_by_role("button", name="Erase it")
    expect(yes).to_be_disabled()
    dialog.get_by_label(re.compile("^Type")).fill("ticket")
    expect(yes).to_be_disabled()
    dialog.get_by_label(re.compile("^Type")).fill(site.conversation)
    shot(page, "manage-erase", unfold_panel)
    yes.click()
    certificate = page.get_by_role("dialog", name="Certificate of erasure")
    expect(certificate).to_contain_text(before["hash"])
    expect(certificate).to_contain_text("Messages43")
    shot(page, "manage-certificate")
    assert site.api.refused("GET", site.about)["status"] == 404
    with page.expect_download() as download:
        certificate.get_by_role("button", name="Save it").click()
    saved = json.loads(download.value.path().read_text())
    assert (saved["head"], saved["entries"]) == (before["hash"], 43)
    certificate.get_by_role("button", name="Done").click()
    expect(certificate).to_have_count(0)
    side = page.get_by_role("region", name="Conversations")
    expect(side).not_to_contain_text(site.conversation)


def test_it_names_the_branches_and_erases_them_on_request(site, page):
    site.api.post(f"{site.about}/branch", {"name": "copy", "seq": 3})
    panel = site.panel(page, "manage")
    box(panel, "Erase").get_by_role("button", name="Erase this conversation").click()
    dialog = page.get_by_role("dialog", name="Erase it permanently?")
    expect(dialog.get_by_role("listitem")).to_contain_text("branch after #3, 4 messages")
    expect(dialog).to_contain_text("these messages survive there")
    dialog.get_by_label("Also erase 1 conversation with copies of its messages").check()
    dialog.get_by_label(re.compile("^Type")).fill(site.conversation)
    dialog.get_by_role("button", name="Erase it").click()
    certificate = page.get_by_role("dialog", name="Certificate of erasure")
    expect(certificate).to_contain_text("Branchescopy")
    expect(certificate).to_contain_text("Copies survive innone")
    assert site.api.refused("GET", "/conversations/copy")["status"] == 404


@pytest.mark.own_page
def test_an_export_works_with_a_key(site, page, tmp_path):
    _, token = apart(site.server.parts.keys.create("default", scopes=("read",)))
    page.add_init_script(f"sessionStorage.setItem('firnline.key', '{token}')")
    out = box(site.panel(page, "manage"), "Export")
    out.get_by_role("button", name="Export this conversation").click()
    with page.expect_download() as download:
        out.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "ticket-42.jsonl"
    assert '"manifest"' in download.value.path().read_text().splitlines()[-1]


@pytest.mark.promise("round-trip")
def test_an_export_brings_it_back(site, page, tmp_path, shot):
    before = site.api.get(site.about)
    panel, path = site.panel(page, "manage"), tmp_path / "kept.jsonl"
    exported(page, box(panel, "Export"), path)
    shot(page, "manage-export", unfold_panel)
    site.api.say("another", "Hello.")
    site.api.delete(site.about)
    site.open(page, site.path("manage", "another"))
    page.reload()
    into = importing(page)
    expect(into.get_by_role("button", name="Import it")).to_be_disabled()
    into.get_by_label("File").set_input_files(path)
    into.get_by_role("button", name="Import it").click()
    expect(into).to_contain_text("1 conversation with 43 messages read as firnline; 43 were new.")
    expect(page.get_by_role("region", name="Conversations")).to_contain_text(site.conversation)
    after = site.api.get(site.about)
    assert (after["hash"], after["entries"]) == (before["hash"], before["entries"])


def test_an_export_of_another_program_is_imported_with_a_report(site, page, tmp_path, shot):
    path = tmp_path / "export.zip"
    foreign_exports.zipped(
        path, {"conversations.json": foreign_exports.SAMPLES["chatgpt"], "photo.png": b"x"}
    )
    site.open(page, site.path("manage"))
    into = importing(page)
    into.get_by_label("File").set_input_files(path)
    into.get_by_role("button", name="Import it").click()
    expect(into).to_contain_text("read as chatgpt")
    into.get_by_text("Left out").click()
    expect(into).to_contain_text("a file of another type: .png")
    shot(page, "import")
    page.keyboard.press("Escape")
    listed = page.get_by_role("region", name="Conversations")
    expect(listed.locator('a[title="chatgpt/conv-1"]')).to_contain_text("Tea")
    listed.get_by_label("Find a conversation").fill("tea")
    expect(listed.get_by_role("listitem").first).to_contain_text("Tea")


def test_a_file_that_is_no_export_is_rejected_with_the_reason(site, page, tmp_path):
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"firnline": 1, "tenant": "default"}\n{"broken"')
    site.open(page, site.path("manage"))
    into = importing(page)
    into.get_by_label("File").set_input_files(wrong)
    into.get_by_role("button", name="Import it").click()
    expect(into).to_contain_text("The import failed")
    expect(into.get_by_role("alert")).to_be_visible()
    assert str(tmp_path) not in into.inner_text()
