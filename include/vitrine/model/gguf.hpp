// GGUF model files, versions 2 and 3, little-endian (format: docs/gguf.md of the ggml project).
//
// Opening maps the file and parses the header only, so it is cheap for a file of any size: metadata (typed values by
// key) and tensor infos, all checked against each other and the size of the file. Everything returned is a view into
// the mapping and lives as long as the GgufFile (which may be moved). A model split into several files
// ("name-00001-of-00003.gguf") is opened by its first part.
//
//   const GgufFile file = GgufFile::open("model.gguf");
//   file.text("general.architecture")   file.integer("llama.block_count")   file.strings("tokenizer.ggml.tokens")
//
// Getters throw Error::bad_file naming the key, the expected type and what was found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/core/dtype.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/model/mapped_file.hpp"

VITRINE_NAMESPACE_BEGIN

enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// "UINT8" ... "FLOAT64", as in the format's description.
const char* gguf_type_name(GgufType type);

struct GgufValue {
  std::string_view key;
  GgufType type;
  GgufType element_type;             // of an array
  std::uint64_t count = 1;           // elements of an array
  std::uint64_t offset = 0;          // of the value in the file
  std::span<const std::byte> bytes;  // a scalar, a string's characters, or an array's elements as in the file
};

struct GgufTensor {
  std::string_view name;
  std::uint32_t type_id = 0;              // of the file; types that this library does not run are listed, too
  const char* type_name = nullptr;        // "Q4_K", "IQ2_XXS"
  std::array<std::int64_t, 4> dims{};     // dims[0] is the contiguous one (the columns of a weight matrix); 1 from
  int n_dims = 0;                         // dims[n_dims] on
  std::size_t part = 0;                   // which file of a split model
  std::uint64_t offset = 0, n_bytes = 0;  // in that file
  std::optional<DType> dtype() const {    // nothing for a type that this library does not run
    if (dtype_info(DType(type_id)).name == nullptr) return std::nullopt;
    return DType(type_id);
  }
};

class GgufFile {
 public:
  // Throws Error::bad_file (naming offset and field) for a file that is cut or contradicts itself, Error::unsupported
  // for version 1, big-endian files and unknown tensor types, Error::io if it cannot be read.
  static GgufFile open(const std::filesystem::path& path, bool try_map = true);
  // For what the header says, of a file whose tensors may be missing or cut: all is checked but that they lie in the
  // file, and bytes() throws Error::bad_argument. Nothing can be loaded from it.
  static GgufFile open_header(const std::filesystem::path& path);
  // Parses bytes that are already in memory; never a split model.
  static GgufFile parse(AlignedBytes bytes, std::string name);

  bool header_only() const { return header_only_; }
  const std::string& name() const { return part(0).name(); }
  std::uint32_t version() const { return version_; }
  std::uint32_t alignment() const { return alignment_; }
  const std::vector<MappedFile>& parts() const { return parts_; }
  std::uint64_t n_file_bytes() const;  // of all parts

  const std::vector<GgufValue>& metadata() const { return metadata_; }
  const GgufValue* find(std::string_view key) const;  // nullptr if absent
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // One value. Integers of any width and sign are integers, provided that they fit an int64; FLOAT32 and FLOAT64 are
  // reals. The find_ forms return nothing for an absent key, and throw for one of another type all the same.
  std::int64_t integer(std::string_view key) const;
  double real(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::string_view text(std::string_view key) const;
  std::optional<std::int64_t> find_integer(std::string_view key) const;
  std::optional<double> find_real(std::string_view key) const;
  std::optional<bool> find_boolean(std::string_view key) const;
  std::optional<std::string_view> find_text(std::string_view key) const;

  // Arrays; an array of no elements may be of any element type.
  std::vector<std::string_view> strings(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<float> reals(std::string_view key) const;

  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;  // nullptr if absent
  std::span<const std::byte> bytes(const GgufTensor& tensor) const;

 private:
  GgufFile() = default;
  const MappedFile& part(std::size_t index) const {
    return owned(index < parts_.size() ? &parts_[index] : nullptr, "GGUF file");
  }
  void parse_part(MappedFile file);
  void add_split_parts(const std::filesystem::path& path, bool try_map);
  const GgufValue& need(std::string_view key, GgufType expected) const;

  std::vector<MappedFile> parts_;
  bool header_only_ = false;
  std::uint32_t version_ = 0, alignment_ = 32;
  std::vector<GgufValue> metadata_;  // of the first part
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string_view, std::size_t> key_index_, tensor_index_;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/model/gguf.inl.hpp"
#endif
