// Bodies of weight_image.hpp.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <memory>
#include <sstream>
#include <string>

#include "vitrine/core/error.hpp"
#include "vitrine/core/hash.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/model/byte_reader.hpp"
#include "vitrine/model/mapped_file.hpp"
#include "vitrine/model/weight_image.hpp"

VITRINE_NAMESPACE_BEGIN

namespace weight_image_detail {

inline constexpr std::uint64_t page = 4096, piece = 4 << 20;
inline constexpr std::string_view magic = "VITRIMG1";

inline std::uint64_t n_pieces(std::uint64_t n_bytes) { return divide_up(n_bytes, piece); }
inline std::uint64_t header_bytes(std::uint64_t n_bytes) { return magic.size() + 8 * (3 + n_pieces(n_bytes)); }

// The sums of all pieces of the weights; bytes(at, n, use) calls use(data, n) for what lies there, in order.
template <class Bytes>
std::vector<std::uint64_t> sums_of(std::uint64_t n_bytes, Team& team, const Bytes& bytes) {
  std::vector<std::uint64_t> sums(n_pieces(n_bytes));
  team.run([&](Worker& worker) {
    worker.for_chunks(std::int64_t(sums.size()), 1, [&](std::int64_t first, std::int64_t last) {
      for (auto i = std::uint64_t(first); i < std::uint64_t(last); ++i) {
        Hash64 hash;
        bytes(i * piece, (std::min)(piece, n_bytes - i * piece),
              [&](const std::byte* data, std::size_t n) { hash.add(data, n); });
        sums[i] = hash.value();
      }
    });
  });
  return sums;
}

// The matrices as one stretch of bytes, with zeros up to the next page behind each.
class Stretch {
 public:
  explicit Stretch(std::span<const PackedMatrix* const> matrices) : matrices_(matrices) {
    for (const auto* matrix : matrices) {
      starts_.push_back(n_bytes_);
      n_bytes_ += round_up(matrix->bytes(), page);
    }
  }
  std::uint64_t n_bytes() const { return n_bytes_; }

  template <class Use>
  void operator()(std::uint64_t at, std::uint64_t n, const Use& use) const {
    static constexpr std::byte zeros[page] = {};
    auto i = std::size_t(std::upper_bound(starts_.begin(), starts_.end(), at) - starts_.begin()) - 1;
    for (; n > 0; ++i) {
      const std::uint64_t within = at - starts_[i], held = matrices_[i]->bytes(), room = round_up(held, page);
      if (within < held) {
        const auto here = (std::min)(n, held - within);
        use(matrices_[i]->data() + within, std::size_t(here));
        at += here;
        n -= here;
      }
      const auto padding = (std::min)(n, starts_[i] + room - at);
      if (padding > 0) use(zeros, std::size_t(padding));
      at += padding;
      n -= padding;
    }
  }

 private:
  std::span<const PackedMatrix* const> matrices_;
  std::vector<std::uint64_t> starts_;
  std::uint64_t n_bytes_ = 0;
};

// Removes a file that was not finished.
class Unfinished {
 public:
  explicit Unfinished(std::filesystem::path path) : path_(std::move(path)) {}
  ~Unfinished() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  void finished() { path_.clear(); }

 private:
  std::filesystem::path path_;
};

}  // namespace weight_image_detail

VITRINE_INLINE std::filesystem::path weight_image_path(const std::filesystem::path& folder,
                                                       const std::filesystem::path& model, PackedLayout head) {
  std::error_code ignored;
  const auto whole = std::filesystem::weakly_canonical(model, ignored);
  std::ostringstream name;
  name << whole.stem().string() << '-' << std::hex << std::setw(16) << std::setfill('0')
       << Hash64().add(whole.string()).value() << (head == PackedLayout::planes ? "-planes" : "") << ".vitrine";
  return folder / name.str();
}

