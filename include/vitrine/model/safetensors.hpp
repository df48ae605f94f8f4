// safetensors files: a JSON header of names, types, shapes and byte ranges, then the data (format: the README of
// huggingface/safetensors). One file, or a folder with one or several ("model.safetensors.index.json" says which tensor
// is in which).
//
// The header is checked in full when the file is opened: each range lies in the file, is as long as type and shape say,
// and together they cover the data without gap or overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/dtype.hpp"
#include "vitrine/model/mapped_file.hpp"

VITRINE_NAMESPACE_BEGIN

struct SafetensorsTensor {
  std::string name;
  std::string type_name;            // "F32", "I64"
  std::vector<std::int64_t> shape;  // row-major: the last axis is contiguous
  std::size_t part = 0;             // which file of a folder
  std::uint64_t offset = 0, n_bytes = 0;
  std::optional<DType> dtype() const;  // nothing but for F32, F16 and BF16
};

class SafetensorsFile {
 public:
  // A header longer than max_header bytes is refused before it is parsed. (Files whose header has 132 MB exist.)
  static constexpr std::uint64_t default_max_header = std::uint64_t{256} << 20;

  // Throws Error::bad_file or Error::io.
  static SafetensorsFile open(const std::filesystem::path& file, std::uint64_t max_header = default_max_header);
  // The model of a folder: model.safetensors, else the files of model.safetensors.index.json, else every *.safetensors.
  static SafetensorsFile open_folder(const std::filesystem::path& folder);
  // Parses bytes that are already in memory.
  static SafetensorsFile parse(AlignedBytes bytes, std::string name, std::uint64_t max_header = default_max_header);

  const std::vector<MappedFile>& parts() const { return parts_; }
  std::uint64_t n_file_bytes() const;  // of all parts
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }
  const SafetensorsTensor* find_tensor(std::string_view name) const;  // nullptr if absent
  std::span<const std::byte> bytes(const SafetensorsTensor& tensor) const;

 private:
  SafetensorsFile() = default;
  void parse_part(MappedFile file, std::uint64_t max_header);
  void open_indexed(const std::filesystem::path& folder, const std::filesystem::path& index);

  std::vector<MappedFile> parts_;
  std::vector<SafetensorsTensor> tensors_;  // sorted by name
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/model/safetensors.inl.hpp"
#endif
