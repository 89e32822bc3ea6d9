// What the test programs share: a check that names its line and ends the program.
#pragma once
#include <cstdio>
#include <cstdlib>

#define EXPECT(condition)                                                        \
    do {                                                                         \
        if (!(condition)) {                                                      \
            printf("line %d: %s\n", __LINE__, #condition);                       \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

#define SUCCEEDS(call) EXPECT((call) == 0)
