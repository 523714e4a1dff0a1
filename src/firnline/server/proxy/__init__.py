"""The proxy: an OpenAI or Anthropic client pointed at Firnline gets unlimited memory.

One request, step by step, parsed and then answered in `routes.answer_request`::

    parse_request           request          what the client sent, and the conversation it names
    locate_conversation     locate, align    where its history is in the log; stores new messages
    build_request_context   request_context  as much of the conversation as fits the model's window
    separate_request        locate           away from a conversation that may be someone else's
    send_upstream           upstream         the request to the endpoint; recall tools in between
    record_answer           locate           the answer in the log, next to the prompt it came from

Each step takes the request and the value of the step before it, and returns a new value. What
differs between protocols is a `Dialect`: `openai`, `anthropic`, and `translate` for an Anthropic
client with an OpenAI endpoint. The Responses API has a dialect for each kind of endpoint, made for
each request: `responses` for its own, `response_answers` for the others; `response_request` reads
the request, and `response_places` knows which entries an id leads to. `ownership` has what an
anonymous request may see, `check` what an answer must look like. Numeric limits are in `limits`.
"""
