// Finding the parts of documents that a question is about: BM25, a second look at the best, duplicates left out.
//
//   score(q, d) = sum over the words w of q of  idf(w) * n (k1 + 1) / (n + k1 (1 - b + b |d| / mean |d|))
//   idf(w) = ln(1 + (N - df + 0.5) / (df + 0.5)),   n = count of w in d,   k1 = 1.2, b = 0.75
//
// Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework"; for duplicates Broder 1997, "On the resemblance
// and containment of documents".
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vitrine/core/error.hpp"

namespace example {

// Runs of letters, digits and bytes beyond ASCII, in lower case.
inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(i < text.size() ? text[i] : ' ');
    if (byte >= 0x80 || std::isalnum(byte)) {
      word += byte < 0x80 ? char(std::tolower(byte)) : char(byte);
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

struct Chunk {
  std::string source, text;
  std::vector<std::string> words;
};

// Whole paragraphs, as many as fit into `n_words`; a longer one is a chunk of its own.
inline void add_chunks(std::vector<Chunk>& chunks, const std::string& source, const std::string& text,
                       std::size_t n_words) {
  Chunk chunk{source, {}, {}};
  const auto close = [&] {
    if (!chunk.words.empty()) chunks.push_back(std::move(chunk));
    chunk = {source, {}, {}};
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", begin), text.size());
    const auto paragraph = text.substr(begin, end - begin);
    const auto words = words_of(paragraph);
    if (chunk.words.size() + words.size() > n_words) close();
    if (!words.empty()) chunk.text += (chunk.text.empty() ? "" : "\n\n") + paragraph;
    chunk.words.insert(chunk.words.end(), words.begin(), words.end());
    begin = end + 2;
  }
  close();
}

// Of all .txt and .md files in a folder and those below, by name.
inline std::vector<Chunk> read_chunks(const std::filesystem::path& folder, std::size_t n_words) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if ((entry.path().extension() == ".txt" || entry.path().extension() == ".md") && entry.is_regular_file())
        files.push_back(entry.path());
  } catch (const fs::filesystem_error& error) {
    throw vitrine::Error(vitrine::ErrorKind::io, vitrine::concat("--documents: cannot read ", error.path1().string(),
                                                                 ": ", error.code().message()));
  }
  std::sort(files.begin(), files.end());
  std::vector<Chunk> chunks;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    vitrine::check(bool(file), vitrine::ErrorKind::io, "--documents: cannot read ", path.string());
    add_chunks(chunks, fs::relative(path, folder).string(), {std::istreambuf_iterator<char>(file), {}}, n_words);
  }
  return chunks;
}

struct Hit {
  std::size_t chunk;
  double score, bm25;  // what it is ranked by now, and was at first
};
// The best first; of equal ones the earlier chunk.
inline void sort_hits(std::vector<Hit>& hits) {
  std::sort(hits.begin(), hits.end(),
            [](const Hit& a, const Hit& b) { return a.score != b.score ? a.score > b.score : a.chunk < b.chunk; });
}

class Index {
 public:
  explicit Index(std::vector<Chunk> chunks) : chunks_(std::move(chunks)) {
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      n_words_ += double(chunks_[i].words.size());
      std::unordered_map<std::string, int> counts;
      for (const auto& word : chunks_[i].words) ++counts[word];
      for (const auto& [word, n] : counts) postings_[word].emplace_back(i, n);
    }
  }
  const Chunk& chunk(std::size_t index) const { return chunks_[index]; }
  std::size_t size() const { return chunks_.size(); }

  double idf(const std::string& word) const {
    const auto found = postings_.find(word);
    const double df = found == postings_.end() ? 0 : double(found->second.size());
    return std::log1p((double(size()) - df + 0.5) / (df + 0.5));
  }

  // The n best chunks that have any word of the question.
  std::vector<Hit> search(const std::string& question, std::size_t n) const {
    constexpr double k1 = 1.2, b = 0.75;
    std::vector<double> scores(size());
    for (const auto& word : words_of(question)) {
      const auto found = postings_.find(word);
      if (found == postings_.end()) continue;
      for (const auto& [i, count] : found->second) {
        const double length = double(chunks_[i].words.size()) * double(size()) / n_words_;
        scores[i] += idf(word) * count * (k1 + 1) / (count + k1 * (1 - b + b * length));
      }
    }
    std::vector<Hit> hits;
    for (std::size_t i = 0; i < size(); ++i)
      if (scores[i] > 0) hits.push_back({i, scores[i], scores[i]});
    sort_hits(hits);
    hits.resize(std::min(hits.size(), n));
    return hits;
  }

  // A second look at few: the share of the question's words that are there at all, and of its pairs of neighbours that
  // are neighbours there, by idf. What says one word many times falls behind what says them all.
  std::vector<Hit> rerank(const std::string& question, std::vector<Hit> hits) const {
    const auto words = words_of(question);
    for (auto& hit : hits) {
      const auto& in = chunks_[hit.chunk].words;
      const std::set<std::string> there(in.begin(), in.end());
      std::set<std::pair<std::string, std::string>> pairs;
      for (std::size_t i = 1; i < in.size(); ++i) pairs.emplace(in[i - 1], in[i]);
      double had = 0, all = 0;
      for (std::size_t i = 0; i < words.size(); ++i) {
        all += idf(words[i]);
        if (there.contains(words[i])) had += idf(words[i]);
        if (i > 0 && pairs.contains({words[i - 1], words[i]})) had += (idf(words[i - 1]) + idf(words[i])) / 2;
      }
      hit.score = all > 0 ? had / all : 0;
    }
    sort_hits(hits);
    return hits;
  }

  // Without those of which a better one shares most runs of three words: |A and B| / |A or B| >= 0.8.
  std::vector<Hit> without_duplicates(const std::vector<Hit>& hits) const {
    using Shingles = std::set<std::vector<std::string>>;
    std::vector<Hit> kept;
    std::vector<Shingles> of_kept;
    for (const auto& hit : hits) {
      const auto& words = chunks_[hit.chunk].words;
      Shingles shingles;
      for (std::size_t i = 0; i + std::min<std::size_t>(3, words.size()) <= words.size(); ++i)
        shingles.insert(
            {words.begin() + std::ptrdiff_t(i), words.begin() + std::ptrdiff_t(std::min(i + 3, words.size()))});
      const bool again = std::any_of(of_kept.begin(), of_kept.end(), [&](const Shingles& other) {
        const auto both =
            std::count_if(shingles.begin(), shingles.end(), [&](const auto& s) { return other.contains(s); });
        return double(both) >= 0.8 * double(shingles.size() + other.size() - std::size_t(both));
      });
      if (again) continue;
      kept.push_back(hit);
      of_kept.push_back(std::move(shingles));
    }
    return kept;
  }

 private:
  std::vector<Chunk> chunks_;
  std::unordered_map<std::string, std::vector<std::pair<std::size_t, int>>> postings_;  // word: chunk, count
  double n_words_ = 0;
};

}  // namespace example