VITRINE_INLINE std::vector<PackedMatrix> read_weight_image(const std::filesystem::path& path, std::uint64_t identity,
                                                           std::span<const MatrixShape> shapes, Team& team) {
  using namespace weight_image_detail;
  const auto file = std::make_shared<const MappedFile>(path);
  const auto bytes = file->bytes();
  ByteReader reader(bytes, file->name());
  const auto found_magic = reader.bytes(magic.size(), "name of the format");
  check(std::memcmp(found_magic.data(), magic.data(), magic.size()) == 0, ErrorKind::bad_file, file->name(),
        ": expected a weight image, which begins with ", magic);
  check(reader.number<std::uint64_t>("identity") == identity, ErrorKind::bad_file, file->name(),
        ": is stale: the model's files, its layout or the arithmetic have changed since it was made");
  std::uint64_t n_bytes = 0;
  for (const auto& shape : shapes)
    n_bytes += round_up(PackedMatrix::bytes_of(shape.type, shape.n_rows, shape.n_cols), page);
  const auto n_found = reader.number<std::uint64_t>("size");
  const auto start = round_up(header_bytes(n_bytes), page);
  check(n_found == n_bytes && bytes.size() == start + n_bytes, ErrorKind::bad_file, file->name(), ": expected ",
        n_bytes, " bytes of weights in a file of ", start + n_bytes, ", got ", n_found, " in ", bytes.size());
  std::vector<std::uint64_t> expected(n_pieces(n_bytes));
  for (auto& sum : expected) sum = reader.number<std::uint64_t>("checksum");
  const auto header_sum = Hash64().add(bytes.data(), std::size_t(reader.offset())).value();
  check(reader.number<std::uint64_t>("checksum") == header_sum, ErrorKind::bad_file, file->name(),
        ": is damaged: the checksum of its header is wrong");
  const auto* weights = bytes.data() + start;
  const auto sums = sums_of(
      n_bytes, team, [&](std::uint64_t at, std::uint64_t n, const auto& use) { use(weights + at, std::size_t(n)); });
  const auto wrong = std::mismatch(sums.begin(), sums.end(), expected.begin()).first - sums.begin();
  check(std::size_t(wrong) == sums.size(), ErrorKind::bad_file, file->name(),
        ": is damaged: the checksum of the weights from offset ", start + std::uint64_t(wrong) * piece, " on is wrong");
  std::vector<PackedMatrix> matrices;
  std::uint64_t at = 0;
  for (const auto& shape : shapes) {
    matrices.emplace_back(shape.type, shape.n_rows, shape.n_cols, weights + at, file, shape.layout);
    at += round_up(matrices.back().bytes(), page);
  }
  return matrices;
}

VITRINE_INLINE void write_weight_image(const std::filesystem::path& path, std::uint64_t identity,
                                       std::span<const PackedMatrix* const> matrices, Team& team) {
  using namespace weight_image_detail;
  const Stretch stretch(matrices);
  std::vector<std::uint64_t> header = {identity, stretch.n_bytes()};
  const auto sums = sums_of(stretch.n_bytes(), team, stretch);
  header.insert(header.end(), sums.begin(), sums.end());
  header.push_back(Hash64().add(magic.data(), magic.size()).add(header.data(), 8 * header.size()).value());

  std::error_code failed;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failed);
  static std::atomic<unsigned> count{0};
  const auto beside = path.string() + concat(".", ::getpid(), ".", count.fetch_add(1), ".part");
  Unfinished guard(beside);
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  const auto write = [&](const void* data, std::size_t n) {
    out.write(static_cast<const char*>(data), std::streamsize(n));
  };
  write(magic.data(), magic.size());
  write(header.data(), 8 * header.size());
  const std::vector<char> padding(
      std::size_t(round_up(header_bytes(stretch.n_bytes()), page) - header_bytes(stretch.n_bytes())));
  write(padding.data(), padding.size());
  stretch(0, stretch.n_bytes(), write);
  out.close();
  check(bool(out), ErrorKind::io, beside, ": cannot write the weight image (", round_up(stretch.n_bytes(), page),
        " bytes)");
  std::filesystem::rename(beside, path, failed);
  check(!failed, ErrorKind::io, path.string(), ": cannot put the weight image there: ", failed.message());
  guard.finished();
}

VITRINE_NAMESPACE_END
