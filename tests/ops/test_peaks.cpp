// The largest values of an input, which are kept out of its blocks: which they are, and what they are multiplied with.
#include "linear_case.hpp"

using namespace linear_test;

TEST_CASE("an input's peaks are the first largest of its sections, and its blocks hold zeros there") {
  const auto peaks_of = [](const KernelTable& table, const std::vector<float>& x) {
    const auto n = std::int64_t(x.size());
    std::vector<XPeak> peaks(std::size_t(n_peaks(n)));
    std::vector<XBlock32> blocks(x.size() / 32);
    table.linear.quantise_32({x.data(), n, peaks.data()}, blocks.data(), 0, n_peaks(n));
    std::vector<std::int64_t> at;
    for (const XPeak& peak : peaks) {
      REQUIRE(peak.x == x[peak.k]);
      CHECK(blocks[peak.k / 32].q[peak.k % 32] == 0);
      at.push_back(peak.k);
    }
    return at;
  };
  using Columns = std::vector<std::int64_t>;
  for (const Isa isa : available_isas()) {
    const KernelTable& table = kernels(isa);
    CHECK(peaks_of(table, std::vector<float>(480, 1.0f)) == Columns{0});
    CHECK(peaks_of(table, std::vector<float>(576, -1.0f)) == Columns{0, 256});
    CHECK(peaks_of(table, std::vector<float>(992, 0.0f)) == Columns{0, 256, 512});
    CHECK(peaks_of(table, std::vector<float>(1536, 1.0f)) == Columns{0, 256, 768, 1024});
    std::vector<float> x(4096, 0.5f);
    x[1023] = -3.0f, x[1030] = 2.0f, x[1031] = -2.0f, x[3072] = 0.75f, x[4095] = -0.75f;
    CHECK(peaks_of(table, x) == Columns{1023, 1030, 2048, 3072});
  }
}

TEST_CASE("an input of a single value gives its column of the weights as the plain decoder has them") {
  constexpr std::int64_t n_rows = 20, n_cols = 512;
  for (const DType type : all_types)
    for (const PackedLayout layout : {PackedLayout::whole, PackedLayout::planes}) {
      if (layout == PackedLayout::planes && type != DType::q8_0) continue;
      const auto rows = random_rows(type, n_rows, n_cols, false, 3);
      PackedMatrix w(type, n_rows, n_cols, layout);
      w.pack_panels(0, w.n_panels(), rows.data(), nullptr);
      std::vector<float> x(std::size_t(n_cols * n_cols)), wanted(std::size_t(n_cols * n_rows)), row(n_cols);
      for (std::int64_t k = 0; k < n_cols; ++k) x[std::size_t(k * n_cols + k)] = 1;
      for (std::int64_t r = 0; r < n_rows; ++r) {
        w.decode_row(r, row.data());
        std::vector<float> plain(n_cols);
        decode_block_row(type, rows.data() + std::size_t(r) * w.row_bytes(), n_cols, plain.data());
        REQUIRE(row == plain);
        for (std::int64_t k = 0; k < n_cols; ++k)
          wanted[std::size_t(k * n_rows + r)] = row[std::size_t(k)] + 0.0f;  // no -0, as it is a sum
      }
      for (const Isa isa : available_isas())
        for (const std::int64_t n_tokens : {std::int64_t(1), std::int64_t(8), n_cols}) {
          CAPTURE(dtype_info(type).name, isa_name(isa), w.in_planes(), n_tokens);
          for (std::int64_t k = 0; k < n_cols; k += n_tokens) {
            const auto y = product(w, x.data() + k * n_cols, isa, n_tokens, 1);
            REQUIRE(std::memcmp(y.data(), wanted.data() + k * n_rows, y.size() * sizeof(float)) == 0);
          }
        }
    }
}

TEST_CASE("one input serves types of both block lengths and floats, in room for more than it has") {
  constexpr std::int64_t n_cols = 768;
  const auto x = random_matrix(in_tiles, n_cols, 11);
  std::vector<PackedMatrix> readers;
  for (const DType type : {DType::q5_0, DType::q6_k, DType::bf16}) {
    readers.emplace_back(type, 37, n_cols);
    readers.back().pack_panels(0, readers.back().n_panels(), random_rows(type, 37, n_cols, false, 5).data(), nullptr);
  }
  for (const Isa isa : available_isas())
    for (const std::int64_t n_tokens : {std::int64_t(1), std::int64_t(6), in_tiles})
      for (const int n_threads : {1, 3}) {
        CAPTURE(isa_name(isa), n_tokens, n_threads);
        LinearInput input;
        input.reserve(in_tiles + 5, 2 * n_cols);
        std::vector<Tensor<float, 2>> y;
        for (std::size_t i = 0; i < readers.size(); ++i) y.emplace_back(Tensor<float, 2>::Shape{n_tokens, 37});
        Team team(n_threads);
        team.run([&](Worker& worker) {
          input.prepare(worker, kernels(isa), TensorView<const float, 2>(x.data(), {n_tokens, n_cols}),
                        {&readers[0], &readers[1], &readers[2]});
          worker.sync();
          for (std::size_t i = 0; i < readers.size(); ++i) linear(worker, kernels(isa), readers[i], input, y[i].view());
        });
        for (std::size_t i = 0; i < readers.size(); ++i) {
          const auto alone = product(readers[i], x.data(), available_isas().front(), n_tokens, 1);
          REQUIRE(std::memcmp(y[i].data(), alone.data(), alone.size() * sizeof(float)) == 0);
        }
      }
}
