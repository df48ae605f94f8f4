// Bodies of engine/prefix_cache.hpp.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <system_error>
#include <utility>

#include "vitrine/engine/prefix_cache.hpp"
#include "vitrine/engine/saved_form.hpp"

VITRINE_NAMESPACE_BEGIN

namespace prefix_detail {

inline constexpr const char* suffix = ".vitrine-prefix";

VITRINE_INLINE std::int64_t whole_blocks(std::int64_t n_tokens) { return n_tokens / kv_block_tokens; }

VITRINE_INLINE std::span<const Token> first_blocks(std::span<const Token> tokens, std::int64_t n_blocks) {
  return tokens.first(std::size_t(n_blocks * kv_block_tokens));
}

// A name beside `path` that no other process or thread uses.
VITRINE_INLINE std::filesystem::path unfinished(std::filesystem::path path) {
  return path += concat(".", std::random_device()(), ".part");
}

// Gives back shares in blocks at its end.
class Shares {
 public:
  Shares(BlockPool& pool, std::span<const PoolBlock> blocks) : pool_(pool), blocks_(blocks) {}
  ~Shares() {
    for (const auto& block : blocks_) pool_.release(block);
  }
  Shares(const Shares&) = delete;
  Shares& operator=(const Shares&) = delete;

 private:
  BlockPool& pool_;
  std::span<const PoolBlock> blocks_;
};

// What `action` returns, or 0 when memory or blocks are refused to it.
template <class Action>
std::int64_t or_nothing(Action&& action) {
  try {
    return action();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_blocks && error.kind() != ErrorKind::out_of_memory) throw;
  } catch (const std::bad_alloc&) {
  }
  return 0;
}

}  // namespace prefix_detail

