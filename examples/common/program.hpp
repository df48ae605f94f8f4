// The frame of every example: common options, where models are looked for, errors as one line.
//
// Exit codes: 0 success; 2 the request makes no sense (unknown option, value out of range); 1 it failed while running.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cxxopts.hpp>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/terminal.hpp"
#include "vitrine/core/error.hpp"

namespace example {

using json = nlohmann::ordered_json;

// Thrown for a request that makes no sense.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void expect(bool condition, const std::string& message) {
  if (!condition) throw UsageError(message);
}

inline constexpr const char* default_model_file = "SmolLM2-135M-Instruct.Q4_1.gguf";

// The folders in which models are looked for: $VITRINE_MODELS, then the cache that ./cmake/quickstart.sh fills.
inline std::vector<std::filesystem::path> model_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* models = std::getenv("VITRINE_MODELS"); models && *models) folders.emplace_back(models);
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) {
    folders.push_back(std::filesystem::path(cache) / "vitrine" / "models");
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    folders.push_back(std::filesystem::path(home) / ".cache" / "vitrine" / "models");
  }
  return folders;
}

inline std::filesystem::path find_model(const std::string& wanted) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!wanted.empty() && fs::exists(wanted, ignored)) return wanted;
  for (const auto& folder : model_folders()) {
    const auto path = folder / (wanted.empty() ? default_model_file : wanted);
    if (fs::exists(path, ignored)) return path;
  }
  if (!wanted.empty()) throw vitrine::Error(vitrine::ErrorKind::io, "model: no file or folder " + wanted);
  std::string folders;
  for (const auto& folder : model_folders()) folders.append(" ").append(folder.string());
  throw vitrine::Error(vitrine::ErrorKind::io,
                       vitrine::concat("model: no ", default_model_file, " in", folders,
                                       "; run ./cmake/quickstart.sh to get it, or name a file with --model"));
}

// The number that the whole text stands for.
inline std::optional<double> as_number(const std::string& text) {
  char* rest = nullptr;
  const double value = std::strtod(text.c_str(), &rest);
  return text.empty() || *rest != 0 ? std::nullopt : std::optional(value);
}
inline std::optional<std::uint64_t> as_whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error != std::errc() || rest != end ? std::nullopt : std::optional(value);
}

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
  void only(const std::string& name, bool has_effect, const std::string& expected) const {
    expect(!has(name) || has_effect, "--" + name + ": expected " + expected + ", got it where it has no effect");
  }
  // Those that were given and that no part of the program has asked for.
  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const auto& given : parsed_.arguments())
      if (!used_.contains(given.key())) names.push_back(given.key());
    return names;
  }

  // The whole file that an option names.
  std::string file(const std::string& name) const {
    const auto path = get<std::string>(name);
    std::ifstream in(path, std::ios::binary);
    std::string text;
    for (char part[4096]; in.read(part, sizeof part), in.gcount() > 0;) text.append(part, std::size_t(in.gcount()));
    vitrine::check(in.eof(), vitrine::ErrorKind::io, "--", name, ": cannot read ", path);
    return text;
  }

  // A value in [least, most]; written so that NaN is outside.
  template <class T>
  T get(const std::string& name, T least, T most) const {
    const T value = get<T>(name);
    if (!(value >= least && value <= most))
      throw UsageError(vitrine::concat("--", name, ": expected ", least, " to ", most, ", got ", value));
    return value;
  }

  // "2,1,0" as numbers, each in [least, most].
  std::vector<double> numbers(const std::string& name, double least = -1e300, double most = 1e300) const {
    return list<double>(name, "numbers", least, most);
  }

  // The same of whole numbers, which may be written as "7e9" too; what has a fraction is refused, not cut.
  std::vector<std::int64_t> whole_numbers(const std::string& name, std::int64_t least, std::int64_t most) const {
    return list<std::int64_t>(name, "whole numbers", least, most);
  }
  std::int64_t whole_number(const std::string& name, std::int64_t least, std::int64_t most) const {
    const auto values = whole_numbers(name, least, most);
    expect(values.size() == 1, "--" + name + ": expected one whole number, got '" + get<std::string>(name) + "'");
    return values[0];
  }

  std::filesystem::path model() const {
    const auto wanted = get<std::string>("model");
    expect(!has("model") || !wanted.empty(), "--model: expected a file or a folder, got an empty name");
    return find_model(wanted);
  }
  std::string image_folder() const { return get<std::string>("image-folder"); }
  int threads() const { return get<int>("threads", 0, 1024); }  // 0: all that this process may use
  bool json() const { return get<bool>("json"); }

 private:
  template <class Number>
  std::vector<Number> list(const std::string& name, const char* kind, Number least, Number most) const {
    const auto text = get<std::string>(name);
    std::vector<Number> values;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      const std::string part = text.substr(begin, end - begin);
      const auto value = as_number(part);
      expect(value.has_value(),
             vitrine::concat("--", name, ": expected ", kind, " separated by commas, got '", text, "'"));
      const bool whole = std::is_floating_point_v<Number> || *value == std::floor(*value);
      expect(whole && *value >= double(least) && *value <= double(most),
             vitrine::concat("--", name, ": expected ", kind, " from ", least, " to ", most, ", got ", part));
      values.push_back(Number(*value));
      begin = end + 1;
    }
    return values;
  }

  cxxopts::ParseResult parsed_;
  mutable std::set<std::string> used_;
};

