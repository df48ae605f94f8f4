// Compiled once per instruction set, with -DPEAK_ISA=<name> and its flags; see peak_loops.hpp.
//
// A compiler deletes or hoists a loop whose result it can work out, so the instructions are volatile assembly: it may
// neither drop, merge nor reorder them. Twelve accumulators hide a latency of up to six cycles on two ports.
#include "machine/peak_loops.hpp"

#include <immintrin.h>

#define PEAK_JOIN2(a, b) a##b
#define PEAK_JOIN(a, b) PEAK_JOIN2(a, b)
#define PEAK_TEXT2(a) #a
#define PEAK_TEXT(a) PEAK_TEXT2(a)

#if defined(__AVX512F__)
using Integers = __m512i;
using Floats = __m512;
#define PEAK_FMA "vfmadd231ps %1, %2, %0"
#elif defined(__AVX2__)
using Integers = __m256i;
using Floats = __m256;
#define PEAK_FMA "vfmadd231ps %1, %2, %0"
#else
using Integers = __m128i;
using Floats = __m128;
#endif

#if defined(__AVX512VNNI__)
#define PEAK_DOT "vpdpbusd %1, %2, %0"
#define PEAK_DOT_NAME "vpdpbusd"
#elif defined(__AVXVNNI__)
#define PEAK_DOT "%{vex%} vpdpbusd %1, %2, %0"
#define PEAK_DOT_NAME "vpdpbusd"
#elif defined(__AVX2__)
#define PEAK_DOT "vpmaddubsw %1, %2, %0"
#define PEAK_DOT_NAME "vpmaddubsw"
#endif

namespace bench {
namespace {

constexpr int n_accumulators = 12, repeats = int(PeakLoops::per_round) / n_accumulators;
constexpr std::size_t vector = sizeof(Integers);

void dot(std::uint64_t rounds) {
  Integers sum[n_accumulators] = {}, a{};
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (int r = 0; r < repeats; ++r) {
      for (int i = 0; i < n_accumulators; ++i) {
#ifdef PEAK_DOT
        asm volatile(PEAK_DOT : "+v"(sum[i]) : "v"(a), "v"(a));
#else
        asm volatile("pmaddwd %1, %0" : "+x"(sum[i]) : "x"(a));
#endif
      }
    }
  }
}

void multiply_add(std::uint64_t rounds) {
#ifdef PEAK_FMA
  Floats sum[n_accumulators] = {}, a{}, b{};
#else
  Floats sum[6] = {}, product[6] = {}, a{}, b{};
#endif
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (int r = 0; r < repeats; ++r) {
      for (int i = 0; i < n_accumulators; ++i) {
#ifdef PEAK_FMA
        asm volatile(PEAK_FMA : "+v"(sum[i]) : "v"(a), "v"(b));
#else
        if (i % 2) {
          asm volatile("mulps %1, %0" : "+x"(product[i / 2]) : "x"(b));
        } else {
          asm volatile("addps %1, %0" : "+x"(sum[i / 2]) : "x"(a));
        }
#endif
      }
    }
  }
}

#ifdef PEAK_TILES
// Sums in six of the eight tiles, each of 16 rows of 64 bytes.
void matrix(std::uint64_t rounds) {
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } shape;
  asm volatile("ldtilecfg %0" ::"m"(shape));
  for (std::uint64_t round = 0; round < rounds; ++round)
    for (int r = 0; r < int(PeakLoops::per_round) / 6; ++r)
      asm volatile(
          "tdpbssd %tmm7, %tmm6, %tmm0\n\ttdpbssd %tmm7, %tmm6, %tmm1\n\ttdpbssd %tmm7, %tmm6, %tmm2\n\t"
          "tdpbssd %tmm7, %tmm6, %tmm3\n\ttdpbssd %tmm7, %tmm6, %tmm4\n\ttdpbssd %tmm7, %tmm6, %tmm5");
  asm volatile("tilerelease");
}
#endif

inline Integers load(const std::byte* at) {
#if defined(__AVX512F__)
  return _mm512_loadu_si512(at);
#elif defined(__AVX2__)
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
#else
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
#endif
}

inline std::uint64_t finish(const Integers* sums, int n) {
  Integers total{};
  for (int i = 0; i < n; ++i) total += sums[i];  // vector extension of GCC and Clang: lane-wise
  return std::uint64_t(total[0]);
}

// Front to back.
template <bool Prefetch>
std::uint64_t read_in_order(const std::byte* data, std::size_t bytes) {
  Integers sums[8] = {};
  for (std::size_t i = 0; i < bytes; i += 8 * vector) {
    if (Prefetch)
      for (std::size_t line = 0; line < 8 * vector; line += 64)
        _mm_prefetch(reinterpret_cast<const char*>(data) + i + 2048 + line, _MM_HINT_T0);
    for (std::size_t k = 0; k < 8; ++k) sums[k] += load(data + i + k * vector);
  }
  return finish(sums, 8);
}

// Four places at a time: four hardware prefetch streams.
std::uint64_t read_four_streams(const std::byte* data, std::size_t bytes) {
  Integers sums[8] = {};
  const std::size_t quarter = bytes / 4;
  for (std::size_t i = 0; i < quarter; i += 2 * vector)
    for (std::size_t k = 0; k < 8; ++k) sums[k] += load(data + (k / 2) * quarter + i + (k % 2) * vector);
  return finish(sums, 8);
}

}  // namespace

const PeakLoops& PEAK_JOIN(peak_loops_, PEAK_ISA)() {
  static constexpr PeakLoops loops = {PEAK_TEXT(PEAK_ISA),
#ifdef PEAK_DOT
                                      PEAK_DOT_NAME,
                                      "vfmadd231ps",
                                      vector,
                                      vector / 4,
#else
                                      "pmaddwd",
                                      "addps, mulps",
                                      vector / 2,
                                      vector / 8,
#endif
                                      dot,
                                      multiply_add,
#ifdef PEAK_TILES
                                      matrix,
#else
                                      nullptr,
#endif
                                      {"in order", "in order, prefetched", "four streams"},
                                      {read_in_order<false>, read_in_order<true>, read_four_streams}};
  return loops;
}

}  // namespace bench
