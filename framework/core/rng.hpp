/// Counter-based random numbers: a draw is a pure function of (seed, stream, entity, draw number),
/// so that adding or removing one order moves nobody else's draw. SplitMix64 finaliser, 3 ns a
/// draw.
#pragma once
#include <cstdint>

namespace hft {

/// What is drawn: each has numbers of its own under one seed. Python: `hft.execution.draws.Stream`.
enum class Draw : std::uint64_t {
  FEED = 1,
  ENTRY,  ///< and the response to the same message
  RESPONSE,
  SERVICE,
  QUEUE,
  REFILL,
  GHOST,
  STRATEGY,
  SHADOW,
};

/// The stream of one instrument: draws keyed by a row or a price would else agree across books.
constexpr std::uint64_t stream_of(Draw what, std::uint32_t instrument) noexcept {
  return static_cast<std::uint64_t>(what) | static_cast<std::uint64_t>(instrument) << 32;
}

constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t draw_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t entity,
                                  std::uint64_t n = 0) noexcept {
  return mix64(mix64(mix64(mix64(seed) ^ stream) ^ entity) ^ n);
}

constexpr std::uint64_t draw_bits(std::uint64_t seed, Draw stream, std::uint64_t entity,
                                  std::uint64_t n = 0) noexcept {
  return draw_bits(seed, static_cast<std::uint64_t>(stream), entity, n);
}

/// Uniform in [0, 1).
constexpr double draw_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t entity,
                              std::uint64_t n = 0) noexcept {
  return static_cast<double>(draw_bits(seed, stream, entity, n) >> 11) * 0x1.0p-53;
}

constexpr double draw_uniform(std::uint64_t seed, Draw stream, std::uint64_t entity,
                              std::uint64_t n = 0) noexcept {
  return draw_uniform(seed, static_cast<std::uint64_t>(stream), entity, n);
}

}  // namespace hft
