// Valid files with random damage: whatever happens is an Error or a model, never a signal, a hang or another exception.
#include <catch2/catch.hpp>
#include <random>

#include "tiny_llama.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/model/loader.hpp"
#include "vitrine/model/safetensors.hpp"

using namespace testing;

namespace {

// Flips, overwrites, inserts, removes or cuts, most often near the start, where the header is.
std::string damaged(std::string bytes, std::mt19937_64& random, std::size_t header) {
  const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
  for (std::size_t count = 1 + below(3); count > 0 && !bytes.empty(); --count) {
    const std::size_t at = below(below(8) == 0 ? bytes.size() : (std::min)(header, bytes.size()));
    switch (below(6)) {
      case 0: bytes[at] = char(bytes[at] ^ (1 << below(8))); break;
      case 1: bytes[at] = char(random()); break;
      case 2: {  // a large or special number
        const std::uint64_t values[] = {0,   ~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 32,
                                        255, random()};
        const std::uint64_t value = values[below(6)];
        const std::size_t n = (std::min)(std::size_t{1} << below(4), bytes.size() - at);
        std::memcpy(bytes.data() + at, &value, n);
        break;
      }
      case 3: bytes.erase(at, 1 + below(16)); break;
      case 4: bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(16))); break;
      default: bytes.resize(at); break;
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("Damaged GGUF files end in an Error or in a model") {
  const std::string valid = tiny_llama().strings("tokenizer.ggml.tokens", std::vector<std::string>(10, "x")).file();
  const std::size_t header = parse_gguf(valid).tensors().front().offset;
  std::mt19937_64 random(20240607);
  int refused = 0, loaded = 0;
  for (int i = 0; i < 4000; ++i) {
    try {
      const auto file = parse_gguf(damaged(valid, random, header));
      for (const auto& value : file.metadata()) (void)file.find_text(value.key);
    } catch (const vitrine::Error&) {
      // The getter's refusal of another type or the file's: both are fine.
    }
    try {
      vitrine::load_gguf(parse_gguf(damaged(valid, random, header)), {.n_threads = 1});
      ++loaded;
    } catch (const vitrine::Error&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
  CHECK(loaded > 10);
}

TEST_CASE("Damaged safetensors files end in an Error or in tensors") {
  const auto folder = std::filesystem::path(VITRINE_TEST_DATA) / "tiny" / "qwen2_sharded_f16";
  const std::string valid = read_file(folder / "model-00003-of-00003.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, valid.data(), 8);
  std::mt19937_64 random(7);
  int refused = 0, read = 0;
  for (int i = 0; i < 4000; ++i) {
    try {
      vitrine::SafetensorsFile::parse(aligned(damaged(valid, random, header + 8)), "test.safetensors");
      ++read;
    } catch (const vitrine::Error&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
  CHECK(read > 10);
}

TEST_CASE("Damaged configurations end in an Error or in a configuration") {
  const auto folder = GENERATE(as<std::string>(), "gemma3", "llama_rope_llama3", "qwen3");
  const std::string valid = read_file(std::filesystem::path(VITRINE_TEST_DATA) / "tiny" / folder / "config.json");
  std::mt19937_64 random(11);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    try {
      vitrine::config_from_hf(vitrine::HfConfig::parse(damaged(valid, random, valid.size()), "config.json"));
    } catch (const vitrine::Error&) {
      ++refused;
    }
  }
  CHECK(refused > 500);
}
