// Bodies of program.hpp.
#include "common/program.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <typeinfo>

#include "common/terminal.hpp"

template class cxxopts::values::standard_value<double>;
template class cxxopts::values::standard_value<std::int32_t>;
template class cxxopts::values::standard_value<std::int64_t>;
template class cxxopts::values::standard_value<std::uint64_t>;
template class cxxopts::values::standard_value<std::string>;

namespace example {

void expect(bool condition, const std::string& message) {
  if (!condition) throw UsageError(message);
}

std::vector<std::filesystem::path> model_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* models = std::getenv("VITRINE_MODELS"); models && *models) folders.emplace_back(models);
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) {
    folders.push_back(std::filesystem::path(cache) / "vitrine" / "models");
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    folders.push_back(std::filesystem::path(home) / ".cache" / "vitrine" / "models");
  }
  return folders;
}

std::filesystem::path find_model(const std::string& wanted) {
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

namespace {

// All of the text, or nothing.
template <class Number>
std::optional<Number> read_whole(const std::string& text) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error != std::errc() || rest != end ? std::nullopt : std::optional(value);
}

}  // namespace

std::optional<double> as_number(const std::string& text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  return read_whole<double>(text.substr(plus ? 1 : 0));
}
std::optional<std::uint64_t> as_whole_number(const std::string& text) { return read_whole<std::uint64_t>(text); }

namespace {

template <class Number>
std::vector<Number> list(const Arguments& args, const std::string& name, const char* kind, Number least, Number most) {
  const auto text = args.get<std::string>(name);
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

}  // namespace

std::vector<double> Arguments::numbers(const std::string& name, double least, double most) const {
  return list<double>(*this, name, "numbers", least, most);
}

std::vector<std::int64_t> Arguments::whole_numbers(const std::string& name, std::int64_t least,
                                                   std::int64_t most) const {
  return list<std::int64_t>(*this, name, "whole numbers", least, most);
}

std::int64_t Arguments::whole_number(const std::string& name, std::int64_t least, std::int64_t most) const {
  const auto values = whole_numbers(name, least, most);
  expect(values.size() == 1, "--" + name + ": expected one whole number, got '" + get<std::string>(name) + "'");
  return values[0];
}

std::filesystem::path Arguments::model() const {
  const auto wanted = get<std::string>("model");
  expect(!has("model") || !wanted.empty(), "--model: expected a file or a folder, got an empty name");
  return find_model(wanted);
}

std::string Arguments::folder(const std::string& name) const {
  const auto path = get<std::string>(name);
  expect(!has(name) || !path.empty(), "--" + name + ": expected a folder, got an empty name");
  return path;
}

void Arguments::only(const std::string& name, bool has_effect, const std::string& expected) const {
  expect(!has(name) || has_effect, "--" + name + ": expected " + expected + ", got it where it has no effect");
}

std::vector<std::string> Arguments::unused() const {
  std::vector<std::string> names;
  for (const auto& given : parsed_.arguments())
    if (!used_.contains(given.key())) names.push_back(given.key());
  return names;
}

std::string Arguments::file(const std::string& name) const {
  const auto path = get<std::string>(name);
  std::ifstream in(path, std::ios::binary);
  std::string text;
  for (char part[4096]; in.read(part, sizeof part), in.gcount() > 0;) text.append(part, std::size_t(in.gcount()));
  vitrine::check(in.eof(), vitrine::ErrorKind::io, "--", name, ": cannot read ", path);
  return text;
}

void print_json(const json& value) {
  std::cout << value.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) << '\n';
}

json number(double value) {
  const bool whole = std::fabs(value) < 9e18 && value == std::floor(value);
  return whole ? json(std::int64_t(value)) : json(value);
}

void check_output() {
  vitrine::check(bool(std::cout.flush()), vitrine::ErrorKind::io, "cannot write to standard output");
}

namespace {

// A value that did not parse is quoted by cxxopts, but neither the option that it was given to nor what is expected.
// The option's type shows in what else it takes.
cxxopts::ParseResult parse(cxxopts::Options& options, int argc, char** argv) {
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
      const auto takes = [&](const std::string& other) {
        const std::string word = name + "=" + other;
        const char* const words[] = {argv[0], word.c_str()};
        try {
          options.parse(2, words);
          return true;
        } catch (const cxxopts::exceptions::exception&) {
          return false;
        }
      };
      if (takes(value)) continue;  // the same text, given to another option
      const char* const expected = takes("true")  ? "true or false"
                                   : takes("0.5") ? "a finite number"
                                                  : "a whole number in its range";
      throw UsageError(vitrine::concat(name, ": expected ", expected, ", got '", value, "'"));
    }
    throw UsageError(error.what());
  }
}

// cxxopts reads a number as far as it goes: '0,9' as 0.
void check_numbers(const cxxopts::ParseResult& parsed) {
  for (const auto& given : parsed.arguments()) {
    try {
      (void)parsed[given.key()].as<double>();
    } catch (const std::bad_cast&) {
      continue;  // an option of another type
    }
    expect(as_number(given.value()).has_value(),
           vitrine::concat("--", given.key(), ": expected a finite number, got '", given.value(), "'"));
  }
}

}  // namespace

int run(int argc, char** argv, const Program& program) {
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
        "image_folder", "keep the packed weights in this folder and map them at the next start",
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
    check_numbers(parsed);
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
