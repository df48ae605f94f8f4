// Which architectures there are, and how their files map onto one ModelConfig and one set of weights.
//
// An architecture is a small file in arch/ that says three things: its names, how its metadata becomes a ModelConfig
// (from GGUF and from config.json), and what its tensors are called. What a file says beyond that is never ignored if
// it could change a result: unknown architectures, RoPE types, hyper-parameters and tensors are refused by name.
//
// To add one: write arch/<name>.hpp and list it in architecture.inl.hpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/model/arch/description.hpp"
#include "vitrine/model/config.hpp"
#include "vitrine/model/gguf.hpp"
#include "vitrine/model/hf_config.hpp"

VITRINE_NAMESPACE_BEGIN

const std::vector<Architecture>& architectures();

// Throw Error::unsupported for an architecture that is not in the list, naming it and the list.
const Architecture& architecture_of(const GgufFile& file);
const Architecture& architecture_of(const HfConfig& config);

// The configuration, from the header alone: no weights are read. Throws Error naming the key that is missing, of a
// wrong type, out of range, contradictory or not supported.
ModelConfig config_from_gguf(const GgufFile& file);
ModelConfig config_from_hf(const HfConfig& config);
// Of a GGUF file, or of a folder with config.json.
ModelConfig read_config(const std::filesystem::path& path);
// The folder that a path means if it means a folder with config.json: itself, or that of its *.safetensors or *.json.
std::optional<std::filesystem::path> model_folder(const std::filesystem::path& path);

// Rows and columns ([n, 0] for a vector of n) that the tensor of a slot must have.
struct SlotShape {
  std::int64_t n_rows, n_cols;
};
SlotShape slot_shape(Slot slot, const ModelConfig& config);

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/model/architecture.inl.hpp"
#endif
