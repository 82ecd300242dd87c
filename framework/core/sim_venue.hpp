/// The simulated market on the wall clock, on a thread of its own: the venue of `hft live --venue sim`.
///
/// Commands reach its matching `entry_ns` after they were sent; answers leave it for us after
/// `response_ns`, market rows after `feed_ns`. What we cannot take in time is lost, as on a real feed:
/// a GAP status follows, and a snapshot.
#pragma once
#include <atomic>
#include <deque>
#include <thread>

#include "clock.hpp"
#include "message.hpp"
#include "ring.hpp"
#include "sim_market.hpp"

namespace hft {

struct SimVenueConfig {
  SimMarketConfig market;
  Ns entry_ns = 0, response_ns = 0, feed_ns = 0;
};

class SimVenue {
 public:
  SimVenue(SimVenueConfig config, const WallClock& clock);
  ~SimVenue() { stop(); }

  void start();
  void stop();

  SpscRing<Event> market{1 << 16};
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
  bool deliver_packet(Ts now);
  static Update answer_of(const SimReport& r);

  SimVenueConfig config_;
  const WallClock* clock_;
  SimMarket sim_;
  std::thread thread_;
  std::atomic<bool> running_{false};
  std::vector<Event> rows_;
  std::vector<SimReport> reports_;
  std::deque<Due<Command>> arriving_;
  std::deque<Due<Event>> leaving_rows_;
  std::deque<Due<Update>> leaving_answers_;
  std::vector<std::uint8_t> lost_;  // by instrument: rows were dropped and no snapshot sent since
};

}  // namespace hft
