// How much memory there is for a KV cache, in bytes, asked before it is reserved.
//
//   available = min(MemAvailable of the system, memory.max - (memory.current - inactive_file) of the control group)
//
// A session that would reserve more is refused with numbers (Error::out_of_memory) instead of being killed later, and
// an engine without a size of its pool takes at most half of it. Linux's files; where they are missing the answer is 0,
// "not known", and nothing is refused. It throws nothing of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>

#include "vitrine/core/config.hpp"

VITRINE_NAMESPACE_BEGIN

// Bytes that could be had without swapping: what the system has left, or what the limit of the control group (version
// 2, as containers have) leaves if that is less; 0 if neither says. What the group caches of files and has not used
// lately, such as a model that was just read, gives way and does not count as used.
inline std::size_t available_memory(const std::string& system = "/proc/meminfo",
                                    const std::string& group = "/sys/fs/cgroup") {
  std::size_t available = 0, limit = 0, used = 0, value = 0;
  std::string key, rest;
  std::ifstream system_file(system);
  while (system_file >> key >> value && std::getline(system_file, rest))
    if (key == "MemAvailable:") available = value * 1024;
  std::ifstream limit_file(group + "/memory.max"), used_file(group + "/memory.current");
  if (!(limit_file >> limit && used_file >> used)) return available;  // no file, or "max": no limit
  std::ifstream parts(group + "/memory.stat");
  while (parts >> key >> value)
    if (key == "inactive_file") used -= (std::min)(used, value);
  const std::size_t left = limit > used ? limit - used : 1;
  return available == 0 ? left : (std::min)(available, left);
}

VITRINE_NAMESPACE_END
