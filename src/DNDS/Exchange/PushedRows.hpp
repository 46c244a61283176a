/// @file PushedRows.hpp
/// @brief Combination of pushed rows, from staging buffers, with their owners' rows.
#pragma once

#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/RowKernels.hpp"
#include "DNDS/Exchange/Exchange.hpp"
#include "DNDS/Transport/DeviceRowCopy.hpp"

#include <optional>
#include <span>
#include <vector>

namespace DNDS {

/// Combines pushed rows with the owner's rows on the host: the second half of a push, as VecScatter with ADD_VALUES in
/// PETSc. `staging` holds, for each part of each member, the received rows (`pattern.readers().values`), contiguous.
/// O(rows received), one pass. Contributions to a row are applied in an order that does not depend on arrival, so that
/// sums have the same bits in every run. Local. Throws DataError if, under an operation, a copy of a padded row differs
/// in size from its owner's row; the rows of that member and of later ones are unchanged then.
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
    /// Calls `visit(first byte, bytes)` for the elements of all ghosts, in pieces of at most 1 MiB: the size of
    /// `zeros_`.
    template <class Visit>
    void forEachPiece(const RowLayout &son, Visit &&visit) const;

    std::vector<IndexRange> runs_; ///< ghosts as disjoint ascending runs of rows
    /// Source of zeros on the device; empty for the host.
    Device::DeviceBuffer<std::byte> zeros_;
    std::optional<DeviceRowCopy> copies_; ///< on the device: one segment a member; copies zeros as one kernel
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
    ~DeviceCombine();

    /// Queues the kernels. Local.
    void launch(std::span<const RowLayout> fathers, std::span<std::byte *const> staging, Device::StreamHandle stream);

    /// Whether `check` has an error to throw; the stream must have been synchronised.
    bool checks() const noexcept { return checks_; }
    /// Throws DataError as `combineOnHost`; only the members whose sizes differ are unchanged.
    void check(std::span<const ExchangeMember> members) const;

  private:
    struct Part;

    /// Lists the contributions of one part: `offsets` are their places in the staging buffer of `total` bytes. `order`
    /// and `firsts` are CSR: the contributions to row r of `rows_` are order[firsts[r]] to order[firsts[r + 1] - 1].
    void planOperation(Part &part, const RowPart &to, std::span<const std::uint64_t> offsets, std::uint64_t total,
                       std::span<const std::size_t> order, std::span<const std::uint64_t> firsts,
                       std::vector<std::byte> &lists);
    /// The arguments of a kernel: lists made at set-up, with the present addresses of rows and staging buffer.
    Device::CombineTable tableOf(const Part &part, const RowLayout &father, const std::byte *staging) const;

    PushOp op_;
    /// All parts of all members; part k is staged in staging buffer k.
    std::vector<Part> parts_;
    std::vector<index> rows_; ///< rows with contributions
    /// PushOp::Replace: one segment a part.
    DeviceRowCopy replace_;
    /// Targets and contributions of all parts for an operation, at the offsets of `Part`.
    Device::DeviceBuffer<std::byte> lists_;
    HostDeviceBuffer refused_; ///< pinned: for each member 0, or 1 + the number of a row whose copy has another size
    /// Some part is compared (sizes, shapes): then `check` has to wait for the stream.
    bool checks_ = false;
};

} // namespace DNDS
