// A folder that is not there yet, and is gone at the end of the test.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace support {

struct TemporaryFolder {
  explicit TemporaryFolder(const std::string& name)
      : path(std::filesystem::temp_directory_path() / ("vitrine-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> result;
    for (const auto& entry : std::filesystem::directory_iterator(path)) result.push_back(entry.path());
    std::sort(result.begin(), result.end());
    return result;
  }
  std::filesystem::path path;
};

}  // namespace support
