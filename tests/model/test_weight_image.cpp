// Weight images: the same weights as from the model's own files, and nothing from a file that is stale or damaged.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "tiny_llama.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/model/loader.hpp"
#include "vitrine/model/weight_image.hpp"

using namespace vitrine;
namespace fs = std::filesystem;

namespace {

// A folder of its own for each test, with a copy of a model in it.
struct Place {
  fs::path folder = fs::temp_directory_path() / ("vitrine-image-" + std::to_string(::getpid()));
  fs::path images = folder / "images", model;

  explicit Place(const std::string& source) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    model = folder / fs::path(source).filename();
    fs::copy(fs::path(VITRINE_TEST_DATA) / source, model, fs::copy_options::recursive);
  }
  ~Place() { fs::remove_all(folder); }

  LoadedModel load() const { return load_model_files(model, {.n_threads = 2, .image_folder = images}); }
  fs::path image() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(images)) found.push_back(entry.path());
    REQUIRE(found.size() == 1);  // and no unfinished one beside it
    return found[0];
  }
};

std::vector<const PackedMatrix*> matrices(const ModelWeights& weights) {
  std::vector<const PackedMatrix*> all = {&weights.token_embedding, &weights.lm_head};
  for (const auto& layer : weights.layers)
    all.insert(all.end(), {&layer.wq, &layer.wk, &layer.wv, &layer.wo, &layer.w_gate, &layer.w_up, &layer.w_down});
  return all;
}

bool same_weights(const LoadedModel& a, const LoadedModel& b) {
  const auto in_a = matrices(a.weights), in_b = matrices(b.weights);
  return std::equal(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), [](const auto* x, const auto* y) {
    return x->type() == y->type() && x->n_rows() == y->n_rows() && x->n_cols() == y->n_cols() &&
           std::equal(x->panel(0), x->panel(0) + x->bytes(), y->panel(0));
  });
}

std::vector<char> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const fs::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

}  // namespace

TEST_CASE("a weight image gives the weights that it was made of") {
  for (const char* source : {"quantmodel/llama256/model-Q4_1.gguf", "quantmodel/llama256/model-Q4_K_M.gguf",
                             "tiny/qwen2", "tiny/llama_gqa/model-f32.gguf"}) {
    INFO(source);
    const Place place(source);
    const auto plain = load_model_files(place.model, {.n_threads = 1});
    CHECK(!fs::exists(place.images));
    const auto first = place.load(), second = place.load();
    CHECK((first.notices.empty() && second.notices.empty()));
    CHECK((!first.from_image && second.from_image));
    CHECK((same_weights(plain, first) && same_weights(plain, second)));
    CHECK(plain.weights.bytes() == second.weights.bytes());
    CHECK(plain.weights.final_norm == second.weights.final_norm);
    place.image();
  }
}

TEST_CASE("a weight image with any byte changed, or cut anywhere, is refused and made anew") {
  const Place place("quantmodel/llama256/model-Q4_1.gguf");
  const auto plain = place.load();
  const auto image = place.image();
  const auto good = read(image);
  const auto refused = [&](const char* reason) {
    const auto loaded = place.load();
    CHECK(!loaded.from_image);
    CHECK(same_weights(plain, loaded));
    REQUIRE(loaded.notices.size() == 1);
    CHECK_THAT(loaded.notices[0],
               Catch::Contains("weight image not used") && Catch::Contains(image.string()) && Catch::Contains(reason));
    CHECK(read(image) == good);
  };
  std::vector<std::size_t> places = {0, 7, 8, 16, 24, 32, 4096, good.size() / 2, good.size() - 1};
  for (const auto at : places) {
    INFO("byte " << at);
    auto bad = good;
    bad[at] = char(bad[at] ^ 4);
    write(image, bad);
    refused(at < 8 ? "expected a weight image" : at < 16 ? "is stale" : at < 24 ? "bytes of weights" : "is damaged");
  }
  for (const auto length : {std::size_t(0), std::size_t(5), std::size_t(20), std::size_t(4096), good.size() - 1}) {
    INFO("cut to " << length);
    write(image, {good.begin(), good.begin() + std::ptrdiff_t(length)});
    refused(length < 24 ? "truncated" : "bytes");
  }
  auto longer = good;
  longer.push_back(0);
  write(image, longer);
  refused("bytes of weights");
  CHECK(place.load().from_image);
}

