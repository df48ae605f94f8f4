// Bodies of gguf.hpp.
#pragma once

#include <cstring>
#include <utility>

#include "vitrine/core/error.hpp"
#include "vitrine/model/byte_reader.hpp"
#include "vitrine/model/gguf.hpp"
#include "vitrine/model/gguf_parse.inl.hpp"

VITRINE_NAMESPACE_BEGIN

namespace gguf_detail {

template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t index = 0) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Element `index` of packed numbers of `type`; false if the type is no integer or the value does not fit.
VITRINE_INLINE bool load_integer(std::span<const std::byte> bytes, GgufType type, std::uint64_t index,
                                 std::int64_t& out) {
  switch (type) {
    case GgufType::u8: out = load<std::uint8_t>(bytes, index); return true;
    case GgufType::i8: out = load<std::int8_t>(bytes, index); return true;
    case GgufType::u16: out = load<std::uint16_t>(bytes, index); return true;
    case GgufType::i16: out = load<std::int16_t>(bytes, index); return true;
    case GgufType::u32: out = load<std::uint32_t>(bytes, index); return true;
    case GgufType::i32: out = load<std::int32_t>(bytes, index); return true;
    case GgufType::i64: out = load<std::int64_t>(bytes, index); return true;
    case GgufType::u64: {
      const auto value = load<std::uint64_t>(bytes, index);
      out = std::int64_t(value);
      return value <= std::uint64_t(INT64_MAX);
    }
    default: return false;
  }
}

VITRINE_INLINE bool is_integer(GgufType type) {
  return type != GgufType::f32 && type != GgufType::f64 && type != GgufType::boolean && type != GgufType::string &&
         type != GgufType::array;
}

[[noreturn]] VITRINE_INLINE void wrong_type(const std::string& file, const GgufValue& value,
                                            std::string_view expected) {
  std::string got = gguf_type_name(value.type);
  if (value.type == GgufType::array) got += concat(" of ", value.count, " ", gguf_type_name(value.element_type));
  throw Error(ErrorKind::bad_file, concat(file, ": metadata key ", printable(value.key), " at offset ", value.offset,
                                          ": expected ", expected, ", got ", got));
}

// "model-00002-of-00003.gguf": the name with another number; empty if the file is not named so.
VITRINE_INLINE std::string split_name(const std::string& name, std::uint64_t number, std::uint64_t count) {
  const auto five = [](std::uint64_t n) {
    const std::string digits = std::to_string(n);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  const std::string of = "-of-" + five(count) + ".gguf";
  if (name.size() < of.size() + 6 || name.substr(name.size() - of.size()) != of) return {};
  const auto prefix = name.substr(0, name.size() - of.size() - 5);
  return prefix.back() == '-' ? prefix + five(number) + of : std::string();
}

}  // namespace gguf_detail

VITRINE_INLINE const char* gguf_type_name(GgufType type) {
  static constexpr const char* names[] = {"UINT8", "INT8",   "UINT16", "INT16",  "UINT32", "INT32",  "FLOAT32",
                                          "BOOL",  "STRING", "ARRAY",  "UINT64", "INT64",  "FLOAT64"};
  return std::size_t(type) < std::size(names) ? names[std::size_t(type)] : "unknown";
}

