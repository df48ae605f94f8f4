// Parsing of a GGUF header: bytes to metadata values and tensor infos, all checked. Used by gguf.inl.hpp only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vitrine/core/error.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/model/byte_reader.hpp"
#include "vitrine/model/gguf.hpp"

VITRINE_NAMESPACE_BEGIN

namespace gguf_detail {

inline constexpr std::uint64_t longest_key = 65535, longest_tensor_name = 64;
inline constexpr std::uint64_t any_length = ~std::uint64_t{0};
inline constexpr std::uint32_t largest_alignment = 65536;
inline constexpr int deepest_array = 4;
inline constexpr std::uint32_t n_value_types = 13;

// Bytes of a scalar; for strings and arrays the fewest that an element takes in the file.
VITRINE_INLINE std::uint64_t least_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean: return 1;
    case GgufType::u16:
    case GgufType::i16: return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32: return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
    case GgufType::string: return 8;
    case GgufType::array: return 12;
  }
  return 1;
}

// Every tensor type in use, those included that this library lists but does not run.
struct TensorType {
  std::uint32_t id;
  const char* name;
  std::uint32_t block_len, block_bytes;
};
inline constexpr TensorType other_tensor_types[] = {
    {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},   {11, "Q3_K", 256, 110},   {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74}, {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110}, {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1},         {25, "I16", 1, 2},       {26, "I32", 1, 4},        {27, "I64", 1, 8},
    {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},  {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},
    {39, "MXFP4", 32, 17},
};

VITRINE_INLINE TensorType tensor_type(std::uint32_t id) {
  const DTypeInfo info = dtype_info(DType(id));
  if (info.name != nullptr) return {id, info.name, info.block_len, info.block_bytes};
  for (const auto& type : other_tensor_types)
    if (type.id == id) return type;
  return {id, nullptr, 0, 0};
}

VITRINE_INLINE GgufType read_type(ByteReader& reader, std::string_view field) {
  const auto at = reader.offset();
  const auto id = reader.number<std::uint32_t>(field);
  if (id >= n_value_types) reader.fail(at, field, " is ", id, ", expected 0 to ", n_value_types - 1);
  return GgufType(id);
}

VITRINE_INLINE void read_boolean(ByteReader& reader) {
  const auto at = reader.offset();
  const auto byte = reader.number<std::uint8_t>("metadata value");
  if (byte > 1) reader.fail(at, "a BOOL is ", int(byte), ", expected 0 or 1");
}

// Steps over `count` array elements and checks them.
VITRINE_INLINE void read_elements(ByteReader& reader, GgufType type, std::uint64_t count, int depth) {
  constexpr std::string_view field = "metadata array";
  if (type == GgufType::string) {
    for (std::uint64_t i = 0; i < count; ++i) reader.text(any_length, "string in a metadata array");
  } else if (type == GgufType::array) {
    if (depth == deepest_array) reader.fail(reader.offset(), "arrays nest deeper than ", deepest_array);
    for (std::uint64_t i = 0; i < count; ++i) {
      const GgufType inner = read_type(reader, "element type of a nested array");
      const auto n = reader.count(least_bytes(inner), "length of a nested array");
      read_elements(reader, inner, n, depth + 1);
    }
  } else if (type == GgufType::boolean) {
    for (std::uint64_t i = 0; i < count; ++i) read_boolean(reader);
  } else {
    reader.bytes(count * least_bytes(type), field);  // count() has made sure that this does not wrap
  }
}

VITRINE_INLINE GgufValue read_value(ByteReader& reader) {
  GgufValue value{};
  const auto at = reader.offset();
  value.key = reader.text(longest_key, "metadata key");
  if (value.key.empty()) reader.fail(at, "metadata key is empty");
  value.type = value.element_type = read_type(reader, "metadata value type");
  value.offset = reader.offset();
  if (value.type == GgufType::string) {
    const auto text = reader.text(any_length, "metadata string");
    value.bytes = {reinterpret_cast<const std::byte*>(text.data()), text.size()};
  } else if (value.type == GgufType::array) {
    value.element_type = read_type(reader, "metadata array's element type");
    value.count = reader.count(least_bytes(value.element_type), "metadata array's length");
    ByteReader elements = reader;
    read_elements(reader, value.element_type, value.count, 1);
    value.bytes = elements.bytes(reader.offset() - elements.offset(), "metadata array");
  } else if (value.type == GgufType::boolean) {
    ByteReader start = reader;
    read_boolean(reader);
    value.bytes = start.bytes(1, "metadata value");
  } else {
    value.bytes = reader.bytes(least_bytes(value.type), "metadata value");
  }
  return value;
}

