// Small ops against the reference, and bit for bit across instruction sets and thread counts.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "numbers.hpp"
#include "vitrine/core/exact_math.hpp"
#include "vitrine/core/float16.hpp"
#include "vitrine/ops/elementwise.hpp"
#include "vitrine/ops/reference.hpp"
#include "vitrine/simd/dispatch.hpp"

using namespace vitrine;
using namespace ops_test;

namespace {

void check_close(const Tensor<float, 2>& got, const Tensor<float, 2>& want, double tolerance, double floor = 1e-3) {
  double worst = 0;
  for (std::int64_t i = 0; i < want.view().count(); ++i) {
    const double scale = floor + std::fabs(double(want.data()[i]));
    worst = (std::max)(worst, std::fabs(double(got.data()[i]) - double(want.data()[i])) / scale);
  }
  CHECK(worst < tolerance);
}

// Runs op(worker, kernels, output) everywhere and checks that the bits agree; returns the output.
template <class Op>
Tensor<float, 2> run_everywhere(const Tensor<float, 2>& start, Op op) {
  Tensor<float, 2> first;
  for (const Isa isa : available_isas()) {
    for (const int n_threads : {1, 2, 3}) {
      Tensor<float, 2> output(start.shape());
      std::copy_n(start.data(), start.view().count(), output.data());
      Team team(n_threads);
      team.run([&](Worker& worker) { op(worker, kernels(isa), output.view()); });
      if (first.data() == nullptr) {
        first = std::move(output);
      } else {
        INFO(isa_name(isa) << ", " << n_threads << " threads");
        CHECK(same_bits(first, output));
      }
    }
  }
  return first;
}

const std::vector<std::array<std::int64_t, 2>> shapes{{1, 1},  {1, 15}, {2, 16},   {3, 17},   {1, 640},  {40, 576},
                                                      {5, 33}, {7, 64}, {1, 1536}, {2, 2049}, {1, 10001}};

double ulps(float got, double want) {
  const float rounded = std::fabs(float(want));
  return std::fabs(double(got) - want) / double(std::nextafter(rounded, infinity) - rounded);
}

}  // namespace

TEST_CASE("exp of the lanes: within 2 ulp, one set of bits") {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < 0x7f800000u; bits += 997) {
    x.push_back(bits_to_float(std::uint32_t(bits)));
    x.push_back(bits_to_float(std::uint32_t(bits) | 0x80000000u));
  }
  for (const float special : {0.0f, -0.0f, infinity, -infinity, 88.7228f, 88.73f, -87.0f, -87.00001f}) {
    x.push_back(special);
  }
  const std::int64_t n = std::int64_t(x.size());
  std::vector<float> exp0, out(x.size());
  for (const Isa isa : available_isas()) {
    INFO(isa_name(isa));
    kernels(isa).elementwise.exp(x.data(), out.data(), n);
    if (exp0.empty()) exp0 = out;
    CHECK(std::memcmp(exp0.data(), out.data(), sizeof(float) * x.size()) == 0);
  }
  double worst_exp = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] < -87.0f) {
      REQUIRE(float_to_bits(exp0[i]) == 0u);
    } else if (x[i] > 88.7228f) {
      REQUIRE(exp0[i] == infinity);
    } else {
      worst_exp = (std::max)(worst_exp, ulps(exp0[i], exact::exp(double(x[i]))));
    }
  }
  CHECK(worst_exp < 2.0);
  for (const Isa isa : available_isas()) {
    const float in[3] = {0.0f, -0.0f, not_a_number};
    float result[3];
    kernels(isa).elementwise.exp(in, result, 3);
    CHECK(result[0] == 1.0f);
    CHECK(result[1] == 1.0f);
    CHECK(std::isnan(result[2]));
    const float strange = bits_to_float(0x7f8abcde);  // a NaN whose low bits look like an exponent
    kernels(isa).elementwise.exp(&strange, result, 1);
    CHECK(std::isnan(result[0]));
  }
}

TEST_CASE("rms_norm") {
  for (const auto& shape : shapes) {
    const auto x = random_matrix(shape[0], shape[1], 1), weight = random_matrix(1, shape[1], 2);
    Tensor<float, 2> want(shape);
    reference::rms_norm(x.view(), weight.view().row(0), 1e-5, want.view());
    const auto got = run_everywhere(Tensor<float, 2>(shape), [&](Worker& worker, auto& k, auto y) {
      rms_norm(worker, k, x.view(), weight.data(), 1e-5f, y);
    });
    check_close(got, want, 1e-6);
    reference::rms_norm(x.view(), {}, 1e-5, want.view());
    const auto in_place =
        run_everywhere(x, [&](Worker& worker, auto& k, auto y) { rms_norm(worker, k, y, nullptr, 1e-5f, y); });
    check_close(in_place, want, 1e-6);
  }
}

TEST_CASE("rope: tables and rotation") {
  for (const std::int64_t head_dim : {2, 20, 32, 64, 80, 100, 128, 256}) {
    for (const std::int64_t n_tokens : {1, 2, 9}) {
      std::vector<float> inverse_frequencies;
      for (std::int64_t i = 0; i < head_dim; i += 2) {
        inverse_frequencies.push_back(1.0f / exact::pow(10000.0f, float(i) / float(head_dim)));
      }
      std::vector<std::int64_t> positions;
      for (std::int64_t t = 0; t < n_tokens; ++t) positions.push_back(t * t * 1311);
      const auto x = random_matrix(n_tokens, 3 * head_dim, unsigned(head_dim));
      Tensor<float, 2> want(x.shape());
      std::copy_n(x.data(), x.view().count(), want.data());
      reference::rope(want.view(), head_dim, inverse_frequencies, positions);
      Tensor<float, 2> cos({n_tokens, head_dim / 2}), sin({n_tokens, head_dim / 2});
      const auto got = run_everywhere(x, [&](Worker& worker, auto& k, auto y) {
        rope_cos_sin(worker, inverse_frequencies, positions, cos.view(), sin.view());
        worker.sync();
        rope(worker, k, y, 3, head_dim, cos.view(), sin.view());
      });
      check_close(got, want, 1e-6, 1.0);
      for (std::int64_t t = 0; t < n_tokens; ++t) {
        for (std::int64_t i = 0; i < head_dim / 2; ++i) {
          const float angle = float(positions[std::size_t(t)]) * inverse_frequencies[std::size_t(i)];
          REQUIRE(cos(t, i) == float(std::cos((long double)(angle))));
          REQUIRE(sin(t, i) == float(std::sin((long double)(angle))));
        }
      }
    }
  }
}

