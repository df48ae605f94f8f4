// How much memory the KV cache takes, from a model's header alone: no weights are read.
//
//   bytes = 2 x n_layer x n_kv_head x head_dim x bytes per value x length x batch
//           |   K and V of every layer                             one column per token of every sequence
//
// Sharing K and V between query heads (GQA, MQA) divides the cache, a smaller type of value divides it again.
// Contiguous and paged caches keep all positions; a ring of a sliding window puts an end to the growth. The weights are
// there once, the cache once per sequence.
//
//   kv_memory --model model.gguf --length 2048,32768 --batch 1,16
//   kv_memory --shape 32,32,8,128 --parameters 7e9        (n_layer, n_head, n_kv_head, head_dim; no file needed)
#include <algorithm>
#include <string>
#include <vector>

#include "common/kv_bytes.hpp"
#include "common/program.hpp"
#include "common/table.hpp"

using example::kv_bytes, example::ring_bytes;
using example::KvShape, example::fixed, example::grouped, example::number, example::scaled, vitrine::concat;

static constexpr std::int64_t most_tokens = 1'000'000'000'000;

static KvShape given_shape(const example::Arguments& args) {
  const auto n = args.whole_numbers("shape", 1, 1'000'000);
  example::expect(n.size() == 4, concat("--shape: expected n_layer,n_head,n_kv_head,head_dim, got '",
                                        args.get<std::string>("shape"), "'"));
  example::expect(n[1] % n[2] == 0,
                  concat("--shape: expected n_head as a multiple of n_kv_head, got ", n[1], " and ", n[2]));
  const auto window = double(args.whole_number("window", 0, most_tokens));
  return {"a model of the given shape", double(n[1]), double(n[2]), double(n[3]),
          std::vector<KvShape::Layer>(std::size_t(n[0]), {double(n[2]), window})};
}

static KvShape wanted_shape(const example::Arguments& args) {
  if (!args.has("shape")) {
    args.only("window", false, "with --shape (a model states its own)");
    return example::kv_shape(args.model());
  }
  example::expect(!args.has("model"), "--shape and --model: expected one of them, got both");
  return given_shape(args);
}

