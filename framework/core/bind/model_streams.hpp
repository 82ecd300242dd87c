/// Streams of a model made from what Python gives for it: a native network, or a backend of another
/// library (hft.inference.backends).
#pragma once
#include "../swap.hpp"
#include "session.hpp"

namespace hft {

/// One stream of `computes`: a Network (over `window_rows`; 0: it runs on), or a backend, which
/// fails `as` that model.
std::unique_ptr<ModelStream> stream_of(Session& s, nb::handle computes, std::size_t window_rows,
                                       ModelFailure as);

/// A stream for every instrument.
Swap swap_of(Session& s, std::uint32_t number, std::uint32_t model, nb::handle computes,
             std::size_t window_rows, std::int64_t warm_up_rows, std::int64_t hash,
             std::optional<ReuseRule> reuse, std::optional<Trails> trails);

}  // namespace hft
