#include "fuzz/Mutations.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <limits>
#include <string_view>

namespace DNDS::Geom::fuzz {

namespace {

constexpr std::size_t maxBytes = 1 << 20;

constexpr std::array<std::int64_t, 16> numbers{0,
                                               1,
                                               -1,
                                               2,
                                               3,
                                               4,
                                               7,
                                               22,
                                               23,
                                               127,
                                               1000,
                                               std::numeric_limits<std::int32_t>::max(),
                                               std::numeric_limits<std::int32_t>::min(),
                                               std::int64_t{1} << 32,
                                               std::numeric_limits<std::int64_t>::max(),
                                               std::numeric_limits<std::int64_t>::min()};
constexpr std::array<std::string_view, 15> words{"0",
                                                 "1",
                                                 "-1",
                                                 "2",
                                                 "3",
                                                 "5",
                                                 "17",
                                                 "2147483647",
                                                 "2147483648",
                                                 "-2147483648",
                                                 "4294967297",
                                                 "9223372036854775807",
                                                 "99999999999999999999",
                                                 "1e300",
                                                 "nan"};

/// A place to change. Binary files are mostly zeros that no reader looks at: those are mostly left alone.
std::size_t place(const std::string &bytes, Random &random) {
    std::size_t at = random.below(bytes.size());
    for (int k = 0; k < 20 && at < bytes.size() && bytes[at] == '\0'; k++)
        at = random.below(bytes.size());
    return at;
}

std::pair<std::size_t, std::size_t> chunk(const std::string &bytes, Random &random) {
    const std::size_t begin = random.below(bytes.size());
    const std::size_t longest = std::min<std::size_t>(bytes.size() - begin, random.below(4) == 0 ? 4096 : 40);
    return {begin, random.below(longest) + 1};
}

void replaceNumber(std::string &bytes, Random &random) {
    const auto isPart = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.'; };
    auto begin =
        std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size())), bytes.end(), isPart);
    const auto end = std::find_if_not(begin, bytes.end(), isPart);
    while (begin != bytes.begin() && isPart(begin[-1]))
        --begin;
    bytes.replace(begin, end, random.oneOf(words));
}

template <class T>
void overwrite(std::string &bytes, Random &random) {
    const auto value =
        static_cast<T>(static_cast<std::uint64_t>(random.oneOf(numbers)) + (random.below(3) == 0 ? 1 : 0));
    if (bytes.size() < sizeof(T))
        return;
    const std::size_t at = std::min(place(bytes, random) / 4 * 4, bytes.size() - sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
}

void swapLines(std::string &bytes, Random &random) {
    const auto line = [&] {
        const std::size_t at = random.below(bytes.size());
        const std::size_t before = bytes.rfind('\n', at == 0 ? 0 : at - 1);
        const std::size_t begin = before == std::string::npos ? 0 : before + 1;
        return std::pair{begin, std::min(bytes.find('\n', begin), bytes.size()) - begin};
    };
    const auto from = line();
    const auto to = line();
    bytes.replace(to.first, to.second, bytes.substr(from.first, from.second));
}

void change(std::string &bytes, const std::string &other, bool inPlace, Random &random) {
    constexpr std::array<std::size_t, 4> changesInPlace{0, 1, 6, 7};
    switch (inPlace && random.below(10) != 0 ? random.oneOf(changesInPlace) : random.below(11)) {
    case 0:
        bytes[place(bytes, random)] ^= static_cast<char>(1 << random.below(8));
        break;
    case 1:
        bytes[place(bytes, random)] = static_cast<char>(random.next());
        break;
    case 2:
        bytes.resize(random.below(bytes.size()));
        break;
    case 3: {
        const auto [begin, size] = chunk(bytes, random);
        bytes.erase(begin, size);
        break;
    }
    case 4: {
        const auto [begin, size] = chunk(bytes, random);
        bytes.insert(random.below(bytes.size()), bytes.substr(begin, size));
        break;
    }
    case 5: {
        const auto [begin, size] = chunk(other, random);
        bytes.replace(place(bytes, random), size, other.substr(begin, size));
        break;
    }
    case 6:
        overwrite<std::int32_t>(bytes, random);
        break;
    case 7:
        overwrite<std::int64_t>(bytes, random);
        break;
    case 8:
        swapLines(bytes, random);
        break;
    default:
        replaceNumber(bytes, random);
    }
}

} // namespace

std::string mutate(std::string bytes, const std::string &other, bool inPlace, Random &random) {
    const std::size_t changes = random.below(2) == 0 ? 1 : random.below(4) + 1;
    for (std::size_t k = 0; k < changes && !bytes.empty() && bytes.size() < maxBytes; k++)
        change(bytes, other, inPlace, random);
    return bytes;
}

} // namespace DNDS::Geom::fuzz
