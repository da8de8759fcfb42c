#include "shapes.h"

__attribute__((noinline)) int scale(const Shape &shape, int factor) {
    int area = shape.area();
    while (factor-- > 0)
        area += twice(area) >> 1;
    return area;
}
