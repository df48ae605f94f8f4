// The one reader of binary files: a cursor over bytes that cannot leave them.
//
// Every read names the field it is for, so that a short or lying file ends in a message such as
//
//   model.gguf: truncated at offset 24 while reading metadata key length
//               (wanted 8 bytes, 3 left; is the download complete?)
//
// The check is always `n <= size - offset`, never `offset + n <= size`, which wraps. After a failure the reader is not
// used any more: there is no resynchronising with a file that has lied once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"

VITRINE_NAMESPACE_BEGIN

static_assert(std::endian::native == std::endian::little, "the file formats read here are little-endian");

// Text out of a file, made fit for a message: quoted, control and non-ASCII bytes as \xNN, cut after 80 bytes.
inline std::string printable(std::string_view text) {
  constexpr std::size_t longest = 80;
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  out += text.size() > longest ? "'..." : "'";
  return out;
}

// a * b, or false if that does not fit 64 bits. Division by what a file says is never the way to check this.
inline bool checked_multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

class ByteReader {
 public:
  // Reads `bytes`; `file` is the name for messages. Neither is copied.
  ByteReader(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t remaining() const { return bytes_.size() - offset_; }
  std::string_view file() const { return file_; }

  // Throws unless n more bytes are there.
  void require(std::uint64_t n, std::string_view field) const {
    check(n <= remaining(), ErrorKind::bad_file, file_, ": truncated at offset ", offset_, " while reading ", field,
          " (wanted ", n, " bytes, ", remaining(), " left; is the download complete?)");
  }

  template <class T>
  T number(std::string_view field) {
    static_assert(std::is_arithmetic_v<T>);
    require(sizeof(T), field);
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  std::span<const std::byte> bytes(std::uint64_t n, std::string_view field) {
    require(n, field);
    const auto out = bytes_.subspan(std::size_t(offset_), std::size_t(n));
    offset_ += n;
    return out;
  }

  // A string of u64 length and bytes, a view into the file. Longer than max_length: refused.
  std::string_view text(std::uint64_t max_length, std::string_view field) {
    const std::uint64_t at = offset_, n = number<std::uint64_t>(field);
    check(n <= max_length, ErrorKind::bad_file, file_, ": ", field, " at offset ", at, " is ", n,
          " bytes long, expected at most ", max_length);
    const auto view = bytes(n, field);
    return {reinterpret_cast<const char*>(view.data()), view.size()};
  }

  // A count of things that take at least min_bytes each, checked against what is left of the file.
  std::uint64_t count(std::uint64_t min_bytes, std::string_view field) {
    const std::uint64_t at = offset_, n = number<std::uint64_t>(field);
    check(n <= remaining() / min_bytes, ErrorKind::bad_file, file_, ": truncated at offset ", at, " while reading ",
          field, " (it is ", n, ", more than the ", remaining(), " bytes left can hold; is the download complete?)");
    return n;
  }

  // Throws Error::bad_file naming the field and the offset `at`.
  template <class... Parts>
  [[noreturn]] void fail(std::uint64_t at, const Parts&... parts) const {
    throw Error(ErrorKind::bad_file, concat(file_, ": offset ", at, ": ", parts...));
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view file_;
  std::uint64_t offset_ = 0;
};

VITRINE_NAMESPACE_END
