// The machine's limits: read bandwidth, integer and float peaks, clock.
#include <string>

#include "common/program.hpp"
#include "common/table.hpp"
#include "machine/machine.hpp"
#include "vitrine/core/parallel.hpp"
#include "vitrine/simd/dispatch.hpp"

using example::fixed, example::percent, example::scaled;

static example::json to_json(const bench::Peak& peak) {
  return {{"instruction", peak.instruction},
          {"ops_per_second", peak.ops_per_second},
          {"per_clock", peak.per_clock},
          {"deviation_from_ports", peak.deviation}};
}

static example::json to_json(const bench::Machine& machine) {
  example::json out = {{"cpu", bench::cpu_name()},
                       {"threads", machine.n_threads},
                       {"clock_hz", machine.clock_hz},
                       {"read_bytes_per_second", machine.read_bytes_per_second},
                       {"read_buffer_bytes", machine.read_buffer_bytes}};
  for (const auto& reader : machine.readers)
    out["readers"].push_back({{"kernel", reader.name}, {"bytes_per_second", reader.bytes_per_second}});
  for (const auto& isa : machine.isas)
    out["isas"].push_back(
        {{"isa", vitrine::isa_name(isa.isa)}, {"integer", to_json(isa.integer)}, {"float", to_json(isa.real)}});
  return out;
}

static void print_machine(const bench::Machine& machine) {
  std::cout << bench::cpu_name() << ", " << machine.n_threads << " threads, clock " << scaled(machine.clock_hz, "Hz")
            << "\n\n";
  example::Table readers({"read bandwidth, " + scaled(double(machine.read_buffer_bytes), "B"), "rate"});
  for (const auto& reader : machine.readers) readers.row({reader.name, scaled(reader.bytes_per_second, "B/s")});
  readers.print();
  std::cout << '\n';
  example::Table peaks({"peak", "instruction", "rate", "per clock", "off a whole number"}, 2);
  for (const auto& isa : machine.isas) {
    for (const auto* peak : {&isa.integer, &isa.real})
      peaks.row({std::string(vitrine::isa_name(isa.isa)) + (peak == &isa.integer ? " integer" : " float"),
                 peak->instruction, scaled(peak->ops_per_second, "op/s"), fixed(peak->per_clock, 2),
                 percent(peak->deviation)});
  }
  peaks.print();
}

static void show(const example::Arguments& args) {
  const int threads = args.threads() > 0 ? args.threads() : vitrine::available_threads();
  const auto machine = bench::measure_machine(
      {threads, std::size_t(args.get<int>("buffer", 64, 1 << 20)) << 20, args.get<int>("repetitions", 1, 1000)});
  if (args.json()) return example::print_json({{"machine", to_json(machine)}});
  print_machine(machine);
}

int main(int argc, char** argv) {
  const auto options = [](cxxopts::OptionAdder add) {
    add("buffer", "megabytes read for the bandwidth", cxxopts::value<int>()->default_value("512"), "MB");
    add("repetitions", "how often each thing is measured", cxxopts::value<int>()->default_value("5"), "N");
  };
  return example::run(argc, argv, {"vitrine_bench", "Speed beside the machine's limits", options, show});
}
