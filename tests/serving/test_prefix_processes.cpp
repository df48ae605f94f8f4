// A folder of prefixes that several processes read and write at once: no hit is damaged, whatever happens to them.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "support/bits.hpp"
#include "support/temporary_folder.hpp"

using namespace support;

namespace {

// What a process that this test starts is to do, in its environment: "folder first step n".
constexpr const char* variable = "VITRINE_TEST_PREFIX_PROCESS";
constexpr int n_prompts = 12;

std::vector<Token> prompt(int seed) {
  std::vector<Token> result;
  for (int i = 0; i < 200; ++i) result.push_back(Token((i * 31 + 7 * seed) % 256));
  return result;
}

// Each request opens the folder anew, so that nothing comes from memory.
PrefixCache::Counts request(const fs::path& folder, int seed) {
  const auto prefixes = std::make_shared<PrefixCache>(*tiny(), PrefixOptions{.folder = folder});
  Session session(tiny(), {.n_threads = 1, .cache = CacheKind::paged, .prefixes = prefixes}),
      plain(tiny(), {.n_threads = 1});
  CHECK(same_bits(session.prefill(prompt(seed)), plain.prefill(prompt(seed))));
  return prefixes->counts();
}

// This program once more, running the hidden test below. (Not by fork(): threads of OpenMP do not survive it.)
pid_t start(const fs::path& folder, int first, int step, int n) {
  std::ostringstream words;
  words << variable << '=' << folder.string();
  for (const int number : {first, step, n}) words << ' ' << number;
  const std::string task = words.str();
  const char* const arguments[] = {"test_serving", "one of several processes with a folder of prefixes", nullptr};
  std::vector<char*> environment{const_cast<char*>(task.c_str())};
  for (char** entry = environ; *entry; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  pid_t id = 0;
  REQUIRE(posix_spawn(&id, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(arguments), environment.data()) == 0);
  return id;
}

}  // namespace

TEST_CASE("one of several processes with a folder of prefixes", "[.]") {
  const char* const task = std::getenv(variable);
  if (!task) return;  // only when started by the test below
  std::istringstream words(task);
  std::string folder;
  int first = 0, step = 0, n = 0;
  words >> folder >> first >> step >> n;
  std::int64_t n_read = 0, n_refused = 0;
  for (int i = 0, seed = first; i < n; ++i, seed += step) {
    const auto counts = request(folder, seed);
    n_read += counts.n_read;
    n_refused += counts.n_refused;
  }
  CHECK(n_refused == 0);
  std::ofstream(folder + "/read-by-" + std::to_string(first)) << n_read;
}

TEST_CASE("processes that share a folder of prefixes read what the others write, and never half of it") {
  const TemporaryFolder folder("prefix-processes");
  fs::create_directories(folder.path);
  // One goes through the prompts upwards, one downwards: what either reads the other has written.
  const pid_t up = start(folder.path, 0, 1, n_prompts), down = start(folder.path, n_prompts - 1, -1, n_prompts);
  for (const pid_t id : {up, down}) {
    int status = -1;
    REQUIRE(waitpid(id, &status, 0) == id);
    CHECK(status == 0);
  }
  std::int64_t n_read = 0;
  for (const int first : {0, n_prompts - 1}) {
    std::int64_t of_one = 0;
    CHECK(bool(std::ifstream(folder.path / ("read-by-" + std::to_string(first))) >> of_one));
    n_read += of_one;
  }
  CHECK(n_read >= 3);
  for (const auto& file : folder.files()) CHECK(file.extension() != ".part");

  // One that is killed in the middle leaves no damaged file.
  const TemporaryFolder other("prefix-killed");
  fs::create_directories(other.path);
  const pid_t killed = start(other.path, 0, 1, 100'000);
  int status = 0;
  while (other.files().size() < 5) REQUIRE(waitpid(killed, &status, WNOHANG) == 0);
  kill(killed, SIGKILL);
  REQUIRE(waitpid(killed, &status, 0) == killed);
  CHECK(WIFSIGNALED(status));
  std::int64_t n_found = 0;
  for (int seed = 0; seed < 3; ++seed) {
    const auto counts = request(other.path, seed);
    n_found += counts.n_read;
    CHECK(counts.n_refused == 0);
  }
  CHECK(n_found >= 4);
}
