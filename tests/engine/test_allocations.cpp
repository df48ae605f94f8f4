// No allocation per generated token: operator new is counted while a session decodes and a sampler draws.
// Not under sanitizers, which bring allocators of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <atomic>
#include <cstdlib>
#include <new>

#include "support/models.hpp"

namespace {
std::atomic<std::int64_t> n_allocations{0};

void* counted(std::size_t size, std::size_t alignment) {
  ++n_allocations;
  void* memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t size) { return counted(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) { return counted(size, std::size_t(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

using namespace support;

TEST_CASE("decoding and sampling allocate nothing per token") {
  for (const char* file : {"tiny/gemma3/model-f32.gguf", "quantmodel/llama256/model-Q4_K_M.gguf"}) {
    INFO(file);
    Session session(model(data(file)), {.n_threads = 2});
    auto generation = generate(session, {5, 6, 7, 8},
                               {.sampling = {.temperature = 1, .top_k = 40, .top_p = 0.9, .seed = 1},
                                .max_new_tokens = 60,
                                .ignore_end = true});
    for (int i = 0; i < 4; ++i) REQUIRE(generation.next());  // the first tokens may warm something up
    const auto before = n_allocations.load();
    for (int i = 0; i < 50; ++i) REQUIRE(generation.next());
    CHECK(n_allocations.load() == before);
  }
}

#endif
