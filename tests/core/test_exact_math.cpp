// Our elementary functions against the C library's 80-bit versions, which are good to well below a double's last bit.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "vitrine/core/exact_math.hpp"

namespace exact = vitrine::exact;

namespace {

// Distance of `got` from the true value in units of a double's last place.
double ulps(double got, long double want) {
  const double rounded = double(want);
  const double next = std::nextafter(std::fabs(rounded), std::numeric_limits<double>::infinity());
  return double(std::fabs((long double)(got)-want) / (long double)(next - std::fabs(rounded)));
}

template <class Got, class Want>
double worst(double low, double high, Got got, Want want, int n = 200000) {
  std::mt19937_64 random(7);
  double result = 0;
  for (int i = 0; i < n; ++i) {
    const double x = low + (high - low) * (double(random() >> 11) * 0x1p-53);
    result = (std::max)(result, ulps(got(x), want((long double)(x))));
  }
  return result;
}

// How many of n floats are not the correctly rounded value.
template <class Got, class Want>
int misrounded(double low, double high, Got got, Want want, int n = 300000) {
  std::mt19937_64 random(11);
  int count = 0;
  for (int i = 0; i < n; ++i) {
    const float x = float(low + (high - low) * (double(random() >> 11) * 0x1p-53));
    if (got(x) != float(want((long double)(x)))) ++count;
  }
  return count;
}

constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("double functions keep their stated bounds") {
  const auto exp = [](double x) { return exact::exp(x); };
  const auto exp_want = [](long double x) { return std::exp(x); };
  CHECK(worst(-1, 1, exp, exp_want) < 2.0);
  CHECK(worst(-700, 700, exp, exp_want) < 2.0);
  const auto log = [](double x) { return exact::log(x); };
  const auto log_want = [](long double x) { return std::log(x); };
  CHECK(worst(0.5, 2, log, log_want) < 2.0);
  CHECK(worst(1e-300, 1e-290, log, log_want) < 2.0);
  CHECK(worst(1, 1e12, log, log_want) < 2.0);
  const auto tanh = [](double x) { return exact::tanh(x); };
  const auto tanh_want = [](long double x) { return std::tanh(x); };
  CHECK(worst(-0.4, 0.4, tanh, tanh_want) < 3.0);
  CHECK(worst(-25, 25, tanh, tanh_want) < 3.0);
  const auto sin = [](double x) { return exact::sin(x); };
  const auto sin_want = [](long double x) { return std::sin(x); };
  const auto cos = [](double x) { return exact::cos(x); };
  const auto cos_want = [](long double x) { return std::cos(x); };
  for (const double range : {0.7, 10.0, 5000.0, 1e6}) {
    CHECK(worst(-range, range, sin, sin_want) < 1.0);
    CHECK(worst(-range, range, cos, cos_want) < 1.0);
  }
}

TEST_CASE("float functions are correctly rounded but for rare ties") {
  CHECK(misrounded(
            -80, 80, [](float x) { return exact::exp(x); }, [](long double x) { return std::exp(x); }) <= 2);
  CHECK(misrounded(
            0, 1e5, [](float x) { return exact::log(x); }, [](long double x) { return std::log(x); }) <= 2);
  CHECK(misrounded(
            -5, 5, [](float x) { return exact::tanh(x); }, [](long double x) { return std::tanh(x); }) <= 2);
  for (const double range : {3.0, 8192.0, 1e6, 1e9}) {
    CHECK(misrounded(
              -range, range, [](float x) { return exact::sin(x); }, [](long double x) { return std::sin(x); }) <= 2);
    CHECK(misrounded(
              -range, range, [](float x) { return exact::cos(x); }, [](long double x) { return std::cos(x); }) <= 2);
  }
}

TEST_CASE("pow of RoPE's arguments and of random ones") {
  int wrong = 0;
  for (const float base : {10000.0f, 500000.0f, 1000000.0f, 100000.0f}) {
    for (const int head_dim : {2, 20, 64, 80, 96, 100, 128, 256}) {
      for (int i = 0; i < head_dim; i += 2) {
        const float y = float(i) / float(head_dim);
        if (exact::pow(base, y) != float(std::pow((long double)(base), (long double)(y)))) ++wrong;
      }
    }
  }
  CHECK(wrong == 0);
  std::mt19937_64 random(3);
  int misrounds = 0;
  double error = 0;
  for (int i = 0; i < 200000; ++i) {
    const float x = float(double(random() >> 11) * 0x1p-43), y = float(double(random() >> 11) * 0x1p-50 - 4);
    const long double want = std::pow((long double)(x), (long double)(y));
    if (!(want > 1e-37L && want < 1e38L)) continue;
    if (exact::pow(x, y) != float(want)) ++misrounds;
    error = (std::max)(error, double(std::fabs((long double)(exact::pow(double(x), double(y))) / want - 1)));
  }
  CHECK(misrounds <= 2);
  CHECK(error < 0x1p-52 * (2 + 2 * 88));
}

TEST_CASE("special values") {
  CHECK(exact::exp(0.0) == 1.0);
  CHECK(exact::exp(-0.0) == 1.0);
  CHECK(exact::exp(0.0f) == 1.0f);
  CHECK(exact::exp(infinity) == infinity);
  CHECK(exact::exp(-infinity) == 0.0);
  CHECK(exact::exp(1e300) == infinity);
  CHECK(exact::exp(-745.0) == std::exp(-745.0));  // a subnormal
  CHECK(std::isnan(exact::exp(not_a_number)));
  CHECK(exact::log(1.0) == 0.0);
  CHECK(exact::log(0.0) == -infinity);
  CHECK(exact::log(infinity) == infinity);
  CHECK(exact::log(5e-324) == std::log(5e-324));
  CHECK(std::isnan(exact::log(-1.0)));
  CHECK(std::isnan(exact::log(not_a_number)));
  CHECK(exact::pow(2.0f, 10.0f) == 1024.0f);
  CHECK(exact::pow(-2.0f, 3.0f) == -8.0f);
  CHECK(exact::pow(-2.0f, 2.0f) == 4.0f);
  CHECK(std::isnan(exact::pow(-2.0f, 0.5f)));
  CHECK(exact::pow(not_a_number, 0.0) == 1.0);
  CHECK(exact::pow(1.0, not_a_number) == 1.0);
  CHECK(exact::pow(-1.0, infinity) == 1.0);
  CHECK(exact::pow(0.0, 2.0) == 0.0);
  CHECK(exact::pow(0.0, -1.0) == infinity);
  CHECK(exact::pow(-0.0, -1.0) == -infinity);
  CHECK(exact::pow(infinity, -1.0) == 0.0);
  CHECK(exact::pow(-infinity, 3.0) == -infinity);
  CHECK(exact::sin(0.0) == 0.0);
  CHECK(std::signbit(exact::sin(-0.0)));
  CHECK(exact::cos(0.0) == 1.0);
  CHECK(std::isnan(exact::sin(infinity)));
  CHECK(std::isnan(exact::cos(not_a_number)));
  CHECK(exact::tanh(infinity) == 1.0);
  CHECK(exact::tanh(-infinity) == -1.0);
  CHECK(exact::tanh(0.0) == 0.0);
  CHECK(std::signbit(exact::tanh(-0.0)));
  CHECK(std::isnan(exact::tanh(not_a_number)));
}

TEST_CASE("sin_cos gives the bits of sin and cos, on both sides of the change of reduction") {
  for (double x = -3e6; x < 3e6; x += 777.77) {
    const auto both = exact::sin_cos(x);
    REQUIRE(both.sin == exact::sin(x));
    REQUIRE(both.cos == exact::cos(x));
    REQUIRE(std::fabs(both.sin - std::sin(x)) < 2e-16);
  }
}

// The bits themselves, so that another compiler, machine or set of flags cannot change them unseen.
TEST_CASE("the bits are pinned") {
  std::uint64_t hash = 1469598103934665603u;
  const auto add = [&hash](double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
  };
  for (int i = 1; i < 20000; ++i) {
    const double x = i * 0.0371;
    add(exact::exp(x - 350)), add(exact::log(x)), add(exact::sin(x * 100)), add(exact::cos(x * 1e5));
    add(exact::tanh(x * 0.01)), add(exact::pow(x, 1.7));
  }
  CHECK(hash == 0xe3b8d82ee627bbe3u);
}
