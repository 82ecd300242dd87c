#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "../errors.hpp"
#include "../wire/itch.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hft {

namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Buffer = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// A file's bytes, piece by piece, as rows of one stock.
class ItchRows {
 public:
  ItchRows(std::uint16_t locate, Ts midnight, std::uint32_t tick, bool lenient)
      : decoder_(locate, midnight, tick), tick_(tick), lenient_(lenient) {
    if (tick == 0) throw ConfigError("tick of an ITCH file is 0, want at least 0.0001");
  }

  std::tuple<std::size_t, std::size_t> fill(const Bytes& bytes, const Buffer& out) {
    const nb::gil_scoped_release unlocked;
    itch::LengthPrefixed frames(bytes.data(), bytes.size());
    auto* rows = reinterpret_cast<Event*>(out.data());
    const std::size_t room = out.size() / sizeof(Event);
    std::size_t count = 0, size = 0;
    while (count < room) {
      const std::size_t at = frames.consumed();
      const std::uint8_t* message = frames.next(size);
      if (message == nullptr) break;
      const itch::Outcome outcome = decoder_.decode(message, size, ++messages_, rows[count]);
      if (outcome == itch::Outcome::ROW)
        ++count;
      else if (outcome != itch::Outcome::NOTHING)
        fault(outcome, message, size, at);
    }
    position_ += frames.consumed();
    return {frames.consumed(), count};
  }

  nb::dict counts() const {
    const itch::Counts& c = decoder_.counts();
    nb::dict out;
    out["messages"] = messages_;
    out["messages of the stock"] = c.messages;
    out["messages on unknown orders"] = c.unknown_orders;
    out["more than an order has"] = c.overfills;
    out["prints rounded"] = c.prints_rounded;
    out["crosses without shares"] = c.empty_crosses;
    out["trades broken later"] = c.broken_trades;
    out["messages unreadable"] = unreadable_;
    return out;
  }
  std::size_t resting() const { return decoder_.resting(); }

 private:
  void fault(itch::Outcome outcome, const std::uint8_t* message, std::size_t size, std::size_t at) {
    if (!lenient_ || outcome == itch::Outcome::OFF_TICK)  // a wrong tick is no damage
      throw DataError("message " + std::to_string(messages_) + " at byte " +
                      std::to_string(position_ + at) + ": " +
                      itch::fault_of(outcome, message, size, tick_));
    ++unreadable_;
  }

  itch::Decoder decoder_;
  std::uint32_t tick_;
  bool lenient_;
  std::int64_t messages_ = 0, unreadable_ = 0;
  std::size_t position_ = 0;  ///< bytes of the file before this piece
};

std::size_t read_directory(itch::Directory& self, const Bytes& bytes) {
  const nb::gil_scoped_release unlocked;
  itch::LengthPrefixed frames(bytes.data(), bytes.size());
  std::size_t size = 0;
  while (const std::uint8_t* message = frames.next(size)) self.read(message, size);
  return frames.consumed();
}

using Stock = std::tuple<std::string, std::size_t, std::int64_t>;

std::vector<Stock> stocks_of(const itch::Directory& self) {
  std::vector<Stock> out;
  for (std::size_t locate = 0; locate < self.stocks().size(); ++locate) {
    const auto& [symbol, messages] = self.stocks()[locate];
    if (!symbol.empty()) out.emplace_back(symbol, locate, messages);
  }
  return out;
}

}  // namespace

void init_itch(nb::module_& m) {
  nb::class_<ItchRows>(m, "ItchRows", "ITCH 5.0 messages behind their lengths, as rows of a stock.")
      .def(nb::init<std::uint16_t, Ts, std::uint32_t, bool>(), "locate"_a, "midnight"_a, "tick"_a,
           "lenient"_a = false,
           "`midnight`: of the day in New York, ns; `tick`: in 1/10,000 dollar; `lenient`: leave "
           "out and count messages that cannot be read.")
      .def("fill", &ItchRows::fill, "data"_a, "buffer"_a,
           "Decode whole messages from the front of `data` into a writable buffer of EVENT bytes; "
           "returns bytes consumed and rows written. Flags lack LAST.")
      .def("counts", &ItchRows::counts)
      .def_prop_ro("resting", &ItchRows::resting, "Orders that rest now.");
  nb::class_<itch::Directory>(m, "ItchDirectory", "Stocks of an ITCH 5.0 file.")
      .def(nb::init<>())
      .def("read", &read_directory, "data"_a, "Bytes of whole messages consumed from the front.")
      .def("stocks", &stocks_of, "(symbol, locate, messages of book, prints and trading actions).");
}

}  // namespace hft
