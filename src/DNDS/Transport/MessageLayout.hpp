/// @file MessageLayout.hpp
/// @brief The places of each peer's rows of each part in one buffer of packed rows.
#pragma once

#include "DNDS/Transport/Transport.hpp"

#include <cstddef>
#include <vector>

namespace DNDS {

/// Packed rows of several peers in one buffer: one message a peer, in it part after part. Sender and
/// receiver come to the same layout of a message, because both know the bytes of each part. Local.
class MessageLayout {
  public:
    /// Parts begin at multiples of this, so that kernels copy in the widest words; messages at multiples of the second.
    static constexpr std::size_t partAlignment = 16;
    static constexpr std::size_t messageAlignment = 256;

    MessageLayout() = default;
    /// `Peers` is a range of Outgoing or Incoming.
    template <class Peers>
    explicit MessageLayout(const Peers &peers) {
        for (const auto &peer : peers) {
            total_ = roundUp(total_, messageAlignment);
            std::vector<std::size_t> &offsets = offsets_.emplace_back();
            const std::size_t begin = total_;
            for (const auto &part : peer.parts) {
                total_ = roundUp(total_, partAlignment);
                offsets.push_back(total_);
                total_ += part.bytes();
            }
            begins_.push_back(begin);
            bytes_.push_back(total_ - begin);
        }
    }

    std::size_t size() const noexcept { return begins_.size(); }
    /// Bytes of the whole buffer.
    std::size_t total() const noexcept { return total_; }
    /// The offset at which a second such buffer may follow.
    std::size_t next() const noexcept { return roundUp(total_, messageAlignment); }
    /// The start of the message of peer number `k`, and its bytes.
    std::size_t begin(std::size_t k) const { return begins_[k]; }
    std::size_t bytes(std::size_t k) const { return bytes_[k]; }
    /// The start of its part `p`, from the start of the buffer.
    std::size_t part(std::size_t k, std::size_t p) const { return offsets_[k][p]; }

  private:
    static constexpr std::size_t roundUp(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

    /// By message and part; then by message its start, and its bytes from there, padding between parts included.
    std::vector<std::vector<std::size_t>> offsets_;
    std::vector<std::size_t> begins_;
    std::vector<std::size_t> bytes_;
    std::size_t total_ = 0;
};

} // namespace DNDS
