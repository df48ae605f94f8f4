// The numbers of a model that decide how large its KV cache is, read from a header; no weights are read.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/model/gguf.hpp"
#include "vitrine/model/safetensors.hpp"

namespace example {

struct KvShape {
  struct Layer {
    double n_kv_head = 0;  // 0: the layer keeps no K and V
    double window = 0;     // keys that a query sees; 0: all
  };
  std::string name;
  double n_head = 0, n_kv_head = 0;  // of the mean layer
  double head_dim = 0;               // values of a K or V; their mean if they differ
  std::vector<Layer> layers{};
  bool windows_guessed = false;               // the file states a window, but not the layers that have it
  double n_parameters = 0, weight_bytes = 0;  // 0: the weights are not there
};

inline KvShape shape_of_config(const vitrine::ModelConfig& config) {
  KvShape shape{config.name, double(config.n_head), double(config.n_kv_head), double(config.head_dim)};
  for (const auto& layer : config.layers) shape.layers.push_back({shape.n_kv_head, double(layer.window)});
  return shape;
}

// Straight from the metadata, which has the same keys for every architecture, also for one that the library cannot run.
inline KvShape shape_of_header(const vitrine::GgufFile& file) {
  const std::string arch(file.text("general.architecture"));
  const auto key = [&](const char* name) { return arch + "." + name; };
  const auto size = [&](const char* name, std::int64_t most = 1'000'000'000) {
    const auto value = file.integer(key(name));
    vitrine::check(value >= 1 && value <= most, vitrine::ErrorKind::bad_file, file.name(), ": ", key(name),
                   ": expected 1 to ", most, ", got ", value);
    return double(value);
  };
  const auto n_layer = std::size_t(size("block_count", 1'000'000));
  const auto by_layer = [&](const char* name) {  // one number, or one for each layer
    const auto* value = file.find(key(name));
    if (value == nullptr || value->type != vitrine::GgufType::array) return std::vector<double>(n_layer, size(name));
    const auto numbers = file.integers(key(name));
    const bool fit = numbers.size() == n_layer && *std::min_element(numbers.begin(), numbers.end()) >= 0;
    vitrine::check(fit, vitrine::ErrorKind::bad_file, file.name(), ": ", key(name), ": expected a number for each of ",
                   n_layer, " layers, none negative, got ", numbers.size());
    return std::vector<double>(numbers.begin(), numbers.end());
  };
  const auto mean = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / double(v.size());
  };

  const auto heads = by_layer("attention.head_count");
  const auto kv_heads = file.has(key("attention.head_count_kv")) ? by_layer("attention.head_count_kv") : heads;
  const double most_heads = *std::max_element(heads.begin(), heads.end());
  const double window = file.has(key("attention.sliding_window")) ? size("attention.sliding_window") : 0;
  for (std::size_t i = 0; i < n_layer; ++i)
    vitrine::check(kv_heads[i] == 0 || std::fmod(heads[i], kv_heads[i]) == 0, vitrine::ErrorKind::bad_file, file.name(),
                   ": layer ", i, ": expected a multiple of its ", kv_heads[i], " kv heads as heads, got ", heads[i]);
  vitrine::check(most_heads >= 1 && mean(kv_heads) > 0, vitrine::ErrorKind::bad_file, file.name(),
                 ": expected a layer with attention, got no heads in any");
  const auto width = [&](const char* name) {
    return file.has(key(name)) ? size(name) : size("embedding_length") / most_heads;
  };
  KvShape shape{arch, mean(heads), mean(kv_heads),
                (width("attention.key_length") + width("attention.value_length")) / 2};
  for (const double n_kv_head : kv_heads) shape.layers.push_back({n_kv_head, window});

  // Which layers have the window: a truth value for each, or a number: of so many the last one has none.
  const char* const pattern_name = "attention.sliding_window_pattern";
  const auto* pattern = file.find(key(pattern_name));
  if (pattern != nullptr && pattern->type == vitrine::GgufType::array) {
    const bool fit = pattern->element_type == vitrine::GgufType::boolean && pattern->count == n_layer;
    vitrine::check(fit, vitrine::ErrorKind::bad_file, file.name(), ": ", key(pattern_name), ": expected ", n_layer,
                   " BOOL, got ", pattern->count, " ", vitrine::gguf_type_name(pattern->element_type));
    for (std::size_t i = 0; i < n_layer; ++i)
      if (pattern->bytes[i] == std::byte{0}) shape.layers[i].window = 0;
  } else if (pattern != nullptr) {
    const auto period = std::size_t(size(pattern_name));
    for (std::size_t i = period - 1; i < n_layer; i += period) shape.layers[i].window = 0;
  }
  shape.windows_guessed = window > 0 && pattern == nullptr;
  return shape;
}

// The configuration is enough; weights are counted if there are any.
inline KvShape shape_of_folder(const std::filesystem::path& folder) {
  KvShape shape = shape_of_config(vitrine::read_config(folder));
  const auto is_part = [](const std::filesystem::path& file) {
    return file.extension() == ".safetensors" || file.filename() == "model.safetensors.index.json";
  };
  const std::filesystem::directory_iterator files(folder);
  if (std::none_of(begin(files), end(files), is_part)) return shape;
  const auto weights = vitrine::SafetensorsFile::open_folder(folder);
  for (const auto& tensor : weights.tensors()) {
    double n = 1;
    for (const auto size : tensor.shape) n *= double(size);
    shape.n_parameters += n;
    shape.weight_bytes += double(tensor.n_bytes);
  }
  return shape;
}

// Of a GGUF file of any architecture, or of a folder with config.json.
inline KvShape kv_shape(const std::filesystem::path& path) {
  if (const auto folder = vitrine::model_folder(path)) return shape_of_folder(*folder);
  const auto file = vitrine::GgufFile::open_header(path);  // the weights may be missing, or still on their way
  KvShape shape = shape_of_header(file);
  if (shape.windows_guessed) {  // what the file leaves out, an architecture that the library knows may tell
    try {
      shape = shape_of_config(vitrine::config_from_gguf(file));
    } catch (const vitrine::Error&) {
    }
  }
  shape.name = path.filename().string();
  for (const auto& tensor : file.tensors()) {
    shape.n_parameters += double(tensor.dims[0] * tensor.dims[1] * tensor.dims[2] * tensor.dims[3]);
    shape.weight_bytes += double(tensor.n_bytes);
  }
  return shape;
}

}  // namespace example
