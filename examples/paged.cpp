// What pages are for: several answers to one prompt, which share the blocks of the prompt and copy one only to write.
//
// A contiguous cache reserves its whole context for each sequence. A paged one takes blocks of 64 tokens from a common
// pool as it grows; a fork takes none until it writes, and the pool counts whose each block is.
//
//   paged --prompt_tokens 150 --answers 3 --answer_tokens 100
#include <numeric>
#include <string>
#include <vector>

#include "common/model.hpp"
#include "common/table.hpp"
#include "vitrine/cache/any_cache.hpp"

using example::Colour, example::grouped, example::scaled, vitrine::concat;

namespace {

struct Moment {
  std::string event;
  std::string blocks;  // a letter per block of the pool: whose it is; *: of several; .: free
  vitrine::BlockPool::Counts counts;
  std::int64_t n_tokens;  // of all sequences together
};

Moment look(std::string event, const std::vector<vitrine::Session>& sessions) {
  const auto& pool = *sessions[0].cache().paged()->pool();
  Moment moment{std::move(event), "", pool.counts(), 0};
  moment.blocks.assign(std::size_t(pool.counts().peak_used), '.');
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    moment.n_tokens += sessions[i].length();
    for (const auto& block : sessions[i].cache().paged()->blocks()) {
      char& mark = moment.blocks[std::size_t(block.id)];
      mark = mark == '.' ? char('A' + i % 26) : '*';
    }
  }
  return moment;
}

std::string drawn(const std::string& blocks) {
  std::string text;
  for (const char mark : blocks)
    text += example::coloured(std::string(1, mark), mark == '*'   ? Colour::yellow
                                                    : mark == '.' ? Colour::grey
                                                                  : Colour::blue);
  return text;
}

void show(const example::Arguments& args) {
  const auto n_prompt = args.get<std::int64_t>("prompt_tokens", 1, 1 << 20),
             n_answers = args.get<std::int64_t>("answers", 2, 26),
             n_answer = args.get<std::int64_t>("answer_tokens", 1, 1 << 20),
             n_context = args.get<std::int64_t>("context", 0, 1 << 20);
  const auto model = example::load_model(args);
  vitrine::SessionOptions options{.n_context = n_context, .n_threads = args.threads()};
  options.cache = vitrine::CacheKind::paged;

  std::vector<vitrine::Session> sessions;
  sessions.emplace_back(model, options);
  example::check_room(sessions[0], std::size_t(n_prompt), int(n_answer), "--context N makes room");
  const auto prompt = example::any_tokens(*model, n_prompt);
  std::vector<Moment> moments;
  sessions[0].prefill(prompt);
  moments.push_back(look("A reads the prompt", sessions));
  for (std::int64_t i = 1; i < n_answers; ++i) sessions.push_back(sessions[0].fork());
  moments.push_back(look(concat(n_answers - 1, " forks of A"), sessions));
  const std::int64_t n_shown = std::min<std::int64_t>(n_answer, 4);
  for (std::int64_t step = 0; step < n_answer; ++step) {
    for (std::int64_t i = 0; i < n_answers; ++i)
      sessions[std::size_t(i)].decode(example::Token((step * 31 + i * 7) % model->config().n_vocab));
    if ((step + 1) * n_shown / n_answer > step * n_shown / n_answer || step == 0)
      moments.push_back(look(concat(step + 1, step == 0 ? " token each" : " tokens each"), sessions));
  }
  const auto full = moments.back();
  const auto block_bytes = sessions[0].cache().layout().block_bytes();
  const double contiguous =
      double(n_answers) * double(block_bytes) * double(vitrine::KvLayout::blocks_for(sessions[0].context()));
  const double paged = double(full.counts.n_used) * double(block_bytes);
  const double used = double(full.n_tokens) * double(block_bytes) / 64;
  while (sessions.size() > 1) sessions.pop_back();
  moments.push_back(look("all end but A", sessions));

  if (args.json()) {
    auto rows = example::json::array();
    for (const auto& moment : moments)
      rows.push_back({{"event", moment.event},
                      {"blocks", moment.blocks},
                      {"used", moment.counts.n_used},
                      {"shared", moment.counts.n_shared},
                      {"copied", moment.counts.n_copied}});
    return example::print_json({{"block_bytes", block_bytes},
                                {"moments", rows},
                                {"tokens", full.n_tokens},
                                {"contiguous_bytes", example::number(contiguous)},
                                {"paged_bytes", example::number(paged)},
                                {"token_bytes", example::number(used)}});
  }
  std::cout << "A block: K and V of 64 tokens, all layers, " << scaled(double(block_bytes), "B")
            << ".\nLetters: whose it is; *: shared; .: free.\n\n";
  for (const auto& moment : moments) {
    std::cout << moment.event << ": " << moment.counts.n_used << " used, " << moment.counts.n_shared << " shared, "
              << moment.counts.n_copied << " copied so far\n";
    const auto width = std::size_t(example::columns() - 2);
    for (std::size_t at = 0; at < moment.blocks.size(); at += width)
      std::cout << "  " << drawn(moment.blocks.substr(at, width)) << '\n';
  }
  std::cout << '\n';
  example::Table table({"for these sequences", "reserved", "of the tokens' own"});
  table.row({concat("contiguous, contexts of ", grouped(double(sessions[0].context()))), scaled(contiguous, "B"),
             example::percent(used / contiguous)});
  table.row({"paged", scaled(paged, "B"), example::percent(used / paged)});
  table.print();
  example::what_to_notice(concat(
      n_answers, " sequences of ", grouped(double(n_prompt + n_answer)), " tokens take ", full.counts.n_used,
      " blocks, ", full.counts.n_shared, " of them shared, where ", n_answers, " contiguous caches reserve ",
      example::rounded(contiguous / paged), " times as much; in ", n_answer * n_answers, " steps ",
      full.counts.n_copied == 1 ? "1 block was" : concat(full.counts.n_copied, " blocks were"), " copied",
      n_prompt % 64 == 0 ? ", since the prompt ends with a block" : ": the prompt's last, not quite full one", "."));
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("prompt_tokens", "length of the common prompt", cxxopts::value<std::int64_t>()->default_value("150"), "N");
    add("answers", "sequences that go on from it, 2 to 26", cxxopts::value<std::int64_t>()->default_value("3"), "N");
    add("answer_tokens", "tokens of each", cxxopts::value<std::int64_t>()->default_value("100"), "N");
    add("context", "tokens a sequence may have; 0: the model's, at most 4096",
        cxxopts::value<std::int64_t>()->default_value("0"), "N");
  };
  return example::run(argc, argv, {"paged", "Sequences that share the blocks of a KV cache", options, show});
}
