/// @file BroadcastText.hpp
/// @brief A text of rank 0 on all ranks, for messages about what ranks should have in common.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <string_view>

namespace DNDS {

/// A text that needs no allocation, cut to what there is room for.
class ShortText {
  public:
    ShortText() = default;
    explicit ShortText(std::string_view text) { text.copy(bytes_.data(), bytes_.size() - 1); }

    std::string_view view() const noexcept { return bytes_.data(); }
    friend bool operator==(const ShortText &, const ShortText &) = default;

  private:
    friend ShortText broadcastText(const CommunicatorView &comm, std::string_view text);

    std::array<char, 256> bytes_{};
};

/// The text that rank 0 passes, on all ranks. Collective. Fails only where MPI does.
ShortText broadcastText(const CommunicatorView &comm, std::string_view text);

} // namespace DNDS
