/// @file NoticeBoard.hpp
/// @brief Where one rank leaves notes for each other rank of its node.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace DNDS {

/// A place in a rank's arena, in numbers that are the same for all ranks of the node.
struct ArenaLocation {
    std::uint32_t segment = 0;
    std::uint64_t offset = 0;
};

/// A board in shared memory: its owner publishes locations, others look up those that are meant for them. A view; the
/// memory is someone else's. `round` counts the set-ups that are separated by collective calls: a note stays readable
/// until the round after the next begins, as notes alternate between two slots. All functions are Local, O(1).
class NoticeBoard {
  public:
    static constexpr std::size_t alignment = 64;
    /// The memory that a board for so many readers takes; it begins at a multiple of `alignment`.
    static std::size_t bytes(int readers) noexcept;

    /// The board at `memory`, which is there already.
    explicit NoticeBoard(const void *memory) noexcept;
    /// Makes an empty board for so many readers, at memory of `bytes(readers)`.
    static NoticeBoard make(void *memory, int readers) noexcept;

    /// On the owner's board only.
    void publish(int reader, std::uint64_t round, const ArenaLocation &location) noexcept;
    /// The note for `reader` in `round`, if it is there.
    std::optional<ArenaLocation> lookUp(int reader, std::uint64_t round) const noexcept;

  private:
    struct alignas(alignment) Note {
        std::atomic<std::uint64_t> round{0}; ///< plus one, so that zeroed memory holds no note
        ArenaLocation location;
    };
    Note &note(int reader, std::uint64_t round) const noexcept {
        return notes_[2 * static_cast<std::size_t>(reader) + round % 2];
    }

    Note *notes_;
};

} // namespace DNDS
