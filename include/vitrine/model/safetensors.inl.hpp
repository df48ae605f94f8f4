// Bodies of safetensors.hpp.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "vitrine/core/error.hpp"
#include "vitrine/model/byte_reader.hpp"
#include "vitrine/model/json_reader.inl.hpp"
#include "vitrine/model/safetensors.hpp"

VITRINE_NAMESPACE_BEGIN

namespace safetensors_detail {

using json_detail::describe;
using nlohmann::json;

// Bits per value; 0 for an unknown type.
VITRINE_INLINE std::uint64_t type_bits(const std::string& type) {
  static const std::map<std::string, std::uint64_t> bits = {
      {"BOOL", 8}, {"U8", 8},   {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
      {"I16", 16}, {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"I32", 32},    {"U32", 32},
      {"F32", 32}, {"I64", 64}, {"U64", 64}, {"F64", 64},    {"C64", 64}};
  const auto found = bits.find(type);
  return found == bits.end() ? 0 : found->second;
}

VITRINE_INLINE const json& field(const json& entry, const char* key, const std::string& where) {
  const auto found = entry.find(key);
  check(found != entry.end(), ErrorKind::bad_file, where, ": ", key, " is missing");
  return *found;
}

VITRINE_INLINE std::uint64_t natural(const json& value, const std::string& where, const char* what) {
  check(value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t(INT64_MAX), ErrorKind::bad_file,
        where, ": ", what, ": expected an integer from 0 to 2^63 - 1, got ", describe(value));
  return value.get<std::uint64_t>();
}

// One entry of the header; its offset still counts from the start of the data.
VITRINE_INLINE SafetensorsTensor read_entry(const std::string& name, const json& entry, std::string_view file,
                                            std::uint64_t data_size) {
  const std::string where = concat(file, ": tensor ", printable(name));
  check(entry.is_object(), ErrorKind::bad_file, where, ": expected an object, got ", describe(entry));
  SafetensorsTensor tensor;
  tensor.name = name;
  const json& type = field(entry, "dtype", where);
  check(type.is_string() && type_bits(type.get<std::string>()) != 0, ErrorKind::bad_file, where,
        ": dtype: expected a known type, got ", describe(type));
  tensor.type_name = type.get<std::string>();

  const json& shape = field(entry, "shape", where);
  constexpr std::size_t most_dims = 8;
  check(shape.is_array() && shape.size() <= most_dims, ErrorKind::bad_file, where,
        ": shape: expected an array of at most ", most_dims, " numbers, got ", describe(shape),
        shape.is_array() ? concat(" of ", shape.size()) : "");
  std::uint64_t n_bytes = type_bits(tensor.type_name) / 8;
  for (const auto& item : shape) {
    const std::uint64_t extent = natural(item, where, "shape");
    tensor.shape.push_back(std::int64_t(extent));
    check(checked_multiply(n_bytes, extent, n_bytes), ErrorKind::bad_file, where, ": shape ", shape.dump(),
          " has more than 2^64 bytes");
  }

  const json& range = field(entry, "data_offsets", where);
  check(range.is_array() && range.size() == 2, ErrorKind::bad_file, where,
        ": data_offsets: expected [begin, end], got an ", describe(range), " of ", range.size());
  const auto begin = natural(range[0], where, "data_offsets"), end = natural(range[1], where, "data_offsets");
  check(begin <= end, ErrorKind::bad_file, where, ": data_offsets [", begin, ", ", end, "] run backwards");
  check(end <= data_size, ErrorKind::bad_file, where, ": data_offsets [", begin, ", ", end, "] leave the ", data_size,
        " bytes of data (truncated? is the download complete?)");
  check(end - begin == n_bytes, ErrorKind::bad_file, where, ": data_offsets [", begin, ", ", end, "] hold ",
        end - begin, " bytes, but ", tensor.type_name, " of shape ", shape.dump(), " takes ", n_bytes);
  tensor.offset = begin;
  tensor.n_bytes = n_bytes;
  return tensor;
}

// The ranges must cover the data exactly: nothing hidden in gaps, nothing shared.
VITRINE_INLINE void check_cover(std::vector<SafetensorsTensor>& tensors, std::string_view file,
                                std::uint64_t data_size) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.offset, a.n_bytes) < std::pair(b.offset, b.n_bytes);
  });
  std::uint64_t end = 0;
  for (const auto& tensor : tensors) {
    check(tensor.offset == end, ErrorKind::bad_file, file, ": tensor ", printable(tensor.name),
          " begins at data offset ", tensor.offset, ", expected ", end,
          tensor.offset < end ? ": it overlaps another" : ": there is a gap");
    end = tensor.offset + tensor.n_bytes;
  }
  check(end == data_size, ErrorKind::bad_file, file, ": the tensors end at data offset ", end, ", but there are ",
        data_size, " bytes of data");
}

// What an index says is the plain name of a file beside it, nothing that leads out of the folder, nor what a terminal
// would obey.
VITRINE_INLINE bool is_plain_name(const std::string& name) {
  constexpr std::size_t longest = 255;  // that file systems take
  const auto is_odd = [](char c) { return (c >= 0 && c < ' ') || c == 0x7f || c == '/' || c == '\\'; };
  return !name.empty() && name.size() <= longest && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), is_odd);
}

}  // namespace safetensors_detail

