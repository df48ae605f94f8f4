// Writes small GGUF files in memory, good ones and bad ones, and other helpers of the tests of file formats.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/allocation_counts.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/core/tensor.hpp"
#include "vitrine/model/gguf.hpp"

namespace testing {

class Bytes {
 public:
  template <class T>
  Bytes& number(T value) {
    const auto at = data.size();
    data.resize(at + sizeof(T));
    std::memcpy(data.data() + at, &value, sizeof(T));
    return *this;
  }
  Bytes& raw(std::string_view text) {
    data += text;
    return *this;
  }
  Bytes& text(std::string_view value) { return number(std::uint64_t(value.size())).raw(value); }
  std::string data;
};

// "4747ff" -> its bytes.
inline std::string from_hex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += char(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

inline const std::filesystem::path tiny = std::filesystem::path(VITRINE_TEST_DATA) / "tiny";

// The message of the Error that the action throws; "" if it throws none.
template <class Action>
std::string refusal(Action action) {
  try {
    action();
    return {};
  } catch (const vitrine::Error& error) {
    return error.what();
  }
}

inline vitrine::AlignedBytes aligned(std::string_view bytes) {
  vitrine::AlignedBytes out(bytes.size());
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

inline vitrine::GgufFile parse_gguf(std::string_view bytes) {
  return vitrine::GgufFile::parse(aligned(bytes), "test.gguf");
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), std::streamsize(bytes.size()));
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

// What was asked of operator new since this was made (support/counted_allocations.hpp is in test_gguf.cpp): effort that
// does not depend on the machine.
class Effort {
 public:
  std::int64_t allocations() const { return support::n_allocations - n_allocations_; }
  std::int64_t bytes() const { return support::n_bytes_wanted - n_bytes_; }

 private:
  std::int64_t n_allocations_ = support::n_allocations, n_bytes_ = support::n_bytes_wanted;
};

// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "vitrine-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

// Collects metadata and tensors and lays them out as a valid file.
class GgufWriter {
 public:
  GgufWriter& value(std::string_view key, vitrine::GgufType type, std::string_view bytes) {
    metadata_.push_back({std::string(key), Bytes().number(std::uint32_t(type)).raw(bytes).data});
    return *this;
  }
  GgufWriter& u32(std::string_view key, std::uint32_t v) {
    return value(key, vitrine::GgufType::u32, Bytes().number(v).data);
  }
  GgufWriter& f32(std::string_view key, float v) { return value(key, vitrine::GgufType::f32, Bytes().number(v).data); }
  GgufWriter& boolean(std::string_view key, bool v) {
    return value(key, vitrine::GgufType::boolean, Bytes().number(std::uint8_t(v)).data);
  }
  GgufWriter& text(std::string_view key, std::string_view v) {
    return value(key, vitrine::GgufType::string, Bytes().text(v).data);
  }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& v) {
    Bytes bytes;
    bytes.number(std::uint32_t(vitrine::GgufType::string)).number(std::uint64_t(v.size()));
    for (const auto& element : v) bytes.text(element);
    return value(key, vitrine::GgufType::array, bytes.data);
  }
  GgufWriter& remove(std::string_view key) {
    std::erase_if(metadata_, [&](auto& pair) { return pair.first == key; });
    return *this;
  }
  // Replaces a key of the same name.
  template <class... Arguments>
  GgufWriter& set_u32(std::string_view key, std::uint32_t v) {
    return remove(key).u32(key, v);
  }

  // An F32 tensor; dims in the file's order, the contiguous one first. Without values: zeros.
  GgufWriter& tensor(std::string_view name, std::vector<std::uint64_t> dims, std::vector<float> values = {}) {
    std::uint64_t n = 1;
    for (const auto dim : dims) n *= dim;
    values.resize(n);
    std::string bytes(n * 4, '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return tensor(name, std::move(dims), 0, std::move(bytes));
  }
  GgufWriter& tensor(std::string_view name, std::vector<std::uint64_t> dims, std::uint32_t type, std::string bytes) {
    tensors_.push_back({std::string(name), std::move(dims), type, std::move(bytes)});
    return *this;
  }
  GgufWriter& remove_tensor(std::string_view name) {
    std::erase_if(tensors_, [&](auto& tensor) { return tensor.name == name; });
    return *this;
  }

  std::string file(std::uint32_t version = 3, std::uint64_t alignment = 32) const {
    Bytes out, data;
    out.raw("GGUF").number(version).number(std::uint64_t(tensors_.size())).number(std::uint64_t(metadata_.size()));
    for (const auto& [key, bytes] : metadata_) out.text(key).raw(bytes);
    for (const auto& tensor : tensors_) {
      data.data.resize(vitrine::round_up(data.data.size(), alignment));
      out.text(tensor.name).number(std::uint32_t(tensor.dims.size()));
      for (const auto dim : tensor.dims) out.number(dim);
      out.number(tensor.type).number(std::uint64_t(data.data.size()));
      data.raw(tensor.bytes);
    }
    out.data.resize(vitrine::round_up(out.data.size(), alignment));
    return out.data + data.data;
  }

 private:
  struct Item {
    std::string name;
    std::vector<std::uint64_t> dims;
    std::uint32_t type;
    std::string bytes;
  };
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::vector<Item> tensors_;
};

}  // namespace testing
