/// @file ContentHash.hpp
/// @brief A 64-bit hash of bytes, for comparing contents and layouts; not cryptographic.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace DNDS {

/// Accumulates bytes and numbers into 64 bits. The result depends on the order of the calls and on the machine's byte
/// order, not on addresses: ranks can compare it. Local.
class ContentHash {
  public:
    /// Mixes one number in. O(1).
    constexpr void add(std::uint64_t word) {
        // one round of multiply and rotate a word, after the finaliser of splitmix64 (Steele, Lea, Flood 2014)
        word *= 0xBF58476D1CE4E5B9ULL;
        word ^= word >> 29;
        state_ = (std::rotl(state_, 27) ^ word) * 0x9E3779B97F4A7C15ULL + 0x94D049BB133111EBULL;
    }

    /// Mixes bytes in, eight at a time; the last ones count as if zeros followed. `count` itself is not mixed in: add
    /// it where it can differ. O(count).
    void addBytes(const void *bytes, std::size_t count) {
        const auto *next = static_cast<const unsigned char *>(bytes);
        for (; count >= sizeof(std::uint64_t); count -= sizeof(std::uint64_t), next += sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, next, sizeof word);
            add(word);
        }
        if (count > 0) {
            std::uint64_t word = 0;
            std::memcpy(&word, next, count);
            add(word);
        }
    }

    /// Mixes characters in, but not their number. O(length).
    constexpr void addText(std::string_view text) {
        for (const char c : text)
            add(static_cast<unsigned char>(c));
    }

    /// The hash of what was added so far; more can follow. O(1).
    constexpr std::uint64_t value() const {
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
        return mixed ^ (mixed >> 31);
    }

  private:
    /// The first 64 bits of the fraction of pi: a constant that hides no choice.
    std::uint64_t state_ = 0x243F6A8885A308D3ULL;
};

} // namespace DNDS
