// A slow start or a slow stream? What is lost before the first token and what after it, from the log of a run:
//
//   TTFT = a + b * input tokens,   total = TTFT + c * output tokens,   each by least squares
//
// At the mean request the start takes a + b * (mean input), the stream c * (mean output).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "common/least_squares.hpp"
#include "common/program.hpp"
#include "common/svg.hpp"
#include "common/table.hpp"

namespace example {

struct LatencyVerdict {
  explicit LatencyVerdict(const std::vector<json>& log) {
    const auto column = [&](const char* key) {
      std::vector<double> values;
      for (const auto& line : log) values.push_back(line[key].get<double>());
      return values;
    };
    in = column("input_tokens"), out = column("output_tokens"), ttft = column("ttft_ms"), total = column("total_ms");
    auto decode = total;
    for (std::size_t i = 0; i < decode.size(); ++i) decode[i] -= ttft[i];
    start = least_squares(in, ttft);
    stream = {mean(ttft), slope_from_zero(out, decode)};
    start_ms = start.at(mean(in));  // of a request of the mean size, as the lines have it
    stream_ms = stream.slope * mean(out);
    retrieval = mean(column("retrieval_ms")) + mean(column("rerank_ms"));
    queue = mean(column("queue_ms"));
    prefill = mean(column("prefill_ms"));
  }
  const char* kind() const { return start_ms > stream_ms ? "slow start" : "slow stream"; }
  double factor() const { return std::max(start_ms, stream_ms) / std::max(1e-9, std::min(start_ms, stream_ms)); }
  std::string words() const {
    const auto share = [&](double part) { return percent(part / start_ms); };
    return vitrine::concat(
        start_ms > stream_ms ? "Slow start" : "Slow stream", ": a request of ", fixed(mean(in), 0), " tokens in and ",
        fixed(mean(out), 0), " out takes ", fixed(start_ms, 0), " ms until its first token and ", fixed(stream_ms, 0),
        " ms from there, a factor of ", rounded(factor()), ". Of the start, retrieval takes ", share(retrieval),
        ", the queue ", share(queue), ", prefill ", share(prefill), "; each further token in costs ",
        fixed(start.slope, 2), " ms (R² ", fixed(start.r2, 2), "), each token out ", fixed(stream.slope, 2), " ms.");
  }
  json to_json() const {
    return {{"kind", kind()},
            {"factor", factor()},
            {"start_ms", start_ms},
            {"stream_ms", stream_ms},
            {"start_without_input_ms", start.at_zero},
            {"ms_per_input_token", start.slope},
            {"ms_per_output_token", stream.slope},
            {"r2_of_start", start.r2},
            {"mean_retrieval_ms", retrieval},
            {"mean_queue_ms", queue},
            {"mean_prefill_ms", prefill}};
  }
  std::string svg_of_start() const {
    return scatter("Until the first token, and its line of least squares", "input tokens", "TTFT, ms", in, ttft, start);
  }
  std::string svg_of_total() const {
    return scatter(vitrine::concat("The whole answer; line: mean start, ", fixed(stream.slope, 2), " ms per token"),
                   "output tokens", "total latency, ms", out, total, stream);
  }

  std::vector<double> in, out, ttft, total;
  Line start, stream;
  double start_ms, stream_ms, retrieval, queue, prefill;
};

}  // namespace example
