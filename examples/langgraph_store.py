"""LangGraph's long-term store, kept in a Firnline memory and searched like one."""

from firnline.adapters.langchain import FirnlineStore
from firnline.sync import Memory

with Memory.open("sqlite:///store.db") as memory:
    store = FirnlineStore(memory)  # create_agent(..., store=store) gives it to tools
    store.put(("users", "ana"), "tea", {"text": "Ana drinks her tea without sugar."})
    store.put(("users", "ana"), "boat", {"text": "Ana keeps a boat in Bergen.", "since": 2019})
    store.put(("users", "ben"), "boat", {"text": "Ben sold his boat."})
    for item in store.search(("users", "ana"), query="Where is the boat?", limit=1):
        print(item.key, "-", item.value["text"])
    print(store.list_namespaces())
    store.put(("users", "ana"), "boat", {"text": "Ana keeps a boat in Oslo.", "since": 2026})
    print(store.get(("users", "ana"), "boat").value["text"])
    print(len(memory.read("users/ana/")), "versions in the log")
