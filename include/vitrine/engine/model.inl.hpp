// Bodies of engine/model.hpp.
#pragma once

#include <utility>

#include "vitrine/engine/model.hpp"
#include "vitrine/engine/timings.hpp"

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
  LoadedModel loaded = load_model_files(path, options);
  const auto complete = [&] {
    Tokenizer tokenizer = load_tokenizer(path, {.extra_end = {}, .n_rows = loaded.config.n_vocab});
    auto notices = std::move(loaded.notices);
    Transformer transformer(std::move(loaded));
    return std::make_shared<const Model>(std::move(transformer), std::move(tokenizer), watch.seconds(),
                                         std::move(notices));
  };
  return naming_memory(complete, path.string());
}

VITRINE_NAMESPACE_END
