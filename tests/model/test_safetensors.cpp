// safetensors files: good ones are read, lying ones are refused.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "gguf_writer.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/model/safetensors.hpp"

using namespace testing;
using vitrine::Error;
using vitrine::SafetensorsFile;

namespace {

std::string with_header(std::string_view header, std::size_t n_data) {
  return Bytes().text(header).raw(std::string(n_data, '\1')).data;
}

SafetensorsFile parse(std::string_view bytes) { return SafetensorsFile::parse(aligned(bytes), "test.safetensors"); }

// {"t": {"dtype": ..., "shape": ..., "data_offsets": ...}}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"t\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
}

}  // namespace

TEST_CASE("A safetensors file gives its tensors") {
  const auto file = parse(with_header(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]},)"
      R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"s":{"dtype":"I64","shape":[],"data_offsets":[14,22]},)"
      R"("e":{"dtype":"F16","shape":[0,4],"data_offsets":[14,14]}}      )",
      22));
  REQUIRE(file.tensors().size() == 4);
  const auto& a = *file.find_tensor("a");
  CHECK(a.dtype() == vitrine::DType::f32);
  CHECK(a.shape == std::vector<std::int64_t>{1, 2});
  CHECK(file.bytes(a).size() == 8);
  CHECK(file.find_tensor("b")->dtype() == vitrine::DType::bf16);
  CHECK(file.find_tensor("s")->dtype() == std::nullopt);
  CHECK(file.find_tensor("c") == nullptr);
}

TEST_CASE("Lying safetensors headers are refused, at little cost") {
  struct Case {
    const char* what;
    std::string bytes, message;
  };
  const auto length = [](std::uint64_t n) { return Bytes().number(n).raw("{}").data; };
  const auto data = [](const std::string& header) { return with_header(header, 8); };
  const std::string two = R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"u":{"dtype":"F32","shape":[1],)";
  const std::vector<Case> cases = {
      {"empty file", "", "truncated at offset 0"},
      {"length 2^64 - 1", length(~std::uint64_t{0}), "header length is 18446744073709551615"},
      {"length 2^63", length(std::uint64_t{1} << 63), "header length is 9223372036854775808"},
      {"length beyond the file", length(100), "truncated at offset 8 while reading header"},
      {"too large for its data", with_header(one("F32", "[1000,1000]", "[0,4]"), 4), "takes 4000000"},
      {"data cut", with_header(one("F32", "[2]", "[0,8]"), 4), "leave the 4 bytes of data (truncated?"},
      {"no offsets", data(one("F32", "[2]", "[]")), "expected [begin, end]"},
      {"one offset", data(one("F32", "[2]", "[0]")), "expected [begin, end]"},
      {"backwards", data(one("F32", "[1]", "[8,4]")), "run backwards"},
      {"negative", data(one("F32", "[1]", "[-1,4]")), "got -1"},
      {"1e30", data(one("F32", "[1]", "[0,1e30]")), "got 1e+30"},
      {"a fraction", data(one("F32", "[1]", "[0,4.0]")), "got 4.0"},
      {"offsets beyond 2^63", data(one("F32", "[1]", "[0,18446744073709551615]")), "got 18446744073709551615"},
      {"offsets no array", data(one("F32", "[1]", "{}")), "expected [begin, end]"},
      {"unknown type", data(one("F99", "[2]", "[0,8]")), "'F99'"},
      {"type no string", data(R"({"t":{"dtype":3,"shape":[2],"data_offsets":[0,8]}})"), "dtype: expected a known type"},
      {"no type", data(R"({"t":{"shape":[2],"data_offsets":[0,8]}})"), "dtype is missing"},
      {"no shape", data(R"({"t":{"dtype":"F32","data_offsets":[0,8]}})"), "shape is missing"},
      {"shape no array", data(one("F32", "2", "[0,8]")), "shape: expected an array"},
      {"9 dimensions", data(one("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]")),
       "expected an array of at most 8 numbers, got array of 9"},
      {"negative extent", data(one("F32", "[-2]", "[0,8]")), "got -2"},
      {"shape overflows", data(one("F32", "[4294967296,4294967296]", "[0,8]")), "more than 2^64 bytes"},
      {"shape overflows to zero", data(one("F32", "[4294967296,1073741824]", "[0,0]")), "more than 2^64 bytes"},
      {"overlap", data(two + R"("data_offsets":[0,4]}})"), "overlaps another"},
      {"gap", with_header(two + R"("data_offsets":[8,12]}})", 12), "there is a gap"},
      {"data left over", with_header(one("F32", "[1]", "[0,4]"), 8), "end at data offset 4"},
      {"the same key twice",
       data(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
            R"("t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
       "duplicate key 't'"},
      {"no object", data("[]"), "expected a JSON object"},
      {"entry no object", data(R"({"t":1})"), "expected an object"},
      {"not JSON", data("{'t':1}"), "no valid JSON"},
      {"cut JSON", data("{\"t\":"), "the JSON is cut off after 5 bytes"},
      {"not UTF-8", data("{\"\xff\":1}"), "no valid JSON"},
      {"100,000 brackets", data(std::string(100000, '[')), "nests deeper"},
      {"100,000 objects", data([] {
         std::string text;
         for (int i = 0; i < 100000; ++i) text += "{\"a\":";
         return text;
       }()),
       "nests deeper"},
  };
  for (const auto& hostile : cases) {
    INFO(hostile.what);
    const Effort effort;
    const auto message = refusal([&] { parse(hostile.bytes); });
    CHECK(effort.allocations() < 500);
    CHECK(effort.bytes() < std::int64_t(16384 + 4 * hostile.bytes.size()));
    CHECK_THAT(message, Catch::Contains(hostile.message));
  }
}

TEST_CASE("Every prefix of a safetensors file is refused") {
  const std::string whole = with_header(one("F32", "[2]", "[0,8]"), 8);
  REQUIRE_NOTHROW(parse(whole));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    INFO("prefix of " << n << " bytes");
    CHECK_THAT(refusal([&] { parse(whole.substr(0, n)); }), Catch::Contains("truncated"));
  }
}

