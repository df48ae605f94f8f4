// Files that cannot be mapped, as on some network and user-space file systems: they are read into memory instead, with
// a notice. Such a file system is not at hand in a test, so mmap itself refuses here, for files and when told to.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>

#include "gguf_writer.hpp"
#include "vitrine/engine/model.hpp"

namespace {

thread_local bool refuses_files = false;
thread_local int n_files_refused = 0;

struct FilesCannotBeMapped {
  FilesCannotBeMapped() { refuses_files = true, n_files_refused = 0; }
  ~FilesCannotBeMapped() { refuses_files = false; }
};

}  // namespace

// Stands before the C library's for all of this program. Not watched by ThreadSanitizer, which calls it before it is
// ready to watch.
extern "C" [[gnu::no_sanitize_thread]] void* mmap(void* address, size_t length, int protection, int flags, int file,
                                                  off_t offset) noexcept {
  if (refuses_files && file >= 0) {
    ++n_files_refused;
    errno = ENODEV;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

TEST_CASE("A file that cannot be mapped is read into memory, with a notice, and is the same model") {
  struct Case {
    const char* path;
    std::vector<std::string> files;
  };
  const auto& [path, files] =
      GENERATE(Case{"tiny/llama_gqa/model-f16.gguf", {"model-f16.gguf"}}, Case{"tiny/qwen3", {"model.safetensors"}},
               Case{"tiny/qwen2_sharded_f16",
                    {"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                     "model-00003-of-00003.safetensors"}});
  INFO(path);
  const auto whole = std::filesystem::path(VITRINE_TEST_DATA) / path;
  const auto mapped = vitrine::Model::load(whole, {.n_threads = 1});
  CHECK(mapped->notices().empty());
  const auto read = [&] {
    const FilesCannotBeMapped here;
    return vitrine::Model::load(whole, {.n_threads = 1});
  }();
  CHECK(n_files_refused >= int(files.size()));
  CHECK(read->fingerprint() == mapped->fingerprint());
  REQUIRE(read->notices().size() == files.size());
  for (const auto& file : files)
    CHECK(std::count_if(read->notices().begin(), read->notices().end(), [&](const std::string& notice) {
            return notice.find(file + ": could not be mapped, was read into memory") != std::string::npos;
          }) == 1);
}

TEST_CASE("A weight image that cannot be mapped costs nothing but time") {
  const testing::TemporaryFolder folder;
  const auto path = std::filesystem::path(VITRINE_TEST_DATA) / "tiny/llama_gqa/model-f16.gguf";
  const auto load = [&] {
    return vitrine::Model::load(path, {.n_threads = 1, .image_folder = folder.path / "images"});
  };
  const auto first = load();
  const auto read = [&] {
    const FilesCannotBeMapped here;
    return load();
  }();
  CHECK(n_files_refused >= 2);
  CHECK(read->fingerprint() == first->fingerprint());
  CHECK(!read->notices().empty());
}
