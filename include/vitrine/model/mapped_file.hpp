// A file's bytes, mapped read-only; where the file system cannot map, read into memory instead.
//
//   const MappedFile file("model.gguf");    file.bytes()    file.name()
//
// Opening reads nothing of a mapped file: pages come when they are touched, and several processes share them. Views
// into bytes() live as long as the object, wherever it is moved to. A file that somebody else cuts short meanwhile is
// what check_size() is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "vitrine/core/config.hpp"
#include "vitrine/core/tensor.hpp"

VITRINE_NAMESPACE_BEGIN

class MappedFile {
 public:
  MappedFile() = default;
  // Throws Error::io naming the path if it cannot be opened, is no regular file, or cannot be read. `try_map` false
  // reads it into memory, as is done when mapping fails.
  explicit MappedFile(const std::filesystem::path& path, bool try_map = true);
  // Bytes that come from elsewhere, under a name for messages.
  MappedFile(AlignedBytes bytes, std::string name);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& name() const { return name_; }
  bool is_mapped() const { return descriptor_ >= 0; }
  std::int64_t modified() const { return modified_; }  // when its contents last changed, in nanoseconds; 0: no file

  // Throws Error::bad_file if the file has become shorter than it was when it was opened: touching a mapping beyond the
  // end of its file is a fatal signal. Call it before each large read.
  void check_size() const;

  // Tells the system that these bytes are not needed again, so that they leave the process's resident memory. They stay
  // readable. Only whole pages inside the range are dropped.
  void drop(std::uint64_t offset, std::uint64_t n_bytes) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int descriptor_ = -1;  // of the mapped file; -1: the bytes are in owned_
  std::int64_t modified_ = 0;
  AlignedBytes owned_;
  std::string name_;
};

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/model/mapped_file.inl.hpp"
#endif