VITRINE_INLINE void GgufFile::parse_part(MappedFile file) {
  using namespace gguf_detail;
  parts_.push_back(std::move(file));
  const bool first = parts_.size() == 1;
  ByteReader reader(parts_.back().bytes(), parts_.back().name());
  const auto version = read_version(reader);
  // 24 bytes: the least that a tensor info takes (name and dimensions empty); 13: a metadata pair.
  const auto n_tensors = reader.count(24, "tensor count");
  const auto n_pairs = reader.count(13, "metadata count");

  // Nothing is reserved by these counts: the vectors grow with what is really there.
  std::uint32_t alignment = 32;
  for (std::uint64_t i = 0; i < n_pairs; ++i) {
    const auto at = reader.offset();
    const GgufValue value = read_value(reader);
    if (value.key == "general.alignment") {
      if (value.type != GgufType::u32) wrong_type(std::string(reader.file()), value, "UINT32");
      alignment = load<std::uint32_t>(value.bytes);
      if (alignment < 8 || alignment > largest_alignment || (alignment & (alignment - 1)) != 0)
        reader.fail(value.offset, "general.alignment is ", alignment, ", expected a power of two from 8 to ",
                    largest_alignment);
    }
    if (!first) {  // what later parts say is only where they belong
      if (value.key == "split.no") {
        std::int64_t number = -1;
        if (!load_integer(value.bytes, value.type, 0, number) || std::uint64_t(number) != parts_.size() - 1)
          reader.fail(value.offset, "split.no is ", number, ", expected ", parts_.size() - 1);
      }
      continue;
    }
    if (!key_index_.emplace(value.key, metadata_.size()).second)
      reader.fail(at, "duplicate metadata key ", printable(value.key));
    metadata_.push_back(value);
  }
  if (first) {
    version_ = version;
    alignment_ = alignment;
  }

  const std::size_t first_tensor = tensors_.size();
  for (std::uint64_t i = 0; i < n_tensors; ++i) {
    const auto at = reader.offset();
    GgufTensor tensor = read_tensor_info(reader, alignment);
    tensor.part = parts_.size() - 1;
    if (!tensor_index_.emplace(tensor.name, tensors_.size()).second)
      reader.fail(at, "duplicate tensor name ", printable(tensor.name));
    tensors_.push_back(tensor);
  }
  const auto size = header_only_ ? std::uint64_t(INT64_MAX) : parts_.back().bytes().size();
  place_tensors(reader, alignment, size, std::span(tensors_).subspan(first_tensor));
}

VITRINE_INLINE void GgufFile::add_split_parts(const std::filesystem::path& path, bool try_map) {
  const auto count = find_integer("split.count").value_or(1);
  if (count == 1 || (count == 0 && !has("split.no"))) return;
  check(count >= 1 && count <= 65535, ErrorKind::bad_file, name(), ": split.count is ", count, ", expected 1 to 65535");
  const std::string file = path.filename().string(), first = gguf_detail::split_name(file, 1, std::uint64_t(count));
  check(!first.empty(), ErrorKind::bad_file, name(), ": the model is split into ", count,
        " files (split.count), but this file's name does not end in -0000N-of-",
        "0000M.gguf, so the others cannot be found");
  const auto number = find_integer("split.no").value_or(0);
  check(number == 0 && file == first, ErrorKind::bad_file, name(), ": this is part ", number + 1, " of a model in ",
        count, " files; open the first part, ", printable(first));
  for (std::int64_t part = 2; part <= count; ++part) {
    const auto next = path.parent_path() / gguf_detail::split_name(file, std::uint64_t(part), std::uint64_t(count));
    parse_part(MappedFile(next, try_map));
  }
  if (const auto total = find_integer("split.tensors.count"))
    check(*total == std::int64_t(tensors_.size()), ErrorKind::bad_file, name(), ": split.tensors.count is ", *total,
          ", but the ", count, " files hold ", tensors_.size(), " tensors");
}

VITRINE_INLINE GgufFile GgufFile::open(const std::filesystem::path& path, bool try_map) {
  GgufFile file;
  file.parse_part(MappedFile(path, try_map));
  file.add_split_parts(path, try_map);
  return file;
}

VITRINE_INLINE GgufFile GgufFile::open_header(const std::filesystem::path& path) {
  GgufFile file;
  file.header_only_ = true;
  file.parse_part(MappedFile(path));
  file.add_split_parts(path, true);
  return file;
}

VITRINE_INLINE GgufFile GgufFile::parse(AlignedBytes bytes, std::string name) {
  GgufFile file;
  file.parse_part(MappedFile(std::move(bytes), std::move(name)));
  return file;
}

VITRINE_INLINE std::uint64_t GgufFile::n_file_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts_) sum += part.bytes().size();
  return sum;
}

VITRINE_INLINE const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = key_index_.find(key);
  return found == key_index_.end() ? nullptr : &metadata_[found->second];
}

