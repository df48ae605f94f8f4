// The numbers of a model that decide how large its KV cache is, read from a header; no weights are read.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/model/gguf.hpp"

namespace example {

struct KvShape {
  std::string name;
  double n_head = 0, n_kv_head = 0, head_dim = 0;
  std::vector<double> windows{};  // per layer: keys that a query sees; 0: all
  double n_parameters = 0, weight_bytes = 0;
};

inline KvShape shape_of_config(const vitrine::ModelConfig& config) {
  KvShape shape{config.name, double(config.n_head), double(config.n_kv_head), double(config.head_dim)};
  for (const auto& layer : config.layers) shape.windows.push_back(double(layer.window));
  return shape;
}

// The four numbers from the metadata of any GGUF file, also of an architecture that the library cannot run. Which of
// its layers have a window is not known then; none is assumed.
inline KvShape shape_of_header(const vitrine::GgufFile& file) {
  const std::string arch(file.text("general.architecture"));
  const auto largest = [&](const std::string& key) {  // one number, or one for each layer
    const auto* value = file.find(arch + key);
    if (value == nullptr || value->type != vitrine::GgufType::array) return double(file.integer(arch + key));
    const auto per_layer = file.integers(arch + key);
    expect(!per_layer.empty(), arch + key + ": expected a number for each layer, got none");
    return double(*std::max_element(per_layer.begin(), per_layer.end()));
  };
  const double n_layer = largest(".block_count"), n_head = largest(".attention.head_count");
  const bool grouped_heads = file.has(arch + ".attention.head_count_kv"),
             has_width = file.has(arch + ".attention.key_length");
  const double n_kv_head = grouped_heads ? largest(".attention.head_count_kv") : n_head;
  const double head_dim = has_width ? largest(".attention.key_length") : largest(".embedding_length") / n_head;
  expect(n_layer >= 1 && n_layer <= 1e6 && n_head >= 1 && n_kv_head >= 1 && head_dim >= 1,
         file.name() + ": expected positive numbers of layers, heads and values per head");
  return {arch, n_head, n_kv_head, head_dim, std::vector<double>(std::size_t(n_layer), 0)};
}

// Of a GGUF file of any architecture, or of a folder with config.json.
inline KvShape kv_shape(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return shape_of_config(vitrine::read_config(path));
  const auto file = vitrine::GgufFile::open(path);
  const auto is_known = [&](const auto& known) { return known.name == file.text("general.architecture"); };
  const auto& known = vitrine::architectures();
  const bool runs = std::any_of(known.begin(), known.end(), is_known);
  KvShape shape = runs ? shape_of_config(vitrine::config_from_gguf(file)) : shape_of_header(file);
  shape.name = path.filename().string();
  for (const auto& tensor : file.tensors()) {
    shape.n_parameters += double(tensor.dims[0] * tensor.dims[1] * tensor.dims[2] * tensor.dims[3]);
    shape.weight_bytes += double(tensor.n_bytes);
  }
  return shape;
}

}  // namespace example
