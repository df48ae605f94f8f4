// A conversation with a model, turn by turn. Each turn is the whole conversation again as a prompt, of which the
// session holds nearly all: only what was said since is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/chat.hpp"
#include "common/program.hpp"
#include "vitrine/engine/generate.hpp"
#include "vitrine/text/chat_request.hpp"

namespace example {

class Dialogue {
 public:
  Dialogue(std::shared_ptr<const vitrine::Model> model, vitrine::ChatTemplate chat, vitrine::SessionOptions size)
      : chat_(std::move(chat)), session_(std::move(model), size) {}

  // Throws vitrine::Error if the turn does not fit or the template refuses it; nothing has then been said.
  // begin() is called when the prompt is built, see(GeneratedToken) for each token.
  template <class Begin, class See>
  void ask(const std::string& question, const Begin& begin, const See& see) {
    request.question = question;
    request.history = vitrine::chat_messages(history_);
    request.budget.total = session_.context() - 1;  // room for one token at least
    built = vitrine::build_request(chat_, session_.model().tokenizer(), request);
    const auto rest = keep_beginning(session_, built.tokens);
    n_kept = std::int64_t(built.tokens.size() - rest.size());
    begin();
    auto generation = vitrine::generate(session_, rest, options);
    for (const auto& token : generation) see(token);
    result = generation.result();
    n_prompt_in_all += std::int64_t(built.tokens.size());
    n_kept_in_all += n_kept;
    ++n_turns;
    for (const auto& change : built.changes)  // for good, so that they are named once
      if (change.kind == vitrine::RequestChange::Kind::dropped) history_.erase(history_.begin());
    if (result.text.empty() && result.reason == vitrine::FinishReason::cancelled) return;
    history_.push_back({"user", question});
    history_.push_back({"assistant", result.text});
  }
  void forget() { history_.clear(); }
  const vitrine::Session& session() const { return session_; }

  // What is between the request and the prompt, in words.
  std::vector<std::string> changes() const {
    std::vector<std::string> out;
    for (const auto& change : built.changes)
      out.push_back(change.kind == vitrine::RequestChange::Kind::dropped
                        ? vitrine::concat("left out to fit: message ", change.index + 1, ", ", change.tokens, " tokens")
                        : vitrine::concat("the model's template does not show all of: ",
                                          vitrine::request_part_name(change.part)));
    return out;
  }

  // The last turn.
  json to_json() const {
    json parts;
    for (const auto& part : built.parts) parts[vitrine::request_part_name(part.part)] = part.tokens;
    return {{"question", request.question},
            {"answer", result.text},
            {"finish_reason", vitrine::finish_reason_name(result.reason)},
            {"prompt_tokens", built.tokens.size()},
            {"kept_tokens", n_kept},
            {"output_tokens", result.tokens.size()},
            {"parts", parts},
            {"changes", changes()},
            {"seed", result.seed},
            {"ttft_seconds", result.timings.ttft_seconds},
            {"total_seconds", result.timings.total_seconds}};
  }

  vitrine::ChatRequest request;      // system message, what may be left out
  vitrine::GenerateOptions options;  // of the answers
  vitrine::BuiltRequest built;       // the last turn's prompt
  vitrine::GenerateResult result;    // and its answer
  std::int64_t n_kept = 0;           // tokens of that prompt that the session held
  std::int64_t n_turns = 0, n_prompt_in_all = 0, n_kept_in_all = 0;

 private:
  vitrine::ChatTemplate chat_;
  vitrine::Session session_;
  std::vector<vitrine::ChatMessage> history_;
};

}  // namespace example
