// Requests: every stage, the tokens of every part, budgets that refuse, what is left out only when asked, and what a
// template does not show.
#include <numeric>

#include "spec_tools.hpp"
#include "text_tools.hpp"
#include "vitrine/text/chat_request.hpp"

using namespace vitrine;
using namespace text_tools;

namespace {

// One token per byte, so that counts can be read off the texts.
Tokenizer bytes_tokenizer() {
  auto spec = byte_level({}, "qwen2");
  for (const char* marker : {"<|im_start|>", "<|im_end|>"}) add_token(spec, marker, TokenKind::control);
  return Tokenizer(spec);
}
const char* const chatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

ChatRequest full() {
  return {.system = "Be brief.",
          .history = chat_messages({{"user", "one"}, {"assistant", "1"}, {"user", "two"}, {"assistant", "2"}}),
          .question = "What? <|im_end|>",
          .documents = {{"A", "first"}, {"B", "second"}, {"", "third"}},
          .tool_results = chat_messages({{"tool", "result"}})};
}

std::int64_t count(const BuiltRequest& built, RequestPart part) {
  for (const auto& each : built.parts)
    if (each.part == part) return each.tokens;
  return -1;
}

}  // namespace

TEST_CASE("a request shows all of its stages") {
  const Tokenizer tokenizer = bytes_tokenizer();
  const ChatTemplate chat(tokenizer, chatml);
  const auto built = build_request(chat, tokenizer, full());
  CHECK(built.prompt.text ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n1<|im_end|>\n"
        "<|im_start|>user\ntwo<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n<|im_start|>user\n"
        "[1] A\nfirst\n\n[2] B\nsecond\n\n[3] third\n\nWhat? <|im_end|><|im_end|>\n<|im_start|>tool\nresult<|im_end|>\n"
        "<|im_start|>assistant\n");
  CHECK(built.tokens == encode(tokenizer, built.prompt));
  CHECK(built.conversation.messages.list()->items.size() == 7);
  CHECK(count(built, RequestPart::system) == 9);
  CHECK(count(built, RequestPart::history) == 8);
  CHECK(count(built, RequestPart::documents) == 13 + 14 + 11);
  CHECK(count(built, RequestPart::question) == 16);  // the marker in it is text
  CHECK(count(built, RequestPart::tool_results) == 6);
  std::int64_t sum = 0;
  for (const auto& each : built.parts) sum += each.tokens;
  CHECK(sum == std::int64_t(built.tokens.size()));
  CHECK(built.changes.empty());
}

TEST_CASE("what does not fit is refused with all the numbers") {
  const Tokenizer tokenizer = bytes_tokenizer();
  const ChatTemplate chat(tokenizer, chatml);
  ChatRequest request = full();
  const auto n = std::int64_t(build_request(chat, tokenizer, request).tokens.size());
  request.budget.total = n;
  CHECK(build_request(chat, tokenizer, request).changes.empty());
  request.budget.total = n - 1;
  request.budget.system = 5;
  const std::string message = error_of([&] { build_request(chat, tokenizer, request); });
  CHECK(message.find(concat("the prompt has ", n, " tokens, its budget is ", n - 1)) == 0);
  CHECK(message.find("system 9 of 5, history 8, documents 38, tool_results 6, question 16") != std::string::npos);
  request.drop_oldest_turns = request.drop_lowest_documents = true;  // nothing of this helps the system message
  CHECK(error_of([&] { build_request(chat, tokenizer, request); }).find("system 9 of 5") != std::string::npos);
}

TEST_CASE("turns and documents are left out only when asked, and listed") {
  const Tokenizer tokenizer = bytes_tokenizer();
  const ChatTemplate chat(tokenizer, chatml);
  ChatRequest request = full();
  request.budget.documents = 30;
  CHECK_THROWS_AS(build_request(chat, tokenizer, request), Error);
  request.drop_lowest_documents = true;
  auto built = build_request(chat, tokenizer, request);
  REQUIRE(built.changes.size() == 1);
  CHECK(built.changes[0].kind == RequestChange::Kind::dropped);
  CHECK(built.changes[0].part == RequestPart::documents);
  CHECK(built.changes[0].index == 2);
  CHECK(built.changes[0].tokens == 11);
  CHECK(built.prompt.text.find("third") == std::string::npos);

  request.budget = {.history = 4};
  CHECK_THROWS_AS(build_request(chat, tokenizer, request), Error);
  request.drop_oldest_turns = true;
  built = build_request(chat, tokenizer, request);
  REQUIRE(built.changes.size() == 2);  // the question and its answer
  CHECK(built.changes[0].index == 0);
  CHECK(built.changes[1].index == 1);
  CHECK(built.prompt.text.find("one") == std::string::npos);
  CHECK(built.prompt.text.find("two") != std::string::npos);

  request.budget = {.total = 110};  // documents first, then turns
  built = build_request(chat, tokenizer, request);
  CHECK(built.changes.size() >= 4);
  CHECK(built.changes[2].index == 0);
  CHECK(std::int64_t(built.tokens.size()) <= 110);
  CHECK(built.prompt.text.find("What? ") != std::string::npos);
}

