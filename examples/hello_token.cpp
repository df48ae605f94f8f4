// One token, from text to logits and back to text: every step named, with the shape of what it computes.
//
// The steps carry the tags by which they are found in the sources: grep -rn "STEP 5/9" include. What is shown comes
// from the trace observer, which sees every intermediate of an ordinary pass and changes nothing.
//
//   hello_token --prompt "The capital of France is"
#include <cmath>
#include <string>
#include <vector>

#include "common/model.hpp"
#include "common/plot.hpp"
#include "common/table.hpp"
#include "vitrine/sample/sampler.hpp"

using example::fixed, vitrine::concat, vitrine::Token;

// One intermediate: [n_tokens, width], and how large it is on average.
struct Seen {
  std::string step, name, meaning;
  int layer;
  std::int64_t n_rows, width;
  double root_mean_square;
};

static Seen look(const vitrine::TraceEvent& event) {
  double sum = 0;
  for (std::int64_t row = 0; row < event.value.size(0); ++row)
    for (const float value : event.value.row(row)) sum += double(value) * double(value);
  return {std::string(event.step),
          std::string(event.name),
          std::string(event.width_meaning),
          event.layer,
          event.value.size(0),
          event.value.size(1),
          std::sqrt(sum / double(event.value.count()))};
}

static void hello(const example::Arguments& args) {
  const auto layer_shown = args.get<int>("layer", 0, 1 << 20);
  const auto model = example::load_model(args);
  const auto& config = model->config();
  example::expect(layer_shown < config.n_layer,
                  concat("--layer: expected 0 to ", config.n_layer - 1, ", got ", layer_shown));
  const auto prompt = args.get<std::string>("prompt");
  const auto tokens = model->tokenizer().encode(prompt);
  example::expect(!tokens.empty(), "--prompt: expected a text of at least one token");

  std::vector<Seen> all;
  vitrine::Session session(model, {.n_threads = args.threads(),
                                   .trace = [&](const vitrine::TraceEvent& event) { all.push_back(look(event)); }});
  example::check_room(session, tokens.size(), 0, "take a shorter --prompt");
  const auto logits = session.prefill(tokens);
  vitrine::Sampler sampler({.temperature = 1}, config.n_vocab);
  const auto best = sampler.explain(logits, {}, 0, 5).stages.front().kept;
  const std::string next = example::token_text(*model, best[0].id);

  if (args.json()) {
    example::json out = {{"prompt", prompt}, {"tokens", tokens}, {"n_layer", config.n_layer}};
    for (const auto& seen : all)
      out["steps"].push_back({{"step", seen.step},
                              {"name", seen.name},
                              {"layer", seen.layer},
                              {"shape", {seen.n_rows, seen.width}},
                              {"width", seen.meaning},
                              {"rms", seen.root_mean_square}});
    for (const auto& candidate : best)
      out["candidates"].push_back({{"id", candidate.id},
                                   {"text", model->tokenizer().piece(candidate.id)},
                                   {"logit", candidate.logit},
                                   {"p", candidate.probability}});
    return example::print_json(out);
  }

  std::cout << "STEP 1/9 tokenize   " << example::visible(prompt) << " becomes "
            << vitrine::counted(std::int64_t(tokens.size()), "id") << "\n ";
  for (const Token token : tokens) std::cout << ' ' << example::token_text(*model, token) << '=' << token;
  std::cout << "\n\n";
  example::Table table({"STEP", "intermediate", "shape", "width is", "size"}, 4);
  std::string last_step;
  for (const auto& seen : all) {
    if (seen.layer >= 0 && seen.layer != layer_shown) continue;
    table.row({seen.step == last_step ? "" : seen.step, seen.name, concat("[", seen.n_rows, ", ", seen.width, "]"),
               seen.meaning, fixed(seen.root_mean_square, 3)});
    last_step = seen.step;
  }
  table.print();
  std::cout << "Steps 3 to 7 are those of layer " << layer_shown << "; all " << config.n_layer
            << " layers do the same.\n\n"
            << "STEP 9/9 sample   the likeliest of " << example::grouped(double(config.n_vocab)) << " tokens\n";
  for (const auto& candidate : best) {
    const std::string text = example::shortened(example::token_text(*model, candidate.id), 16);
    std::cout << "  " << text << std::string(std::size_t(17 - example::text_width(text)), ' ')
              << example::bar(candidate.probability, 40) << ' ' << example::percent(candidate.probability) << '\n';
  }
  double n_values = 0;
  for (const auto& seen : all) n_values += double(seen.n_rows) * double(seen.width);
  example::what_to_notice(concat(
      "Every step keeps one row per token; ", all.size(), " intermediates with ", example::grouped(n_values),
      " numbers lead to one row of logits, that of the last token, and from it to ", next, " with ",
      example::percent(best[0].probability), ". Only attention (step 5) lets a row see other rows: those before it."));
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("prompt", "the text", cxxopts::value<std::string>()->default_value("The capital of France is"), "TEXT");
    add("layer", "the layer whose steps are listed", cxxopts::value<int>()->default_value("0"), "N");
  };
  return example::run(argc, argv, {"hello_token", "One token from text to logits, step by step", options, hello});
}
