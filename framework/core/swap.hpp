/// Another bundle for a model of a running engine. Its streams run beside the old ones from the
/// request on; each takes over at the first packet of its instrument at which it is warm. Where one
/// fails before that, all that still wait are dropped, and the old ones go on.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model_stream.hpp"
#include "similarity.hpp"
#include "trailing.hpp"

namespace hft {

/// Made off the hot path, before it is asked for.
struct Swap {
  std::uint32_t number = 0;  ///< from 1; the version of the answers that follow
  std::uint32_t model = 0;
  std::int64_t hash = 0;  ///< of the bundle, for the journal
  std::int64_t warm_up_rows = 0;
  std::vector<std::unique_ptr<ModelStream>> streams;  ///< by instrument
  /// Of its answers; none: they are not reused. Counts where those of the old one could be.
  std::optional<ReuseRule> reuse;
  std::optional<Trails> trails;  ///< none: it sees rows as they are
};

/// What waits to take over a source.
struct Incoming {
  std::unique_ptr<ModelStream> network;
  std::uint32_t number = 0;
  std::int64_t hash = 0, rows = 0, warm_up_rows = 0;
  std::optional<ReuseRule> reuse;
  std::unique_ptr<TrailingRow> trailing;
};

}  // namespace hft
