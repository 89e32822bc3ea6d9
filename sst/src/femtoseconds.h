// The GPU counts time in femtoseconds, links of SST in picoseconds.
#ifndef LOCKSTEP_SST_FEMTOSECONDS_H
#define LOCKSTEP_SST_FEMTOSECONDS_H

#include <cstdint>

namespace SST::Lockstep {

constexpr uint64_t PICOSECOND = 1000;
constexpr uint64_t SECOND = UINT64_C(1000000000000000);

// Picoseconds that are not shorter than a length of time.
constexpr uint64_t picoseconds(uint64_t femtoseconds) { return (femtoseconds + PICOSECOND - 1) / PICOSECOND; }

} // namespace SST::Lockstep

#endif
