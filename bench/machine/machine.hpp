// What this machine can do at best, measured in the process that wants to compare itself with it: read bandwidth, the
// peak of the integer dot product and of float multiply-add, and the clock.
//
// The clock comes from a chain of dependent additions, one per cycle. A peak is believable when its instructions per
// cycle are a whole number of ports, or one takes a whole number of cycles: `per_clock` says what came out, `deviation`
// how far it is from such a number.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vitrine/simd/kernel_table.hpp"

namespace bench {

struct Peak {
  std::string instruction;
  double ops_per_second = 0;  // of all threads; a multiply-add counts as two
  double per_clock = 0;       // instructions per cycle and thread
  double deviation = 0;       // |per_clock / nearest whole number - 1|, or that of its inverse
};

struct IsaPeaks {
  vitrine::Isa isa;
  Peak integer, real;
  std::optional<Peak> matrix{};  // of products of whole tiles, where the set has them

  // The time of operations at these peaks: the least that they can take.
  double seconds(double integer_ops, double float_ops, double matrix_ops) const {
    return integer_ops / integer.ops_per_second + float_ops / real.ops_per_second +
           (matrix ? matrix_ops / matrix->ops_per_second : 0);
  }
};

struct Machine {
  int n_threads = 1;
  double clock_hz = 0;
  double read_bytes_per_second = 0;  // best of the kernels below
  std::size_t read_buffer_bytes = 0;
  std::size_t last_level_cache_bytes = 0;  // 0: unknown
  // A buffer of less than four times the cache is partly read from there: the figure is not the memory's.
  bool read_from_cache() const;
  std::string caution() const;  // the same as a sentence, or nothing
  struct Reader {
    std::string name;
    double bytes_per_second;
  };
  std::vector<Reader> readers;
  std::vector<IsaPeaks> isas;  // narrowest first
  const IsaPeaks& of(vitrine::Isa isa) const;
};

struct MachineOptions {
  int n_threads = 1;
  std::size_t buffer_bytes = 0;  // read to measure the bandwidth; 0: enough to come from memory
  int repetitions = 5;           // the best of so many counts
};

Machine measure_machine(const MachineOptions& options);

// The read bandwidth alone: best of the three kernels, each the best of `repetitions` passes.
std::vector<Machine::Reader> measure_readers(const MachineOptions& options);

// Of all last-level caches of this machine together, by the operating system; 0 where it does not say.
std::size_t last_level_cache_bytes();

// "Model name" of /proc/cpuinfo, or "unknown".
std::string cpu_name();

}  // namespace bench
