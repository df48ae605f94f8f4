// What saved keys and values are tied to, and how bytes get into files and back: for sessions and prefixes.
//
//   identity   format, arithmetic, model, element types and shape of the cache: files of another one are refused
//   checksum   XXH64 of all bytes before it
//
// Numbers are written as they lie in memory (little-endian), texts with their length in 64 bits before them. Writing
// throws Error::io, reading Error::bad_file for what is cut or damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <istream>
#include <ostream>
#include <string>
#include <string_view>

#include "vitrine/cache/kv_layout.hpp"
#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/hash.hpp"
#include "vitrine/core/version.hpp"

VITRINE_NAMESPACE_BEGIN

inline constexpr std::uint32_t saved_form_version = 1;

// Not by a stream: where memory is refused, those go on with what they have.
inline std::string hexadecimal(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

// A line of text, so that a message about a foreign file can show both.
inline std::string saved_identity(std::uint64_t model_fingerprint, const KvLayout& layout) {
  return "form " + std::to_string(saved_form_version) + ", arithmetic " + std::to_string(arithmetic_version) +
         ", model " + hexadecimal(model_fingerprint) + ", " + layout.types.name() + " [" +
         std::to_string(layout.n_layer) + ", " + std::to_string(layout.n_kv_head) + ", " +
         std::to_string(layout.head_dim) + "]";
}

// Writes, and sums up what was written.
class SavedWriter {
 public:
  explicit SavedWriter(std::ostream& out) : out_(out) {}
  void bytes(const void* data, std::size_t n) {
    out_.write(static_cast<const char*>(data), std::streamsize(n));
    check(bool(out_), ErrorKind::io, "save: the stream refused ", n, " bytes");
    hash_.add(data, n);
  }
  template <class T>
  void value(T x) {
    bytes(&x, sizeof x);
  }
  void text(std::string_view text) {
    value(std::uint64_t(text.size()));
    bytes(text.data(), text.size());
  }
  void checksum() { value(hash_.value()); }

 private:
  std::ostream& out_;
  Hash64 hash_;
};

// Reads the same; what is cut or damaged is Error::bad_file.
class SavedReader {
 public:
  explicit SavedReader(std::istream& in) : in_(in) {
    check(bool(in), ErrorKind::io, "load: expected a stream that can be read, got one that failed (no such file?)");
  }
  void bytes(void* data, std::size_t n) {
    in_.read(static_cast<char*>(data), std::streamsize(n));
    check(std::size_t(in_.gcount()) == n, ErrorKind::bad_file, "load: the file ends in the middle, after ",
          n_read_ + std::size_t(in_.gcount()), " bytes");
    hash_.add(data, n);
    n_read_ += n;
  }
  template <class T>
  T value() {
    T x;
    bytes(&x, sizeof x);
    return x;
  }
  std::string text(std::size_t longest) {
    const auto n = value<std::uint64_t>();
    check(n <= longest, ErrorKind::bad_file, "load: a text of ", n, " bytes, expected at most ", longest);
    std::string result(std::size_t(n), '\0');
    bytes(result.data(), result.size());
    return result;
  }
  void checksum() {
    const auto expected = hash_.value();
    check(value<std::uint64_t>() == expected, ErrorKind::bad_file, "load: the checksum after ", n_read_ - 8,
          " bytes is wrong: the file is damaged");
  }

 private:
  std::istream& in_;
  Hash64 hash_;
  std::size_t n_read_ = 0;
};

VITRINE_NAMESPACE_END