inline void print_json(const json& value) {
  std::cout << value.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) << '\n';
}

// A computed number for JSON: an integer where it is one.
inline json number(double value) {
  const bool whole = std::fabs(value) < 9e18 && value == std::floor(value);
  return whole ? json(std::int64_t(value)) : json(value);
}

// Call it after what is written before long work: no reader, no use in going on.
inline void check_output() {
  vitrine::check(bool(std::cout.flush()), vitrine::ErrorKind::io, "cannot write to standard output");
}

struct Program {
  std::string name, purpose;
  std::function<void(cxxopts::OptionAdder)> options;
  std::function<void(const Arguments&)> run;
};

// A value that did not parse is quoted by cxxopts, but neither the option that it was given to nor what is expected.
// The option's type shows in what else it takes.
inline cxxopts::ParseResult parse(cxxopts::Options& options, int argc, char** argv) {
  try {
    return options.parse(argc, argv);
  } catch (const cxxopts::exceptions::exception& error) {
    for (int i = 1; i < argc; ++i) {
      std::string name = argv[i - 1], value = argv[i];
      const auto equals = value.starts_with("--") ? value.find('=') : std::string::npos;
      if (equals != std::string::npos) {
        name = value.substr(0, equals);
        value = value.substr(equals + 1);
      }
      if (std::string_view(error.what()).find("‘" + value + "’ failed") == std::string_view::npos) continue;
      const auto takes = [&](const char* other) {
        const std::string word = name + "=" + other;
        const char* const words[] = {argv[0], word.c_str()};
        try {
          options.parse(2, words);
          return true;
        } catch (const cxxopts::exceptions::exception&) {
          return false;
        }
      };
      const char* const expected = takes("true")  ? "true or false"
                                   : takes("0.5") ? "a finite number"
                                                  : "a whole number in its range";
      throw UsageError(vitrine::concat(name, ": expected ", expected, ", got '", value, "'"));
    }
    throw UsageError(error.what());
  }
}

inline int run(int argc, char** argv, const Program& program) {
  const auto fail = [&](const std::string& message, int code) {
    std::cout.flush();
    std::cerr << program.name << ": " << message << (code == 2 ? " (see --help)" : "") << '\n';
    return code;
  };
  try {
    cxxopts::Options options(program.name, program.purpose);
    options.set_width(std::size_t(columns()));
    program.options(options.add_options());
    options.add_options()("model",
                          "GGUF file, or folder with config.json and safetensors; by name in the model folders",
                          cxxopts::value<std::string>()->default_value(""), "PATH")(
        "image-folder", "keep the packed weights in this folder and map them at the next start",
        cxxopts::value<std::string>()->default_value(""),
        "PATH")("threads", "threads; 0: all that this process may use", cxxopts::value<int>()->default_value("0"), "N")(
        "json", "write JSON instead of text", cxxopts::value<bool>()->default_value("false"))("h,help",
                                                                                              "show this help");
    const auto parsed = parse(options, argc, argv);
    if (parsed.count("help")) {
      std::cout << options.help();
      check_output();
      return 0;
    }
    for (const auto& extra : parsed.unmatched()) throw UsageError("unexpected argument '" + extra + "'");
    for (const auto& given : parsed.arguments())
      expect(parsed.count(given.key()) == 1,
             vitrine::concat("--", given.key(), ": expected once, got it ", parsed.count(given.key()), " times"));
    const Arguments arguments(parsed);
    Arguments(parsed).threads();  // checked even where they are not used
    program.run(arguments);
    check_output();
    for (const auto& name : arguments.unused()) std::cerr << program.name << ": --" << name << " had no effect\n";
    return 0;
  } catch (const UsageError& error) {
    return fail(error.what(), 2);
  } catch (const vitrine::Error& error) {
    return fail(error.what(), error.kind() == vitrine::ErrorKind::bad_argument ? 2 : 1);
  } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}

}  // namespace example