VITRINE_INLINE PrefixCache::PrefixCache(const Model& model, const PrefixOptions& options)
    : fingerprint_(model.fingerprint()),
      pool_(options.pool ? options.pool : std::make_shared<BlockPool>(model.transformer().kv_layout(options.kv_type))),
      options_(options),
      index_(pool_, BlockPool::blocks_in(pool_->layout(), options.limit_bytes)) {
  const auto layout = model.transformer().kv_layout(options.kv_type);
  check(pool_->layout() == layout, ErrorKind::bad_argument,
        "pool: expected blocks of this model's shape and of kv_type");
  check(options.limit_bytes >= layout.block_bytes(), ErrorKind::bad_argument,
        "limit_bytes: expected at least a block of ", layout.block_bytes(), " bytes, got ", options.limit_bytes);
  if (options.folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  check(!error && std::filesystem::is_directory(options.folder), ErrorKind::io, options.folder.string(),
        ": cannot be used as a folder of prefixes", error ? concat(": ", error.message()) : std::string());
  const auto probe = prefix_detail::unfinished(options.folder / "probe");
  errno = 0;
  const bool writable = bool(std::ofstream(probe, std::ios::binary));
  check(writable, ErrorKind::io, options.folder.string(), ": cannot be used as a folder of prefixes, no file can be ",
        "written in it: ", std::generic_category().message(errno));
  std::filesystem::remove(probe, error);
  make_room_on_disk(0);
}

VITRINE_INLINE std::int64_t PrefixCache::begin(AnyCache& cache, std::span<const Token> tokens) {
  check(cache.kind() != CacheKind::ring, ErrorKind::bad_argument, "prefixes: expected a cache that keeps every token");
  check(cache.layout() == pool_->layout(), ErrorKind::bad_argument, "prefixes: expected a cache of their shape");
  check(!tokens.empty(), ErrorKind::bad_argument, "prefixes: expected at least 1 token, got none");
  if (auto* paged = cache.paged(); paged && paged->pool() == pool_) return begin(*paged, tokens);
  return prefix_detail::or_nothing([&] { return copy_into(cache, tokens); });
}

VITRINE_INLINE std::int64_t PrefixCache::begin(PagedCache& cache, std::span<const Token> tokens) {
  check(cache.pool() == pool_, ErrorKind::bad_argument, "prefixes: expected a cache on their pool");
  check(!tokens.empty(), ErrorKind::bad_argument, "prefixes: expected at least 1 token, got none");
  return prefix_detail::or_nothing([&]() -> std::int64_t {
    const std::lock_guard lock(mutex_);
    const auto match = find(tokens);
    const auto n_before = cache.length();
    if (match.n_tokens <= n_before) return 0;
    cache.adopt(match.blocks, match.n_tokens);
    return hit(match.n_tokens - n_before);
  });
}

// Under the lock.
VITRINE_INLINE PrefixIndex::Match PrefixCache::find(std::span<const Token> tokens) {
  ++counts_.n_requests;
  auto match = index_.find(tokens.first(tokens.size() - 1));
  if (!options_.folder.empty()) read_more(tokens, match);
  return match;
}
VITRINE_INLINE std::int64_t PrefixCache::hit(std::int64_t n_tokens) {
  ++counts_.n_hits;
  counts_.cached_tokens += n_tokens;
  return n_tokens;
}

VITRINE_INLINE std::int64_t PrefixCache::copy_into(AnyCache& cache, std::span<const Token> tokens) {
  const auto n_before = cache.length();
  std::unique_lock lock(mutex_);
  const auto match = find(tokens);
  if (match.n_tokens <= n_before) return 0;
  for (const auto& block : match.blocks) pool_->share(block);
  const prefix_detail::Shares shares(*pool_, match.blocks);
  lock.unlock();
  const auto first = prefix_detail::whole_blocks(n_before);
  cache.truncate(first * kv_block_tokens);  // what follows goes into blocks that nobody else reads
  cache.prepare(match.n_tokens - cache.length());
  for (auto i = std::size_t(first); i < match.blocks.size(); ++i)
    std::memcpy(cache.tables().groups()[0].blocks[i], match.blocks[i].data, pool_->layout().block_bytes());
  cache.append(match.n_tokens - cache.length());
  lock.lock();
  return hit(match.n_tokens - n_before);
}

// Adds to a match what files hold behind it.
VITRINE_INLINE void PrefixCache::read_more(std::span<const Token> tokens, PrefixIndex::Match& match) {
  try {
    for (;;) {
      const auto i = prefix_detail::whole_blocks(match.n_tokens);
      if (std::int64_t(tokens.size()) < (i + 1) * kv_block_tokens) return;
      if (match.n_tokens + 1 >= std::int64_t(tokens.size())) return;  // nothing left to gain
      const auto part = prefix_detail::first_blocks(tokens, i + 1);
      std::error_code error;
      if (!std::filesystem::exists(file_of(part), error)) return;
      if (pool_->counts().n_free == 0) {  // what is not part of the match makes room
        for (const auto& part_of_match : match.blocks) pool_->share(part_of_match);
        const prefix_detail::Shares shares(*pool_, match.blocks);
        index_.give_back(1);
      }
      PoolBlock block;
      pool_->acquire({&block, 1});
      bool added = false;
      try {
        if (read_file(part, block.data)) {
          ++counts_.n_read;
          match.blocks.resize(std::size_t(i));  // without one that has only a part in common
          match.blocks.push_back(block);
          added = index_.insert(part, match.blocks) == i + 1;
          if (!added) match.blocks.pop_back();
        }
      } catch (...) {
        pool_->release(block);
        throw;
      }
      pool_->release(block);  // the index has a share of its own
      match.n_tokens = added ? (std::min)((i + 1) * kv_block_tokens, std::int64_t(tokens.size()) - 1)
                             : (std::min)(match.n_tokens, std::int64_t(match.blocks.size()) * kv_block_tokens);
      if (!added) return;
    }
  } catch (const Error&) {  // no room: what was found before will do
  } catch (const std::bad_alloc&) {
  }
}

VITRINE_INLINE void PrefixCache::keep(const AnyCache& cache, std::span<const Token> tokens) {
  if (cache.kind() == CacheKind::ring || cache.layout() != pool_->layout()) return;
  if (const auto* paged = cache.paged(); paged && paged->pool() == pool_) return keep(*paged, tokens);
  keep_blocks(cache.length(), tokens, [&](std::int64_t i) {
    PoolBlock copy;
    pool_->acquire({&copy, 1});
    std::memcpy(copy.data, cache.tables().groups()[0].blocks[i], pool_->layout().block_bytes());
    return copy;
  });
}

VITRINE_INLINE void PrefixCache::keep(const PagedCache& cache, std::span<const Token> tokens) {
  if (cache.pool() != pool_) return;
  keep_blocks(cache.length(), tokens, [&](std::int64_t i) {
    const PoolBlock block = cache.blocks()[std::size_t(i)];
    pool_->share(block);
    return block;
  });
}

// block_of(i): block i, with a share in it.
template <class BlockOf>
void PrefixCache::keep_blocks(std::int64_t n_tokens, std::span<const Token> tokens, BlockOf&& block_of) try {
  const auto n = prefix_detail::whole_blocks((std::min)(n_tokens, std::int64_t(tokens.size())));
  const std::lock_guard lock(mutex_);
  const auto known = index_.find(prefix_detail::first_blocks(tokens, n));
  auto blocks = known.blocks;
  blocks.reserve(std::size_t(n));
  for (auto i = prefix_detail::whole_blocks(known.n_tokens); i < n; ++i) {
    const auto part = prefix_detail::first_blocks(tokens, i + 1);
    blocks.resize(std::size_t(i));
    const PoolBlock block = block_of(i);
    const prefix_detail::Shares share(*pool_, {&block, 1});
    blocks.push_back(block);
    if (index_.insert(part, blocks) != i + 1) return;
    if (!options_.folder.empty()) write_file(part, block);
  }
} catch (const Error&) {
} catch (const std::bad_alloc&) {
}

VITRINE_INLINE std::int64_t PrefixCache::give_back(std::int64_t n_blocks) {
  const std::lock_guard lock(mutex_);
  return index_.give_back(n_blocks);
}

VITRINE_INLINE std::int64_t PrefixCache::n_idle() const {
  const std::lock_guard lock(mutex_);
  return index_.n_idle();
}

VITRINE_INLINE PrefixCache::Counts PrefixCache::counts() const {
  const std::lock_guard lock(mutex_);
  auto counts = counts_;
  counts.n_blocks = index_.n_blocks();
  counts.n_evicted = index_.n_evicted();
  return counts;
}

// A file: its header, the block, a checksum. The header holds every token from the start up to the block's end, since K
// and V depend on all of them.
VITRINE_INLINE std::string PrefixCache::header_of(std::span<const Token> tokens) const {
  const auto identity = saved_identity(fingerprint_, pool_->layout());
  std::string header = "VITRINE-PREFIX";
  const auto add = [&](const void* data, std::size_t n) { header.append(static_cast<const char*>(data), n); };
  for (const std::uint64_t size : {identity.size(), tokens.size()}) add(&size, sizeof size);
  header += identity;
  add(tokens.data(), tokens.size_bytes());
  return header;
}

VITRINE_INLINE std::filesystem::path PrefixCache::file_of(std::span<const Token> tokens) const {
  const auto header = header_of(tokens);
  std::string name;
  for (const std::uint64_t seed : {0, 1}) name += hexadecimal(Hash64(seed).add(header.data(), header.size()).value());
  return options_.folder / (name + prefix_detail::suffix);
}

VITRINE_INLINE std::string PrefixCache::last_failure() const {
  const std::lock_guard lock(mutex_);
  return last_failure_;
}

// Whether the file holds these tokens' block, which it then writes to `block`.
VITRINE_INLINE bool PrefixCache::read_file(std::span<const Token> tokens, std::byte* block) {
  const auto path = file_of(tokens);
  std::error_code error;
  try {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file && !std::filesystem::exists(path, error)) return false;  // another process made room
    check(bool(file), ErrorKind::io, "cannot be opened: ", std::generic_category().message(errno));
    SavedReader reader(file);
    const auto expected = header_of(tokens);
    std::string header(expected.size(), '\0');
    reader.bytes(header.data(), header.size());
    check(header == expected, ErrorKind::bad_file, "holds another prefix");
    reader.bytes(block, pool_->layout().block_bytes());
    reader.checksum();
    check(file.peek() == std::ifstream::traits_type::eof(), ErrorKind::bad_file, "goes on behind its checksum");
  } catch (const Error& refused) {
    ++counts_.n_refused;
    if (refused.kind() == ErrorKind::bad_file) std::filesystem::remove(path, error);  // a good one can take its place
    last_failure_ = concat(path.string(), ": ", refused.what());
    return false;
  }
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), error);  // used just now
  return true;
}

