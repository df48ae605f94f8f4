// Bodies of mapped_file.hpp, for POSIX systems.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "vitrine/core/error.hpp"
#include "vitrine/core/rounding.hpp"
#include "vitrine/model/mapped_file.hpp"

VITRINE_NAMESPACE_BEGIN

namespace mapped_file_detail {

// Closes the descriptor unless it was released.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

VITRINE_INLINE AlignedBytes read_whole(int descriptor, std::size_t size, const std::string& name) {
  AlignedBytes bytes(size, false);
  std::size_t done = 0;
  while (done < size) {
    const auto n = ::pread(descriptor, bytes.data() + done, size - done, off_t(done));
    if (n < 0 && errno == EINTR) continue;
    check(n >= 0, ErrorKind::io, name, ": reading at offset ", done, " failed: ", std::strerror(errno));
    check(n > 0, ErrorKind::bad_file, name, ": became shorter while it was read: expected ", size, " bytes, got ",
          done);
    done += std::size_t(n);
  }
  return bytes;
}

}  // namespace mapped_file_detail

VITRINE_INLINE MappedFile::MappedFile(const std::filesystem::path& path, bool try_map) : name_(path.string()) {
  // O_NONBLOCK: opening a pipe must not wait for a writer before we can refuse it.
  mapped_file_detail::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  check(file.get() >= 0, ErrorKind::io, name_, ": cannot open: ", std::strerror(errno));
  struct stat status {};
  check(::fstat(file.get(), &status) == 0, ErrorKind::io, name_, ": cannot get its size: ", std::strerror(errno));
  check(S_ISREG(status.st_mode), ErrorKind::io, name_, ": expected a regular file, got ",
        S_ISDIR(status.st_mode) ? "a directory" : "a device, pipe or socket");
  size_ = std::size_t(status.st_size);
  modified_ = std::int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
  if (size_ == 0) return;
  if (try_map) {
    void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data != MAP_FAILED) {
      data_ = static_cast<const std::byte*>(data);
      descriptor_ = file.release();
      return;
    }
  }
  owned_ = mapped_file_detail::read_whole(file.get(), size_, name_);
  data_ = owned_.data();
}

VITRINE_INLINE MappedFile::MappedFile(AlignedBytes bytes, std::string name)
    : data_(bytes.data()), size_(bytes.size()), owned_(std::move(bytes)), name_(std::move(name)) {}

VITRINE_INLINE MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      modified_(other.modified_),
      owned_(std::move(other.owned_)),
      name_(std::move(other.name_)) {}

VITRINE_INLINE MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(modified_, other.modified_);
  std::swap(owned_, other.owned_);
  std::swap(name_, other.name_);
  return *this;
}

VITRINE_INLINE MappedFile::~MappedFile() {
  if (descriptor_ < 0) return;
  ::munmap(const_cast<std::byte*>(data_), size_);
  ::close(descriptor_);
}

VITRINE_INLINE void MappedFile::check_size() const {
  if (descriptor_ < 0) return;
  struct stat status {};
  check(::fstat(descriptor_, &status) == 0, ErrorKind::io, name_, ": cannot get its size: ", std::strerror(errno));
  check(std::size_t(status.st_size) >= size_, ErrorKind::bad_file, name_,
        ": became shorter while it was read: expected ", size_, " bytes, got ", status.st_size);
}

VITRINE_INLINE void MappedFile::drop(std::uint64_t offset, std::uint64_t n_bytes) const noexcept {
  if (descriptor_ < 0 || offset > size_ || n_bytes > size_ - offset) return;
  const auto page = std::uint64_t(::sysconf(_SC_PAGESIZE));
  const std::uint64_t end = offset + n_bytes;
  const std::uint64_t first = round_up(offset, page), last = end == size_ ? end : end / page * page;
  if (first < last) ::madvise(const_cast<std::byte*>(data_) + first, std::size_t(last - first), MADV_DONTNEED);
}

VITRINE_NAMESPACE_END
