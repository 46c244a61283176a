#include "AdjoiningMemory.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <memory_resource>
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
    std::pmr::memory_resource &upstream() const noexcept { return *upstream_; }

  private:
    std::size_t bytes_;
    HostMemoryResource upstream_;
    std::byte *base_;
};

/// Hands out one part of a block once; anything else comes from where the block came from.
class BlockPart final : public std::pmr::memory_resource {
  public:
    BlockPart(std::shared_ptr<const SharedBlock> block, std::size_t offset, std::size_t bytes)
        : block_(std::move(block)), part_(block_->base() + offset), bytes_(bytes) {}

  private:
    void *do_allocate(std::size_t bytes, std::size_t align) override {
        if (bytes == bytes_ && !std::exchange(taken_, true))
            return part_;
        return block_->upstream().allocate(bytes, align);
    }
    void do_deallocate(void *address, std::size_t bytes, std::size_t align) override {
        if (address != part_) // the block goes as a whole
            block_->upstream().deallocate(address, bytes, align);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }

    std::shared_ptr<const SharedBlock> block_;
    std::byte *part_;
    std::size_t bytes_;
    bool taken_ = false;
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
        return; // one of them alone is all there is
    const std::shared_ptr<NodeArena> &arena = pair.pattern()->context().node().arena;
    // Ghosts begin at a multiple of the alignment, because it is they that peers write.
    const std::size_t gap = (alignment - owned % alignment) % alignment;
    const auto block = std::make_shared<const SharedBlock>(gap + owned + ghosts,
                                                           arena ? HostMemoryResource(arena) : defaultHostMemory());
    father->rehost(std::make_shared<BlockPart>(block, gap, owned));
    son->rehost(std::make_shared<BlockPart>(block, gap + owned, ghosts));
}

bool areAdjoining(const ArrayBase &father, const ArrayBase &son) {
    if (father.size() == 0 || son.size() == 0)
        return true;
    const RowPart owned = father.rowLayout(MemorySpace::Host).parts[0];
    return owned.base + bytesOf(father) == son.rowLayout(MemorySpace::Host).parts[0].base;
}

} // namespace DNDS::Python
