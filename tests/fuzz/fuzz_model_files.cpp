// Model files: bytes that begin as GGUF are read as such, others as the safetensors file of a folder whose config.json
// is fixed. Header, metadata, tokenizer, and weights packed for the kernels.
#include <fstream>

#include "fuzz.hpp"
#include "vitrine/model/loader.hpp"
#include "vitrine/text/load_tokenizer.hpp"

using namespace vitrine;

namespace {

void read_metadata(const GgufFile& file) {
  for (const GgufValue& value : file.metadata()) {
    fuzz::answers([&] { (void)file.integer(value.key); });
    fuzz::answers([&] { (void)file.real(value.key); });
    fuzz::answers([&] { (void)file.boolean(value.key); });
    fuzz::answers([&] { (void)file.text(value.key); });
    fuzz::answers([&] { (void)file.strings(value.key); });
    fuzz::answers([&] { (void)file.integers(value.key); });
    fuzz::answers([&] { (void)file.reals(value.key); });
    fuzz::law(file.find(value.key) == &value, "a key is found where it is");
  }
}

void read_gguf(std::string_view bytes) {
  AlignedBytes copy(bytes.size());
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  const GgufFile file = GgufFile::parse(std::move(copy), "input.gguf");
  read_metadata(file);
  for (const GgufTensor& tensor : file.tensors())
    fuzz::law(file.bytes(tensor).size() == tensor.n_bytes, "a tensor's bytes are in the file");
  fuzz::answers([&] {
    const Tokenizer tokenizer = tokenizer_from_gguf(file);
    (void)tokenizer.decode(tokenizer.encode("Hi <|im_end|>", {.parse_special = true}));
  });
  fuzz::answers([&] { check_model_tensors(file); });
  fuzz::answers([&] { (void)load_gguf(file, {.n_threads = 1}); });
}

// On a file system in memory, where there is one.
const std::filesystem::path& folder() {
  static const auto* const made = [] {
    std::error_code ignored;
    const bool shared = std::filesystem::is_directory("/dev/shm", ignored);
    std::string name = (shared ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/fuzz-XXXXXX";
    fuzz::law(mkdtemp(name.data()) != nullptr, "a temporary folder can be made");
    std::filesystem::copy_file(VITRINE_FUZZ_CONFIG, name + "/config.json");
    std::atexit([] {
      std::error_code unimportant;
      std::filesystem::remove_all(folder(), unimportant);
    });
    return new std::filesystem::path(name);
  }();
  return *made;
}

void read_safetensors(std::string_view bytes) {
  const auto path = folder() / "model.safetensors";
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size())).flush();
  const auto file = SafetensorsFile::open(path, 1 << 20);
  for (const auto& tensor : file.tensors()) {
    fuzz::law(file.bytes(tensor).size() == tensor.n_bytes, "a tensor's bytes are in the file");
    const auto* found = file.find_tensor(tensor.name);
    fuzz::law(found == &tensor, "a tensor is found by its name");
  }
  (void)load_model_files(folder(), {.n_threads = 1});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input = fuzz::as_text(bytes, size);
  fuzz::answers([&] { input.starts_with("GGUF") ? read_gguf(input) : read_safetensors(input); });
  return 0;
}
