// One answer from documents, stage by stage, and the line about it that operators want in their logs.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "common/program.hpp"
#include "common/retrieval.hpp"
#include "vitrine/engine/generate.hpp"
#include "vitrine/text/chat_request.hpp"

namespace example {

struct RagOptions {
  std::size_t n_retrieve = 20, n_use = 5;  // chunks out of the index, and into the prompt, if they fit
  std::int64_t budget = 0;                 // tokens of documents
  vitrine::GenerateOptions generate{};
};

struct RagAnswer {
  json log;  // times and counts only
  json chunks = json::array();
  std::string text;
};

using Clock = std::chrono::steady_clock;

// `arrival`: when the request came; it may have waited since.
inline RagAnswer rag_answer(const Index& index, const vitrine::ChatTemplate& chat, vitrine::Session& session,
                            const std::string& question, const RagOptions& options, Clock::time_point arrival) {
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - arrival).count(); };
  RagAnswer answer;
  const double queue = seconds();
  const auto found = index.search(question, options.n_retrieve);
  const double retrieved = seconds();
  auto hits = index.without_duplicates(index.rerank(question, found));
  const double reranked = seconds();
  const std::size_t n_distinct = hits.size();
  hits.resize(std::min(hits.size(), options.n_use));

  vitrine::ChatRequest request{.system = "Answer from the documents, in one sentence.", .question = question};
  for (const auto& hit : hits) {
    const Chunk& chunk = index.chunk(hit.chunk);
    request.documents.push_back({chunk.source, chunk.text});
    answer.chunks.push_back({{"source", chunk.source}, {"score", hit.score}, {"bm25", hit.bm25}});
  }
  const auto room = session.context() - options.generate.max_new_tokens;
  expect(room >= 1, vitrine::concat("--max_new_tokens: expected less than the context of ", session.context(),
                                    " tokens, got ", options.generate.max_new_tokens));
  request.budget = {.total = room, .documents = options.budget};
  request.drop_lowest_documents = true;
  const auto built = vitrine::build_request(chat, session.model().tokenizer(), request);
  const auto n_dropped = std::count_if(built.changes.begin(), built.changes.end(), [](const auto& change) {
    return change.kind == vitrine::RequestChange::Kind::dropped;
  });

  session.reset();  // each request by itself: the example prefix_cache shows what keeping the beginning is worth
  const double before = seconds();
  auto generation = vitrine::generate(session, built.tokens, options.generate);
  while (generation.next()) {
  }
  const auto& result = generation.result();
  answer.text = result.text;
  answer.log = {{"retrieval_ms", 1000 * (retrieved - queue)},
                {"rerank_ms", 1000 * (reranked - retrieved)},
                {"input_tokens", built.tokens.size()},
                {"output_tokens", result.tokens.size()},
                {"ttft_ms", 1000 * (before + result.timings.ttft_seconds)},
                {"total_ms", 1000 * (before + result.timings.total_seconds)},
                {"retrieved_chunks", found.size()},
                {"used_chunks", hits.size() - std::size_t(n_dropped)},
                {"duplicate_chunks", found.size() - n_distinct},
                {"dropped_chunks", n_dropped},
                {"queue_ms", 1000 * queue},
                {"prefill_ms", 1000 * result.timings.prefill_seconds}};
  return answer;
}

}  // namespace example
