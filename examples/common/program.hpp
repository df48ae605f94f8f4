// The frame of every example: common options, where models are looked for, errors as one line. Bodies are in
// program.cpp, compiled once.
//
// Exit codes: 0 success; 2 the request makes no sense (unknown option, value out of range); 1 it failed while running.
#pragma once

#include <cstdint>
#include <cxxopts.hpp>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/terminal.hpp"
#include "vitrine/core/error.hpp"

// The options' types are compiled once as well, in program.cpp.
extern template class cxxopts::values::standard_value<double>;
extern template class cxxopts::values::standard_value<std::int32_t>;
extern template class cxxopts::values::standard_value<std::int64_t>;
extern template class cxxopts::values::standard_value<std::uint64_t>;
extern template class cxxopts::values::standard_value<std::string>;

namespace example {

using json = nlohmann::ordered_json;

// Thrown for a request that makes no sense.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void expect(bool condition, const std::string& message);

inline constexpr const char* default_model_file = "SmolLM2-135M-Instruct.Q4_1.gguf";

// The folders in which models are looked for: $VITRINE_MODELS, then the cache that ./cmake/quickstart.sh fills.
std::vector<std::filesystem::path> model_folders();
std::filesystem::path find_model(const std::string& wanted);

// The number that the whole text stands for.
std::optional<double> as_number(const std::string& text);
std::optional<std::uint64_t> as_whole_number(const std::string& text);

class Arguments {
 public:
  explicit Arguments(cxxopts::ParseResult parsed) : parsed_(std::move(parsed)) {}

  template <class T>
  T get(const std::string& name) const {
    used_.insert(name);
    return parsed_[name].as<T>();
  }
  bool has(const std::string& name) const { return parsed_.count(name) > 0; }

  // Refuses an option where it would have no effect: `expected` says with what, or without what, it has one.
  void only(const std::string& name, bool has_effect, const std::string& expected) const;
  // Those that were given and that no part of the program has asked for.
  std::vector<std::string> unused() const;

  // The whole file that an option names.
  std::string file(const std::string& name) const;

  // A value in [least, most]; written so that NaN is outside.
  template <class T>
  T get(const std::string& name, T least, T most) const {
    const T value = get<T>(name);
    if (!(value >= least && value <= most))
      throw UsageError(vitrine::concat("--", name, ": expected ", least, " to ", most, ", got ", value));
    return value;
  }

  // "2,1,0" as numbers, each in [least, most].
  std::vector<double> numbers(const std::string& name, double least = -1e300, double most = 1e300) const;

  // The same of whole numbers, which may be written as "7e9" too; what has a fraction is refused, not cut.
  std::vector<std::int64_t> whole_numbers(const std::string& name, std::int64_t least, std::int64_t most) const;
  std::int64_t whole_number(const std::string& name, std::int64_t least, std::int64_t most) const;

  std::filesystem::path model() const;
  std::string folder(const std::string& name) const;  // "" unless given
  std::string image_folder() const { return folder("image_folder"); }
  int threads() const { return get<int>("threads", 0, 1024); }  // 0: all that this process may use
  bool json() const { return get<bool>("json"); }

 private:
  cxxopts::ParseResult parsed_;
  mutable std::set<std::string> used_;
};

void print_json(const json& value);

// A computed number for JSON: an integer where it is one.
json number(double value);

// Call it after what is written before long work: no reader, no use in going on.
void check_output();

struct Program {
  std::string name, purpose;
  std::function<void(cxxopts::OptionAdder)> options;
  std::function<void(const Arguments&)> run;
};

int run(int argc, char** argv, const Program& program);

}  // namespace example