VITRINE_INLINE void PrefixCache::write_file(std::span<const Token> tokens, const PoolBlock& block) {
  const auto path = file_of(tokens);
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    // Another process wrote it, or it stands behind one that was damaged, so that nobody has looked at it yet.
    std::vector<std::byte> found(pool_->layout().block_bytes());
    if (read_file(tokens, found.data())) return;
  }
  const auto header = header_of(tokens);
  const auto n_bytes = header.size() + pool_->layout().block_bytes() + sizeof(std::uint64_t);
  if (n_bytes > options_.folder_limit_bytes) return;
  make_room_on_disk(n_bytes);
  const auto unfinished = prefix_detail::unfinished(path);
  try {
    {
      errno = 0;
      std::ofstream file(unfinished, std::ios::binary);
      check(bool(file), ErrorKind::io, "cannot be written: ", std::generic_category().message(errno));
      SavedWriter writer(file);
      writer.bytes(header.data(), header.size());
      writer.bytes(block.data, pool_->layout().block_bytes());
      writer.checksum();
      file.close();
      check(bool(file), ErrorKind::io, "cannot be written whole (", n_bytes, " bytes)");
    }
    std::filesystem::rename(unfinished, path);
  } catch (const std::exception& failed) {
    ++counts_.n_writes_failed;
    std::filesystem::remove(unfinished, error);
    last_failure_ = concat(path.string(), ": ", failed.what());
    return;
  }
  ++counts_.n_written;
  folder_bytes_ += n_bytes;
}

// Removes the files that were used longest ago, so that n_bytes more stay within the limit.
VITRINE_INLINE void PrefixCache::make_room_on_disk(std::size_t n_bytes) {
  if (n_bytes > 0 && folder_bytes_ + n_bytes <= options_.folder_limit_bytes) return;
  struct File {
    std::filesystem::file_time_type time;
    std::size_t size;
    std::filesystem::path path;
  };
  std::vector<File> files;
  std::error_code error;
  folder_bytes_ = 0;
  for (std::filesystem::directory_iterator at(options_.folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != prefix_detail::suffix) continue;
    std::error_code gone;
    const File file{at->last_write_time(gone), std::size_t(at->file_size(gone)), at->path()};
    if (gone) continue;
    folder_bytes_ += file.size;
    files.push_back(file);
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.time < b.time; });
  for (const auto& file : files) {
    if (folder_bytes_ + n_bytes <= options_.folder_limit_bytes) return;
    if (std::filesystem::remove(file.path, error)) folder_bytes_ -= file.size;
  }
}

VITRINE_NAMESPACE_END
