"""The proxy: an OpenAI or Anthropic client pointed at Firnline gets a memory without end.

One request, hop by hop::

    identity   which conversation it names, if any; what its messages look like to us
    placing    where the re-sent history lies in the log, and which messages are new
    chat       store what is new, build a context, ask upstream, store the answer
    rounds     what upstream says, event by event; recall tools are run on the way

`messages` is `chat` for Anthropic's protocol: in its own shape with `native` for `rounds`, or
`translating`. What differs between protocols in a request is a `shape`.
"""
