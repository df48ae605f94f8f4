// How much memory the KV cache takes, from a model's header alone: no weights are read.
//
//   bytes = 2 x n_layer x n_kv_head x head_dim x bytes per value x length x batch
//           |   K and V of every layer                             one column per token of every sequence
//
// Sharing K and V between query heads (GQA, MQA) divides the cache, a smaller type of value divides it again, and a
// sliding window puts an end to its growth. The weights are there once, the cache once per sequence.
//
//   kv_memory --model model.gguf --length 2048,32768 --batch 1,16
//   kv_memory --shape 32,32,8,128 --parameters 7e9        (n_layer, n_head, n_kv_head, head_dim; no file needed)
#include <algorithm>
#include <string>
#include <vector>

#include "common/kv_shape.hpp"
#include "common/program.hpp"
#include "common/table.hpp"

using example::KvShape, example::fixed, example::grouped, example::scaled, vitrine::concat;

struct ValueType {
  const char* name;
  double bytes;
};
// INT8 and INT4 by the formula: without the scales that such a cache stores as well.
static const ValueType value_types[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"INT8", 1}, {"INT4", 0.5}};

static KvShape given_shape(const example::Arguments& args) {
  const auto n = args.numbers("shape", 1, 1e6);
  example::expect(n.size() == 4, "--shape: expected n_layer,n_head,n_kv_head,head_dim");
  const auto window = args.get<double>("window", 0, 1e12);
  return {"a model of the given shape", n[1], n[2], n[3],
          std::vector<KvShape::Layer>(std::size_t(n[0]), {n[2], window})};
}

// The formula, for one sequence. What lies behind a window is seen by no later query and need not be kept.
static double kv_bytes(const KvShape& shape, double value_bytes, double length, bool windowed = true) {
  double heads_of_tokens = 0;  // summed over the layers
  for (const auto& layer : shape.layers)
    heads_of_tokens += layer.n_kv_head * (windowed && layer.window > 0 ? std::min(length, layer.window) : length);
  return 2 * shape.head_dim * value_bytes * heads_of_tokens;
}

static void show(const example::Arguments& args) {
  const KvShape shape = args.has("shape") ? given_shape(args) : example::kv_shape(args.model());
  const auto lengths = args.numbers("length", 1, 1e12), batches = args.numbers("batch", 1, 1e9);
  const double parameters = args.get<double>("parameters", 1, 1e15), longest = lengths.back();
  const double n_layer = double(shape.layers.size()), per_token = kv_bytes(shape, 2, 1);
  const auto n_windowed = std::count_if(shape.layers.begin(), shape.layers.end(), [](auto& l) { return l.window > 0; });
  example::json out = {{"model", shape.name},
                       {"n_layer", n_layer},
                       {"n_head", shape.n_head},
                       {"n_kv_head", shape.n_kv_head},
                       {"head_dim", shape.head_dim},
                       {"layers_with_window", n_windowed},
                       {"f16_bytes_per_token", per_token},
                       {"n_parameters", shape.n_parameters},
                       {"weight_bytes", shape.weight_bytes}};

  std::vector<example::Table> tables;
  for (const double batch : batches) {
    std::vector<std::string> head = {concat("KV cache, batch ", batch, ", tokens:"), "bytes"};
    for (const double length : lengths) head.push_back(grouped(length));
    auto& table = tables.emplace_back(head);
    for (const auto& type : value_types) {
      std::vector<std::string> cells = {concat(type.name, type.bytes < 2 ? " *" : ""), concat(type.bytes)};
      for (const double length : lengths) {
        const double bytes = batch * kv_bytes(shape, type.bytes, length);
        cells.push_back(scaled(bytes, "B"));
        out["kv"].push_back({{"type", type.name}, {"batch", batch}, {"length", length}, {"bytes", bytes}});
      }
      table.row(cells);
    }
  }

  auto& sharing = tables.emplace_back(
      std::vector<std::string>{concat("F16, ", grouped(longest), " tokens"), "kv heads", "KV cache", "of MHA's"});
  const auto add_sharing = [&](const char* name, double n_kv_head) {
    const double bytes = kv_bytes(shape, 2, longest) * n_kv_head / shape.n_kv_head;
    sharing.row({concat(name, n_kv_head == shape.n_kv_head ? " (this model)" : ""), concat(n_kv_head),
                 scaled(bytes, "B"), concat("1/", shape.n_head / n_kv_head)});
    out["sharing"].push_back({{"name", name}, {"n_kv_head", n_kv_head}, {"bytes", bytes}});
  };
  add_sharing("MHA: K and V for each head", shape.n_head);
  if (shape.n_kv_head > 1 && shape.n_kv_head < shape.n_head) add_sharing("GQA: for each group", shape.n_kv_head);
  add_sharing("MQA: one for all heads", 1);

  auto& weights = tables.emplace_back(std::vector<std::string>{"weights", "number", "FP32", "FP16", "INT8", "INT4"});
  const auto add_weights = [&](const char* name, double n) {
    weights.row({name, grouped(n), scaled(4 * n, "B"), scaled(2 * n, "B"), scaled(n, "B"), scaled(n / 2, "B")});
    out["weights"].push_back({{"name", name}, {"FP32", 4 * n}, {"FP16", 2 * n}, {"INT8", n}, {"INT4", n / 2}});
  };
  if (shape.n_parameters > 0) add_weights("this model", shape.n_parameters);
  add_weights("--parameters", parameters);
  if (args.json()) return example::print_json(out);

  std::cout << shape.name << "\n\n";
  example::print_wrapped(concat("2 (K, V) x ", n_layer, " layers x ", shape.n_kv_head, " kv heads x ", shape.head_dim,
                                " values x 2 bytes (F16) = ", grouped(per_token), " bytes a token"));
  if (n_windowed > 0) std::cout << n_windowed << " of the layers keep no more than their window\n";
  if (shape.windows_guessed) std::cout << "(the file does not say which layers have it: all are taken to)\n";
  for (const auto& table : tables) {
    std::cout << '\n';
    table.print();
  }
  std::cout << "\n* computed by the formula, without the scales that such a cache stores as well\n";

  const double all = shape.weight_bytes > 0 ? shape.weight_bytes : 2 * parameters;
  std::string notice = concat("A cache in F16 outgrows the weights (", scaled(all, "B"), ") at ",
                              grouped(all / per_token), " tokens, counted over all sequences of the batch",
                              n_windowed > 0 ? " and with the windows left aside" : "", ". Sharing heads makes it ",
                              fixed(shape.n_head / shape.n_kv_head, 1), " times smaller than MHA");
  const double saved = kv_bytes(shape, 2, longest, false) / kv_bytes(shape, 2, longest);
  if (n_windowed > 0)
    notice += concat("; at ", grouped(longest), " tokens the windows save a factor of ", fixed(saved, 1));
  example::what_to_notice(notice + ".");
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("length", "tokens per sequence", cxxopts::value<std::string>()->default_value("512,2048,8192,32768"), "LIST");
    add("batch", "sequences at a time", cxxopts::value<std::string>()->default_value("1,16"), "LIST");
    add("shape", "n_layer,n_head,n_kv_head,head_dim, instead of a model", cxxopts::value<std::string>(), "LIST");
    add("window", "with --shape: keys that a query sees; 0: all", cxxopts::value<double>()->default_value("0"), "N");
    add("parameters", "number of weights for the last table", cxxopts::value<double>()->default_value("7e9"), "N");
  };
  return example::run(argc, argv, {"kv_memory", "Memory of the KV cache and the weights, by formula", options, show});
}
