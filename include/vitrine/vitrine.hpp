// All of Vitrine: load a model, hold a session, generate.
//
//   auto model = vitrine::Model::load("model.gguf");
//   vitrine::Session session(model);
//   for (const auto& token : vitrine::generate(session, model->tokenizer().encode("Hello"))) ...
//
// Programs that want less include single headers; every header stands by itself.
#pragma once

#include "vitrine/core/config.hpp"
#include "vitrine/core/error.hpp"
#include "vitrine/core/version.hpp"
#include "vitrine/engine/drafter.hpp"
#include "vitrine/engine/engine.hpp"
#include "vitrine/engine/generate.hpp"
#include "vitrine/engine/memory_plan.hpp"
#include "vitrine/engine/model.hpp"
#include "vitrine/engine/prefix_cache.hpp"
#include "vitrine/engine/session.hpp"
#include "vitrine/engine/speculation.hpp"
#include "vitrine/engine/timings.hpp"
#include "vitrine/model/architecture.hpp"
#include "vitrine/ops/logits.hpp"
#include "vitrine/sample/sampler.hpp"
#include "vitrine/simd/dispatch.hpp"
#include "vitrine/text/chat_request.hpp"
#include "vitrine/text/chat_template.hpp"
#include "vitrine/text/token_search.hpp"
#include "vitrine/text/tokenizer.hpp"
