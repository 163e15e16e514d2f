// What a library that clang's ThreadSanitizer has prepared calls, and what not every gcc has.
#if defined(__GNUC__) && !defined(__clang__)
#include <string.h>

#define CALLED_BY_CLANGS extern "C" __attribute__((weak, visibility("default")))

CALLED_BY_CLANGS void *__tsan_memset(void *to, int byte, size_t size) { return memset(to, byte, size); }
CALLED_BY_CLANGS void *__tsan_memcpy(void *to, const void *from, size_t size) { return memcpy(to, from, size); }
CALLED_BY_CLANGS void *__tsan_memmove(void *to, const void *from, size_t size) { return memmove(to, from, size); }
#endif
