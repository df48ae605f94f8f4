// From files to weights: find every tensor, check its shape and type, repack it for the kernels.
//
// Packing is spread over a team of threads. The pages of the file are given back behind it, so that the peak of
// resident memory is that of the packed weights and a little more, and never above file plus weights; afterwards
// nothing of the file stays mapped. With an image_folder, the packed weights are kept there (weight_image.hpp) and
// mapped by the next load, instead of packing them anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/progress.hpp"
#include "vitrine/model/config.hpp"
#include "vitrine/model/gguf.hpp"
#include "vitrine/model/safetensors.hpp"
#include "vitrine/model/weights.hpp"

VITRINE_NAMESPACE_BEGIN

struct LoadOptions {
  int n_threads = 0;          // 0: as many as this process may use
  bool try_map = true;        // false: read GGUF files into memory, as is done where mapping fails
  std::int64_t n_layers = 0;  // only the first so many, 0: all. What is left is quicker, and another model: a draft
  // A head of type Q8_0 lies in two planes, so that greedy decoding and top-k may read the upper bits alone
  // (ops/top_logits.hpp); computing all logits of a token takes longer then. Changes speed, never a result.
  bool head_in_planes = false;
  std::filesystem::path image_folder{};  // for weight images; empty, or with n_layers: none are read or written
  Progress progress{};                   // phase "load", unit "bytes"; what it throws ends the loading
};

struct LoadedModel {
  ModelConfig config;
  ModelWeights weights;
  std::uint64_t n_file_bytes = 0;
  bool from_image = false;           // the matrices are mapped from a weight image
  std::vector<std::string> notices;  // for people: what was done in another way than usual
};

// `path`: a GGUF file (the first of a split model), or a folder with config.json and *.safetensors (or one of these
// files). Throws Error, whose message names the file and the tensor or key: io, bad_file, unsupported, out_of_memory;
// bad_argument for the options.
LoadedModel load_model_files(const std::filesystem::path& path, const LoadOptions& options = {});

// The same of a file that is already open. `check_model_tensors` does all the checks and reads no weights.
LoadedModel load_gguf(const GgufFile& file, const LoadOptions& options = {});
void check_model_tensors(const GgufFile& file);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/model/loader.inl.hpp"
#endif
