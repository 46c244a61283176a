#include "FieldCase.hpp"

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <algorithm>
#include <cstring>

namespace DNDS::test {
namespace {

template <class A>
class FieldCaseOf final : public FieldCase {
    using Element = typename A::Element;

  public:
    std::string name() const override { return A::shapeStatic.signature(); }
    bool arithmetic() const override { return A::shapeStatic.kind != ElementKind::Opaque; }

    void create(const PullLists &pullLists) override {
        wishes_ = pullLists;
        makeFather();
        pair_.transAttach();
        pair_.trans.createFatherGlobalMapping();
        pair_.trans.createGhostMapping(wishes_.myReads());
        pair_.trans.createMPITypes();
        const HostSide moved(*this);
    }
    void borrow(const FieldCase &primary) override {
        wishes_ = primary.pullLists();
        makeFather();
        pair_.transAttach();
        pair_.trans.borrowGGIndexing(dynamic_cast<const FieldCaseOf<ParArray<real, 5>> &>(primary).pair().trans);
        pair_.trans.createMPITypes();
        const HostSide moved(*this);
    }
    const ArrayPair<A> &pair() const { return pair_; }

    void fillFather(std::uint64_t version) override {
        const HostSide host(*this);
        for (index row = 0; row < pair_.father->size(); ++row)
            write(*pair_.father, row, ownersRow(wishes_.begin(worldRank()) + row, version));
    }
    void fillSon(std::uint64_t version) override {
        const HostSide host(*this);
        const auto ghosts = wishes_.ghostsOf(worldRank());
        for (std::size_t k = 0; k < ghosts.size(); ++k)
            write(*pair_.son, static_cast<index>(k), pushedRow(worldRank(), ghosts[k], version));
    }
    void clearSon() override {
        const HostSide host(*this);
        auto son = pair_.son->view();
        for (index row = 0; row < son.size(); ++row)
            for (rowsize j = 0; j < son.rowSize(row); ++j)
                std::memset(static_cast<void *>(&son(row, j)), 0xA5, sizeof(Element));
    }
    void expectSon(std::uint64_t version) override {
        const HostSide host(*this);
        SCOPED_TRACE(trace() + ", son");
        const auto ghosts = wishes_.ghostsOf(worldRank());
        Reference<A> expected;
        for (const index ghost : ghosts)
            expected.push_back(ownersRow(ghost, version));
        const A &son = *pair_.son;
        expectRows(son, expected);
    }
    void expectFather(std::uint64_t fatherVersion, std::uint64_t sonVersion, PushOp op) override {
        const HostSide host(*this);
        SCOPED_TRACE(trace() + ", father");
        Reference<A> expected;
        const int me = worldRank();
        for (index row = wishes_.begin(me); row < wishes_.end(me); ++row)
            expected.push_back(ownersRow(row, fatherVersion));
        for (int rank = 0; rank < worldSize(); ++rank) // in this order
            for (const index row : wishes_.ghostsOf(rank)) {
                if (wishes_.owner(row) != me)
                    continue;
                auto &mine = expected[static_cast<std::size_t>(row - wishes_.begin(me))];
                const auto pushed = pushedRow(rank, row, sonVersion);
                if (op == PushOp::Replace)
                    mine = pushed;
                for (std::size_t j = 0; j < mine.size(); ++j)
                    mine[j] = combineElements(mine[j], pushed[j], op);
            }
        const A &father = *pair_.father;
        expectRows(father, expected);
    }

    void initPull(TransportKind kind) override { pair_.trans.initPersistentPull({.transport = kind}); }
    void initPush(PushOp op, TransportKind kind) override { pair_.trans.initPersistentPush(op, {.transport = kind}); }
    void pullOnce(TransportKind kind) override { pair_.trans.pullOnce({.transport = kind}); }
    void pushOnce(PushOp op, TransportKind kind) override { pair_.trans.pushOnce(op, {.transport = kind}); }
    ArrayTransformerBase &trans() override { return pair_.trans; }
    void addTo(ExchangeGroup &group) const override { group.add(pair_.trans); }
    std::size_t pullBytes() const override {
        std::size_t bytes = 0;
        for (const PeerPath &path : pair_.trans.pullPaths())
            bytes += path.bytesReceived;
        return bytes;
    }

  private:
    /// Arrays that live on the device are on the host meanwhile.
    class HostSide {
      public:
        explicit HostSide(FieldCaseOf &field) : field_(field) {
            if (field_.onDevice_)
                field_.pair_.toHost();
        }
        HostSide(const HostSide &) = delete;
        HostSide &operator=(const HostSide &) = delete;
        ~HostSide() { // NOLINT(bugprone-exception-escape): that ends a test, too
            if (field_.onDevice_)
                field_.pair_.toDevice();
        }

