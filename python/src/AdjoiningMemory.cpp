#include "AdjoiningMemory.hpp"

#include "GivenMemory.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"

#include <utility>

namespace DNDS::Python {

namespace {

constexpr std::size_t alignment = HostDeviceBuffer::alignment;

/// One allocation that two buffers share.
class SharedBlock {
  public:
    SharedBlock(std::size_t bytes, HostMemoryResource upstream)
        : bytes_(bytes), upstream_(std::move(upstream)),
          base_(static_cast<std::byte *>(upstream_->allocate(bytes, alignment))) {}
    SharedBlock(const SharedBlock &) = delete;
    SharedBlock &operator=(const SharedBlock &) = delete;
    ~SharedBlock() { upstream_->deallocate(base_, bytes_, alignment); }

    std::byte *base() const noexcept { return base_; }

  private:
    std::size_t bytes_;
    HostMemoryResource upstream_;
    std::byte *base_;
};

std::size_t bytesOf(const ArrayBase &array) {
    return static_cast<std::size_t>(array.dataSize()) * array.shape().elementBytes;
}

} // namespace

void adjoin(AnyPair &pair) {
    const std::shared_ptr<ArrayBase> father = pair.father();
    const std::shared_ptr<ArrayBase> son = pair.son();
    const std::size_t owned = bytesOf(*father);
    const std::size_t ghosts = bytesOf(*son);
    if (owned == 0 || ghosts == 0)
        return; // only one of them has memory
    const std::shared_ptr<NodeArena> &arena = pair.pattern()->context().node().arena;
    // Ghosts begin at a multiple of the alignment, because peers write them.
    const std::size_t gap = (alignment - owned % alignment) % alignment;
    const HostMemoryResource memory = arena ? HostMemoryResource(arena) : defaultHostMemory();
    const auto block = std::make_shared<const SharedBlock>(gap + owned + ghosts, memory);
    father->rehost(std::make_shared<GivenMemory>(block, block->base() + gap, owned, memory));
    son->rehost(std::make_shared<GivenMemory>(block, block->base() + gap + owned, ghosts, memory));
}

bool areAdjoining(const ArrayBase &father, const ArrayBase &son) {
    if (father.size() == 0 || son.size() == 0)
        return true;
    const RowPart owned = father.rowLayout(MemorySpace::Host).parts[0];
    return owned.base + bytesOf(father) == son.rowLayout(MemorySpace::Host).parts[0].base;
}

} // namespace DNDS::Python
