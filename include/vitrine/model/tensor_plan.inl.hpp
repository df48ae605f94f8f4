// What is to be loaded: the tensors of a file, of either format, matched with the slots of a model and checked before
// anything is allocated. Used by loader.inl.hpp only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "vitrine/core/error.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/model/byte_reader.hpp"
#include "vitrine/model/gguf.hpp"
#include "vitrine/model/safetensors.hpp"

VITRINE_NAMESPACE_BEGIN

namespace loader_detail {

// A tensor in a file, whichever format. The shape is row-major: [rows, columns].
struct SourceTensor {
  std::string name, type_name;
  std::optional<DType> type;
  std::vector<std::int64_t> shape;
  const MappedFile* file = nullptr;
  std::size_t part = 0;
  std::uint64_t offset = 0, n_bytes = 0;

  const std::byte* data() const { return file->bytes().data() + offset; }
};

VITRINE_INLINE std::vector<SourceTensor> list_tensors(const GgufFile& file) {
  check(!file.header_only(), ErrorKind::bad_argument, file.name(), ": the file was opened for its header only");
  std::vector<SourceTensor> out;
  for (const auto& tensor : file.tensors()) {
    std::vector<std::int64_t> shape(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims);
    std::reverse(shape.begin(), shape.end());
    out.push_back({std::string(tensor.name), tensor.type_name, tensor.dtype(), std::move(shape),
                   &file.parts().at(tensor.part), tensor.part, tensor.offset, tensor.n_bytes});
  }
  return out;
}

VITRINE_INLINE std::vector<SourceTensor> list_tensors(const SafetensorsFile& file) {
  std::vector<SourceTensor> out;
  for (const auto& tensor : file.tensors())
    out.push_back({tensor.name, tensor.type_name, tensor.dtype(), tensor.shape, &file.parts().at(tensor.part),
                   tensor.part, tensor.offset, tensor.n_bytes});
  return out;
}

struct PlannedTensor {
  Slot slot;
  std::int64_t layer;  // -1 outside the layers
  const SourceTensor* source;
};

VITRINE_INLINE std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

VITRINE_INLINE void check_tensor(const SourceTensor& tensor, Slot slot, const ModelConfig& config) {
  const SlotShape wanted = slot_shape(slot, config);
  const std::vector<std::int64_t> shape = wanted.n_cols == 0 ? std::vector<std::int64_t>{wanted.n_rows}
                                                             : std::vector<std::int64_t>{wanted.n_rows, wanted.n_cols};
  const std::string where = tensor.file->name() + ": tensor " + printable(tensor.name);
  check(tensor.shape == shape, ErrorKind::bad_file, where, ": expected shape ", shape_text(shape), ", got ",
        shape_text(tensor.shape));
  check(tensor.type.has_value(), ErrorKind::unsupported, where, ": type ", tensor.type_name,
        " is not supported, expected F32, F16, BF16, or in GGUF Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K");
}

// Whether a tensor that no slot takes may be left aside: it holds nothing, or nothing new.
VITRINE_INLINE bool is_redundant(const std::string& name, const ModelConfig& config) {
  const auto ends_with = [&](std::string_view end) {
    return name.size() >= end.size() && std::string_view(name).substr(name.size() - end.size()) == end;
  };
  return name == "rope_freqs.weight"                         // has gone into the configuration
         || ends_with(".rotary_emb.inv_freq")                // old checkpoints store the frequencies they compute
         || (name == "lm_head.weight" && config.tied_head);  // a copy of the embedding; transformers ignores it, too
}

// The tensors to load, in the order of the file. Throws Error for one that is missing, of a wrong shape, of a type that
// is not run, or not expected.
VITRINE_INLINE std::vector<PlannedTensor> plan_tensors(const std::vector<SourceTensor>& tensors,
                                                       const std::string& file, const Architecture& architecture,
                                                       const ModelConfig& config, bool is_gguf) {
  std::unordered_map<std::string_view, const SourceTensor*> by_name;
  for (const auto& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  std::unordered_set<const SourceTensor*> taken;
  std::vector<PlannedTensor> plan;
  for (const auto& entry : architecture.tensors) {
    if (entry.slot == Slot::lm_head && config.tied_head) continue;
    const std::string pattern = is_gguf ? entry.gguf : entry.hf;
    const auto hole = pattern.find("{}");
    const std::int64_t n = hole == std::string::npos ? 1 : config.n_layer;
    for (std::int64_t layer = 0; layer < n; ++layer) {
      std::string name = pattern;
      if (hole != std::string::npos) name.replace(hole, 2, std::to_string(layer));
      const auto found = by_name.find(name);
      check(found != by_name.end(), ErrorKind::bad_file, file, ": tensor '", name, "' is missing");
      check_tensor(*found->second, entry.slot, config);
      taken.insert(found->second);
      plan.push_back({entry.slot, hole == std::string::npos ? -1 : layer, found->second});
    }
  }
  for (const auto& tensor : tensors)
    check(taken.count(&tensor) != 0 || is_redundant(tensor.name, config), ErrorKind::unsupported, tensor.file->name(),
          ": tensor ", printable(tensor.name), " ", shape_text(tensor.shape), " is not expected for architecture '",
          config.architecture, "' with ", config.n_layer, " layers, and ignoring it might change the results");
  std::sort(plan.begin(), plan.end(), [](const PlannedTensor& a, const PlannedTensor& b) {
    return std::pair(a.source->part, a.source->offset) < std::pair(b.source->part, b.source->offset);
  });
  return plan;
}

}  // namespace loader_detail

VITRINE_NAMESPACE_END
