// Models of what no file of tests/data has, made here of those files: matrices in Q5_1 and Q5_K, a folder of BF16
// safetensors, linear RoPE scaling.
#include <cmath>
#include <functional>

#include "model/gguf_writer.hpp"
#include "support/bits.hpp"
#include "support/json.hpp"
#include "support/temporary_folder.hpp"
#include "vitrine/core/block_decode.hpp"
#include "vitrine/core/float16.hpp"

using namespace support;

namespace {

using PutTensor = std::function<void(testing::GgufWriter&, const GgufTensor&)>;

std::vector<std::uint64_t> dims_of(const GgufTensor& tensor) {
  return {tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims};
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// All metadata of a file, and of each tensor what `put` writes.
testing::GgufWriter copied(const GgufFile& file, const PutTensor& put) {
  testing::GgufWriter writer;
  for (const auto& value : file.metadata()) {
    testing::Bytes bytes;
    if (value.type == GgufType::array) bytes.number(std::uint32_t(value.element_type)).number(value.count);
    if (value.type == GgufType::string) bytes.number(std::uint64_t(value.bytes.size()));
    writer.value(value.key, value.type, bytes.raw(text_of(value.bytes)).data);
  }
  for (const auto& tensor : file.tensors()) put(writer, tensor);
  return writer;
}

std::shared_ptr<const Model> made_model(const testing::GgufWriter& writer, const Model& like) {
  auto file = GgufFile::parse(testing::aligned(writer.file()), "made.gguf");
  return std::make_shared<const Model>(Transformer(load_gguf(file)), like.tokenizer());
}

int nearest_step(float x, float step, int most) {
  return step > 0 ? int(std::clamp(std::lround(x / step), 0l, long(most))) : 0;
}

template <class Block>
void append_block(std::string& out, const Block& block) {
  out.append(reinterpret_cast<const char*>(&block), sizeof block);
}

// 32 steps from the least value to the largest.
void append_q5_1(std::string& out, const float* values) {
  const auto [least, largest] = std::minmax_element(values, values + 32);
  BlockQ5_1 block{};
  block.d = f32_to_f16((*largest - *least) / 31);
  block.m = f32_to_f16(*least);
  for (int k = 0; k < 32; ++k) {
    const int q = nearest_step(values[k] - f16_to_f32(block.m), f16_to_f32(block.d), 31);
    block.qs[k % 16] |= std::uint8_t((q & 15) << (k / 16 * 4));
    block.qh[k / 8] |= std::uint8_t(q >> 4 << (k % 8));
  }
  append_block(out, block);
}

// The same for each 32 of 256, with scales and minima that are multiples of the block's own two.
void append_q5_k(std::string& out, const float* values) {
  float steps[8], minima[8];
  for (int j = 0; j < 8; ++j) {
    const auto [least, largest] = std::minmax_element(values + 32 * j, values + 32 * j + 32);
    minima[j] = (std::max)(-*least, 0.0f);
    steps[j] = (*largest + minima[j]) / 31;
  }
  BlockQ5_K block{};
  block.d = f32_to_f16(*std::max_element(steps, steps + 8) / 63);
  block.dmin = f32_to_f16(*std::max_element(minima, minima + 8) / 63);
  const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
  for (int j = 0; j < 8; ++j) {
    const int scale = nearest_step(steps[j], d, 63), min = nearest_step(minima[j], dmin, 63);
    auto& packed = block.scales;
    if (j < 4) {
      packed[j] |= std::uint8_t(scale);
      packed[j + 4] |= std::uint8_t(min);
    } else {
      packed[j + 4] |= std::uint8_t((scale & 15) | (min & 15) << 4);
      packed[j - 4] |= std::uint8_t(scale >> 4 << 6);
      packed[j] |= std::uint8_t(min >> 4 << 6);
    }
    for (int i = 0; i < 32; ++i) {
      const int q = nearest_step(values[32 * j + i] + dmin * float(min), d * float(scale), 31);
      block.qs[32 * (j / 2) + i] |= std::uint8_t((q & 15) << (4 * (j % 2)));
      block.qh[i] |= std::uint8_t(q >> 4 << j);
    }
  }
  append_block(out, block);
}

std::vector<float> decoded_values(DType type, const std::string& blocks, std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  decode_block_row(type, reinterpret_cast<const std::byte*>(blocks.data()), n, values.data());
  return values;
}

std::string requantised(DType type, const std::vector<float>& values) {
  std::string blocks;
  const auto block_len = dtype_info(type).block_len;
  for (std::size_t k = 0; k < values.size(); k += block_len)
    type == DType::q5_1 ? append_q5_1(blocks, &values[k]) : append_q5_k(blocks, &values[k]);
  return blocks;
}

// A folder with the configuration and tokenizer of another, and each of its F32 tensors as `convert` writes it:
// its type's name and its bytes.
using Convert = std::function<std::pair<std::string, std::string>(const SafetensorsTensor&, std::vector<float>)>;

void write_folder(const fs::path& from, const fs::path& to, const Convert& convert) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    const auto name = entry.path().filename();
    if (name == "config.json" || name.string().starts_with("tokenizer")) fs::copy(entry.path(), to / name);
  }
  const auto file = SafetensorsFile::open_folder(from);
  auto header = nlohmann::json::object();
  std::string all;
  for (const auto& tensor : file.tensors()) {
    REQUIRE(tensor.dtype() == DType::f32);
    std::vector<float> values(std::size_t(tensor.n_bytes / sizeof(float)));
    std::memcpy(values.data(), file.bytes(tensor).data(), std::size_t(tensor.n_bytes));
    const auto [type, bytes] = convert(tensor, std::move(values));
    header[tensor.name] = {
        {"dtype", type}, {"shape", tensor.shape}, {"data_offsets", {all.size(), all.size() + bytes.size()}}};
    all += bytes;
  }
  testing::write_file(to / "model.safetensors", testing::Bytes().text(header.dump()).raw(all).data);
}

