// What the tests of tokenizers share.
#pragma once

#include <pthread.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "vitrine/text/load_tokenizer.hpp"

namespace text_tools {

inline std::string data(const std::string& name) { return VITRINE_TEST_DATA "/" + name; }

inline std::string read_text(const std::string& name) {
  std::ifstream file(data(name), std::ios::binary);
  REQUIRE(file);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

inline std::string repeated(const std::string& text, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += text;
  return out;
}

inline std::vector<vitrine::Token> plain(const vitrine::Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {.add_special = false, .parse_special = false});
}
inline std::vector<vitrine::Token> parsed(const vitrine::Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {.add_special = false, .parse_special = true});
}

inline std::string bytes_of(const vitrine::Tokenizer& tokenizer, const std::vector<vitrine::Token>& ids) {
  std::string out;
  for (const auto id : ids) out += tokenizer.piece(id);
  return out;
}

// The message of the Error that `call` throws; a failure if it throws none.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const vitrine::Error& error) {
    return error.what();
  }
  FAIL("no error was thrown");
  return {};
}

// Runs `call`, which must not throw, on a thread with so many bytes of stack.
inline void on_little_stack(std::size_t n_bytes, std::function<void()> call) {
  const auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_t thread;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, n_bytes) == 0);
  REQUIRE(pthread_create(&thread, &attributes, run, &call) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
}

}  // namespace text_tools
