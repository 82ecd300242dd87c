#include "engine.hpp"

#include "stage_timer.hpp"

namespace hft {

namespace {

constexpr std::int64_t kFeedSampleEvery = 64;

void check_price(const Market& m, Ticks price) {
  if (!m.possible(price))
    throw OrderError("a price of " + m.inst.name() + " is 1 to 9e15 ticks, was " +
                     std::to_string(price));
}

}  // namespace

Engine::Engine(std::vector<Instrument> instruments, EngineConfig config, StrategyPort& port)
    : markets_(instruments.size()), config_(config), port_(&port), risk_(config.risk) {
  for (std::size_t i = 0; i < instruments.size(); ++i) markets_[i].inst = std::move(instruments[i]);
}

void Engine::make_bars(Ns interval_ns) {
  for (Market& m : markets_) {
    m.bars = BarBuilder(interval_ns);
    m.makes_bars = true;
  }
}

void Engine::start(Ts now, Ns anchor) {
  enter(now);
  const std::uint32_t need =
      WANTS_BOOK | WANTS_TRADE | WANTS_BAR | WANTS_FEATURES | WANTS_DATA | WANTS_GAP | WANTS_READY;
  wants_packets_ = (port_->wants & need) != 0;
  for (const Market& m : markets_) {
    wants_packets_ |= !m.sources.empty();
    for (const Source& s : m.sources)
      has_clocks_ |= s.features->trigger().kind == Trigger::Kind::CLOCK;
  }
  record(RecordKind::START, now, 0, 0, 0, 0, static_cast<std::int64_t>(config_.seed), anchor,
         batcher_ ? static_cast<std::int64_t>(batcher_->most()) : 0);
}

template <class F>
void Engine::call(F&& handler) {
  handled = true;
  ++counters.handlers;
  const StageTimer timer(profile, stages.strategy);
  handler();
}

// ---- market ----

void Engine::on_row(Market& m, const Event& e, std::int64_t row) {
  m.apply(e);
  if (m.left) [[unlikely]]
    m.left->apply(m.book, e);
  m.row = row;
  m.row_recv = e.ts_recv;
  {
    const StageTimer timer(profile && !m.sources.empty(), stages.features);
    for (Source& s : m.sources) s.features->on_row(e, m.book);
  }
  const bool print = is_print(e);
  if ((print && !(e.flags & OWN)) || e.kind == Kind::DATUM) {
    Event told = e;
    told.instrument = m.inst.id;  // rows carry their file's number
    if (print) {
      told.kind = Kind::TRADE;
      told.side = aggressor(e);
      if (m.makes_bars) m.bars.add(told);
    }
    if (port_->wants & (print ? WANTS_TRADE : WANTS_DATA)) m.prints.push_back(told);
  } else if (e.kind == Kind::STATUS) {
    on_status(m);
  }
}

/// Lost messages: nothing is warm any more, and the strategy is told once, even if the packet that
/// says so also brings the snapshot.
void Engine::on_status(Market& m) {
  if (m.book.state != BookState::GAP || m.gap_open) return;
  compute_waiting();  // rows of before
  m.gap_open = m.gap_untold = unsettled_ = true;
  m.ready = false;
  ++counters.gaps;
  for (Source& s : m.sources) reset_models(m, s);
}

void Engine::on_packet(Market& m, Ts now) {
  enter(now);
  if (m.swapping) [[unlikely]]
    take_over(m, now);
  cause_market_ = &m;
  if (++counters.packets % kFeedSampleEvery == 0)
    feed_latency.push_back(m.book.ts_recv - m.book.ts_event);
  for (const Event& e : m.prints) {
    if (e.kind == Kind::TRADE) {
      call([&] { port_->on_trade(e); });
    } else {
      call([&] { port_->on_data(e); });
    }
  }
  m.prints.clear();
  if (!m.sources.empty()) fire_sources(m, now, false);
  if (port_->wants & WANTS_BOOK && m.book.live()) call([&] { port_->on_book(m.inst.id); });
  cause_market_ = nullptr;
}

/// A level of ours that healed or was taken moves without a row.
void Engine::settle_left(Market& m, Ts now) {
  m.left->settle(m.book, m.own, now, [&](int side, std::int64_t key, Lots lots) {
    Event e{};
    e.kind = Kind::LEVEL;
    e.side = static_cast<std::int8_t>(side);
    e.price = key * side;
    e.qty = lots;
    for (Source& s : m.sources)
      if (s.reactive) s.features->on_row(e, m.left->book());
  });
}

void Engine::fire_sources(Market& m, Ts now, bool clock) {
  if (m.left) [[unlikely]]
    settle_left(m, now);
  for (Source& s : m.sources) {
    const bool left = s.reactive && m.left;
    const Book& book = left ? m.left->book() : m.book;
    // Of the tape, a row is what training sees, however late a busy thread comes to it. Live the
    // two are one: a packet is stamped when it is taken.
    const Ts at = left ? now : m.row_recv;
    bool fired = false;
    {
      const StageTimer timer(profile, stages.features);
      if (left && clock) [[unlikely]]
        s.features->catch_up(book, now);
      fired = clock ? (s.features->next_clock() <= now &&
                       s.features->on_clock(book, s.features->next_clock()))
                    : s.features->end_packet(book, at);
    }
    if (!fired) continue;
    ++counters.rows_features;
    const auto row = s.features->row();
    record(RecordKind::ROW, now, m.inst.id, 0, 0, 0, digest(row.data(), row.size()), s.model);
    if (keep_rows) [[unlikely]] {
      kept_rows.push_back({s.features->row_ts(), m.inst.id, s.model});
      kept_values.insert(kept_values.end(), row.begin(), row.end());
    }
    if (s.network) infer(m, s, now);
    if (s.publish_rows) {
      row_source_ = &s;
      call([&] { port_->on_features(m.inst.id); });
      row_source_ = nullptr;
    }
    if (!m.ready) unsettled_ = true;
  }
}

void Engine::on_signal(const Signal& s, Ts now) {
  enter(now);
  ++counters.signals;
  if (SimilarityCache* const cache = s.reused ? nullptr : reuse_of(s)) cache->publish(s, now);
  record(RecordKind::SIGNAL, now, s.instrument, 0, s.reused,
         static_cast<Lots>(s.version) << 32 | s.model, digest(s.outputs.data(), s.outputs.size()),
         s.ts_features, s.ts_event);
  if (!market(s.instrument).book.live()) return;  // the book broke while the model was at work
  if (!(port_->wants & WANTS_SIGNAL)) return;
  signal_ = &s;
  call([&] { port_->on_signal(s); });
  signal_ = nullptr;
}

void Engine::settle(Ts now) {
  if (!unsettled_) [[likely]]
    return;
  enter(now);
  unsettled_ = false;
  for (Market& m : markets_) {
    if (m.gap_untold) {
      m.gap_untold = false;
      if (port_->wants & WANTS_GAP) call([&] { port_->on_gap(m.inst.id); });
    }
    if (m.book.live()) m.gap_open = false;
    if (m.ready) continue;
    bool warm = m.book.live() && m.book.two_sided();
    for (const Source& s : m.sources) warm = warm && s.features->warm() && s.rows >= s.warm_up_rows;
    if (!warm) {
      if (m.sources.empty() || m.gap_open) unsettled_ = true;  // to see the book come back
      continue;
    }
    m.ready = true;
    if (port_->wants & WANTS_READY) call([&] { port_->on_ready(m.inst.id); });
  }
  if (refused_.empty()) return;
  // One pass: a strategy that sends again on every refusal hears of the next one after the next
  // input, instead of keeping the thread here for ever.
  std::vector<Order*> refused;
  refused.swap(refused_);
  for (Order* o : refused) tell_order(*o);
}

// ---- timers, bars, clocks ----

std::uint32_t Engine::every(Ns interval, std::uint32_t if_changed) {
  if (interval <= 0)
    throw OrderError("every: the interval must be positive, was " + std::to_string(interval) +
                     " ns");
  Timer t;
  t.next = now_ + interval;
  t.interval = interval;
  t.if_changed = if_changed;
  timers_.push_back(t);
  const auto id = static_cast<std::uint32_t>(timers_.size() - 1);
  due_.push({t.next, ++timer_seq_, id});
  return id;
}

std::uint32_t Engine::at(Ts ts) {
  Timer t;
  t.next = std::max(ts, now_);
  timers_.push_back(t);
  const auto id = static_cast<std::uint32_t>(timers_.size() - 1);
  due_.push({t.next, ++timer_seq_, id});
  return id;
}

Ts Engine::next_due() const noexcept {
  Ts ts = due_.empty() ? kNever : due_.top().ts;
  for (const Market& m : markets_) {
    if (m.makes_bars) ts = std::min(ts, m.bars.due());
    if (has_clocks_)
      for (const Source& s : m.sources) ts = std::min(ts, s.features->next_clock());
    if (!m.makes_bars && !has_clocks_) break;
  }
  return ts;
}

void Engine::on_due(Ts now) {
  const Ts due = next_due();  // a busy strategy hears several late, in the order they were due
  enter(now);
  for (Market& m : markets_) {
    if (!m.makes_bars && !has_clocks_) break;
    if (m.makes_bars && m.bars.due() == due) {
      const Bar bar = m.bars.take();
      record(RecordKind::CLOCK, now, m.inst.id, 0, bar.close, bar.lots, 1);
      if (port_->wants & WANTS_BAR) call([&] { port_->on_bar(bar); });
      return;
    }
    for (const Source& s : m.sources)
      if (s.features->next_clock() == due) {
        record(RecordKind::CLOCK, now, m.inst.id);
        cause_market_ = &m;
        fire_sources(m, now, true);
        cause_market_ = nullptr;
        return;
      }
  }
  if (due_.empty()) return;
  const Due d = due_.top();
  due_.pop();
  fire_timer(d.timer, now);
}

void Engine::fire_timer(std::uint32_t id, Ts now) {
  Timer& t = timers_[id];
  if (!t.alive) {
    if (journal_every_timer) record(RecordKind::TIMER, now, 0, 0, 0, 0, id, 1);
    return;
  }
  if (t.interval > 0) {
    t.next += t.interval;
    due_.push({t.next, ++timer_seq_, id});
  } else {
    t.alive = false;
  }
  if (t.if_changed != 0 && !worth_calling(t)) {
    if (journal_every_timer) record(RecordKind::TIMER, now, 0, 0, 0, 0, id, 1);
    return;
  }
  if (journal_every_timer) {
    record(RecordKind::TIMER, now, 0, 0, 0, 0, id);
  } else {
    fired_ = id;
  }
  call([&] { port_->on_timer(id); });
  fired_ = kNoTimer;
}

bool Engine::worth_calling(Timer& t) noexcept {
  if (t.if_changed & TOUCH) {
    for (Market& m : markets_) {
      const SeenBook book = m.seen(now_);
      if (book.bid() == m.seen_bid && book.ask() == m.seen_ask) continue;
      m.seen_bid = book.bid();
      m.seen_ask = book.ask();
      ++touch_generation_;
    }
  }
  const bool worth = ((t.if_changed & TOUCH) && t.seen_touch != touch_generation_) ||
                     ((t.if_changed & POSITION) && t.seen_position != position_generation_) ||
                     ((t.if_changed & ORDERS) && t.seen_orders != order_generation_);
  t.seen_touch = touch_generation_;
  t.seen_position = position_generation_;
  t.seen_orders = order_generation_;
  return worth;
}

// ---- orders: what we ask ----

Order& Engine::new_order(InstrumentId inst, int side, Lots lots, Ticks price, Tif tif,
                         std::uint32_t tag, std::uint32_t parent, const Signal* cause) {
  if (lots <= 0) throw OrderError("lots must be positive, was " + std::to_string(lots));
  if (price == kNoPrice && tif == Tif::POST_ONLY)
    throw OrderError("a market order cannot be POST_ONLY");
  Market& m = market(inst);
  if (price != kNoPrice) check_price(m, price);
  Order& o = orders_.add();
  OrderRow& r = o.row;
  r.price = price;
  r.lots = lots;
  r.instrument = inst;
  r.side = static_cast<std::int8_t>(side);
  r.tif = tif;
  r.tag = tag;
  r.parent = parent;
  r.ahead_at_accept = std::numeric_limits<double>::quiet_NaN();
  r.ts_decide = now_;
  r.ts_model_start = r.ts_model_end = r.ts_handled = kNoTime;
  r.ts_send = r.ts_arrive = r.ts_ack = r.ts_done = kNoTime;
  if (cause == nullptr) cause = signal_;
  if (cause != nullptr) {
    r.by_signal = 1;
    r.ts_model_start = cause->ts_start;
    r.ts_model_end = cause->ts_end;
    r.ts_cause_event = cause->ts_event;
    r.ts_cause_recv = cause->ts_recv;
    r.cause_row = cause->cause_row;
  } else {  // no signal: the newest packet of the instrument that the handler answers
    const Market& from = cause_market_ != nullptr ? *cause_market_ : m;
    r.ts_cause_event = from.book.ts_event;
    r.ts_cause_recv = from.book.ts_recv;
    r.cause_row = from.row;
  }
  return o;
}

void Engine::send_new(Order& o) {
  Market& m = market(o.row.instrument);
  o.live_index = static_cast<std::uint32_t>(m.live.size());
  m.live.push_back(&o);
  ++m.exposure.open_orders;
  reserve(o, o.row.lots);
  record(RecordKind::NEW, now_, o.row.instrument, o.row.id, o.row.price, o.row.lots,
         o.row.side * 256 + static_cast<int>(o.row.tif), o.row.tag, o.row.parent);
  send(o, Command::Kind::NEW, o.row.price, o.row.lots);
}

Order& Engine::submit(InstrumentId inst, int side, Lots lots, Ticks price, Tif tif,
                      std::uint32_t tag, std::uint32_t parent, const Signal* cause) {
  Order& o = new_order(inst, side, lots, price, tif, tag, parent, cause);
  const Market& m = market(inst);
  const Reason no = risk_.check_new(m.exposure, reference_mid2(m), side, price, lots, now_);
  if (no != Reason::NONE) {
    refuse(o, no);
  } else {
    send_new(o);
  }
  return o;
}

/// What a price is held against; kNoPrice: there is no such thing now.
std::int64_t Engine::reference_mid2(const Market& m) const noexcept {
  return m.book.live() ? m.seen(now_).mid2() : kNoPrice;
}

bool Engine::cancel(Order& o) {
  if (!o.alive() || o.cancelling) return false;
  o.cancelling = true;
  ++o.requests;
  o.row.state = OrderState::PENDING_CANCEL;
  record(RecordKind::CANCEL, now_, o.row.instrument, o.row.id);
  send(o, Command::Kind::CANCEL, o.row.price, o.row.lots);
  return true;
}

bool Engine::replace(Order& o, Ticks price, Lots lots) {
  if (lots <= 0) throw OrderError("replace: lots must be positive, was " + std::to_string(lots));
  if (o.is_market())
    throw OrderError("replace: order " + std::to_string(o.row.id) + " is a market order");
  if (!market(o.row.instrument).inst.can_replace)
    throw OrderError("replace: " + market(o.row.instrument).inst.venue +
                     " cannot replace an order: cancel it and send another");
  if (!o.alive() || o.cancelling) return false;
  Market& m = market(o.row.instrument);
  check_price(m, price);
  const Lots leaves = std::max(lots - o.row.cum_lots, Lots{0});
  const Reason no = risk_.check_replace(m.exposure, reference_mid2(m), o.row.side, price, leaves,
                                        leaves - o.reserved, now_);
  if (no != Reason::NONE) {
    record(RecordKind::REFUSED, now_, o.row.instrument, o.row.id, price, lots,
           static_cast<int>(no));
    ++counters.refused;
    o.row.reason = no;
    refused_.push_back(&o);
    unsettled_ = true;
    return false;
  }
  o.asked_price = price;
  ++o.requests;
  ++o.row.replaces;
  o.row.state = OrderState::PENDING_REPLACE;
  reserve(o, std::max(o.reserved, leaves));
  record(RecordKind::REPLACE, now_, o.row.instrument, o.row.id, price, lots);
  send(o, Command::Kind::REPLACE, price, lots);
  return true;
}

bool Engine::withdraw(Order& o) {
  if (o.quoted) market(o.row.instrument).targets[side_index(o.row.side)].set = false;
  return cancel(o);
}

void Engine::cancel_all(InstrumentId inst, std::int64_t tag) {
  Market& m = market(inst);
  for (int s = 0; s < 2; ++s)
    if (tag < 0) m.targets[s].set = false;
  for (Order* o : m.live)
    if (tag < 0 || o->row.tag == tag) cancel(*o);
}

Order* Engine::flatten(InstrumentId inst) {
  cancel_all(inst);
  Market& m = market(inst);
  Lots position = m.account.position;
  for (const Order* o : m.live)
    if (o->flattening) position += o->row.side * o->leaves();
  if (position == 0) return nullptr;
  // Past the gate: it must never keep risk on.
  Order& o = new_order(inst, position > 0 ? SELL : BUY, std::abs(position), kNoPrice, Tif::IOC,
                       tag_id("flatten"), 0, nullptr);
  o.flattening = true;
  send_new(o);
  return &o;
}

bool Engine::wind_down(InstrumentId inst, Ts now) {
  enter(now);
  Market& m = market(inst);
  m.exposure.halted = true;
  record(RecordKind::WIND_DOWN, now, inst);
  if (m.book.trading == Trading::OPEN) {
    flatten(inst);
  } else {
    cancel_all(inst);  // a market order would be refused
  }
  return m.account.position != 0 || !m.live.empty();
}

void Engine::abandon(Ts now, std::int64_t why, const ModelFailure* model) {
  enter(now);
  if (model == nullptr) {
    stop(now, why);
  } else {
    record(RecordKind::STOP, now, model->instrument, model->swap, 0, model->model, why,
           model->in_reset ? 2 : 1);
  }
  risk_.halted = true;
  for (const Market& m : markets_) cancel_all(m.inst.id);
}

void Engine::send(Order& o, Command::Kind kind, Ticks price, Lots lots) {
  Command c{};
  c.kind = kind;
  c.tif = o.row.tif;
  c.side = o.row.side;
  c.instrument = o.row.instrument;
  c.order = o.row.id;
  c.price = price;
  c.lots = lots;
  outbox.push_back(c);
}

void Engine::refuse(Order& o, Reason reason) {
  o.row.state = OrderState::REJECTED;
  o.row.reason = reason;
  o.row.ts_done = now_;
  ++counters.refused;
  record(RecordKind::REFUSED, now_, o.row.instrument, o.row.id, o.row.price, o.row.lots,
         static_cast<int>(reason));
  refused_.push_back(&o);
  unsettled_ = true;
  ++order_generation_;
}

void Engine::reserve(Order& o, Lots lots) noexcept {
  market(o.row.instrument).exposure.open_lots[side_index(o.row.side)] += lots - o.reserved;
  o.reserved = lots;
}

std::uint32_t Engine::parent_order(InstrumentId inst, int side, Lots lots) {
  if (lots <= 0)
    throw OrderError("parent_order: lots must be positive, was " + std::to_string(lots));
  parents_.push_back({inst, static_cast<std::int8_t>(side), lots, 0});
  return static_cast<std::uint32_t>(parents_.size() - 1);
}

std::uint32_t Engine::tag_id(const std::string& tag) {
  if (tag.empty()) return 0;
  const auto [it, fresh] = tag_ids_.try_emplace(tag, static_cast<std::uint32_t>(tags_.size()));
  if (fresh) tags_.push_back(tag);
  return it->second;
}

// ---- orders: what the venue answers ----

void Engine::on_update(const Update& u, Ts now) {
  enter(now);
  const std::int64_t how =
      static_cast<std::int64_t>(u.kind) << 24 | static_cast<std::int64_t>(u.reason) << 16 |
      static_cast<std::int64_t>(u.fill_reason) << 8 | (u.leaves ? 2 : 0) | (u.maker ? 1 : 0);
  std::int64_t amount = u.money + u.impact;
  if (u.kind == Update::Kind::ACCEPTED || u.kind == Update::Kind::REPLACED)
    std::memcpy(&amount, &u.ahead, sizeof amount);
  record(RecordKind::UPDATE, now, u.instrument, u.order, u.price, u.lots, how, amount, u.ts_venue);
  Market& m = market(u.instrument);
  if (u.kind == Update::Kind::FUNDING) {
    m.account.funding += u.money;
    ++position_generation_;
    return;
  }
  if (!orders_.has(u.order))
    throw CoreError("answer to an order that was never sent: " + std::to_string(u.order));
  Order& o = orders_[u.order];
  if (!o.alive()) {
    ++counters.late_answers;  // a cancel or replace that lost its race is answered after the
                              // order's end
    if (u.kind != Update::Kind::FILL) return;
  }
  // When it reached us, which may be before our thread was free to hear it.
  if (o.row.ts_ack == kNoTime) o.row.ts_ack = u.ts_recv != kNoTime ? u.ts_recv : now;
  if (o.row.ts_arrive == kNoTime) o.row.ts_arrive = u.ts_venue;  // live: the venue's word
  using K = Update::Kind;
  switch (u.kind) {
    case K::ACCEPTED:
      o.acknowledged = true;
      if (o.ts_replaced == kNoTime) o.row.ahead_at_accept = u.ahead;
      if (o.requests == 0) settle_state(o);
      break;
    case K::REJECTED:
      finish(o, OrderState::REJECTED, u.reason, now);
      break;
    case K::FILL:
      apply_fill(o, u, now);
      break;
    case K::CANCELED:
      finish(o, OrderState::CANCELED, u.reason, now);
      break;
    case K::EXPIRED:
      finish(o, OrderState::EXPIRED, u.reason, now);
      break;
    case K::CANCEL_REJECTED:
      o.cancelling = false;
      if (--o.requests == 0) settle_state(o);
      break;
    case K::REPLACED:
      if (u.ts_venue >= o.ts_replaced) {  // answers may overtake: an older one tells nothing new
        o.ts_replaced = u.ts_venue;
        o.row.price = u.price;
        o.row.lots = u.lots;
        o.row.ahead_at_accept = u.ahead;
      }
      --o.requests;
      if (o.used_up && o.row.cum_lots >= o.row.lots) {  // its last fill was heard first
        finish(o, OrderState::FILLED, Reason::NONE, now);
      } else if (o.requests == 0) {
        reserve(o, o.row.lots - o.row.cum_lots);
        settle_state(o);
      }
      break;
    case K::REPLACE_REJECTED:
      o.row.reason = u.reason;
      if (--o.requests == 0) {
        reserve(o, o.row.lots - o.row.cum_lots);
        settle_state(o);
      }
      break;
    case K::FUNDING:
      break;
  }
  changed(o);
  if (u.kind == K::FILL && (port_->wants & WANTS_FILL)) call([&] { port_->on_fill(o, u); });
  tell_order(o);
  if (o.quoted && u.kind != K::REPLACE_REJECTED) place_again(o);
}

void Engine::apply_fill(Order& o, const Update& u, Ts now) {
  Market& m = market(u.instrument);
  o.row.cum_lots += u.lots;
  o.row.cum_ticks += u.price * u.lots;
  m.account.apply(m.inst, o.row.side, u.lots, u.price, u.money, u.impact);
  m.exposure.position = m.account.position;
  m.own.on_fill(m.book, u, o.row.side);
  ++position_generation_;
  if (o.row.parent != 0) parents_[o.row.parent].filled += u.lots;
  if (!o.alive()) return;
  reserve(o, std::max(o.reserved - u.lots, Lots{0}));
  // Where a replace is heard after fills of the larger order, what we know of its size is too
  // little.
  o.used_up |= !u.leaves;
  if (o.used_up && o.row.cum_lots >= o.row.lots) {
    finish(o, OrderState::FILLED, Reason::NONE, now);
  } else if (o.requests == 0) {
    o.row.state = OrderState::PARTIALLY_FILLED;
  }
}

void Engine::settle_state(Order& o) noexcept {
  o.row.state = o.row.cum_lots > 0 ? OrderState::PARTIALLY_FILLED
                : o.acknowledged   ? OrderState::NEW
                                   : OrderState::PENDING_NEW;
}

void Engine::finish(Order& o, OrderState state, Reason reason, Ts now) {
  o.row.state = state;
  o.row.reason = reason;
  o.row.ts_done = now;
  reserve(o, 0);
  Market& m = market(o.row.instrument);
  m.live.back()->live_index = o.live_index;
  m.live[o.live_index] = m.live.back();
  m.live.pop_back();
  --m.exposure.open_orders;
  if (o.quoted) std::erase(m.targets[side_index(o.row.side)].orders, &o);
}

void Engine::changed(Order& o) noexcept {
  ++order_generation_;
  ++market(o.row.instrument).order_generation;
}

void Engine::tell_order(Order& o) {
  if (port_->wants & WANTS_ORDER) call([&] { port_->on_order(o); });
}

void Engine::sample(Ts ts) {
  for (Market& m : markets_) {
    SampleRow s{};
    s.ts = ts;
    s.bid = m.book.bid();
    s.ask = m.book.ask();
    s.position = m.account.position;
    m.sampled_mid2 = m.mark_mid2();
    s.equity = m.account.equity(m.inst, m.sampled_mid2);
    s.fees = m.account.fees;
    s.funding = m.account.funding;
    s.impact = m.account.impact;
    s.instrument = m.inst.id;
    s.open_orders = m.exposure.open_orders;
    samples.push_back(s);
  }
}

}  // namespace hft
