#include "DNDS/Base/ContentHash.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

namespace DNDS {
namespace {

TEST(ContentHash, DependsOnEveryByteAndTheirOrder) {
    const std::string text = "the quick brown fox jumps";
    const auto hashOf = [](const std::string &bytes) {
        ContentHash hash;
        hash.addBytes(bytes.data(), bytes.size());
        return hash.value();
    };
    std::set<std::uint64_t> values{hashOf(text)};
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string changed = text;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        EXPECT_TRUE(values.insert(hashOf(changed)).second) << i;
    }
    ContentHash ab;
    ab.add(1);
    ab.add(2);
    ContentHash ba;
    ba.add(2);
    ba.add(1);
    EXPECT_NE(ab.value(), ba.value());
    EXPECT_EQ(hashOf(text), hashOf(std::string(text)));
    ContentHash empty;
    ContentHash zero;
    zero.add(0);
    EXPECT_NE(empty.value(), zero.value());
}

} // namespace
} // namespace DNDS
