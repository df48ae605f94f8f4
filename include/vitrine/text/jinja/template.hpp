// Templates in the language of Jinja 3.1, in which models' chat templates are written: what transformers makes of them,
// byte for byte (its environment: sandboxed and immutable, trim_blocks, lstrip_blocks, break and continue, `generation`
// blocks, tojson without HTML escapes, raise_exception, strftime_now).
//
//   const jinja::Template greeting("Hello {{ name|title }}!");
//   greeting.render({{"name", "ada"}}).text.bytes()            // "Hello Ada!"
//
// A template sees the variables it is given and nothing else: there is no way to files, to other templates or to the
// program. Tags, filters and tests that are not known are errors when it is loaded. Its work, memory and nesting are
// bounded: parsing and rendering use at most some 400 KiB of the thread's stack. A Template is immutable; any number of
// threads may render it.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrine/core/config.hpp"
#include "vitrine/text/jinja/marked_text.hpp"
#include "vitrine/text/jinja/template_error.hpp"
#include "vitrine/text/jinja/value.hpp"

VITRINE_NAMESPACE_BEGIN

namespace jinja {

struct RenderLimits {
  std::uint64_t steps = 500000;            // and 16 for each byte of the variables
  std::uint64_t bytes = 64 * 1024 * 1024;  // made in all, and 64 for each byte of the variables
};

std::tm local_time();

struct RenderOptions {
  RenderLimits limits{};
  // What strftime_now shows; its date and time of day count. Nothing: the function is undefined.
  std::function<std::tm()> clock = local_time;
};

struct Rendering {
  MarkedText text;
  bool used_clock = false;  // another time gives another text, and a cached prefix is lost
};

class Template {
 public:
  // Throws TemplateError: bad_file for what is no template, unsupported for what is not known here, limit_exceeded for
  // one of more than a megabyte or too deep.
  explicit Template(std::string source);

  // Throws TemplateError: refused with the template's own words if it called raise_exception, limit_exceeded,
  // bad_argument for anything else that went wrong (in Python: an exception).
  Rendering render(const std::vector<std::pair<std::string, Value>>& variables,
                   const RenderOptions& options = {}) const;

  const std::string& source() const;               // with line ends as \n
  bool mentions(std::string_view variable) const;  // reads or sets a variable of this name

 private:
  struct Parsed;
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace jinja

VITRINE_NAMESPACE_END

#ifdef VITRINE_HEADER_ONLY
#include "vitrine/text/jinja/template.inl.hpp"
#endif
