// Where the time of an answer from documents goes: into the start (retrieval, queue, prefill) or the stream (decode).
//
// For each question BM25 finds chunks, a second look ranks them again, duplicates go, and as many as the budget of
// tokens allows become part of the prompt. Each request is a line of JSON in the log. Two lines of least squares say
// what a token more of input costs before the first token, and what each one of the answer does.
//
//   rag_budget --budgets 60,400
//   rag_budget --documents FOLDER --questions FILE --log requests.jsonl --html report.html
//   rag_budget --every 500     one request each half second, whether the one before is answered or not: a queue
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/chat.hpp"
#include "common/latency_verdict.hpp"
#include "common/model.hpp"
#include "common/rag.hpp"
#include "common/rag_sample.hpp"
#include "common/table.hpp"

using example::Arguments, example::fixed, example::json;

namespace {

std::vector<std::string> questions(const Arguments& args) {
  if (!args.has("questions")) return example::sample_questions;
  std::istringstream file(args.file("questions"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) lines.push_back(line);
  example::expect(!lines.empty(), "--questions: expected a file with a question in each line, got none in " +
                                      args.get<std::string>("questions"));
  return lines;
}

example::Index index_of(const Arguments& args) {
  const auto n_words = std::size_t(args.get<std::int64_t>("chunk_words", 1, 1 << 20));
  std::vector<example::Chunk> chunks;
  if (args.has("documents"))
    chunks = example::read_chunks(args.get<std::string>("documents"), n_words);
  else
    for (const auto& [name, text] : example::sample_documents) example::add_chunks(chunks, name, text, n_words);
  example::expect(!chunks.empty(), "--documents: expected a folder with .txt or .md files that have words");
  return example::Index(std::move(chunks));
}

// A file that an option names, opened before the work of which it will tell, and emptied only after that.
struct Output {
  Output(const Arguments& args, const std::string& option)
      : name(args.has(option) ? vitrine::concat("--", option, ": cannot write ", args.get<std::string>(option)) : "") {
    if (!name.empty()) file.open(path = args.get<std::string>(option), std::ios::binary | std::ios::app);
    check();
  }
  void write(const std::string& text) {
    if (name.empty()) return;
    file.close();
    file.open(path, std::ios::binary);
    file << text << std::flush;
    check();
  }
  void check() const { vitrine::check(bool(file), vitrine::ErrorKind::io, name); }

  std::string name;  // what is said if it cannot be written; empty: not asked for
  std::string path;
  std::ofstream file;
};

void run(const Arguments& args) {
  using example::Clock;
  const auto index = index_of(args);
  const auto asked = questions(args);
  const auto budgets = args.whole_numbers("budgets", 1, 1 << 30);
  const std::chrono::duration<double, std::milli> every(args.get<double>("every", 0, 1e9));
  example::RagOptions options{.n_retrieve = std::size_t(args.get<std::int64_t>("retrieve", 1, 1 << 20)),
                              .n_use = std::size_t(args.get<std::int64_t>("use", 1, 1 << 20))};
  options.generate.max_new_tokens = args.get<std::int64_t>("max_new_tokens", 1, 1 << 20);
  options.generate.sampling.temperature = 0;
  Output log_file(args, "log"), page(args, "html");
  const auto model = example::load_model(args);
  const auto chat = example::chat_template(args, model->tokenizer());
  vitrine::Session session(model,
                           {.n_context = args.get<std::int64_t>("context", 0, 1 << 30), .n_threads = args.threads()});

  std::vector<json> log;
  json requests = json::array();
  std::string lines;
  example::Table table({"budget", "found", "used", "in", "out", "TTFT", "total"}, 0);
  const auto begin = Clock::now();
  for (const auto budget : budgets)
    for (const auto& question : asked) {
      const auto due = begin + std::chrono::duration_cast<Clock::duration>(every * double(log.size()));
      std::this_thread::sleep_until(due);
      options.budget = budget;
      const auto answer =
          example::rag_answer(index, chat, session, question, options, every.count() > 0 ? due : Clock::now());
      log.push_back(answer.log);
      lines += answer.log.dump() + "\n";
      auto request = answer.log;
      request.update({{"budget", budget}, {"question", question}, {"answer", answer.text}, {"chunks", answer.chunks}});
      requests.push_back(std::move(request));
      const auto text = [&](const char* key) { return fixed(answer.log[key].get<double>(), 0); };
      table.row({std::to_string(budget), text("retrieved_chunks"), text("used_chunks"), text("input_tokens"),
                 text("output_tokens"), text("ttft_ms") + " ms", text("total_ms") + " ms"});
    }

  const example::LatencyVerdict verdict(log);
  log_file.write(lines);
  page.write(example::html_page("Where the time of answers from documents goes", verdict.words(),
                                verdict.svg_of_start() + verdict.svg_of_total()));
  if (args.json()) return example::print_json({{"requests", requests}, {"verdict", verdict.to_json()}});
  table.print();
  example::what_to_notice(verdict.words());
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    const auto text = [] { return cxxopts::value<std::string>(); };
    const auto number = [](const char* value) { return cxxopts::value<std::int64_t>()->default_value(value); };
    add("documents", "a folder with .txt and .md files; none: a small sample", text(), "FOLDER");
    add("questions", "a file with one in each line; none: some on the sample", text(), "FILE");
    add("budgets", "tokens of documents per prompt; all questions for each", text()->default_value("60,150,400"),
        "LIST");
    add("chunk_words", "paragraphs are joined up to so many words", number("60"), "N");
    add("retrieve", "so many chunks out of the index", number("20"), "N");
    add("use", "so many of them at most into the prompt", number("5"), "N");
    add("max_new_tokens", "at most so many per answer", number("48"), "N");
    add("every", "a request each so many ms; 0: when the last is answered",
        cxxopts::value<double>()->default_value("0"), "MS");
    add("log", "write a line of JSON per request", text(), "PATH");
    add("html", "write a page with the two plots and the verdict", text(), "PATH");
    add("context", "room for so many tokens; 0: the library's choice", number("0"), "N");
    example::add_chat_template_option(add);
  };
  return example::run(argc, argv, {"rag_budget", "Answers from documents, and where their time goes", options, run});
}