      private:
        FieldCaseOf &field_;
    };

    std::string trace() const {
        return "DNDS_TEST_SEED=" + std::to_string(seed()) + ", " + wishes_.name + ", " + name();
    }
    static rowsize sizeOf(index row, std::uint64_t version) {
        if constexpr (isFixedLayout(A::layout))
            return largestCaseRow<A>();
        const std::uint64_t of = isPaddedLayout(A::layout) ? version : 0;
        return static_cast<rowsize>(mix({7, static_cast<std::uint64_t>(row), of}) %
                                    (static_cast<std::uint64_t>(largestCaseRow<A>()) + 1));
    }
    static std::vector<Element> rowOf(std::uint64_t who, index row, std::uint64_t sizeVersion, std::uint64_t version) {
        std::vector<Element> elements(static_cast<std::size_t>(sizeOf(row, sizeVersion)));
        for (std::size_t j = 0; j < elements.size(); ++j)
            elements[j] = elementFrom<Element>(mix({seed(), who, static_cast<std::uint64_t>(row), version, j}));
        return elements;
    }
    static std::vector<Element> ownersRow(index row, std::uint64_t version) {
        return rowOf(1000000, row, version, version);
    }
    static std::vector<Element> pushedRow(int rank, index row, std::uint64_t version) {
        return rowOf(static_cast<std::uint64_t>(rank), row, version, version);
    }
    static void write(A &array, index row, const std::vector<Element> &elements) {
        if constexpr (isPaddedLayout(A::layout))
            array.resizeRow(row, static_cast<rowsize>(elements.size()));
        ASSERT_EQ(array.rowSize(row), static_cast<rowsize>(elements.size()));
        for (rowsize j = 0; j < array.rowSize(row); ++j)
            array(row, j) = elements[static_cast<std::size_t>(j)];
    }
    void makeFather() {
        pair_.initPair(name(), CommunicatorView(MPI_COMM_WORLD));
        const index rows = wishes_.size(worldRank());
        const auto size = [&](index row) { return sizeOf(wishes_.begin(worldRank()) + row, 0); };
        if constexpr (A::layout == ArrayLayout::StaticFixed)
            pair_.father->resize(rows);
        else if constexpr (A::layout == ArrayLayout::Fixed)
            rows > 0 ? pair_.father->resize(rows, caseWidth)
                     : void(); // a rank without rows learns the width from others
        else if constexpr (A::layout == ArrayLayout::Max)
            rows > 0 ? pair_.father->resize(rows, caseWidth, size) : void();
        else
            pair_.father->resize(rows, size);
    }

    ArrayPair<A> pair_;
};

template <class... A>
FieldCases make() {
    FieldCases cases;
    (cases.push_back(std::make_unique<FieldCaseOf<A>>()), ...);
    return cases;
}

} // namespace

FieldCases allFieldCases(bool onDevice) {
    FieldCases cases =
        make<ParArray<real, 5>, ParArray<std::uint8_t, 3>, ParArray<Particle, 2, 2, 64>, ParArray<real, 0>,
             ParArray<index, DynamicSize>, ParArray<std::array<float, 3>, DynamicSize, DynamicSize, 64>,
             ParArray<std::int32_t, NonUniformSize, 6>, ParArray<real, NonUniformSize, 3, 32>,
             ParArray<std::uint16_t, NonUniformSize, DynamicSize>, ParArray<Particle, NonUniformSize, DynamicSize, 16>,
             ParArray<real, NonUniformSize>, ParArray<std::uint8_t, NonUniformSize>,
             ParArray<std::array<float, 3>, NonUniformSize>>();
    for (const auto &field : cases)
        if (onDevice)
            field->liveOnDevice();
    return cases;
}

std::vector<TransportKind> allTransports() {
    std::vector<TransportKind> kinds{TransportKind::Auto, TransportKind::Datatype, TransportKind::Packed};
    // The same answer on all ranks, also where some have their node for themselves.
    const auto context = CommunicatorContext::of(MPI_COMM_WORLD);
    const NodeTopology &node = context->node();
    if (context->comm().allReduce(node.arena != nullptr || node.members.size() == 1 ? 1 : 0, MPI_MIN) == 1)
        kinds.push_back(TransportKind::NodeShared);
    return kinds;
}

std::vector<PullLists> allPullLists() {
    return {PullLists::ring(),        PullLists::withEmptyAndLonelyRanks(),
            PullLists::ownRowsOnly(), PullLists::nothing(4),
            PullLists::nothing(0),    PullLists::random(1),
            PullLists::random(2),     PullLists::random(3)};
}

} // namespace DNDS::test
