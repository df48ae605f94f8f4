// A model ready to run: transformer, tokenizer, and how long it took to load.
//
//   auto model = Model::load("SmolLM2-135M-Instruct.Q4_1.gguf");
//
// Immutable and shared: any number of sessions on any threads may use one model at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/model/loader.hpp"
#include "vitrine/model/transformer.hpp"
#include "vitrine/text/load_tokenizer.hpp"

VITRINE_NAMESPACE_BEGIN

class Model {
 public:
  // `path`: as load_model_files takes it, a GGUF file of any name or a folder with config.json, *.safetensors and a
  // tokenizer (or a *.safetensors or *.json in it). Throws Error, as load_model_files and load_tokenizer do; what is
  // wrong with the configuration or the tokenizer is said before any weights are read.
  static std::shared_ptr<const Model> load(const std::filesystem::path& path, const LoadOptions& options = {});

  Model(Transformer transformer, Tokenizer tokenizer, double load_seconds = 0, std::vector<std::string> notices = {});
  Model(const Model&) = delete;  // sessions share it where it is
  Model& operator=(const Model&) = delete;

  const Transformer& transformer() const { return transformer_; }
  const ModelConfig& config() const { return transformer_.config(); }
  const ModelWeights& weights() const { return transformer_.weights(); }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  double load_seconds() const { return load_seconds_; }
  // Hash of the configuration and of all weights as they are in memory: models with the same give the same logits. It
  // is computed when it is first asked for, which takes as long as reading the weights once.
  std::uint64_t fingerprint() const;
  const std::vector<std::string>& notices() const { return notices_; }  // what loading did in another way than usual

 private:
  Transformer transformer_;
  Tokenizer tokenizer_;
  double load_seconds_;
  std::vector<std::string> notices_;
  mutable std::atomic<std::uint64_t> fingerprint_{0};  // 0: not yet computed
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/engine/model.inl.hpp"
#endif
