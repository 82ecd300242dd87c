#include "itch.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "../rng.hpp"

namespace hft::itch {

namespace {

constexpr std::array<std::uint8_t, 256> least_sizes() {
  std::array<std::uint8_t, 256> sizes{};
  constexpr struct {
    char type;
    std::uint8_t size;
  } kSizes[] = {{'S', 12}, {'R', 39}, {'H', 25}, {'Y', 20}, {'L', 26}, {'V', 35},
                {'W', 12}, {'K', 28}, {'J', 35}, {'h', 21}, {'A', 36}, {'F', 40},
                {'E', 31}, {'C', 36}, {'X', 23}, {'D', 19}, {'U', 35}, {'P', 44},
                {'Q', 40}, {'B', 19}, {'I', 50}, {'N', 20}, {'O', 48}};
  for (const auto& [type, size] : kSizes) sizes[static_cast<std::uint8_t>(type)] = size;
  return sizes;
}
constexpr auto kLeastSize = least_sizes();

std::uint16_t u16(const std::uint8_t* m, std::size_t at) {
  return big_endian<std::uint16_t>(m + at);
}
std::uint32_t u32(const std::uint8_t* m, std::size_t at) {
  return big_endian<std::uint32_t>(m + at);
}
std::uint64_t u64(const std::uint8_t* m, std::size_t at) {
  return big_endian<std::uint64_t>(m + at);
}
std::uint64_t ref_of(const std::uint8_t* m) { return u64(m, 11); }

Ns since_midnight(const std::uint8_t* m) {
  return static_cast<Ns>(std::uint64_t{u16(m, 5)} << 32 | u32(m, 7));
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
std::int64_t id(std::uint64_t ref) { return static_cast<std::int64_t>(ref); }

}  // namespace

std::size_t RestingOrders::slot_of(std::uint64_t ref) const noexcept {
  return mix64(ref) & (slots_.size() - 1);
}

RestingOrder* RestingOrders::find(std::uint64_t ref) noexcept {
  for (std::size_t i = slot_of(ref); slots_[i].shares != 0; i = (i + 1) & (slots_.size() - 1))
    if (slots_[i].ref == ref) return &slots_[i];
  return nullptr;
}

void RestingOrders::put(const RestingOrder& order) {
  if (RestingOrder* known = find(order.ref)) {
    *known = order;
    return;
  }
  if (2 * (size_ + 1) > slots_.size()) grow();
  std::size_t i = slot_of(order.ref);
  while (slots_[i].shares != 0) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = order;
  ++size_;
}

void RestingOrders::erase(RestingOrder* order) noexcept {
  const std::size_t mask = slots_.size() - 1;
  auto hole = static_cast<std::size_t>(order - slots_.data());
  for (std::size_t i = (hole + 1) & mask; slots_[i].shares != 0; i = (i + 1) & mask) {
    // An order may fill the hole unless its own slot lies behind it, on the way to where it is.
    if (((i - slot_of(slots_[i].ref)) & mask) < ((i - hole) & mask)) continue;
    slots_[hole] = slots_[i];
    hole = i;
  }
  slots_[hole] = {};
  --size_;
}

void RestingOrders::grow() {
  std::vector<RestingOrder> old(2 * slots_.size());
  old.swap(slots_);
  size_ = 0;
  for (const RestingOrder& order : old)
    if (order.shares != 0) put(order);
}

Outcome Decoder::decode(const std::uint8_t* m, std::size_t size, std::int64_t seq, Event& row) {
  const std::size_t least = size > 0 ? kLeastSize[m[0]] : 1;
  if (least == 0) return Outcome::UNKNOWN_TYPE;
  if (size < least) return Outcome::TOO_SHORT;
  if (locate_of(m) != locate_ && m[0] != 'S') return Outcome::NOTHING;

  ++counts_.messages;
  row = {};
  row.ts_event = row.ts_recv = midnight_ + since_midnight(m);
  row.seq = seq;
  row.flags = SEEN_BY_VENUE | SEEN_BY_US;
  switch (m[0]) {
    case 'A':
    case 'F':
      return add(m, row);
    case 'E':
    case 'C':
      return execute(m, row);
    case 'X':  // of a row, 0 lots would be all that is left
      return u32(m, 19) == 0 ? Outcome::NOTHING : cancel(m, u32(m, 19), row);
    case 'D':
      return cancel(m, 0, row);
    case 'U':
      return replace(m, row);
    case 'P':
      return print(u32(m, 20), u32(m, 32), row);
    case 'Q':
      return print(u64(m, 11), u32(m, 27), row);
    case 'S':
      return system_event(m[11], row);
    case 'H':
      return trading_action(m[19], row);
    case 'h':
      if (m[19] != 'Q') return Outcome::NOTHING;  // another market's halt
      market_halted_ = m[20] == 'H';
      return status(row);
    case 'B':
      ++counts_.broken_trades;
      return Outcome::NOTHING;
    default:
      return Outcome::NOTHING;
  }
}

Outcome Decoder::add(const std::uint8_t* m, Event& row) {
  const std::uint32_t price = u32(m, 32);
  if (m[19] != 'B' && m[19] != 'S') return Outcome::BAD_SIDE;
  if (price % tick_ != 0) return Outcome::OFF_TICK;
  const RestingOrder order{ref_of(m), price / tick_, u32(m, 20),
                           static_cast<std::int8_t>(m[19] == 'B' ? BUY : SELL)};
  if (order.shares != 0) orders_.put(order);
  row.kind = Kind::ADD;
  row.side = order.side;
  row.price = order.price;
  row.qty = order.shares;
  row.order_id = id(order.ref);
  return Outcome::ROW;
}

Outcome Decoder::execute(const std::uint8_t* m, Event& row) {
  const bool priced = m[0] == 'C';
  const bool printable = !priced || m[31] == 'Y';
  const std::uint32_t shares = u32(m, 19);
  RestingOrder* order = orders_.find(ref_of(m));
  if (order == nullptr && priced && printable) {  // a print all the same
    ++counts_.unknown_orders;
    return print(shares, u32(m, 32), row);
  }
  if (order == nullptr) return unknown(ref_of(m), shares, row);
  row.kind = Kind::EXECUTE;
  row.side = order->side;
  row.price = priced ? rounded(u32(m, 32)) : order->price;
  row.qty = shares;
  row.order_id = id(order->ref);
  row.ref_id = id(u64(m, 23));  // the match number
  if (!printable) row.flags |= NO_PRINT;
  reduce(*order, shares);
  return Outcome::ROW;
}

Outcome Decoder::cancel(const std::uint8_t* m, std::uint32_t shares, Event& row) {
  RestingOrder* order = orders_.find(ref_of(m));
  if (order == nullptr) return unknown(ref_of(m), shares, row);
  row.kind = Kind::CANCEL;
  row.side = order->side;
  row.price = order->price;
  row.qty = shares;
  row.order_id = id(order->ref);
  if (m[0] == 'D')
    orders_.erase(order);
  else
    reduce(*order, shares);
  return Outcome::ROW;
}

Outcome Decoder::replace(const std::uint8_t* m, Event& row) {
  const std::uint32_t price = u32(m, 31);
  RestingOrder* order = orders_.find(ref_of(m));
  if (order == nullptr) return unknown(ref_of(m), 0, row);
  if (price % tick_ != 0) return Outcome::OFF_TICK;
  const RestingOrder next{u64(m, 19), price / tick_, u32(m, 27), order->side};
  orders_.erase(order);
  if (next.shares != 0) orders_.put(next);
  row.kind = Kind::REPLACE;
  row.side = next.side;
  row.price = next.price;
  row.qty = next.shares;
  row.order_id = id(ref_of(m));
  row.ref_id = id(next.ref);
  return Outcome::ROW;
}

Outcome Decoder::print(std::uint64_t shares, std::uint32_t price, Event& row) {
  if (shares == 0) {
    ++counts_.empty_crosses;
    return Outcome::NOTHING;
  }
  row.kind = Kind::TRADE;
  row.price = rounded(price);
  row.qty = id(std::min(shares, static_cast<std::uint64_t>(kMost)));
  return Outcome::ROW;
}

/// What the book counts too: it meets a cancel of an order that it does not hold.
Outcome Decoder::unknown(std::uint64_t ref, std::uint32_t shares, Event& row) {
  ++counts_.unknown_orders;
  row.kind = Kind::CANCEL;
  row.qty = shares;
  row.order_id = id(ref);
  return Outcome::ROW;
}

void Decoder::reduce(RestingOrder& order, std::uint32_t shares) {
  if (shares > order.shares) ++counts_.overfills;
  if (shares >= order.shares)
    orders_.erase(&order);
  else
    order.shares -= shares;
}

Ticks Decoder::rounded(std::uint32_t price) {
  if (price % tick_ != 0) ++counts_.prints_rounded;
  return (std::uint64_t{price} + tick_ / 2) / tick_;
}

Outcome Decoder::system_event(std::uint8_t code, Event& row) {
  if (code == 'O' || code == 'E' || code == 'C') system_hours_ = false;
  if (code == 'S' || code == 'Q') system_hours_ = true;
  if (code == 'S' && !action_seen_) stock_ = Trading::HALT;
  return status(row);
}

Outcome Decoder::trading_action(std::uint8_t state, Event& row) {
  action_seen_ = true;
  stock_ = state == 'T' ? Trading::OPEN : state == 'Q' ? Trading::AUCTION : Trading::HALT;
  return status(row);
}

Outcome Decoder::status(Event& row) const {
  const Trading now = !system_hours_ ? Trading::CLOSED : market_halted_ ? Trading::HALT : stock_;
  row.kind = Kind::STATUS;
  row.ref_id = static_cast<std::int64_t>(now);
  return Outcome::ROW;
}

std::string fault_of(Outcome outcome, const std::uint8_t* m, std::size_t size, std::uint32_t tick) {
  if (size == 0) return "a message without a byte, want at least its type";
  char text[160];
  const bool shown = m[0] > ' ' && m[0] < 127;
  const auto say = [&](const char* format, auto... values) {
    std::snprintf(text, sizeof text, format, values...);
    return std::string(text);
  };
  switch (outcome) {
    case Outcome::UNKNOWN_TYPE:
      return say(shown ? "message type '%c' is none of ITCH 5.0"
                       : "message type %#x is none of "
                         "ITCH 5.0",
                 m[0]);
    case Outcome::TOO_SHORT:
      return say("message '%c' has %zu bytes, want at least %d", m[0], size, kLeastSize[m[0]]);
    case Outcome::BAD_SIDE:
      return say("side of message '%c' is %#x, want 'B' or 'S'", m[0], m[19]);
    case Outcome::OFF_TICK:
      return say(
          "price %.4f of message '%c' is off the tick of %.4f; a tick can be given, 0.0001 "
          "where a stock trades below a dollar",
          u32(m, m[0] == 'U' ? 31 : 32) / 1e4, m[0], tick / 1e4);
    default:
      return {};
  }
}

void Directory::read(const std::uint8_t* m, std::size_t size) {
  if (size == 0 || kLeastSize[m[0]] == 0 || size < kLeastSize[m[0]]) return;
  Stock& stock = stocks_[locate_of(m)];
  switch (m[0]) {
    case 'R': {
      const auto* text = reinterpret_cast<const char*>(m + 11);
      std::string symbol(text, 8);
      symbol.erase(symbol.find_last_not_of(' ') + 1);
      if (std::ranges::all_of(symbol, [](char c) { return c > ' ' && c < 127; }))
        stock.symbol = symbol;
      break;
    }
    case 'A':
    case 'F':
    case 'E':
    case 'C':
    case 'X':
    case 'D':
    case 'U':
    case 'P':
    case 'Q':
    case 'H':
      ++stock.messages;
      break;
    default:
      break;
  }
}

}  // namespace hft::itch
