// The work that is measured: the same steps as in crates/workload (busy.rs, random.rs). The bench
// compares their results with its own before it measures anything.

#pragma once

#include <cstdint>

/// Makes the compiler believe that somebody looks at the value, and may have changed it.
inline std::uint64_t keep(std::uint64_t value) {
    asm volatile("" : "+r"(value));
    return value;
}

/// `steps` steps of xorshift64 (Marsaglia, "Xorshift RNGs", 2003). Never inlined, as in Rust.
[[gnu::noinline]] inline std::uint64_t chain(std::uint64_t steps, std::uint64_t seed) {
    // Zero is the one state that xorshift never leaves.
    std::uint64_t state = keep(seed) | 1;
    for (std::uint64_t step = 0; step < steps; ++step) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    return state;
}

/// Computes, and drops the result.
inline void compute(std::uint64_t steps, std::uint64_t seed) {
    keep(chain(steps, seed));
}

/// The output function of splitmix64 (constants by Stafford, "Mix13").
inline std::uint64_t mix(std::uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58'476d'1ce4'e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d0'49bb'1331'11eb;
    return bits ^ (bits >> 31);
}
