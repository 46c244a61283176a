#include "DNDS/Transport/StreamWriter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace DNDS {
namespace {

std::vector<std::byte> randomBytes(std::size_t count, unsigned seed) {
    std::vector<std::byte> bytes(count);
    std::minstd_rand random(seed);
    for (std::byte &byte : bytes)
        byte = static_cast<std::byte>(random() & 0xffU);
    return bytes;
}

/// Writes consecutive pieces of random sizes at every alignment; also checks the bytes around them.
void checkPieces(std::size_t misalignment, unsigned seed, std::size_t longest) {
    std::minstd_rand random(seed);
    std::vector<std::size_t> pieces(1 + random() % 40);
    std::size_t total = 0;
    for (std::size_t &piece : pieces)
        total += piece = random() % longest;
    const std::vector<std::byte> source = randomBytes(total, seed);
    std::vector<std::byte> target(total + 512, std::byte{0x5a});
    auto address = reinterpret_cast<std::uintptr_t>(target.data());
    std::byte *to = target.data() + (128 - address % 64) % 64 + 64 + misalignment;

    StreamWriter out(to);
    const std::byte *from = source.data();
    for (const std::size_t piece : pieces) {
        if (piece % 2 == 0 && piece <= StreamWriter::stageBytes) {
            if (piece > 0)
                std::memcpy(out.room(piece), from, piece);
            out.advance(piece);
        } else {
            out.append(from, piece);
        }
        from += piece;
    }
    out.finish();
    EXPECT_TRUE(std::equal(source.begin(), source.end(), to)) << "misalignment " << misalignment << ", seed " << seed;
    EXPECT_TRUE(std::all_of(target.data(), to, [](std::byte b) { return b == std::byte{0x5a}; }));
    EXPECT_TRUE(
        std::all_of(to + total, target.data() + target.size(), [](std::byte b) { return b == std::byte{0x5a}; }));
}

TEST(StreamWriter, piecesOfAnySizeArriveAtAnyAlignment) {
    for (std::size_t misalignment = 0; misalignment < 64; misalignment += 4)
        for (unsigned seed = 1; seed <= 12; ++seed) {
            checkPieces(misalignment, seed, 60);
            checkPieces(misalignment, seed + 100, 900);
            checkPieces(misalignment, seed + 200, 30'000);
        }
}

TEST(StreamWriter, nothingIsWrittenWhenNothingIsAppended) {
    std::vector<std::byte> target(256, std::byte{7});
    StreamWriter out(target.data() + 3);
    out.finish();
    EXPECT_TRUE(std::all_of(target.begin(), target.end(), [](std::byte b) { return b == std::byte{7}; }));
}

} // namespace
} // namespace DNDS
