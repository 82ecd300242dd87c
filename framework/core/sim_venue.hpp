/// The simulated market on the wall clock, on a thread of its own: the venue of `hft live --venue
/// sim`.
///
/// Commands reach its matching `entry_ns` after they were sent; answers leave it for us after
/// `response_ns`, market rows after `feed_ns`. A packet that we leave no room for is lost, as on a
/// real feed: when half the ring is free again a GAP status follows, and a snapshot. Answers are
/// never lost.
#pragma once
#include <atomic>
#include <deque>
#include <exception>
#include <thread>

#include "clock.hpp"
#include "message.hpp"
#include "ring.hpp"
#include "sim_market.hpp"

namespace hft {

struct SimVenueConfig {
  SimMarketConfig market;
  Ns entry_ns = 0, response_ns = 0, feed_ns = 0;
  std::size_t feed_rows = 1 << 16;  ///< capacity of the market ring; a power of two
};

class SimVenue {
 public:
  SimVenue(SimVenueConfig config, const WallClock& clock);
  ~SimVenue() { stop(); }

  void start();
  void stop();
  const SimVenueConfig& config() const noexcept { return config_; }
  /// Throws what ended the venue's thread, if anything did.
  void check() const;
  /// Sum of our fills by the venue's own books; after stop().
  Lots position(InstrumentId inst) const noexcept { return positions_[inst]; }
  const SimMarket& truth() const noexcept { return sim_; }  ///< after stop()

  SpscRing<Event> market;
  SpscRing<Update> answers{1 << 14};
  SpscRing<Command> commands{1 << 14};

 private:
  template <class T>
  struct Due {
    Ts ts;
    T what;
  };

  void loop();
  void take_commands();
  Ts act(Ts now);
  void execute(const Command& c);
  void collect();
  void deliver(Ts now);
  void deliver_packet();
  void resync(InstrumentId inst, Ts now);
  static Update answer_of(const SimReport& r);

  SimVenueConfig config_;
  const WallClock* clock_;
  SimMarket sim_;
  std::thread thread_;
  std::atomic<bool> running_{false}, failed_{false};
  std::exception_ptr failure_;
  std::vector<Event> rows_;
  std::vector<SimReport> reports_;
  std::deque<Due<Command>> arriving_;
  std::deque<Due<Event>> leaving_rows_;
  std::deque<Due<Update>> leaving_answers_;
  std::vector<Lots> positions_;
  std::vector<std::uint8_t> lost_;  // by instrument: rows were dropped and no snapshot sent since
};

}  // namespace hft
