"""The proxy: an OpenAI or Anthropic client pointed at Firnline gets unlimited memory.

One request, step by step, in `routes.answer_request`::

    parse_request           request          what the client sent, and the conversation it names
    locate_conversation     locate, align    where its history is in the log; stores new messages
    build_request_context   request_context  as much of the conversation as fits the model's window
    send_upstream           upstream         the request to the endpoint; recall tools in between
    record_answer           locate           the answer in the log, next to the prompt it came from

Each step takes the request and the value of the step before it, and returns a new value. What
differs between protocols is a `Dialect`: `openai`, `anthropic`, and `translate` for an Anthropic
client with an OpenAI endpoint. Numeric limits are in `limits`.
"""
