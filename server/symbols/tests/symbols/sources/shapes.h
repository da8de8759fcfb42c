#pragma once
static inline __attribute__((always_inline)) int twice(int n) {
    int sum = n;
    for (int i = 0; i < (n & 7); i++)
        sum += i ^ n;
    return sum * 2;
}

struct Shape {
    int width, height;
    inline __attribute__((always_inline)) int area() const { return width * height + twice(width); }
};
int scale(const Shape &shape, int factor);
