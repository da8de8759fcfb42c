#include "shapes.h"

extern "C" int _fltused = 0;
volatile int input = 5;

namespace lab {
__attribute__((noinline)) static int local(int n) {
    if (n < 2)
        return input;
    return local(n - 1) + twice(n);
}
}  // namespace lab

extern "C" int start() {
    Shape shape{input, input + 1};
    int sum = scale(shape, 3);
    for (int i = 0; i < 10; i++)
        sum += lab::local(i) + shape.area();
    return sum;
}