TEST_CASE("The longest header that is read can be set") {
  const std::string bytes = with_header(one("F32", "[2]", "[0,8]"), 8);
  CHECK_THAT(refusal([&] { SafetensorsFile::parse(aligned(bytes), "t", 20); }), Catch::Contains("expected at most 20"));
  CHECK_NOTHROW(SafetensorsFile::parse(aligned(bytes), "t", 100));
}

TEST_CASE("An index leads to the files beside it and nowhere else") {
  const TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(tiny / "qwen2_sharded_f16"))
    std::filesystem::copy(entry.path(), folder.path / entry.path().filename());
  const auto index = folder.path / "model.safetensors.index.json";
  const auto good = nlohmann::json::parse(read_file(index));
  CHECK(SafetensorsFile::open_folder(folder.path).parts().size() == 3);
  const auto refused = [&](auto change) {
    auto json = good;
    change(json);
    write_file(index, json.dump());
    return refusal([&] { SafetensorsFile::open_folder(folder.path); });
  };
  const char* const tensor = "model.norm.weight";
  const auto to = [&](nlohmann::json value) {
    return refused([&](auto& json) { json["weight_map"][tensor] = value; });
  };
  CHECK_THAT(to("../model.safetensors"), Catch::Contains("expected the name of a file in the same folder"));
  CHECK_THAT(to("/etc/passwd"), Catch::Contains("expected the name of a file in the same folder"));
  CHECK_THAT(to(".."), Catch::Contains("expected the name of a file in the same folder"));
  CHECK_THAT(to("\x1b[31mred\n"), Catch::Contains("got the string '\\x1b[31mred\\x0a'"));
  CHECK_THAT(to(std::string(256, 'n')), Catch::Contains("expected the name of a file in the same folder"));
  CHECK_THAT(to(5), Catch::Contains("got 5"));
  CHECK_THAT(to("absent.safetensors"), Catch::Contains("absent.safetensors: cannot open"));
  const std::string own = good["weight_map"][tensor];
  const std::string other = own == "model-00001-of-00003.safetensors" ? "model-00002-of-00003.safetensors"
                                                                      : "model-00001-of-00003.safetensors";
  CHECK_THAT(to(other), Catch::Contains("which does not hold it"));
  CHECK_THAT(refused([](auto& json) { json.erase("weight_map"); }), Catch::Contains("weight_map"));
  CHECK_THAT(refused([](auto& json) { json["weight_map"] = 1; }), Catch::Contains("weight_map"));
  std::filesystem::copy(folder.path / own, folder.path / "copy.safetensors");
  CHECK_THAT(to("copy.safetensors"), Catch::Contains("duplicate tensor"));
}