VITRINE_INLINE GgufTensor read_tensor_info(ByteReader& reader, std::uint32_t alignment) {
  GgufTensor tensor;
  auto at = reader.offset();
  tensor.name = reader.text(longest_tensor_name, "tensor name");
  if (tensor.name.empty()) reader.fail(at, "tensor name is empty");
  const std::string name = "tensor " + printable(tensor.name);

  at = reader.offset();
  const auto n_dims = reader.number<std::uint32_t>("number of dimensions of " + name);
  if (n_dims < 1 || n_dims > 4) reader.fail(at, name, " has ", n_dims, " dimensions, expected 1 to 4");
  tensor.n_dims = int(n_dims);
  tensor.dims.fill(1);
  std::uint64_t n_values = 1;
  for (std::uint32_t axis = 0; axis < n_dims; ++axis) {
    at = reader.offset();
    const auto dim = reader.number<std::uint64_t>("dimension of " + name);
    if (dim == 0) reader.fail(at, name, " dim ", axis, " is 0");
    if (!checked_multiply(n_values, dim, n_values) || n_values > std::uint64_t(INT64_MAX))
      reader.fail(at, name, " has more than 2^63 values: dim ", axis, " is ", dim);
    tensor.dims[axis] = std::int64_t(dim);
  }

  at = reader.offset();
  tensor.type_id = reader.number<std::uint32_t>("type of " + name);
  const TensorType type = tensor_type(tensor.type_id);
  check(type.name != nullptr, ErrorKind::unsupported, reader.file(), ": offset ", at, ": ", name,
        " has the unknown type ", tensor.type_id);
  tensor.type_name = type.name;
  if (tensor.dims[0] % type.block_len != 0)
    reader.fail(at, name, " dim 0 is ", tensor.dims[0], ", expected a multiple of ", type.block_len, " for ",
                type.name);
  if (!checked_multiply(n_values / type.block_len, type.block_bytes, tensor.n_bytes))
    reader.fail(at, name, " has more than 2^64 bytes");

  at = reader.offset();
  tensor.offset = reader.number<std::uint64_t>("offset of " + name);
  if (tensor.offset % alignment != 0)
    reader.fail(at, name, " has data offset ", tensor.offset, ", expected a multiple of ", alignment);
  return tensor;
}

// Turns offsets from the start of the data into offsets in the file, and checks that the tensors lie in the file and
// follow each other with nothing between but what alignment takes: a tensor smaller than its room has another type or
// shape than it was written with. `tensors` are those of one file.
VITRINE_INLINE void place_tensors(const ByteReader& reader, std::uint32_t alignment, std::uint64_t file_size,
                                  std::span<GgufTensor> tensors) {
  const std::uint64_t data_start = round_up(reader.offset(), alignment);
  for (auto& tensor : tensors) {
    const std::uint64_t data_size = data_start < file_size ? file_size - data_start : 0;
    if (tensor.offset > data_size || tensor.n_bytes > data_size - tensor.offset)
      reader.fail(data_start, "tensor ", printable(tensor.name), " (", tensor.type_name, ") needs ", tensor.n_bytes,
                  " bytes from data offset ", tensor.offset, " on, but the file has ", data_size,
                  " bytes of data (truncated? is the download complete?)");
    tensor.offset += data_start;
  }
  std::vector<const GgufTensor*> by_offset;
  for (const auto& tensor : tensors) by_offset.push_back(&tensor);
  std::sort(by_offset.begin(), by_offset.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const auto &before = *by_offset[i - 1], &tensor = *by_offset[i];
    const std::uint64_t end = before.offset + before.n_bytes;
    if (end > tensor.offset)
      reader.fail(tensor.offset, "tensors ", printable(before.name), " and ", printable(tensor.name), " overlap");
    if (tensor.offset - end >= alignment)
      reader.fail(end, "tensor ", printable(before.name), " (", before.type_name, ") takes ", before.n_bytes,
                  " bytes, but ", tensor.offset - before.offset, " lie before tensor ", printable(tensor.name),
                  " (is its type or shape another one?)");
  }
}

// Magic and version, with a name for what is known but not read.
VITRINE_INLINE std::uint32_t read_version(ByteReader& reader) {
  const auto magic = reader.number<std::uint32_t>("magic");
  if (magic != 0x46554747)  // "GGUF"
    reader.fail(0, "not a GGUF file: expected the magic 'GGUF', got ",
                printable({reinterpret_cast<const char*>(&magic), 4}));
  const auto version = reader.number<std::uint32_t>("version");
  check((version & 0xffffu) != 0 || version == 0, ErrorKind::unsupported, reader.file(),
        ": offset 4: a big-endian GGUF file; this library reads little-endian ones");
  check(version == 2 || version == 3, ErrorKind::unsupported, reader.file(), ": offset 4: GGUF version ", version,
        " is not supported, expected 2 or 3", version == 1 ? " (convert the model again with current tools)" : "");
  return version;
}

}  // namespace gguf_detail

VITRINE_NAMESPACE_END
