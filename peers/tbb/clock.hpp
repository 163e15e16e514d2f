// Time: the monotonic clock, sleeping until a time, CPU time. All in nanoseconds.

#pragma once

#include <cerrno>
#include <cstdint>
#include <ctime>

using Nanos = std::uint64_t;

namespace clock_detail {

inline Nanos read(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<Nanos>(time.tv_sec) * 1'000'000'000 + static_cast<Nanos>(time.tv_nsec);
}

} // namespace clock_detail

/// The clock that the bench itself reads, too.
inline Nanos now() {
    return clock_detail::read(CLOCK_MONOTONIC);
}

/// What all threads of this process have used.
inline Nanos process_cpu() {
    return clock_detail::read(CLOCK_PROCESS_CPUTIME_ID);
}

/// Returns at once if that is over.
inline void sleep_until(Nanos time) {
    // A time that has passed would be slept through all the same, for a moment in which others get the CPU.
    if (now() >= time) {
        return;
    }
    timespec until{};
    until.tv_sec = static_cast<time_t>(time / 1'000'000'000);
    until.tv_nsec = static_cast<long>(time % 1'000'000'000);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
}

/// Keeps the CPU busy until that is over, politely to a sibling thread.
inline void spin_until(Nanos time) {
    while (now() < time) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("isb");
#endif
    }
}