std::pair<std::string, std::string> as_f32(const SafetensorsTensor&, const std::vector<float>& values) {
  return {"F32", text_of(std::as_bytes(std::span(values)))};
}
std::pair<std::string, std::string> as_bf16(const SafetensorsTensor&, const std::vector<float>& values) {
  testing::Bytes bytes;
  for (const float value : values) bytes.number(f32_to_bf16(value));
  return {"BF16", bytes.data};
}
std::pair<std::string, std::string> as_rounded_f32(const SafetensorsTensor& tensor, std::vector<float> values) {
  for (float& value : values) value = bf16_to_f32(f32_to_bf16(value));
  return as_f32(tensor, values);
}

Run run_made(const std::shared_ptr<const Model>& model, SessionOptions options = {.n_threads = 2}) {
  return run(model, spread_tokens(*model, 40), 4, std::move(options));
}

}  // namespace

TEST_CASE("matrices in Q5_1 and Q5_K: any chunk and instruction set gives the same bits, near to exact ones") {
  const auto type = GENERATE(DType::q5_1, DType::q5_k);
  INFO(dtype_info(type).name);
  const auto path = data("quantmodel/llama256/model-Q4_0.gguf");
  const auto source = GgufFile::open(path);
  const auto made_as = [&](DType stored) {
    const PutTensor put = [&](testing::GgufWriter& writer, const GgufTensor& tensor) {
      const auto bytes = text_of(source.bytes(tensor));
      if (is_float_type(*tensor.dtype())) {
        writer.tensor(tensor.name, dims_of(tensor), tensor.type_id, bytes);
        return;
      }
      const auto n = tensor.dims[0] * tensor.dims[1];
      const auto values = decoded_values(*tensor.dtype(), bytes, n);
      auto blocks = requantised(type, values);
      auto meant = decoded_values(type, blocks, n);
      const auto [least, largest] = std::minmax_element(values.begin(), values.end());
      float worst = 0;
      for (std::size_t i = 0; i < values.size(); ++i) worst = (std::max)(worst, std::abs(values[i] - meant[i]));
      CHECK(worst < 0.03f * (*largest - *least));  // else these are not blocks of the type
      if (stored == DType::f32)
        writer.tensor(tensor.name, dims_of(tensor), std::move(meant));
      else
        writer.tensor(tensor.name, dims_of(tensor), std::uint32_t(stored), std::move(blocks));
    };
    return made_model(copied(source, put), *model(path));
  };
  const auto quantised = made_as(type);
  for (const auto* matrix : {&quantised->weights().layers[0].wq, &quantised->weights().layers[1].w_down,
                             &quantised->weights().token_embedding})
    CHECK(matrix->type() == type);

  const auto whole = run_made(quantised, {.n_threads = 1, .kv_type = DType::f32, .chunk = 40});
  const auto single = run_made(quantised, {.n_threads = 2, .kv_type = DType::f32, .chunk = 1});
  CHECK(whole.n_passes == 1 + 4);
  CHECK(single.n_passes == 40 + 4);
  CHECK(first_difference(whole, single) == -1);
  for (const auto isa : available_isas()) {
    INFO(isa_name(isa));
    const auto other = run_made(quantised, {.n_threads = 1, .kv_type = DType::f32, .isa = isa});
    CHECK(other.isa == isa_name(isa));
    CHECK(first_difference(whole, other) == -1);
  }

  const auto exact = run_made(made_as(DType::f32), {.n_threads = 1, .kv_type = DType::f32});
  float worst = 0;
  for (std::size_t i = 0; i < exact.logits[0].size(); ++i)
    worst = (std::max)(worst, std::abs(whole.logits[0][i] - exact.logits[0][i]));
  CHECK(worst < 0.5f);   // as for the other files of this model, test_reference.cpp
  CHECK(worst > 1e-4f);  // else activations were not rounded to 8 bits
}