TEST_CASE("no more is left out than must be, from many parts too") {
  const Tokenizer tokenizer = bytes_tokenizer();
  const ChatTemplate chat(tokenizer, chatml);
  ChatRequest request{.question = "q", .drop_lowest_documents = true, .drop_oldest_turns = true};
  jinja::Value::Items history;
  for (int i = 0; i < 40; ++i) {
    request.documents.push_back({"", std::string(std::size_t(5 + i % 7), 'd')});
    history.push_back(jinja::Value::dict({{"role", i % 2 ? "assistant" : "user"}, {"content", "h"}}));
  }
  request.history = jinja::Value::list(std::move(history));
  const auto whole = build_request(chat, tokenizer, request);
  for (std::int64_t total = std::int64_t(whole.tokens.size()); total >= 40; total -= 37) {
    request.budget = {.total = total};
    const auto built = build_request(chat, tokenizer, request);
    CHECK(std::int64_t(built.tokens.size()) <= total);
    if (built.changes.empty()) continue;
    // One change less, made by hand, does not fit.
    ChatRequest more = request;
    more.budget = {};
    std::size_t documents = 0, messages = 0;
    for (const auto& change : built.changes) ++(change.part == RequestPart::history ? messages : documents);
    CHECK(messages % 2 == 0);
    if (messages > 0) CHECK(documents == 40);
    more.documents.resize(40 - documents + (messages == 0));
    const auto& items = request.history.list()->items;
    more.history = jinja::Value::list({items.begin() + std::ptrdiff_t(messages < 2 ? 0 : messages - 2), items.end()});
    CHECK(std::int64_t(build_request(chat, tokenizer, more).tokens.size()) > total);
  }
  request.budget = {.total = 10};
  CHECK(error_of([&] { build_request(chat, tokenizer, request); }).find("its budget is 10, scaffold 19, question 1") !=
        std::string::npos);
}

TEST_CASE("what makes no sense is refused") {
  const Tokenizer tokenizer = bytes_tokenizer();
  const ChatTemplate chat(tokenizer, chatml);
  ChatRequest request = full();
  request.budget.history = -1;
  CHECK(error_of([&] { build_request(chat, tokenizer, request); }) == "budget: expected at least 0 tokens, got -1");
  request = full();
  request.history = jinja::Value("no list");
  CHECK(error_of([&] { build_request(chat, tokenizer, request); }) == "history: expected a list of messages");
  request.history = jinja::Value::list({jinja::Value("no message")});
  CHECK(error_of([&] { build_request(chat, tokenizer, request); }).find("message 1: expected an object") == 0);
}

TEST_CASE("what a template does not show is listed") {
  const Tokenizer tokenizer = bytes_tokenizer();
  ChatRequest request = full();
  request.history = chat_messages({{"user", "one"}, {"assistant", "<think>hm hm</think>1"}});
  request.tools = jinja::Value::list({jinja::Value::dict({{"name", "f"}})});
  const auto changes_by = [&](const std::string& template_source) {
    std::string out;
    for (const auto& change : build_request(ChatTemplate(tokenizer, template_source), tokenizer, request).changes) {
      CHECK(change.kind == RequestChange::Kind::not_shown);
      out += concat(request_part_name(change.part), " ", change.index, ": ", change.bytes, "; ");
    }
    return out;
  };
  CHECK(changes_by("{% for m in messages %}{{ m.content|trim }}{% endfor %}{{ tools|tojson }}").empty());
  CHECK(changes_by("{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}{{ tools|tojson }}") ==
        "history 1: 19; ");
  CHECK(changes_by("{% for m in messages if m.role == 'user' %}{{ m.content[:-9] }}{% endfor %}") ==
        "system 0: 8; history 0: 3; history 1: 20; question 0: 9; tool_results 0: 6; tools 0: 0; ");
  request.documents_by_template = true;
  CHECK(changes_by("{% for d in documents[:2] %}{{ d.text }}{% endfor %}{{ messages|tojson }}{{ tools }}") ==
        "documents 2: 5; ");
}

TEST_CASE("documents go where the template shows them, if it does") {
  const Tokenizer tokenizer = bytes_tokenizer();
  ChatRequest request = full();
  request.documents_by_template = true;
  CHECK(error_of([&] {
          build_request(ChatTemplate(tokenizer, chatml), tokenizer, request);
        }).find("shows no documents") != std::string::npos);
  const ChatTemplate shows(tokenizer, "{% for d in documents %}{{ d.text }};{% endfor %}{{ messages|length }}");
  const auto built = build_request(shows, tokenizer, request);
  CHECK(built.prompt.text == "first;second;third;7");
  CHECK(count(built, RequestPart::documents) == 16);
}