static void show(const example::Arguments& args) {
  const auto lengths = args.whole_numbers("length", 1, most_tokens);
  const auto batches = args.whole_numbers("batch", 1, 1'000'000'000);
  const auto parameters = double(args.whole_number("parameters", 1, 1'000'000'000'000'000));
  const KvShape shape = wanted_shape(args);
  const double longest = double(*std::max_element(lengths.begin(), lengths.end())), per_token = kv_bytes(shape, 2, 1);
  const auto n_windowed = std::count_if(shape.layers.begin(), shape.layers.end(), [](auto& l) { return l.window > 0; });
  example::json out = {{"model", shape.name},
                       {"n_layer", shape.layers.size()},
                       {"n_head", number(shape.n_head)},
                       {"n_kv_head", number(shape.n_kv_head)},
                       {"head_dim", number(shape.head_dim)},
                       {"layers_with_window", n_windowed},
                       {"f16_bytes_per_token", number(per_token)},
                       {"n_parameters", number(shape.n_parameters)},
                       {"weight_bytes", number(shape.weight_bytes)}};

  std::vector<example::Table> tables;
  for (const auto batch : batches) {
    const auto add_table = [&](const char* kind, const auto& bytes_of) {
      std::vector<std::string> head = {concat(kind, ", batch ", batch, ", tokens:"), "bytes"};
      for (const auto length : lengths) head.push_back(grouped(double(length)));
      auto& table = tables.emplace_back(head);
      for (const auto& type : example::kv_cache_types) {
        const double value_bytes = type.per_value(shape.head_dim);
        std::vector<std::string> cells = {concat(type.name, type.scaled() ? " *" : ""), concat(value_bytes)};
        for (const auto length : lengths)
          cells.push_back(scaled(double(batch) * bytes_of(shape, value_bytes, double(length)), "B"));
        table.row(cells);
      }
    };
    add_table(n_windowed > 0 ? "all positions" : "KV cache", kv_bytes);
    if (n_windowed > 0) add_table("ring", ring_bytes);
    for (const auto& type : example::kv_cache_types)
      for (const auto length : lengths) {
        const double value_bytes = type.per_value(shape.head_dim), n = double(batch);
        out["kv"].push_back({{"type", type.name},
                             {"batch", batch},
                             {"length", length},
                             {"bytes", number(n * kv_bytes(shape, value_bytes, double(length)))},
                             {"ring_bytes", number(n * ring_bytes(shape, value_bytes, double(length)))}});
      }
  }

  auto& sharing = tables.emplace_back(
      std::vector<std::string>{concat("F16, ", grouped(longest), " tokens"), "kv heads", "KV cache", "of MHA's"});
  const auto add_sharing = [&](const char* name, double n_kv_head) {
    const double bytes = kv_bytes(shape, 2, longest) * n_kv_head / shape.n_kv_head;
    sharing.row({concat(name, n_kv_head == shape.n_kv_head ? " (this model)" : ""), concat(n_kv_head),
                 scaled(bytes, "B"), concat("1/", shape.n_head / n_kv_head)});
    out["sharing"].push_back({{"name", name}, {"n_kv_head", number(n_kv_head)}, {"bytes", number(bytes)}});
  };
  add_sharing("MHA: K and V for each head", shape.n_head);
  if (shape.n_kv_head > 1 && shape.n_kv_head < shape.n_head) add_sharing("GQA: for each group", shape.n_kv_head);
  add_sharing("MQA: one for all heads", 1);

  auto& weights = tables.emplace_back(std::vector<std::string>{"weights", "number", "FP32", "FP16", "INT8", "INT4"});
  const auto add_weights = [&](const char* name, double n) {
    weights.row({name, grouped(n), scaled(4 * n, "B"), scaled(2 * n, "B"), scaled(n, "B"), scaled(n / 2, "B")});
    out["weights"].push_back({{"name", name},
                              {"FP32", number(4 * n)},
                              {"FP16", number(2 * n)},
                              {"INT8", number(n)},
                              {"INT4", number(n / 2)}});
  };
  if (shape.n_parameters > 0) add_weights("this model", shape.n_parameters);
  add_weights("--parameters", parameters);
  if (args.json()) return example::print_json(out);

  std::cout << shape.name << "\n\n";
  example::print_wrapped(concat("2 (K, V) x ", shape.layers.size(), " layers x ", shape.n_kv_head, " kv heads x ",
                                shape.head_dim, " values x 2 bytes (F16) = ", grouped(per_token), " bytes a token"));
  std::string kept = " of the layers have a window: contiguous and paged caches keep all positions, a ring does not";
  if (n_windowed > 0) example::print_wrapped(concat(n_windowed, kept));
  if (shape.windows_guessed) std::cout << "(the file does not say which layers have it: all are taken to)\n";
  for (const auto& table : tables) {
    std::cout << '\n';
    table.print();
  }
  std::cout << "\n* with its scales; heads that are no multiple of 32 wide take a little more\n"
               "Two types are of K/V: any pair takes their mean. A session reserves whole blocks\n"
               "of 64 tokens, and a ring room for a chunk of 256 (vitrine::plan).\n";

  const bool has_weights = shape.weight_bytes > 0;  // otherwise those of --parameters stand for them
  const double all = has_weights ? shape.weight_bytes : 2 * parameters;
  const std::string whose = has_weights ? "the weights" : concat(grouped(parameters), " weights in FP16");
  std::string notice =
      concat("A cache in F16 outgrows ", whose, " (", scaled(all, "B"), ") at ", grouped(all / per_token),
             " tokens, counted over all sequences of the batch", n_windowed > 0 ? " and with all positions kept" : "",
             ". Sharing heads makes it ", fixed(shape.n_head / shape.n_kv_head, 1), " times smaller than MHA");
  const double saved = kv_bytes(shape, 2, longest) / ring_bytes(shape, 2, longest);
  if (n_windowed > 0) notice += concat("; at ", grouped(longest), " tokens a ring saves a factor of ", fixed(saved, 1));
  example::what_to_notice(notice + ".");
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("length", "tokens per sequence", cxxopts::value<std::string>()->default_value("512,2048,8192,32768"), "LIST");
    add("batch", "sequences at a time", cxxopts::value<std::string>()->default_value("1,16"), "LIST");
    add("shape", "n_layer,n_head,n_kv_head,head_dim, instead of a model", cxxopts::value<std::string>(), "LIST");
    add("window", "with --shape: keys that a query sees; 0: all", cxxopts::value<std::string>()->default_value("0"),
        "N");
    add("parameters", "number of weights for the last table", cxxopts::value<std::string>()->default_value("7e9"), "N");
  };
  return example::run(argc, argv, {"kv_memory", "Memory of the KV cache and the weights, by formula", options, show});
}