TEST_CASE("BF16 safetensors give the bits of the same numbers in F32, and of a BF16 GGUF") {
  const std::string name = GENERATE(as<std::string>(), "tiny/llama_mha", "tiny/qwen2", "tiny/gemma3");
  INFO(name);
  const auto loaded_as = [&](const std::string& folder, const Convert& convert) {
    const TemporaryFolder place(folder);
    write_folder(data(name), place.path, convert);
    return Model::load(place.path);
  };
  const auto half = loaded_as("bf16", as_bf16), full = loaded_as("rounded", as_rounded_f32);
  CHECK(half->weights().layers[0].wq.type() == DType::bf16);
  CHECK(half->weights().token_embedding.type() == DType::bf16);
  CHECK(full->weights().layers[0].wq.type() == DType::f32);
  CHECK(first_difference(run_made(half), run_made(full)) == -1);
  CHECK(first_difference(run_made(loaded_as("f32", as_f32)), run_made(model(data(name)))) == -1);  // so it is written
  CHECK(first_difference(run_made(half), run_made(model(data(name)))) == 0);                       // and rounding tells

  if (name != "tiny/llama_mha") return;
  const auto mixed = loaded_as("mixed", [](const SafetensorsTensor& tensor, const std::vector<float>& values) {
    return tensor.shape.size() == 2 ? as_bf16(tensor, values) : as_f32(tensor, values);  // as that GGUF has them
  });
  CHECK(first_difference(run_made(mixed), run_made(model(data("tiny/llama_mha/model-bf16.gguf")))) == -1);
}

TEST_CASE("linear RoPE scaling: a model turns queries and keys by their positions over the factor") {
  constexpr double factor = 2.5;
  const auto plain = tiny();
  const auto source = GgufFile::open(data("tiny/llama_gqa/model-f32.gguf"));
  auto writer = copied(source, [&](testing::GgufWriter& to, const GgufTensor& tensor) {
    to.tensor(tensor.name, dims_of(tensor), tensor.type_id, text_of(source.bytes(tensor)));
  });
  writer.text("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", float(factor));
  const auto scaled = made_model(writer, *plain);

  const TemporaryFolder place("linear");
  write_folder(data("tiny/llama_gqa"), place.path, as_f32);
  auto config = read_json(place.path / "config.json");
  config["rope_parameters"]["rope_type"] = "linear";
  config["rope_parameters"]["factor"] = factor;
  testing::write_file(place.path / "config.json", config.dump());
  const auto whole = run_made(scaled, {.n_threads = 1, .chunk = 40});
  CHECK(first_difference(whole, run_made(Model::load(place.path))) == -1);
  CHECK(first_difference(whole, run_made(plain)) == 0);
  CHECK(first_difference(whole, run_made(scaled, {.n_threads = 2, .chunk = 7})) == -1);

  // As a textbook turns them: pair i of a head at position p by the angle p / factor * theta^(-2i / head_dim).
  const auto& shape = scaled->config();
  const std::int64_t n_pairs = shape.head_dim / 2;
  std::vector<float> before;
  std::int64_t n_turned = 0;
  double worst = 0;
  Session session(scaled, {.n_threads = 1, .chunk = 40, .trace = [&](const TraceEvent& event) {
                             const auto& x = event.value;
                             if (event.name == "q" || event.name == "k") {
                               if (event.name == "q") before.clear();
                               for (std::int64_t t = 0; t < x.size(0); ++t)
                                 before.insert(before.end(), x.row(t).begin(), x.row(t).end());
                             }
                             if (event.name != "q_rope" && event.name != "k_rope") return;
                             const auto n_q = x.size(0) * shape.n_head * shape.head_dim;
                             const float* old = before.data() + (event.name == "k_rope" ? n_q : 0);
                             for (std::int64_t t = 0; t < x.size(0); ++t, old += x.size(1))
                               for (std::int64_t at = 0; at < x.size(1); ++at) {
                                 const auto i = at % shape.head_dim % n_pairs, head = at - at % shape.head_dim;
                                 const double angle =
                                     double(t) / factor * std::pow(100000.0, -2.0 * double(i) / double(shape.head_dim));
                                 const double a = old[head + i], b = old[head + n_pairs + i];
                                 const double expected = at - head < n_pairs
                                                             ? a * std::cos(angle) - b * std::sin(angle)
                                                             : b * std::cos(angle) + a * std::sin(angle);
                                 worst = (std::max)(worst, std::abs(x(t, at) - expected) / std::hypot(a, b));
                                 ++n_turned;
                               }
                           }});
  session.prefill(spread_tokens(*scaled, 40));
  CHECK(n_turned == 40 * shape.n_layer * (shape.n_head + shape.n_kv_head) * shape.head_dim);
  CHECK(worst < 1e-5);
}
