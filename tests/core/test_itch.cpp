#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "wire/itch.hpp"

using namespace hft;
using namespace hft::itch;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const std::string& hex) {
  Bytes out;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    out.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

void put(Bytes& out, std::uint64_t value, std::size_t width) {
  for (std::size_t i = width; i-- > 0;) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

Bytes header(char type, std::uint16_t locate, std::uint64_t ns) {
  Bytes m{static_cast<std::uint8_t>(type)};
  put(m, locate, 2);
  put(m, 0, 2);
  put(m, ns, 6);
  return m;
}

Bytes add(std::uint16_t locate, std::uint64_t ref, char side, std::uint32_t shares,
          std::uint32_t price) {
  Bytes m = header('A', locate, 1000);
  put(m, ref, 8);
  m.push_back(static_cast<std::uint8_t>(side));
  put(m, shares, 4);
  for (const char c : std::string("TEST    ")) m.push_back(static_cast<std::uint8_t>(c));
  put(m, price, 4);
  return m;
}

Bytes on_order(char type, std::uint16_t locate, std::uint64_t ref, std::uint32_t shares = 0) {
  Bytes m = header(type, locate, 2000);
  put(m, ref, 8);
  if (type == 'X' || type == 'E') put(m, shares, 4);
  if (type == 'E') put(m, 77, 8);
  return m;
}

struct Read {
  Outcome outcome;
  Event row;
};

Read read(Decoder& d, const Bytes& m) {
  Event row{};
  const Outcome outcome = d.decode(m.data(), m.size(), 5, row);
  return {outcome, row};
}

constexpr Ts kMidnight = 1'692'676'800'000'000'000;  // 2023-08-22 in New York

}  // namespace

TEST_CASE("captured messages decode to what was captured") {
  Decoder d(5528, kMidnight, 100);
  Read r = read(d, bytes_of("41159800001f1aced85306000000000166b53e420000064049564f4f2020202000"
                            "0d55ac"));
  CHECK(r.outcome == Outcome::ROW);
  CHECK(r.row.kind == Kind::ADD);
  CHECK(r.row.ts_event == kMidnight + 34'199'999'894'278);
  CHECK(r.row.ts_recv == r.row.ts_event);
  CHECK(r.row.order_id == 23508286);
  CHECK(r.row.side == BUY);
  CHECK(r.row.qty == 1600);
  CHECK(r.row.price == 8739);
  CHECK(r.row.seq == 5);
}

TEST_CASE("a hidden execution is a print that names no side and touches no order") {
  Decoder d(4499, 0, 100);
  const Read r = read(d, bytes_of("50119300021f1acee462a900000000000000004200000064474f4f474c2020"
                                  "20001399f8000000000003e642"));
  CHECK(r.row.kind == Kind::TRADE);
  CHECK(r.row.side == NO_SIDE);
  CHECK(r.row.order_id == 0);
  CHECK(r.row.qty == 100);
  CHECK(r.row.price == 12846);
}

TEST_CASE("a cross without shares is no print, one with shares is") {
  Decoder d(983, 0, 100);
  CHECK(read(d, bytes_of("5103d700011f1acee1500300000000000000004241432d512020200000000000000000"
                         "0003e63e4f"))
            .outcome == Outcome::NOTHING);
  CHECK(d.counts().empty_crosses == 1);
}

TEST_CASE("an execution takes its price and side from the order, and removes it at zero") {
  Decoder d(7, 0, 100);
  read(d, add(7, 11, 'S', 300, 1'000'100));
  Read r = read(d, on_order('E', 7, 11, 100));
  CHECK(r.row.kind == Kind::EXECUTE);
  CHECK(r.row.side == SELL);
  CHECK(r.row.price == 10001);
  CHECK(r.row.qty == 100);
  CHECK(r.row.ref_id == 77);
  CHECK(r.row.flags == (SEEN_BY_VENUE | SEEN_BY_US));
  CHECK(d.resting() == 1);
  read(d, on_order('E', 7, 11, 200));
  CHECK(d.resting() == 0);
}

TEST_CASE("an execution at another price that is not printable is no print") {
  Decoder d(5092, 0, 100);
  const Bytes c =
      bytes_of("4313e400011f1aceebb03b00000000013113de0000133e000000000003e65d4e00036e20");
  CHECK(read(d, c).row.kind == Kind::CANCEL);  // of an order that is not known
  CHECK(d.counts().unknown_orders == 1);
  read(d, add(5092, 19993566, 'B', 5000, 224'900));
  const Read r = read(d, c);
  CHECK(r.row.kind == Kind::EXECUTE);
  CHECK(r.row.price == 2248);
  CHECK(r.row.qty == 4926);
  CHECK((r.row.flags & NO_PRINT) != 0);
}

TEST_CASE("a printable execution of an unknown order is a print all the same") {
  Decoder d(5092, 0, 100);
  Bytes c = bytes_of("4313e400011f1aceebb03b00000000013113de0000133e000000000003e65d4e00036e20");
  c[31] = 'Y';
  CHECK(read(d, c).row.kind == Kind::TRADE);
}

TEST_CASE("a replace keeps the side, takes the new number and the new size") {
  Decoder d(7, 0, 100);
  read(d, add(7, 11, 'B', 300, 1'000'000));
  Bytes m = header('U', 7, 3000);
  put(m, 11, 8);
  put(m, 12, 8);
  put(m, 50, 4);
  put(m, 999'900, 4);
  const Read r = read(d, m);
  CHECK(r.row.kind == Kind::REPLACE);
  CHECK(r.row.side == BUY);
  CHECK(r.row.order_id == 11);
  CHECK(r.row.ref_id == 12);
  CHECK(r.row.price == 9999);
  CHECK(r.row.qty == 50);
  CHECK(read(d, on_order('D', 7, 11)).row.side == NO_SIDE);
  CHECK(d.counts().unknown_orders == 1);
  CHECK(read(d, on_order('D', 7, 12)).row.price == 9999);
  CHECK(d.resting() == 0);
}

TEST_CASE("a cancel of no shares takes none, where a delete takes all") {
  Decoder d(7, 0, 100);
  read(d, add(7, 11, 'B', 5, 1'000'000));
  CHECK(read(d, on_order('X', 7, 11, 0)).outcome == Outcome::NOTHING);
  CHECK(d.resting() == 1);
  const Read gone = read(d, on_order('D', 7, 11));
  CHECK(gone.row.kind == Kind::CANCEL);
  CHECK(gone.row.qty == 0);
  CHECK(d.resting() == 0);
}

TEST_CASE("another stock's messages give nothing, system events concern all") {
  Decoder d(7, 0, 100);
  CHECK(read(d, add(8, 11, 'B', 1, 100)).outcome == Outcome::NOTHING);
  CHECK(d.counts().messages == 0);
  const Read r = read(d, bytes_of("53000000001f1acedb02f051"));
  CHECK(r.row.kind == Kind::STATUS);
  CHECK(r.row.ref_id == static_cast<std::int64_t>(Trading::OPEN));
}

TEST_CASE("trading state: closed outside system hours, halted where no action came before them") {
  Decoder d(7, 0, 100);
  const auto system = [&](char code) {
    Bytes m = header('S', 0, 1);
    m.push_back(static_cast<std::uint8_t>(code));
    return static_cast<Trading>(read(d, m).row.ref_id);
  };
  const auto action = [&](char state) {
    Bytes m = header('H', 7, 1);
    m.resize(25, ' ');
    m[19] = static_cast<std::uint8_t>(state);
    return static_cast<Trading>(read(d, m).row.ref_id);
  };
  CHECK(system('O') == Trading::CLOSED);
  CHECK(system('S') == Trading::HALT);
  CHECK(action('Q') == Trading::AUCTION);
  CHECK(action('T') == Trading::OPEN);
  CHECK(action('P') == Trading::HALT);
  CHECK(action('T') == Trading::OPEN);
  CHECK(system('M') == Trading::OPEN);
  CHECK(system('E') == Trading::CLOSED);
  CHECK(system('C') == Trading::CLOSED);
}

TEST_CASE("faults are told from messages that matter to nobody") {
  Decoder d(7, 0, 100);
  Bytes m = add(7, 11, 'B', 1, 5021);
  CHECK(read(d, m).outcome == Outcome::OFF_TICK);
  CHECK(fault_of(Outcome::OFF_TICK, m.data(), m.size(), 100).find("0.5021") != std::string::npos);
  CHECK(read(d, add(7, 11, 'X', 1, 5000)).outcome == Outcome::BAD_SIDE);
  m.pop_back();
  CHECK(read(d, m).outcome == Outcome::TOO_SHORT);
  m[0] = 'Z';
  CHECK(read(d, m).outcome == Outcome::UNKNOWN_TYPE);
  CHECK(read(d, {}).outcome == Outcome::TOO_SHORT);
  CHECK(read(d, bytes_of("4e04ea00001f1aceceff2f42495a44202020204e")).outcome == Outcome::NOTHING);
}

TEST_CASE("frames: a message that is cut waits for its rest") {
  Bytes file;
  const Bytes m = add(7, 11, 'B', 1, 100);
  for (int i = 0; i < 2; ++i) {
    put(file, m.size(), 2);
    file.insert(file.end(), m.begin(), m.end());
  }
  for (std::size_t cut = 0; cut <= file.size(); ++cut) {
    const Bytes part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(cut));
    LengthPrefixed frames(part.data(), part.size());
    std::size_t size = 0, count = 0;
    while (frames.next(size) != nullptr) ++count;
    CHECK(count == cut / (m.size() + 2));
    CHECK(frames.consumed() == count * (m.size() + 2));
  }
}

TEST_CASE("resting orders agree with a map on random puts and erases") {
  std::mt19937 rng(3);
  RestingOrders orders;
  std::map<std::uint64_t, std::uint32_t> truth;
  for (int i = 0; i < 60'000; ++i) {
    const std::uint64_t ref = rng() % 9'000;
    if (rng() % 3 != 0) {
      const auto shares = static_cast<std::uint32_t>(1 + rng() % 100);
      orders.put({ref, 1, shares, BUY});
      truth[ref] = shares;
    } else if (RestingOrder* order = orders.find(ref)) {
      orders.erase(order);
      CHECK(truth.erase(ref) == 1);
    } else {
      CHECK(truth.count(ref) == 0);
    }
  }
  CHECK(orders.size() == truth.size());
  for (const auto& [ref, shares] : truth) {
    REQUIRE(orders.find(ref) != nullptr);
    CHECK(orders.find(ref)->shares == shares);
  }
}

TEST_CASE("damaged bytes give faults or rows, never a read outside the message") {
  std::mt19937 rng(9);
  const Bytes kinds[] = {add(7, 11, 'B', 5, 1'000'000), on_order('E', 7, 11, 2),
                         on_order('X', 7, 11, 2), on_order('D', 7, 11),
                         bytes_of("53000000001f1acedb02f051")};
  Decoder d(7, 0, 100);
  Directory directory;
  for (int i = 0; i < 50'000; ++i) {
    Bytes m = kinds[rng() % std::size(kinds)];
    for (int flips = static_cast<int>(rng() % 4); flips > 0; --flips)
      m[rng() % m.size()] ^= static_cast<std::uint8_t>(1U << (rng() % 8));
    m.resize(rng() % 8 == 0 ? rng() % (m.size() + 1) : m.size());
    m.shrink_to_fit();  // so that the sanitizer sees a read beyond the end
    const Read r = read(d, m);
    if (r.outcome > Outcome::ROW) CHECK_FALSE(fault_of(r.outcome, m.data(), m.size(), 100).empty());
    directory.read(m.data(), m.size());
    LengthPrefixed frames(m.data(), m.size());
    std::size_t size = 0;
    while (frames.next(size) != nullptr) CHECK(frames.consumed() <= m.size());
  }
}
