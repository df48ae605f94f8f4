// GGUF files: good ones are read in full, bad ones are refused by an Error that names offset and field.
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "gguf_writer.hpp"
#include "support/counted_allocations.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/model/loader.hpp"

using namespace testing;
using vitrine::Error;
using vitrine::ErrorKind;
using vitrine::GgufFile;
using vitrine::GgufType;

namespace {

// The message of the Error that parsing these bytes throws; "" if it throws none.
std::string refusal_of(std::string_view bytes) {
  try {
    parse_gguf(bytes);
    return {};
  } catch (const Error& error) {
    CHECK((error.kind() == ErrorKind::bad_file || error.kind() == ErrorKind::unsupported));
    return error.what();
  }
}

GgufWriter example() {
  GgufWriter writer;
  writer.text("general.architecture", "test").u32("test.count", 7).f32("test.theta", 1e4f).boolean("test.flag", true);
  writer.strings("test.words", {"a", "", "long word"});
  writer.value("test.bytes", GgufType::array, Bytes().number(0u).number(std::uint64_t{3}).raw("\1\2\xff").data);
  writer.tensor("a", {4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).tensor("b", {32}, 2, std::string(18, 'x'));
  return writer;
}

const std::string one_tensor_head = "47475546030000000100000000000000000000000000000001000000000000007402000000";
const std::string one_pair_head = "474755460300000000000000000000000100000000000000";
const std::string alignment_key = one_pair_head + "110000000000000067656e6572616c2e616c69676e6d656e74";

}  // namespace

TEST_CASE("A GGUF file gives its metadata and tensors") {
  const std::uint32_t version = GENERATE(2u, 3u);
  const GgufFile file = parse_gguf(example().file(version));
  CHECK(file.version() == version);
  CHECK(file.text("general.architecture") == "test");
  CHECK(file.integer("test.count") == 7);
  CHECK(file.real("test.theta") == 1e4);
  CHECK(file.boolean("test.flag"));
  CHECK(file.strings("test.words") == std::vector<std::string_view>{"a", "", "long word"});
  CHECK(file.integers("test.bytes") == std::vector<std::int64_t>{1, 2, 255});
  CHECK(file.find_integer("absent") == std::nullopt);
  REQUIRE(file.tensors().size() == 2);
  const auto& tensor = *file.find_tensor("a");
  CHECK(tensor.n_dims == 2);
  CHECK(tensor.dims == std::array<std::int64_t, 4>{4, 3, 1, 1});
  float last = 0;
  std::memcpy(&last, file.bytes(tensor).data() + 44, 4);
  CHECK(last == 12.0f);
  CHECK(file.find_tensor("b")->dtype() == vitrine::DType::q4_0);
  CHECK(file.find_tensor("c") == nullptr);
}

TEST_CASE("Getters name the key, the expected and the found type") {
  const GgufFile file = parse_gguf(example().file());
  const auto message = [&](auto get) {
    try {
      get();
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  const auto wrong = message([&] { file.integer("general.architecture"); });
  CHECK_THAT(wrong, Catch::Contains("general.architecture") && Catch::Contains("an integer, got STRING"));
  CHECK_THAT(message([&] { file.text("test.count"); }), Catch::Contains("STRING, got UINT32"));
  CHECK_THAT(message([&] { file.find_text("test.count"); }), Catch::Contains("STRING, got UINT32"));
  CHECK_THAT(message([&] { file.integers("test.words"); }), Catch::Contains("got ARRAY of 3 STRING"));
  CHECK_THAT(message([&] { file.real("absent"); }), Catch::Contains("'absent' is missing"));
}

TEST_CASE("Every prefix of a GGUF file is refused as truncated") {
  const std::string whole = example().file();
  REQUIRE(refusal_of(whole).empty());
  for (std::size_t n = 0; n < whole.size(); ++n) {
    INFO("prefix of " << n << " bytes");
    CHECK_THAT(refusal_of(whole.substr(0, n)), Catch::Contains("truncated"));
  }
  CHECK_THAT(refusal_of(from_hex("47475546")), Catch::Contains("truncated at offset 4 while reading version"));
}

TEST_CASE("A header is enough for what it says, and for nothing else") {
  const auto bytes = example().file(3);
  const TemporaryFolder folder;
  const auto path = folder.path / "cut.gguf";
  write_file(path, bytes.substr(0, bytes.size() - 1));
  CHECK_THROWS_WITH(GgufFile::open(path), Catch::Contains("truncated?"));
  const auto file = GgufFile::open_header(path);
  CHECK(file.integer("test.count") == 7);
  CHECK(file.tensors().size() == 2);
  CHECK_THROWS_WITH(file.bytes(file.tensors()[0]), Catch::Contains("header only"));
  const auto whole = tiny / "llama_gqa" / "model-f32.gguf";
  CHECK_THROWS_WITH(vitrine::load_gguf(GgufFile::open_header(whole), {}), Catch::Contains("header only"));
}

TEST_CASE("Hostile GGUF files are refused by name, quickly and without much memory") {
  struct Case {
    const char* what;
    std::string bytes, message;
  };
  const std::string zeros(8192, '\0');
  const auto hex = [](std::string_view text) { return from_hex(text); };
  auto doubled = example();
  doubled.u32("test.count", 8);
  auto twice = example();
  twice.tensor("a", {4});
  const auto head = [](std::uint64_t n_tensors) {
    return Bytes().raw("GGUF").number(3u).number(n_tensors).number(std::uint64_t{0}).data;
  };
  const auto tensor = [](const char* name, std::uint64_t dim, std::uint32_t type, std::uint64_t offset) {
    return Bytes().text(name).number(1u).number(dim).number(type).number(offset).data;
  };
  const auto one_tensor = [&](std::uint64_t dim, std::uint32_t type, std::uint64_t offset) {
    return head(1) + tensor("t", dim, type, offset);
  };
  const auto two_of_16_bytes = [&](std::uint64_t offset_of_second) {
    return head(2) + tensor("t", 4, 0, 0) + tensor("u", 4, 0, offset_of_second) + zeros;
  };
  std::string nested = Bytes().number(9u).data;
  for (int i = 0; i < 100; ++i) nested += Bytes().number(9u).number(std::uint64_t{1}).data;
  const std::vector<Case> cases = {
      {"zero dimension", hex(one_tensor_head + "04000000000000000000000000000000000000000000000000000000"),
       "tensor 't' dim 1 is 0"},
      {"2^64 values", hex(one_tensor_head + "ffffffffffffff7f0200000000000000180000000000000000000000"), "2^63"},
      {"2^32 x 2^32", hex(one_tensor_head + "00000000010000000000000001000000000000000000000000000000"), "2^63"},
      {"value bytes wrap", one_tensor(std::uint64_t{1} << 62, 28, 0), "2^64 bytes"},
      {"5 dimensions",
       hex("47475546030000000100000000000000000000000000000001000000000000007405000000010000000000000001000000000000"
           "0001000000000000000100000000000000010000000000000000000000"
           "0000000000000000"),
       "has 5 dimensions"},
      {"a million dimensions, cut", hex("47475546030000000100000000000000000000000000000001000000000000007440420f00"),
       "truncated"},
      {"a million dimensions",
       hex("47475546030000000100000000000000000000000000000001000000000000007440420f00") + zeros, "1000000 dimensions"},
      {"no dimensions",
       hex("474755460300000001000000000000000000000000000000010000000000000074000000000000000000000000"
           "00000000"),
       "has 0 dimensions"},
      {"key of 2^48 - 1 bytes", hex(one_pair_head + "ffffffffffff0000"), "metadata"},
      {"key of 2^64 - 1 bytes", hex(one_pair_head + "ffffffffffffffff"), "metadata"},
      {"key of 65536 bytes", hex(one_pair_head) + Bytes().text(std::string(65536, 'k')).number(4u).number(1u).data,
       "metadata key at offset 24 is 65536 bytes long, expected at most 65535"},
      {"string of 2^64 - 1 bytes",
       hex(one_pair_head) + Bytes().text("k").number(8u).number(~std::uint64_t{0}).raw(zeros).data, "truncated"},
      {"tensor name of 65 bytes",
       Bytes()
           .raw("GGUF")
           .number(3u)
           .number(std::uint64_t{1})
           .number(std::uint64_t{0})
           .text(std::string(65, 't'))
           .raw(zeros)
           .data,
       "tensor name at offset 24 is 65"},
      {"2^60 tensors", hex("474755460300000000000000000000100000000000000000"), "offset 8 while reading tensor count"},
      {"2^60 pairs", hex("474755460300000000000000000000000000000000000010"), "offset 16 while reading metadata count"},
      {"array of 2^60",
       hex(one_pair_head) + Bytes().text("k").number(9u).number(4u).number(std::uint64_t{1} << 60).raw(zeros).data,
       "metadata array's length"},
      {"array of 2^63 strings",
       hex(one_pair_head) + Bytes().text("k").number(9u).number(8u).number(std::uint64_t{1} << 63).raw(zeros).data,
       "metadata array's length"},
      {"deep nesting", hex(one_pair_head) + Bytes().text("k").raw(nested).raw(zeros).data, "nest"},
      {"value type 13", hex(one_pair_head) + Bytes().text("k").number(13u).raw(zeros).data,
       "metadata value type is 13"},
      {"element type 99", hex(one_pair_head) + Bytes().text("k").number(9u).number(99u).raw(zeros).data, "is 99"},
      {"alignment 0", hex(alignment_key + "0400000000000000"), "general.alignment is 0"},
      {"alignment 3", hex(alignment_key + "0400000003000000"), "general.alignment is 3"},
      {"alignment 2^31", hex(alignment_key + "0400000000000080"), "general.alignment is 2147483648"},
      {"alignment 24", hex(alignment_key + "0400000018000000"), "general.alignment is 24"},
      {"signed alignment", hex(alignment_key + "0500000020000000"), "expected UINT32, got INT32"},
      {"empty key", hex(one_pair_head + "00000000000000000400000001000000"), "metadata key is empty"},
      {"duplicate key", doubled.file(), "duplicate metadata key 'test.count'"},
      {"BOOL of 2", hex(one_pair_head) + Bytes().text("k").number(7u).raw("\2").data, "a BOOL is 2"},
      {"BOOL of 2 in an array",
       hex(one_pair_head) + Bytes().text("k").number(9u).number(7u).number(std::uint64_t{1}).raw("\2").data,
       "a BOOL is 2"},
      {"no data",
       hex("474755460300000001000000000000000000000000000000010000000000000074010000000000100000000000000000"
           "000000000000000000"),
       "needs 4194304 bytes"},
      {"data past the end", one_tensor(4, 0, 64) + zeros.substr(0, 64), "needs 16 bytes from data offset 64"},
      {"offset wraps", one_tensor(4, 0, ~std::uint64_t{31}) + zeros, "needs 16 bytes"},
      {"misaligned offset", one_tensor(4, 0, 8) + zeros, "data offset 8, expected a multiple of 32"},
      {"unknown type", one_tensor(4, 999, 0) + zeros, "unknown type 999"},
      {"removed type", one_tensor(32, 4, 0) + zeros, "unknown type 4"},
      {"half a block", one_tensor(33, 2, 0) + zeros, "expected a multiple of 32 for Q4_0"},
      {"half a K block", one_tensor(320, 12, 0) + zeros, "expected a multiple of 256 for Q4_K"},
      {"same offset", two_of_16_bytes(0), "tensors 't' and 'u' overlap"},
      {"a gap", two_of_16_bytes(64), "tensor 't' (F32) takes 16 bytes, but 64 lie before tensor 'u'"},
      {"duplicate tensor", twice.file(), "duplicate tensor name 'a'"},
      {"version 1", hex("47475546010000000000000000000000") + zeros, "GGUF version 1 is not supported"},
      {"version 4", hex("47475546040000000000000000000000") + zeros, "GGUF version 4 is not supported"},
      {"big-endian", hex("47475546000000030000000000000000") + zeros, "big-endian"},
      {"another format", "PK\3\4" + zeros, "not a GGUF file"},
  };
  for (const auto& hostile : cases) {
    INFO(hostile.what);
    const Effort effort;
    const std::string message = refusal_of(hostile.bytes);
    CHECK(effort.allocations() < 100);
    CHECK(effort.bytes() < std::int64_t(16384 + 4 * hostile.bytes.size()));
    CHECK_THAT(message, Catch::Contains(hostile.message));
  }
}

TEST_CASE("Powers of two from 8 to 65536 are alignments") {
  const std::uint32_t alignment = GENERATE(8u, 64u, 65536u);
  const GgufFile file = parse_gguf(example().u32("general.alignment", alignment).file(3, alignment));
  CHECK(file.alignment() == alignment);
  CHECK(file.find_tensor("b")->offset % alignment == 0);
}

TEST_CASE("Types that are not run are listed all the same") {
  const GgufFile file = parse_gguf(GgufWriter().tensor("t", {256, 2}, 16, std::string(132, 'x')).file());
  CHECK(file.find_tensor("t")->type_name == std::string("IQ2_XXS"));
  CHECK(file.find_tensor("t")->dtype() == std::nullopt);
}

TEST_CASE("A file is read by map and by copy alike, and its absence is an io error") {
  const TemporaryFolder folder;
  write_file(folder.path / "a.gguf", example().file());
  for (const bool try_map : {true, false}) {
    const GgufFile file = GgufFile::open(folder.path / "a.gguf", try_map);
    CHECK(file.parts().front().is_mapped() == try_map);
    CHECK(file.integer("test.count") == 7);
  }
  const auto kind = [](const std::filesystem::path& path) {
    try {
      GgufFile::open(path);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::numeric_failure;
  };
  CHECK(kind(folder.path / "absent.gguf") == ErrorKind::io);
  CHECK(kind(folder.path) == ErrorKind::io);
  CHECK(kind("/dev/zero") == ErrorKind::io);
  write_file(folder.path / "empty.gguf", "");
  CHECK(kind(folder.path / "empty.gguf") == ErrorKind::bad_file);
}

TEST_CASE("A file cut while it is open is noticed before it is touched") {
  const TemporaryFolder folder;
  write_file(folder.path / "a.gguf", example().file());
  const GgufFile file = GgufFile::open(folder.path / "a.gguf");
  file.parts().front().check_size();
  std::filesystem::resize_file(folder.path / "a.gguf", 10);
  CHECK_THROWS_AS(file.parts().front().check_size(), Error);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need address space beyond any limit
TEST_CASE("A file that does not fit the address space is an Error that says so") {
  const TemporaryFolder folder;
  write_file(folder.path / "a.gguf", example().file());
  std::filesystem::resize_file(folder.path / "a.gguf", std::uintmax_t{1} << 38);  // a hole: it takes no disk space
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit limited = before;
  limited.rlim_cur = rlim_t{1} << 37;
  REQUIRE(setrlimit(RLIMIT_AS, &limited) == 0);
  rlimit effective{};
  getrlimit(RLIMIT_AS, &effective);
  if (effective.rlim_cur != limited.rlim_cur) return;  // emulators may not do it
  auto kind = ErrorKind::numeric_failure;
  try {
    GgufFile::open(folder.path / "a.gguf");
  } catch (const Error& error) {
    kind = error.kind();
  }
  setrlimit(RLIMIT_AS, &before);
  CHECK(kind == ErrorKind::out_of_memory);
}
#endif

TEST_CASE("A split model is opened by its first part") {
  const TemporaryFolder folder;
  const auto part = [&](std::uint32_t number, const std::string& tensor, std::uint32_t count = 2) {
    GgufWriter writer;
    writer.u32("split.no", number).u32("split.count", count).u32("split.tensors.count", 2);
    if (number == 0) writer.text("general.architecture", "test");
    return writer.tensor(tensor, {2}, {float(number), 5}).file();
  };
  write_file(folder.path / "m-00001-of-00002.gguf", part(0, "a"));
  write_file(folder.path / "m-00002-of-00002.gguf", part(1, "b"));
  const GgufFile file = GgufFile::open(folder.path / "m-00001-of-00002.gguf");
  CHECK(file.parts().size() == 2);
  CHECK(file.text("general.architecture") == "test");
  float first = 0;
  std::memcpy(&first, file.bytes(*file.find_tensor("b")).data(), 4);
  CHECK(first == 1.0f);

  const auto refused = [&](const char* name) {
    try {
      GgufFile::open(folder.path / name);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK_THAT(refused("m-00002-of-00002.gguf"), Catch::Contains("open the first part, 'm-00001-of-00002.gguf'"));
  write_file(folder.path / "renamed.gguf", part(0, "a"));
  CHECK_THAT(refused("renamed.gguf"), Catch::Contains("split into 2 files"));
  write_file(folder.path / "n-00001-of-00002.gguf", part(0, "a"));
  CHECK_THAT(refused("n-00001-of-00002.gguf"), Catch::Contains("n-00002-of-00002.gguf: cannot open"));
  write_file(folder.path / "n-00002-of-00002.gguf", part(1, "a"));
  CHECK_THAT(refused("n-00001-of-00002.gguf"), Catch::Contains("duplicate tensor name 'a'"));
  write_file(folder.path / "n-00002-of-00002.gguf", part(0, "b"));
  CHECK_THAT(refused("n-00001-of-00002.gguf"), Catch::Contains("split.no is 0, expected 1"));
}