TEST_CASE("add, scale, gated activations") {
  for (const auto& shape : shapes) {
    const auto x = random_matrix(shape[0], shape[1], 3, 8.0f), y = random_matrix(shape[0], shape[1], 4, 8.0f);
    Tensor<float, 2> sums(shape), scaled(shape), silu(shape), gelu(shape);
    for (std::int64_t i = 0; i < x.view().count(); ++i) {
      const double a = double(x.data()[i]), b = double(y.data()[i]);
      sums.data()[i] = x.data()[i] + y.data()[i];
      scaled.data()[i] = x.data()[i] * 1.7f;
      silu.data()[i] = float(reference::silu(a) * b);
      gelu.data()[i] = float(reference::gelu(a) * b);
    }
    CHECK(same_bits(run_everywhere(x, [&](Worker& w, auto& k, auto out) { add(w, k, out, y.view()); }), sums));
    CHECK(same_bits(run_everywhere(x, [&](Worker& w, auto& k, auto out) { scale(w, k, out, 1.7f); }), scaled));
    const auto gated = [&](bool with_gelu) {
      return run_everywhere(x, [&](Worker& worker, auto& k, auto out) {
        worker.for_rows(shape[0], [&](std::int64_t t) {
          gated_activation_row(k, with_gelu, out.row(t), y.view().row(t), out.row(t));
        });
      });
    };
    check_close(gated(false), silu, 1e-6);
    check_close(gated(true), gelu, 1e-5);
  }
}

TEST_CASE("elementwise kernels write nothing beyond their last value, at any alignment") {
  for (const Isa isa : available_isas()) {
    const ElementwiseKernels& k = kernels(isa).elementwise;
    for (std::int64_t n = 0; n < 50; ++n) {
      for (std::int64_t offset = 0; offset < 3; ++offset) {
        std::vector<float> x(80, 7.0f), y(80, 2.0f);
        k.add(x.data() + offset, y.data() + offset, n);
        k.scale(y.data() + offset, 2.0f, n);
        for (std::int64_t i = 0; i < 80; ++i) {
          const bool inside = i >= offset && i < offset + n;
          REQUIRE(x[std::size_t(i)] == (inside ? 9.0f : 7.0f));
          REQUIRE(y[std::size_t(i)] == (inside ? 4.0f : 2.0f));
        }
      }
    }
  }
}

TEST_CASE("find_peak") {
  for (const Isa isa : available_isas()) {
    INFO(isa_name(isa));
    const auto peak = [&](const std::vector<float>& values) { return find_peak(kernels(isa), values); };
    CHECK(peak({1, 3, 2}).id == 1);
    CHECK(peak({1, 3, 2}).value == 3.0f);
    CHECK(peak({1, 3, 2}).all_finite);
    CHECK(peak({-5, -3, -3, -9}).id == 1);  // the first of equals
    CHECK(peak({}).id == -1);
    CHECK(peak({}).all_finite);
    CHECK(peak({1, not_a_number, 3, -infinity}).id == 2);
    CHECK_FALSE(peak({1, not_a_number, 3, -infinity}).all_finite);
    CHECK(peak({not_a_number, 0, 0}).id == 1);
    CHECK_FALSE(peak({0, 0, not_a_number}).all_finite);
    CHECK(peak({infinity, 0, 0}).id == 0);
    CHECK_FALSE(peak({infinity, 0, 0}).all_finite);
    CHECK(peak({-infinity, -infinity}).id == -1);
    CHECK_FALSE(peak({-infinity, -infinity}).all_finite);
    CHECK(peak({not_a_number, not_a_number}).id == -1);
    std::vector<float> many(1000);
    for (const std::size_t place : {0u, 1u, 15u, 16u, 17u, 500u, 991u, 992u, 999u}) {
      std::fill(many.begin(), many.end(), -1e30f);
      many[place] = 1e30f;
      CHECK(peak(many).id == std::int64_t(place));
      if (place + 3 < many.size()) many[place + 3] = 1e30f;
      CHECK(peak(many).id == std::int64_t(place));
      CHECK(peak(many).all_finite);
      many[999] = not_a_number;
      CHECK_FALSE(peak(many).all_finite);
    }
    CHECK(peak(std::vector<float>(100, 0.0f)).id == 0);
    std::vector<float> zeros(40, -0.0f);
    zeros[20] = 0.0f;
    CHECK(peak(zeros).id == 0);  // -0 and +0 are equal
  }
}

TEST_CASE("wrong shapes are refused with the numbers") {
  Team team(1);
  Tensor<float, 2> a({2, 8}), b({2, 9});
  std::string message;
  team.run([&](Worker& worker) {
    try {
      add(worker, kernels(), a.view(), b.view());
    } catch (const Error& error) {
      message = error.what();
    }
  });
  CHECK(message == "add: y is [2, 9], expected [2, 8]");
}
