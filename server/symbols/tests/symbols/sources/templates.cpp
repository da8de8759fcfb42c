// Containers and algorithms over a template, so that one source makes much code with calls inlined many levels deep.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace shop {
template <int N> struct Item {
    int parts[N];
    std::string label;
    bool operator<(const Item &other) const {
        return std::lexicographical_compare(parts, parts + N, other.parts, other.parts + N) || label < other.label;
    }
    bool operator==(const Item &other) const { return label == other.label && std::equal(parts, parts + N, other.parts); }
};

struct Hash {
    template <int N> std::size_t operator()(const Item<N> &item) const {
        return std::accumulate(item.parts, item.parts + N, std::hash<std::string>()(item.label));
    }
};

template <int N> Item<N> make(int seed) {
    Item<N> item;
    std::iota(item.parts, item.parts + N, seed);
    item.label = std::to_string(seed * N);
    return item;
}

template <int N> class Shelf {
    std::map<Item<N>, std::vector<Item<N>>> sorted;
    std::unordered_map<Item<N>, int, Hash> counted;
    std::deque<Item<N>> queue;

public:
    Shelf() { put(make<N>(N)); }
    ~Shelf() { counted.clear(); }
    void put(const Item<N> &item) {
        sorted[item].push_back(item);
        ++counted[item];
        queue.push_front(item);
    }
    long sum() {
        std::stable_sort(queue.begin(), queue.end());
        std::vector<Item<N>> copy(queue.begin(), queue.end());
        std::sort(copy.begin(), copy.end(), [](auto &a, auto &b) { return b < a; });
        std::function<long(const Item<N> &)> weigh = [this](const Item<N> &item) { return long(item.label.size() + counted[item]); };
        long total = 0;
        for (auto &entry : sorted)
            total += weigh(entry.first) + long(entry.second.size());
        std::variant<int, Item<N>, double> last = copy.empty() ? std::variant<int, Item<N>, double>(1) : copy.back();
        return total + std::visit([](auto &&value) { return long(sizeof(value)); }, last);
    }
};
} // namespace shop

template <int N> static long run(int count) {
    shop::Shelf<N> shelf;
    for (int i = 0; i < count; i++)
        shelf.put(shop::make<N>(i % 97));
    return shelf.sum();
}

int main(int argc, char **) {
    std::ostringstream out;
    out << run<1>(argc * 1000) + run<2>(argc * 500) + run<3>(argc);
#ifdef MANY
    out << run<4>(argc) + run<5>(argc) + run<6>(argc) + run<7>(argc) + run<8>(argc) + run<9>(argc) + run<10>(argc);
#endif
    return out.str().size() > 100;
}
