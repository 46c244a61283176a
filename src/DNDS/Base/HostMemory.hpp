/// @file HostMemory.hpp
/// @brief The default memory resource for host memory of arrays.
#pragma once

#include "DNDS/Base/Error.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <new>
#include <string_view>
#include <utility>

namespace DNDS {

/// A source of host memory, shared by all buffers that must return memory to it.
using HostMemoryResource = std::shared_ptr<std::pmr::memory_resource>;

/// Aligned operator new. Local; never null.
const HostMemoryResource &defaultHostMemory();

/// Exception of a memory resource that can give a reason; its text needs no memory.
class NoMemory : public std::bad_alloc {
  public:
    /// Formats the text that `what` returns, of which 255 characters are kept.
    template <class... Arguments>
    explicit NoMemory(fmt::format_string<Arguments...> format, Arguments &&...arguments) noexcept {
        *fmt::format_to_n(text_.data(), text_.size() - 1, format, std::forward<Arguments>(arguments)...).out = '\0';
    }
    const char *what() const noexcept override { return text_.data(); }

  private:
    /// Within the exception, since there may be no memory; ended by 0.
    std::array<char, 256> text_;
};

/// Memory from `source` for `what` ("rows"). Local. Throws MemoryError, with the reason that `source` gives.
void *allocateData(std::pmr::memory_resource &source, std::size_t bytes, std::size_t alignment, std::string_view what);

} // namespace DNDS
