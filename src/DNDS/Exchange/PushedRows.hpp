/// @file PushedRows.hpp
/// @brief Combination of pushed rows, from staging buffers, with their owners' rows.
#pragma once

#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/RowKernels.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Mpi/EvenSplit.hpp"
#include "DNDS/Transport/DeviceRowCopy.hpp"

#include <optional>
#include <span>
#include <vector>

namespace DNDS {

/// Combines on the host. `staging` holds the received rows, part by part of all members: the rows of
/// `pattern.readers().values`, contiguous. Local. Throws DataError when copies of padded rows differ in size from
/// their owner's row under an operation; that member's rows and those of the members after it are unchanged then.
void combineOnHost(const ExchangePattern &pattern, PushOp op, std::span<const ExchangeMember> members,
                   std::span<const RowLayout> fathers, std::span<std::byte *const> staging);

/// Zeroes the ghosts of a pattern after a push, for GhostsAfterPush::Zero: all elements, but neither
/// the sizes nor the shapes of rows. On the host at once, on the device queued.
class GhostZeroing {
  public:
    /// Local. O(runs of ghosts). Allocates all the memory that `run` needs, on the device up to 1 MiB and 24 bytes a
    /// run: throws MemoryError. Waits for `stream`. `captured`: graphs may capture `run`, which then queues a copy of
    /// zeros for each run of ghosts; else it queues one kernel, always on `stream`.
    GhostZeroing(const ExchangePattern &pattern, std::span<const RowLayout> sons, MemorySpace space,
                 Device::StreamHandle stream, bool captured);
    /// Local. The rows may have moved since, but not changed.
    void run(std::span<const RowLayout> sons, Device::StreamHandle stream);

  private:
    static void joinRuns(std::vector<IndexRange> &runs);
    /// Calls `visit(first byte, bytes)` for the elements of all ghosts, at most 1 MiB at a time.
    template <class Visit>
    void forEachPiece(const RowLayout &son, Visit &&visit) const;

    std::vector<IndexRange> runs_; ///< runs of ghosts
    /// Source of zeros on the device; empty for the host.
    Device::DeviceBuffer<std::byte> zeros_;
    DeviceRowCopy copies_; ///< one segment a member; copies zeros as one kernel
    bool captured_;
};

/// `combineOnHost` on the device: the lists from staged rows to owned rows are made once, and each push is a few
/// kernels. Results equal the host's to the bit: contributions to a row are applied in the same order, without atomics.
class DeviceCombine {
  public:
    /// Local. O(rows received). `fathers` and `staging` may move later (`launch` takes them); their rows may not.
    /// All launches will be on `stream`, which it waits for. Allocates everything they need: throws
    /// MemoryError.
    DeviceCombine(const ExchangePattern &pattern, PushOp op, std::span<const RowLayout> fathers,
                  Device::StreamHandle stream);

    /// Queues the kernels. Local.
    void launch(std::span<const RowLayout> fathers, std::span<std::byte *const> staging, Device::StreamHandle stream);

    /// Whether `check` has an error to throw; the stream must have been synchronised.
    bool checks() const noexcept { return checks_; }
    /// Throws DataError as `combineOnHost`; only the members whose sizes differ are unchanged.
    void check(std::span<const ExchangeMember> members) const;

  private:
    /// One part of one member.
    struct Part {
        std::size_t member;
        std::size_t part;                   ///< part of the member
        std::optional<std::size_t> segment; ///< segment of `replace_`
        std::uint64_t targetsAt = 0;        ///< in `lists_`
        std::uint64_t contributionsAt = 0;
        std::uint64_t rows = 0;
        /// Threads that share a row.
        std::uint32_t lanes = 1;
        /// A part of sizes or shapes, whose rows must be equal, not combined.
        bool compare = false;
        /// The scalars of the part, if they are combined.
        ElementKind kind = ElementKind::Opaque;
    };

    /// `offsets` are those of the contributions in the staging buffer, `total` its bytes; `order` has the contributions
    /// by row, of which those of row r start at `firsts[r]`.
    void planOperation(Part &part, const RowPart &to, std::span<const std::uint64_t> offsets, std::uint64_t total,
                       std::span<const std::size_t> order, std::span<const std::uint64_t> firsts,
                       std::vector<std::byte> &lists);
    Device::CombineTable tableOf(const Part &part, const RowLayout &father, const std::byte *staging) const;

    PushOp op_;
    /// All parts of all members, as staging buffers are numbered.
    std::vector<Part> parts_;
    std::vector<index> rows_; ///< rows with contributions
    /// PushOp::Replace: one segment a part.
    DeviceRowCopy replace_;
    /// Targets and contributions of all parts for an operation, at the offsets of `Part`.
    Device::DeviceBuffer<std::byte> lists_;
    HostDeviceBuffer refused_; ///< pinned: for each member 0, or 1 + the number of a row whose copy has another size
    bool checks_ = false;
};

} // namespace DNDS
