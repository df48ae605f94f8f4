// The memory that a cache may count on: the system's, or less by the limit of a control group.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "vitrine/engine/available_memory.hpp"

namespace {

// A folder with the files of a made-up system, removed at the end.
struct System {
  System() { std::filesystem::create_directories(folder); }
  ~System() { std::filesystem::remove_all(folder); }
  void file(const std::string& name, const std::string& text) const { std::ofstream(folder / name) << text; }
  std::size_t available() const { return vitrine::available_memory((folder / "meminfo").string(), folder.string()); }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("vitrine-memory-" + std::to_string(getpid()));
};

}  // namespace

TEST_CASE("available memory is the system's or what a control group leaves", "[memory]") {
  const System system;
  CHECK(system.available() == 0);
  system.file("memory.max", "max\n");
  system.file("memory.current", "1000\n");
  CHECK(system.available() == 0);
  system.file("meminfo", "MemTotal:  9 kB\nHugePages_Total:  0\nMemAvailable:  4 kB\nBuffers:  7 kB\n");
  CHECK(system.available() == 4096);
  system.file("memory.max", "3000\n");
  CHECK(system.available() == 2000);
  system.file("memory.stat", "anon 100\ninactive_file 600\nactive_file 50\n");
  CHECK(system.available() == 2600);
  system.file("memory.max", "1000000\n");
  CHECK(system.available() == 4096);
  system.file("memory.max", "10\n");
  CHECK(system.available() == 1);  // not 0, which would mean that nobody knows
  std::filesystem::remove(system.folder / "meminfo");
  system.file("memory.max", "3000\n");
  CHECK(system.available() == 2600);
  std::filesystem::remove(system.folder / "memory.current");
  CHECK(system.available() == 0);
}
