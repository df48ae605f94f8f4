// Bodies of engine/model.hpp.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "vitrine/core/hash.hpp"
#include "vitrine/engine/model.hpp"
#include "vitrine/engine/timings.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/model/gguf.hpp"

VITRINE_NAMESPACE_BEGIN

VITRINE_INLINE Model::Model(Transformer transformer, Tokenizer tokenizer, double load_seconds,
                            std::vector<std::string> notices)
    : transformer_(std::move(transformer)),
      tokenizer_(std::move(tokenizer)),
      load_seconds_(load_seconds),
      notices_(std::move(notices)) {
  check(tokenizer_.n_vocab() <= config().n_vocab, ErrorKind::bad_file, "tokenizer: ", tokenizer_.n_vocab(),
        " tokens, but the model has embeddings for ", config().n_vocab);
}

VITRINE_INLINE std::uint64_t Model::fingerprint() const {
  if (const auto known = fingerprint_.load()) return known;
  Hash64 hash;
  const auto& c = config();
  hash.add(c.architecture);
  for (const auto size : {c.n_layer, c.n_head, c.n_kv_head, c.head_dim, c.d_model, c.d_ff, c.n_vocab}) hash.add(size);
  hash.add(c.norm_eps).add(c.attention_scale).add(c.embedding_scale).add(c.activation);
  for (const auto& rope : c.rope) {
    hash.add(rope.theta).add(rope.scaling).add(rope.factor).add(rope.low_freq_factor).add(rope.high_freq_factor);
    hash.add(rope.original_context);
    for (const float divisor : rope.frequency_divisors) hash.add(divisor);
  }
  for (const auto& layer : c.layers) hash.add(layer.window).add(layer.rope);
  weights().visit(
      [&](const PackedMatrix& matrix) {
        hash.add(matrix.type()).add(matrix.n_rows()).add(matrix.n_cols());
        if (matrix.empty()) return;
        if (!matrix.in_planes()) {
          hash.add(matrix.data(), matrix.bytes());
          return;
        }
        std::vector<std::byte> panel(matrix.panel_bytes());  // the layout makes no other model of it
        for (std::int64_t i = 0; i < matrix.n_panels(); ++i) {
          matrix.whole_panel(i, panel.data());
          hash.add(panel.data(), panel.size());
        }
      },
      [&](const std::vector<float>& values) {
        hash.add(std::uint64_t(values.size())).add(values.data(), values.size() * sizeof(float));
      });
  const auto value = (std::max)(hash.value(), std::uint64_t(1));
  fingerprint_ = value;
  return value;
}

VITRINE_INLINE std::shared_ptr<const Model> Model::load(const std::filesystem::path& path,
                                                        const LoadOptions& options) try {
  const Stopwatch watch;
  const parallel_detail::DefaultFloatEnvironment environment;  // weights must not depend on the host's rounding mode
  // What the path means is decided once, for weights and tokenizer alike.
  const auto folder = model_folder(path);
  std::optional<GgufFile> file;
  const auto read_tokenizer = [&] {
    if (folder) return tokenizer_from_folder(*folder, {.extra_end = {}, .n_rows = read_config(*folder).n_vocab});
    file.emplace(GgufFile::open(path, options.try_map));
    return tokenizer_from_gguf(*file, {.extra_end = {}, .n_rows = config_from_gguf(*file).n_vocab});
  };
  Tokenizer tokenizer = naming_memory(read_tokenizer, path.string());
  LoadedModel loaded = folder ? load_model_files(*folder, options)
                              : naming_memory([&] { return load_gguf(*file, options); }, path.string());
  const auto complete = [&] {
    auto notices = std::move(loaded.notices);
    Transformer transformer(std::move(loaded));
    return std::make_shared<const Model>(std::move(transformer), std::move(tokenizer), watch.seconds(),
                                         std::move(notices));
  };
  return naming_memory(complete, path.string());
} catch (const std::bad_alloc&) {
  throw Error(ErrorKind::out_of_memory, concat(path.native(), ": not enough memory"));
}

VITRINE_NAMESPACE_END
