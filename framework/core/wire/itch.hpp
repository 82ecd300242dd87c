/// Nasdaq TotalView-ITCH 5.0: bytes in, rows of one stock out. Framing and messages are apart: a
/// file puts two bytes of length before each message, MoldUDP64 and SoupBinTCP have their own.
///
/// Executions, cancels and deletes name an order and not its price or side, so the decoder keeps
/// what rests: an open-addressed table of 24 bytes a slot, one cache miss a message. Messages of
/// other stocks cost a look at their type, length and stock locate: 4 ns, where the stock's own
/// cost 20 to 40 with the table in cache. Nothing is allocated a message; the table doubles when
/// half full, which a busy stock does a few times a day.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../event.hpp"

namespace hft::itch {

template <class T>
T big_endian(const std::uint8_t* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (sizeof value == 2) return static_cast<T>(__builtin_bswap16(value));
  if constexpr (sizeof value == 4) return static_cast<T>(__builtin_bswap32(value));
  if constexpr (sizeof value == 8) return static_cast<T>(__builtin_bswap64(value));
}

inline std::uint16_t locate_of(const std::uint8_t* message) noexcept {
  return big_endian<std::uint16_t>(message + 1);
}

/// Messages behind a two-byte big-endian length, as in Nasdaq's files.
class LengthPrefixed {
 public:
  LengthPrefixed(const std::uint8_t* data, std::size_t size) noexcept : data_(data), size_(size) {}

  /// The next whole message, or nullptr: what is left from `consumed` on is less than one.
  const std::uint8_t* next(std::size_t& message_size) noexcept {
    if (size_ - at_ < 2) return nullptr;
    message_size = big_endian<std::uint16_t>(data_ + at_);
    if (size_ - at_ - 2 < message_size) return nullptr;
    const std::uint8_t* message = data_ + at_ + 2;
    at_ += 2 + message_size;
    return message;
  }
  std::size_t consumed() const noexcept { return at_; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

struct RestingOrder {
  std::uint64_t ref = 0;
  Ticks price = 0;
  std::uint32_t shares = 0;  ///< 0: a free slot
  std::int8_t side = 0;
};

/// Resting orders by reference number. Linear probing; removal shifts back, so there are no
/// tombstones and a day's millions of short-lived orders do not wear it out.
class RestingOrders {
 public:
  RestingOrders() : slots_(std::size_t{1} << 12) {}

  RestingOrder* find(std::uint64_t ref) noexcept;
  void put(const RestingOrder& order);  ///< replaces an order of the same number
  void erase(RestingOrder* order) noexcept;
  std::size_t size() const noexcept { return size_; }

 private:
  std::size_t slot_of(std::uint64_t ref) const noexcept;
  void grow();

  std::vector<RestingOrder> slots_;
  std::size_t size_ = 0;
};

enum class Outcome : std::uint8_t {
  NOTHING,       ///< another stock's, or no matter of book, print or trading state
  ROW,           ///< a row was written
  UNKNOWN_TYPE,  ///< the rest are faults: the message was not read
  TOO_SHORT,
  BAD_SIDE,
  OFF_TICK,
};

struct Counts {
  std::int64_t messages = 0;        ///< of this stock
  std::int64_t unknown_orders = 0;  ///< messages on a number that does not rest
  std::int64_t overfills = 0;       ///< executions and cancels of more than rests
  std::int64_t prints_rounded = 0;  ///< hidden and cross prints off the tick
  std::int64_t empty_crosses = 0;   ///< crosses without a share
  std::int64_t broken_trades = 0;   ///< B: a print that was taken back later
};

/// Rows of one stock. Trading state: CLOSED outside system hours (S: S to E), else what the stock's
/// last trading action says, and HALT if system hours began without one. Crosses of open and close
/// interrupt nothing, so market hours (Q, M) change no state.
class Decoder {
 public:
  /// `midnight`: of the trading day in New York; `tick`: in 1/10,000 dollar.
  Decoder(std::uint16_t locate, Ts midnight, std::uint32_t tick) noexcept
      : locate_(locate), midnight_(midnight), tick_(tick) {}

  /// Reads one message, the `seq`-th of the feed, without its framing; writes at most one row.
  Outcome decode(const std::uint8_t* message, std::size_t size, std::int64_t seq, Event& row);

  const Counts& counts() const noexcept { return counts_; }
  std::size_t resting() const noexcept { return orders_.size(); }

 private:
  Outcome add(const std::uint8_t* m, Event& row);
  Outcome execute(const std::uint8_t* m, Event& row);
  Outcome cancel(const std::uint8_t* m, std::uint32_t shares, Event& row);
  Outcome replace(const std::uint8_t* m, Event& row);
  Outcome print(std::uint64_t shares, std::uint32_t price, Event& row);
  Outcome system_event(std::uint8_t code, Event& row);
  Outcome trading_action(std::uint8_t state, Event& row);
  Outcome status(Event& row) const;
  Outcome unknown(std::uint64_t ref, std::uint32_t shares, Event& row);
  void reduce(RestingOrder& order, std::uint32_t shares);
  Ticks rounded(std::uint32_t price);

  std::uint16_t locate_;
  Ts midnight_;
  std::uint32_t tick_;
  RestingOrders orders_;
  Counts counts_;
  bool system_hours_ = true;  // a file cut from the middle of a day is within them
  bool action_seen_ = false;
  bool market_halted_ = false;  // h: Nasdaq's own operational halt
  Trading stock_ = Trading::OPEN;
};

/// What is wrong with a message that gave a fault, in words.
std::string fault_of(Outcome outcome, const std::uint8_t* message, std::size_t size,
                     std::uint32_t tick);

/// What a file holds, by stock locate.
class Directory {
 public:
  struct Stock {
    std::string symbol;
    std::int64_t messages = 0;  ///< of book, prints and trading state
  };

  Directory() : stocks_(std::size_t{1} << 16) {}
  void read(const std::uint8_t* message, std::size_t size);
  const std::vector<Stock>& stocks() const noexcept { return stocks_; }  ///< index is the locate

 private:
  std::vector<Stock> stocks_;
};

}  // namespace hft::itch