VITRINE_INLINE std::optional<DType> SafetensorsTensor::dtype() const {
  if (type_name == "F32") return DType::f32;
  if (type_name == "F16") return DType::f16;
  if (type_name == "BF16") return DType::bf16;
  return std::nullopt;
}

VITRINE_INLINE void SafetensorsFile::parse_part(MappedFile file, std::uint64_t max_header) {
  using namespace safetensors_detail;
  parts_.push_back(std::move(file));
  const std::string_view name = parts_.back().name();
  ByteReader reader(parts_.back().bytes(), name);
  const auto length = reader.number<std::uint64_t>("header length");
  check(length <= max_header, ErrorKind::bad_file, name, ": offset 0: header length is ", length, ", expected at most ",
        max_header, " (is this a safetensors file?)");
  const auto text = reader.bytes(length, "header");
  const auto header = json_detail::parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, name);
  check(header.is_object(), ErrorKind::bad_file, name, ": header: expected a JSON object, got ", describe(header));

  std::vector<SafetensorsTensor> found;
  for (const auto& [key, entry] : header.items())
    if (key != "__metadata__") found.push_back(read_entry(key, entry, name, reader.remaining()));
  check_cover(found, name, reader.remaining());
  for (auto& tensor : found) {
    tensor.part = parts_.size() - 1;
    tensor.offset += reader.offset();
    tensors_.push_back(std::move(tensor));
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(tensors_.begin(), tensors_.end(),
                                        [](const auto& a, const auto& b) { return a.name == b.name; });
  check(twice == tensors_.end(), ErrorKind::bad_file, name, ": duplicate tensor ",
        twice == tensors_.end() ? "" : printable(twice->name), " (another file of this folder has it, too)");
}

VITRINE_INLINE SafetensorsFile SafetensorsFile::open(const std::filesystem::path& file, std::uint64_t max_header) {
  SafetensorsFile out;
  out.parse_part(MappedFile(file), max_header);
  return out;
}

VITRINE_INLINE SafetensorsFile SafetensorsFile::parse(AlignedBytes bytes, std::string name, std::uint64_t max_header) {
  SafetensorsFile out;
  out.parse_part(MappedFile(std::move(bytes), std::move(name)), max_header);
  return out;
}

VITRINE_INLINE void SafetensorsFile::open_indexed(const std::filesystem::path& folder,
                                                  const std::filesystem::path& index) {
  using namespace safetensors_detail;
  const MappedFile file(index);
  const auto root =
      json_detail::parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, file.name());
  check(root.is_object() && root.contains("weight_map") && root["weight_map"].is_object(), ErrorKind::bad_file,
        file.name(), ": weight_map: expected an object of tensor names and file names");
  std::map<std::string, std::vector<std::string>> tensors_of;
  for (const auto& [tensor, part] : root["weight_map"].items()) {
    check(part.is_string() && is_plain_name(part.get<std::string>()), ErrorKind::bad_file, file.name(),
          ": weight_map: tensor ", printable(tensor), ": expected the name of a file in the same folder, got ",
          describe(part));
    tensors_of[part.get<std::string>()].push_back(tensor);
  }
  for (const auto& [part, names] : tensors_of) {
    parse_part(MappedFile(folder / part), default_max_header);
    for (const auto& name : names) {
      const auto* tensor = find_tensor(name);
      check(tensor != nullptr && tensor->part == parts_.size() - 1, ErrorKind::bad_file, file.name(),
            ": weight_map puts tensor ", printable(name), " into ", printable(part), ", which does not hold it");
    }
  }
}

VITRINE_INLINE SafetensorsFile SafetensorsFile::open_folder(const std::filesystem::path& folder) {
  const auto single = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  std::error_code ignored;
  if (std::filesystem::exists(single, ignored)) return open(single);
  SafetensorsFile out;
  if (std::filesystem::exists(index, ignored)) {
    out.open_indexed(folder, index);
    return out;
  }
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".safetensors") files.insert(entry.path());
  check(!files.empty(), ErrorKind::io, folder.string(), ": expected *.safetensors files in this folder, found none");
  for (const auto& file : files) out.parse_part(MappedFile(file), default_max_header);
  return out;
}

VITRINE_INLINE std::uint64_t SafetensorsFile::n_file_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& part : parts_) sum += part.bytes().size();
  return sum;
}

VITRINE_INLINE const SafetensorsTensor* SafetensorsFile::find_tensor(std::string_view name) const {
  const auto found = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                      [](const auto& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

VITRINE_INLINE std::span<const std::byte> SafetensorsFile::bytes(const SafetensorsTensor& tensor) const {
  const auto& part = owned(tensor.part < parts_.size() ? &parts_[tensor.part] : nullptr, "safetensors file");
  return part.bytes().subspan(std::size_t(tensor.offset), std::size_t(tensor.n_bytes));
}

VITRINE_NAMESPACE_END
