// Loops that do nothing but keep one kind of instruction busy, or read memory; one set per instruction set, all from
// peak_loops.cpp. Plain types only, as in the library's own kernel units.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench {

struct PeakLoops {
  const char* isa;                     // as in VITRINE_ISA
  const char* dot_name;                // the integer dot-product instruction
  const char* float_name;              // the float instruction, or two in turns
  std::uint64_t dot_macs, float_macs;  // multiply-adds of one instruction; of two instructions in turns, half of them
  // Issue `rounds` times per_round independent instructions; nothing else that matters.
  void (*dot)(std::uint64_t rounds);
  void (*multiply_add)(std::uint64_t rounds);
  void (*matrix)(std::uint64_t rounds);  // null where nothing multiplies whole tiles; only where the library found it
  static constexpr const char* matrix_name = "tdpbssd";
  static constexpr std::uint64_t matrix_macs = 16 * 16 * 64;
  static constexpr std::uint64_t per_round = 48;

  // Read all of [bytes] once, a multiple of 4096; the result keeps the loads alive.
  static constexpr int n_readers = 3;
  const char* reader_names[n_readers];
  std::uint64_t (*readers[n_readers])(const std::byte* data, std::size_t bytes);
};

const PeakLoops& peak_loops_scalar();
const PeakLoops& peak_loops_avx2();
const PeakLoops& peak_loops_avxvnni();
const PeakLoops& peak_loops_avx512();
const PeakLoops& peak_loops_avx512vnni();
const PeakLoops& peak_loops_avx512amx();

}  // namespace bench
