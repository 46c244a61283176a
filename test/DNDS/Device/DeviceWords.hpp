// Device memory of known contents, for the tests of this folder.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

namespace DNDS::Device::test {

using Words = std::vector<std::uint32_t>;

inline Words countingWords(std::size_t count, std::uint32_t first) {
    Words words(count);
    std::iota(words.begin(), words.end(), first);
    return words;
}

/// Device memory that holds `words`.
class DeviceWords {
  public:
    explicit DeviceWords(const Words &words)
        : bytes_(words.size() * sizeof(std::uint32_t)), memory_(static_cast<std::uint32_t *>(allocate(bytes_))) {
        copy(memory_, MemorySpace::Device, words.data(), MemorySpace::Host, bytes_, nullptr);
        synchronize(nullptr);
    }
    ~DeviceWords() { deallocate(memory_); }
    DeviceWords(const DeviceWords &) = delete;
    DeviceWords &operator=(const DeviceWords &) = delete;

    std::uint32_t *get() const { return memory_; }
    std::size_t bytes() const { return bytes_; }

    Words fetch() const {
        Words words(bytes_ / sizeof(std::uint32_t));
        copy(words.data(), MemorySpace::Host, memory_, MemorySpace::Device, bytes_, nullptr);
        synchronize(nullptr);
        return words;
    }

  private:
    std::size_t bytes_;
    std::uint32_t *memory_;
};

inline bool isEmulated() { return name() == "emulated"; }

} // namespace DNDS::Device::test
