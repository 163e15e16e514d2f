/* What the examples share: a call that must go well. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <paceline.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        pl_status must_status = (call);                                                            \
        if (must_status != PL_OK) {                                                                \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, pl_status_name(must_status),             \
                   pl_last_error());                                                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