TEST_CASE("a weight image is stale when the model's file has changed") {
  const Place place("quantmodel/llama256/model-Q4_1.gguf");
  place.load();
  REQUIRE(place.load().from_image);
  const auto time = fs::last_write_time(place.model);
  fs::last_write_time(place.model, time + std::chrono::seconds(1));
  const auto later = place.load();
  CHECK(!later.from_image);
  REQUIRE(later.notices.size() == 1);
  CHECK_THAT(later.notices[0], Catch::Contains("is stale"));
  REQUIRE(place.load().from_image);

  auto other = read(place.model);  // other weights, of the same size and time
  const auto kept = fs::last_write_time(place.model);
  other[other.size() - 4096] = char(other[other.size() - 4096] ^ 1);
  other[other.size() - other.size() / 2] = char(other[other.size() / 2] ^ 1);
  for (std::size_t i = other.size() / 2; i < other.size(); i += 100) other[i] = char(other[i] ^ 1);
  write(place.model, other);
  fs::last_write_time(place.model, kept);
  CHECK(!place.load().from_image);
}

TEST_CASE("a head that lies in planes has a weight image of its own, one that cannot has the same as ever") {
  const auto load = [&](const Place& place, bool in_planes) {
    const LoadOptions options{.n_threads = 2, .head_in_planes = in_planes, .image_folder = place.images};
    auto loaded = load_model_files(place.model, options);
    CHECK(loaded.notices.empty());
    return loaded;
  };
  {
    const Place place("quantmodel/llama256/model-Q4_1.gguf");
    std::string q8_0;  // [10 rows] of one block: a scale of 1, 32 values
    for (int row = 0; row < 10; ++row) {
      q8_0 += {'\0', '\x3c'};
      for (int i = 0; i < 32; ++i) q8_0 += char(row * 32 + i);
    }
    auto writer = testing::tiny_llama(32);
    writer.remove_tensor("token_embd.weight").tensor("token_embd.weight", {32, 10}, 8, q8_0);
    std::ofstream(place.model, std::ios::binary) << writer.file();
    const auto whole = load(place, false), in_planes = load(place, true);
    CHECK((!whole.from_image && !in_planes.from_image));
    CHECK(!same_weights(whole, in_planes));
    for (int round = 0; round < 2; ++round)
      for (const auto* first : {&whole, &in_planes}) {
        const auto again = load(place, first == &in_planes);
        CHECK((again.from_image && same_weights(*first, again)));
      }
  }
  const Place place("quantmodel/llama256/model-Q4_1.gguf");
  const auto first = load(place, false);
  const auto second = load(place, true);
  CHECK((second.from_image && same_weights(first, second)));
  place.image();
}

TEST_CASE("a model loads without a weight image where none can be kept") {
  const Place place("quantmodel/llama256/model-Q4_1.gguf");
  std::ofstream(place.images) << "a file where the folder should be";
  const auto loaded = place.load();
  CHECK(!loaded.from_image);
  REQUIRE(loaded.notices.size() == 1);
  CHECK_THAT(loaded.notices[0], Catch::Contains("weight image not kept"));
}

TEST_CASE("models of one file name in two folders have an image each") {
  CHECK(weight_image_path("images", "a/model.gguf") != weight_image_path("images", "b/model.gguf"));
  CHECK(weight_image_path("images", "a/model.gguf") == weight_image_path("images", "a/../a/model.gguf"));
  CHECK(weight_image_path("images", "a/model.gguf") !=
        weight_image_path("images", "a/model.gguf", PackedLayout::planes));
}
