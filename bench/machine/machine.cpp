#include "machine/machine.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>

#include "machine/peak_loops.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/core/tensor.hpp"
#include "vitrine/simd/dispatch.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

const PeakLoops& loops_of(vitrine::Isa isa) {
  switch (isa) {
    case vitrine::Isa::avx2: return peak_loops_avx2();
    case vitrine::Isa::avxvnni: return peak_loops_avxvnni();
    case vitrine::Isa::avx512: return peak_loops_avx512();
    case vitrine::Isa::avx512vnni: return peak_loops_avx512vnni();
    case vitrine::Isa::avx512amx: return peak_loops_avx512amx();
    default: return peak_loops_scalar();
  }
}

// Register to register: processors that add constants while renaming cannot skip it.
void dependent_additions(std::uint64_t rounds) {
  std::uint64_t sum = 0, one = 1;
  for (std::uint64_t round = 0; round < rounds; ++round) {
#define BENCH_ADD4 "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\t"
    asm volatile(BENCH_ADD4 BENCH_ADD4 BENCH_ADD4 BENCH_ADD4 BENCH_ADD4 BENCH_ADD4 BENCH_ADD4 BENCH_ADD4 BENCH_ADD4
                     BENCH_ADD4 BENCH_ADD4 BENCH_ADD4
                 : "+r"(sum)
                 : "r"(one));
#undef BENCH_ADD4
  }
}

// Seconds of the slowest thread: all start together and are waited for.
double time_on_all(vitrine::Team& team, const std::function<void(vitrine::Worker&)>& body) {
  Clock::time_point start, end;
  team.run([&](vitrine::Worker& worker) {
    worker.sync();
    if (worker.id() == 0) start = Clock::now();
    body(worker);
    worker.sync();
    if (worker.id() == 0) end = Clock::now();
  });
  return std::chrono::duration<double>(end - start).count();
}

// Rounds per second, summed over the threads, which all run at a time. Each thread keeps its best window of about a
// millisecond: shorter than a time slice, so that a busy machine still shows what the processor can do.
double rate(vitrine::Team& team, void (*loop)(std::uint64_t)) {
  constexpr int windows = 16;
  constexpr double wanted = 0.001;
  std::vector<double> best(std::size_t(team.n_threads()), 0.0);
  team.run([&](vitrine::Worker& worker) {
    std::uint64_t rounds = 100;
    double most = 0;
    worker.sync();
    for (int window = 0; window < windows;) {
      const auto start = Clock::now();
      loop(rounds);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (seconds < wanted / 2) {  // not yet long enough to time
        rounds = std::uint64_t(double(rounds) * std::clamp(wanted / std::max(seconds, 1e-7), 1.5, 100.0));
        continue;
      }
      most = std::max(most, double(rounds) / seconds);
      ++window;
    }
    best[std::size_t(worker.id())] = most;
  });
  return std::accumulate(best.begin(), best.end(), 0.0);
}

Peak peak(const char* instruction, double macs, double rounds, const Machine& machine) {
  const double per_second = rounds * double(PeakLoops::per_round);
  const double per_clock = per_second / machine.clock_hz / machine.n_threads;
  const double whole = per_clock > 0.5 ? per_clock : 1 / per_clock;
  return {instruction, 2 * macs * per_second, per_clock, std::abs(whole / std::round(whole) - 1)};
}

// As much as must be read so that the caches serve little of it.
std::size_t buffer_of(std::size_t cache_bytes) { return 4 * cache_bytes; }

std::size_t wanted_buffer(const MachineOptions& options) {
  if (options.buffer_bytes > 0) return options.buffer_bytes;
  // The limit: a virtual machine may list one cache once for each processor.
  return std::clamp(buffer_of(last_level_cache_bytes()), std::size_t(512) << 20, std::size_t(4096) << 20);
}

}  // namespace

const IsaPeaks& Machine::of(vitrine::Isa isa) const {
  for (const auto& peaks : isas)
    if (peaks.isa == isa) return peaks;
  throw vitrine::Error(vitrine::ErrorKind::unsupported, "peaks: not measured for this instruction set");
}

bool Machine::read_from_cache() const { return read_buffer_bytes < buffer_of(last_level_cache_bytes); }

