// Bodies of engine/model.hpp.
#pragma once

#include <optional>
#include <utility>

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

VITRINE_INLINE std::shared_ptr<const Model> Model::load(const std::filesystem::path& path, const LoadOptions& options) {
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
}

VITRINE_NAMESPACE_END
