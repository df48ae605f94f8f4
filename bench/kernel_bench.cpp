// The kernels of linear layers one by one, with Google Benchmark: every weight type x instruction set x shape.
//
//   decode/Q4_1/avx2/4096x4096/1      one token, one thread: reads the weights once, GB/s of them
//   few8/Q4_1/avx2/.../2              eight tokens, two threads: a step of an engine in which eight sequences decode
//   prefill/Q4_1/avx2/4096x4096/2     512 tokens, two threads: operations per second, a multiply-add being two
//
// The tallest shape of each type takes 128 MB, so that on most machines it comes from memory; the others are those of
// small and of 7B models. Weights are arbitrary bits. Options are Google Benchmark's:
// --benchmark_filter=decode/.*/avx512vnni, --benchmark_format=json, ...
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "vitrine/core/parallel.hpp"
#include "vitrine/ops/linear.hpp"
#include "vitrine/simd/dispatch.hpp"

using namespace vitrine;

namespace {

struct Shape {
  std::int64_t n_rows, n_cols;
};

// Rows of any bits, but for signs and the top of exponents: no scale is infinite or NaN. Floats are normal numbers:
// processors are slow with subnormal ones.
PackedMatrix any_weights(DType type, Shape shape) {
  PackedMatrix w(type, shape.n_rows, shape.n_cols);
  std::vector<std::byte> rows(w.row_bytes() * std::size_t(panel_rows));
  std::uint32_t state = 1;
  for (auto& byte : rows) byte = std::byte(((state = state * 1664525u + 1013904223u) >> 24) & 0x37u);
  if (is_float_type(type)) {
    const std::size_t size = dtype_info(type).block_bytes;
    for (std::size_t i = size - 1; i < rows.size(); i += size) rows[i] |= std::byte(0x30);
  }
  std::vector<std::int64_t> same_rows(std::size_t(shape.n_rows));  // every panel is the first one again
  for (std::size_t i = 0; i < same_rows.size(); ++i) same_rows[i] = std::int64_t(i) % panel_rows;
  w.pack_panels(0, w.n_panels(), rows.data(), same_rows.data());
  return w;
}

void run(benchmark::State& state, DType type, Isa isa, Shape shape, std::int64_t n_tokens, int n_threads) {
  const KernelTable& table = kernels(isa);
  const PackedMatrix w = any_weights(type, shape);
  Tensor<float, 2> x({n_tokens, shape.n_cols}), y({n_tokens, shape.n_rows});
  for (std::int64_t i = 0; i < n_tokens * shape.n_cols; ++i) x.data()[i] = float(i % 251 - 125) / 125;
  LinearInput input;
  input.reserve(n_tokens, shape.n_cols);
  Team team(n_threads);
  team.run([&](Worker& worker) { input.prepare(worker, table, {x.data(), {n_tokens, shape.n_cols}}, {&w}); });
  for (auto _ : state)
    team.run([&](Worker& worker) { linear(worker, table, w, input, {y.data(), {n_tokens, shape.n_rows}}); });
  const auto rate = [&](double amount) {
    return benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
  };
  if (n_tokens == 1)
    state.counters["B/s"] = rate(double(w.bytes()));
  else
    state.counters["op/s"] = rate(2.0 * double(n_tokens) * double(shape.n_rows) * double(shape.n_cols));
}

void add(const char* form, DType type, Isa isa, Shape shape, std::int64_t n_tokens, int n_threads) {
  const auto name = concat(form, '/', dtype_info(type).name, '/', isa_name(isa), '/', shape.n_rows, 'x', shape.n_cols,
                           '/', n_threads);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) { run(state, type, isa, shape, n_tokens, n_threads); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr DType types[] = {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0, DType::q4_k,
                             DType::q5_k, DType::q6_k, DType::f16,  DType::bf16, DType::f32};
  std::vector<int> teams = {1};
  if (available_threads() > 1) teams.push_back(available_threads());
  for (const Isa isa : available_isas()) {
    for (const DType type : types) {
      const auto row_bytes = PackedMatrix(type, 16, 4096).panel_bytes() / 16;
      const Shape memory{std::int64_t((std::size_t(128) << 20) / row_bytes / 16 * 16), 4096};
      for (const int n_threads : teams) {
        for (const Shape shape : {memory, Shape{1536, 768}, Shape{4096, 4096}})
          add("decode", type, isa, shape, 1, n_threads);
        for (const std::int64_t n_tokens : {2, 4, 8, 12, 16, 24, 28, 32})
          add(concat("few", n_tokens).c_str(), type, isa, memory, n_tokens, n_threads);
        for (const Shape shape : {Shape{1536, 768}, Shape{4096, 4096}})
          add("prefill", type, isa, shape, 512, n_threads);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