// The value under a key that must be there, of a type that must be `expected` (or, for i64, any integer, and for f64
// any real).
VITRINE_INLINE const GgufValue& GgufFile::need(std::string_view key, GgufType expected) const {
  const GgufValue* const value = find(key);
  check(value != nullptr, ErrorKind::bad_file, name(), ": metadata key ", printable(key), " is missing");
  if (expected == GgufType::i64 && !gguf_detail::is_integer(value->type))
    gguf_detail::wrong_type(name(), *value, "an integer");
  if (expected == GgufType::f64 && value->type != GgufType::f32 && value->type != GgufType::f64)
    gguf_detail::wrong_type(name(), *value, "FLOAT32 or FLOAT64");
  if (expected != GgufType::i64 && expected != GgufType::f64 && value->type != expected)
    gguf_detail::wrong_type(name(), *value, gguf_type_name(expected));
  return *value;
}

VITRINE_INLINE std::int64_t GgufFile::integer(std::string_view key) const {
  const GgufValue& value = need(key, GgufType::i64);
  std::int64_t out = 0;
  if (!gguf_detail::load_integer(value.bytes, value.type, 0, out))
    gguf_detail::wrong_type(name(), value, "an integer below 2^63");
  return out;
}

VITRINE_INLINE double GgufFile::real(std::string_view key) const {
  const GgufValue& value = need(key, GgufType::f64);
  return value.type == GgufType::f32 ? double(gguf_detail::load<float>(value.bytes))
                                     : gguf_detail::load<double>(value.bytes);
}

VITRINE_INLINE bool GgufFile::boolean(std::string_view key) const {
  return gguf_detail::load<std::uint8_t>(need(key, GgufType::boolean).bytes) != 0;
}

VITRINE_INLINE std::string_view GgufFile::text(std::string_view key) const {
  const auto bytes = need(key, GgufType::string).bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

VITRINE_INLINE std::optional<std::int64_t> GgufFile::find_integer(std::string_view key) const {
  return has(key) ? std::optional(integer(key)) : std::nullopt;
}
VITRINE_INLINE std::optional<double> GgufFile::find_real(std::string_view key) const {
  return has(key) ? std::optional(real(key)) : std::nullopt;
}
VITRINE_INLINE std::optional<bool> GgufFile::find_boolean(std::string_view key) const {
  return has(key) ? std::optional(boolean(key)) : std::nullopt;
}
VITRINE_INLINE std::optional<std::string_view> GgufFile::find_text(std::string_view key) const {
  return has(key) ? std::optional(text(key)) : std::nullopt;
}

VITRINE_INLINE std::vector<std::string_view> GgufFile::strings(std::string_view key) const {
  const GgufValue& value = need(key, GgufType::array);
  if (value.count > 0 && value.element_type != GgufType::string)
    gguf_detail::wrong_type(name(), value, "ARRAY of STRING");
  std::vector<std::string_view> out;
  out.reserve(value.count);  // every string has been walked when the file was opened
  ByteReader reader(value.bytes, name());
  for (std::uint64_t i = 0; i < value.count; ++i) out.push_back(reader.text(gguf_detail::any_length, key));
  return out;
}

VITRINE_INLINE std::vector<std::int64_t> GgufFile::integers(std::string_view key) const {
  const GgufValue& value = need(key, GgufType::array);
  if (value.count > 0 && !gguf_detail::is_integer(value.element_type))
    gguf_detail::wrong_type(name(), value, "ARRAY of an integer type");
  std::vector<std::int64_t> out(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i)
    if (!gguf_detail::load_integer(value.bytes, value.element_type, i, out[i]))
      gguf_detail::wrong_type(name(), value, "ARRAY of integers below 2^63");
  return out;
}

VITRINE_INLINE std::vector<float> GgufFile::reals(std::string_view key) const {
  const GgufValue& value = need(key, GgufType::array);
  if (value.count > 0 && value.element_type != GgufType::f32)
    gguf_detail::wrong_type(name(), value, "ARRAY of FLOAT32");
  std::vector<float> out(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i) out[i] = gguf_detail::load<float>(value.bytes, i);
  return out;
}

VITRINE_INLINE const GgufTensor* GgufFile::find_tensor(std::string_view tensor_name) const {
  const auto found = tensor_index_.find(tensor_name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

VITRINE_INLINE std::span<const std::byte> GgufFile::bytes(const GgufTensor& tensor) const {
  check(!header_only_, ErrorKind::bad_argument, name(), ": tensor ", printable(tensor.name),
        ": the file was opened for its header only");
  return part(tensor.part).bytes().subspan(std::size_t(tensor.offset), std::size_t(tensor.n_bytes));
}

VITRINE_NAMESPACE_END