std::string Machine::caution() const {
  if (!read_from_cache()) return {};
  const auto megabytes = [](std::size_t bytes) { return vitrine::concat((bytes + (1 << 20) - 1) >> 20, " MB"); };
  return vitrine::concat("The buffer of ", megabytes(read_buffer_bytes), " is smaller than four times the caches (",
                         megabytes(last_level_cache_bytes), "): the read bandwidth is theirs here, not the memory's.");
}

std::size_t last_level_cache_bytes() {
  namespace fs = std::filesystem;
  const auto read = [](const fs::path& file) {
    std::ifstream stream(file);
    std::string text;
    std::getline(stream, text);
    return text;
  };
  std::map<std::string, std::size_t> caches;  // of the highest level, by the processors that share it
  int highest = 0;
  std::error_code ignored;
  for (const auto& cpu : fs::directory_iterator("/sys/devices/system/cpu", ignored)) {
    for (const auto& cache : fs::directory_iterator(cpu.path() / "cache", ignored)) {
      const int level = std::atoi(read(cache.path() / "level").c_str());
      if (level < std::max(highest, 1)) continue;
      if (level > highest) caches.clear();
      highest = level;
      const auto size = read(cache.path() / "size");  // "32768K"
      const int shift = size.ends_with('K') ? 10 : size.ends_with('M') ? 20 : 0;
      caches[read(cache.path() / "shared_cpu_list")] = std::size_t(std::atoll(size.c_str())) << shift;
    }
  }
  std::size_t sum = 0;
  for (const auto& [processors, bytes] : caches) sum += bytes;
  return sum;
}

std::vector<Machine::Reader> measure_readers(const MachineOptions& options) {
  const std::size_t wanted = wanted_buffer(options), part = wanted / std::size_t(options.n_threads) / 4096 * 4096;
  vitrine::check(part > 0, vitrine::ErrorKind::bad_argument, "buffer: expected at least 4096 bytes for each of ",
                 options.n_threads, " threads, got ", wanted, " in all");
  const PeakLoops& loops = loops_of(vitrine::available_isas().back());
  vitrine::Team team(options.n_threads);
  // Written to, since pages that were never written share one page of zeros, which fits every cache.
  vitrine::AlignedBytes buffer(part * std::size_t(options.n_threads));
  std::vector<Machine::Reader> readers;
  for (int r = 0; r < PeakLoops::n_readers; ++r) readers.push_back({loops.reader_names[r], 0});
  volatile std::uint64_t sink = 0;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (int r = 0; r < PeakLoops::n_readers; ++r) {
      const double seconds = time_on_all(team, [&](vitrine::Worker& worker) {
        const auto result = loops.readers[r](buffer.data() + part * std::size_t(worker.id()), part);
        if (result != 0) sink = result;  // never: the buffer holds zeros
      });
      auto& best = readers[std::size_t(r)].bytes_per_second;
      best = std::max(best, double(buffer.size()) / seconds);
    }
  }
  return readers;
}

Machine measure_machine(const MachineOptions& options) {
  Machine machine;
  machine.n_threads = options.n_threads;
  machine.read_buffer_bytes = wanted_buffer(options);
  machine.last_level_cache_bytes = last_level_cache_bytes();
  machine.readers = measure_readers(options);
  for (const auto& reader : machine.readers)
    machine.read_bytes_per_second = std::max(machine.read_bytes_per_second, reader.bytes_per_second);

  const auto isas = vitrine::available_isas();
  std::vector<double> dot(isas.size()), real(isas.size()), matrix(isas.size());
  vitrine::Team team(options.n_threads);
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    machine.clock_hz = std::max(machine.clock_hz, rate(team, dependent_additions) * 48 / options.n_threads);
    for (std::size_t i = 0; i < isas.size(); ++i) {
      dot[i] = std::max(dot[i], rate(team, loops_of(isas[i]).dot));
      real[i] = std::max(real[i], rate(team, loops_of(isas[i]).multiply_add));
      if (const auto loop = loops_of(isas[i]).matrix) matrix[i] = std::max(matrix[i], rate(team, loop));
    }
  }
  for (std::size_t i = 0; i < isas.size(); ++i) {
    const auto& loops = loops_of(isas[i]);
    machine.isas.push_back({isas[i], peak(loops.dot_name, double(loops.dot_macs), dot[i], machine),
                            peak(loops.float_name, double(loops.float_macs), real[i], machine)});
    if (loops.matrix)
      machine.isas.back().matrix = peak(loops.matrix_name, double(loops.matrix_macs), matrix[i], machine);
  }
  return machine;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

}  // namespace bench
