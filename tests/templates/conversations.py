"""Conversations as programs hold them: what chat templates must cope with, or refuse as Python's jinja2 does."""

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Wetter — <now> & 'later' \"x\"",
        "parameters": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "The city"},
            "days": {"type": "integer", "default": 1, "minimum": 0},
            "unit": {"type": "string", "enum": ["c", "f"]},
            "options": {"type": "object", "required": ["a"],
                        "properties": {"a": {"type": ["string", "null"]},
                                       "b": {"type": "array", "items": {"type": "number"}}}}}},
        "return": {"type": "string", "description": "what it is like"}}},
    {"type": "function", "function": {"name": "now", "description": "The time",
                                      "parameters": {"type": "object", "properties": {}}}},
]
USER = {"role": "user", "content": "Hello, wörld! 日本 👩‍👩‍👧 <x> & \"q\" 'a'"}
SYSTEM = {"role": "system", "content": "You are terse.\n"}
ANSWER = {"role": "assistant", "content": "  Hi there \n"}
THOUGHT = {"role": "assistant", "content": "<think>\nhmm\n</think>\n\nAnswer."}
AGAIN = {"role": "user", "content": " again "}


def call(arguments, name="get_weather", content=None, key="call_123456789"):
    return {"role": "assistant", "content": content,
            "tool_calls": [{"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}]}


def result(content, name="get_weather", key="call_123456789"):
    return {"role": "tool", "content": content, "name": name, "tool_call_id": key}


CONVERSATIONS = {
    "user": {"messages": [USER]},
    "system": {"messages": [SYSTEM, USER]},
    "turns": {"messages": [USER, ANSWER, AGAIN]},
    "turns after a system message": {"messages": [SYSTEM, USER, ANSWER, AGAIN, THOUGHT, AGAIN]},
    "no generation prompt": {"messages": [USER, ANSWER], "add_generation_prompt": False},
    "thinking off": {"messages": [USER, THOUGHT, AGAIN], "enable_thinking": False},
    "thinking apart": {"messages": [USER, {"role": "assistant", "content": "a", "reasoning_content": "because"}, AGAIN],
                       "enable_thinking": True, "thinking": True},
    "tools": {"messages": [USER], "tools": TOOLS},
    "a call and its result": {
        "messages": [USER, call({"city": "Köln", "days": 2, "options": {"a": None, "b": [1.5, 2]}, "flag": True}),
                     result("{\"t\": 20}"), {"role": "assistant", "content": "20 degrees"}, AGAIN], "tools": TOOLS},
    "arguments as text": {"messages": [SYSTEM, USER, call("{\"city\": \"Köln\"}"), result("sunny")], "tools": TOOLS},
    "two calls": {
        "messages": [USER, {"role": "assistant", "content": "let me see", "tool_calls": [
            {"id": "abcdefghi", "type": "function", "function": {"name": "now", "arguments": {}}},
            {"id": "abcdefghj", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "B"}}}]},
            result("1", "now", "abcdefghi"), result({"t": 1}, key="abcdefghj")], "tools": TOOLS},
    "a call without content": {
        "messages": [USER, {"role": "assistant", "tool_calls": [
            {"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "x"}}}]},
            {"role": "tool", "content": "res",
             "tool_call_id": "abcdefghi"}], "tools": TOOLS, "date_string": "26 Jul 2024"},
    "null content": {"messages": [USER, {"role": "assistant", "content": None}, USER]},
    "missing content": {"messages": [USER, {"role": "assistant"}, USER]},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text",
                                                                                          "text": "two"}]}]},
    "an image": {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "what"}]}]},
    "a system message in parts": {"messages": [{"role": "system", "content": [{"type": "text", "text": "sys"}]}, USER]},
    "documents": {"messages": [SYSTEM, USER],
                  "documents": [{"title": "T1", "text": "text one"}, {"title": "T2", "text": "text two"}]},
    "two user turns": {"messages": [USER, USER]},
    "an answer alone": {"messages": [ANSWER]},
    "nothing": {"messages": []},
    "an unknown role": {"messages": [{"role": "critic", "content": "x"}, USER]},
    "a developer": {"messages": [{"role": "developer", "content": "dev"}, USER]},
}


def variables(conversation):
    return {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>",
            "add_generation_prompt": True, "tools": None, "documents": None, **conversation}
