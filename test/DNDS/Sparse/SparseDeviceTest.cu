// Sparse fields on the device: the same blocks, bits and counts as on the host.

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/ObjectPool.hpp"
#include "DNDS/Sparse/SparseCase.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

class SparseOnDevice : public testing::Test {
  protected:
    void SetUp() override {
        if (!Device::available())
            GTEST_SKIP() << Device::unavailableReason();
    }
};

/// Values around the thresholds, which are 0.5 and 0.25 or so, and now and then something wild.
template <class T>
T valueOf(T background, std::uint64_t draw) {
    if (draw % 16 < 12)
        return background;
    if constexpr (std::is_floating_point_v<T>) {
        if (draw % 97 == 0)
            return std::numeric_limits<T>::quiet_NaN();
        return background + static_cast<T>(0.125) * static_cast<T>(draw % 7);
    } else {
        return static_cast<T>(background + static_cast<T>(draw % 7));
    }
}

template <class T>
void fillAlike(SparseField<T> &a, SparseField<T> &b, std::uint64_t round) {
    for (int k = 0; k < a.blocks(); ++k) {
        const auto number = static_cast<std::uint64_t>(a.block(k).block);
        const std::uint64_t draw = drawn(8, {number, round});
        if (draw == 1) {
            a.free(k);
            b.free(k);
        }
        if (draw != 0)
            continue;
        const bool belowThreshold = drawn(2, {number, round, 1}) == 0; // nearly nothing
        a.allocate(k);
        b.allocate(k);
        for (auto *field : {&a, &b}) {
            const auto v = field->view(k);
            for (index n = 0; n < v.size(); ++n)
                for (rowsize c = 0; c < v.components(); ++c) {
                    index offset = c;
                    for (int d = 0; d < v.dims(); ++d)
                        offset += v.indexOf(n, d) * v.stride(d);
                    const std::uint64_t one =
                        drawn(1000, {number, round, static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(c)});
                    v.data()[offset] = valueOf(field->defaultValue(), belowThreshold ? one % 12 : one);
                }
        }
    }
}

template <class T>
void expectSame(const SparseField<T> &host, SparseField<T> &device) {
    ASSERT_EQ(device.allocatedBlocks(), host.allocatedBlocks()) << host.name();
    device.toHost();
    for (const int b : host.allocatedBlocks()) {
        EXPECT_TRUE(sameBits(elementsOf(std::as_const(device).view(b)), elementsOf(host.view(b))))
            << host.name() << ", block " << host.block(b).block;
        EXPECT_EQ(device.emptyExchanges(b), host.emptyExchanges(b));
    }
}

void exchangeInSteps(SparseFields &fields, std::uint64_t round) {
    if (round % 3 == 0)
        return fields.exchangeGhosts();
    const BoundaryType first = round % 3 == 1 ? BoundaryType::Local : BoundaryType::NonLocal;
    const BoundaryType last = round % 3 == 1 ? BoundaryType::NonLocal : BoundaryType::Local;
    fields.sendBoundBufs(first);
    fields.sendBoundBufs(last);
    while (!fields.receiveBoundBufs()) {
    }
    fields.setBounds(first);
    fields.setBounds(last);
}

/// One species of each kind of element, all in one exchange.
struct Species {
    SparseField<real> dust;
    SparseField<float> ice;
    SparseField<std::int8_t> small;
    SparseField<std::uint64_t> large;

    Species(const std::string &where, const std::shared_ptr<const SparsePattern> &pattern, bool sendBelowThreshold)
        : dust(where + " dust", pattern, options(2, 0.5, 0.25, sendBelowThreshold), 0.1),
          ice(where + " ice", pattern, options(3, 0.25, 0.125, sendBelowThreshold), -2.5F),
          small(where + " small", pattern, options(5, 2, 1, sendBelowThreshold), std::int8_t{-7}),
          large(where + " large", pattern, options(1, 0, 0, sendBelowThreshold), std::uint64_t{1} << 62U) {}
    static SparseFieldOptions options(rowsize components, real allocation, real deallocation, bool sendBelowThreshold) {
        return {.components = components,
                .stages = 2,
                .allocationThreshold = allocation,
                .deallocationThreshold = deallocation,
                .deallocationCount = 2,
                .sendBelowThreshold = sendBelowThreshold};
    }
    std::vector<SparseFieldCore *> all() { return {&dust, &ice, &small, &large}; }
    void toDevice() {
        for (SparseFieldCore *field : all())
            field->toDevice();
    }
};

TEST_F(SparseOnDevice, DecidesAndSendsWhatTheHostDoes) {
    for (const SparseGrid &grid : sparseGrids())
        for (const bool sendBelowThreshold : {true, false}) {
            SCOPED_TRACE(testing::Message()
                         << grid.name << (sendBelowThreshold ? "" : ", without rims below the threshold"));
            const auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
            Species host("host", pattern, sendBelowThreshold);
            Species device("device", pattern, sendBelowThreshold);
            SparseFields ofHost("host", host.all());
            SparseFields ofDevice("device", device.all());
            for (std::uint64_t round = 0; round < 6; ++round) {
                SCOPED_TRACE(round);
                fillAlike(host.dust, device.dust, round);
                fillAlike(host.ice, device.ice, round + 100);
                fillAlike(host.small, device.small, round + 200);
                fillAlike(host.large, device.large, round + 300);
                device.toDevice();
                exchangeInSteps(ofHost, round);
                exchangeInSteps(ofDevice, round);
                expectSame(host.dust, device.dust);
                expectSame(host.ice, device.ice);
                expectSame(host.small, device.small);
                expectSame(host.large, device.large);
                host.dust.swapStages(0, 1);
                device.dust.swapStages(0, 1);
            }
            EXPECT_EQ(ofDevice.traffic().bytes, ofHost.traffic().bytes);
            EXPECT_EQ(ofDevice.traffic().aboveThreshold, ofHost.traffic().aboveThreshold);
            EXPECT_EQ(ofDevice.traffic().belowThreshold, ofHost.traffic().belowThreshold);
        }
}

const SparseGrid torus{"torus", {{"torus", Box({0, 0}, {24, 16}), {true, true}}}, {5, 4}, {1, 1}};

TEST_F(SparseOnDevice, FieldsMoveToOtherRanks) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
        const auto options = Species::options(2, 0.5, 0.25, true);
        SparseField<real> host("host", pattern, options, 0.1);
        SparseField<real> device("device", pattern, options, 0.1);
        for (std::uint64_t round = 0; round < 4; ++round) {
            fillAlike(host, device, round);
            device.toDevice();
            host.exchangeGhosts();
            device.exchangeGhosts();
            std::vector<real> costs;
            for (int b = 0; b < host.blocks(); ++b)
                costs.push_back(host.isAllocated(b) ? 1 : 0);
            pattern = SparsePattern::make(world(), pattern->grid()->rebalanced(world(), costs), grid.ghosts);
            host = host.moved(pattern);
            device = device.moved(pattern);
            EXPECT_EQ(device.space(), MemorySpace::Device);
            expectSame(host, device);
        }
    }
}

TEST_F(SparseOnDevice, BlocksThatArriveHaveTheDefaultElsewhere) {
    SparseField<real> u("u", SparsePattern::make(world(), torus.on(world()), torus.ghosts), {.components = 2}, 3.5);
    if (const int first = u.pattern()->localOf(0); first >= 0) {
        u.allocate(first);
        const auto v = u.view(first);
        for (index n = 0; n < v.size(); ++n)
            v(v.indexOf(n, 0), v.indexOf(n, 1), 1) = 7;
    }
    u.toDevice();
    u.exchangeGhosts();
    EXPECT_EQ(world().allReduce(static_cast<int>(u.allocatedBlocks().size()), MPI_SUM), 9);
    u.toHost();
    for (const int b : u.allocatedBlocks())
        if (u.block(b).block != 0) {
            const auto v = std::as_const(u).view(b);
            for (index n = 0; n < v.size(); ++n)
                for (rowsize c = 0; c < 2; ++c)
                    EXPECT_EQ(v(v.indexOf(n, 0), v.indexOf(n, 1), c), 3.5);
        }
}

TEST_F(SparseOnDevice, FieldsOfOneExchangeAreInOneSpace) {
    const auto pattern = SparsePattern::make(world(), torus.on(world()), torus.ghosts);
    SparseField<real> u("u", pattern);
    SparseField<real> v("v", pattern);
    SparseFields both("both", {&u, &v});
    v.toDevice();
    expectContains(messageOf<Error>([&] { both.exchangeGhosts(); }), "'u' is on the host, and 'v' is not");
    recover(world());
    u.toDevice();
    both.exchangeGhosts();
    both.startExchangeGhosts();
    expectContains(messageOf<StateError>([&] { u.toHost(); }), "cannot be moved during an exchange");
    both.finishExchangeGhosts();
}

TEST_F(SparseOnDevice, MemoryThatEndsIsRecoveredFrom) {
    const auto pattern = SparsePattern::make(world(), torus.on(world()), torus.ghosts);
    SparseField<real> u("u", pattern);
    const bool mine = u.pattern()->localOf(0) >= 0;
    if (mine) {
        const int first = u.pattern()->localOf(0);
        u.allocate(first);
        u.view(first)(0, 0) = 1;
    }
    u.toDevice();
    const std::size_t before = u.memoryBytes();
    pattern->pool().setLimit(before); // nothing more
    try {
        u.exchangeGhosts();
    } catch (const Error &error) { // MemoryError or, where others were first, RevokedError
        expectContains(error.what(), "has a limit of");
    }
    EXPECT_EQ(u.memoryBytes(), before);
    world().barrier();
    pattern->pool().setLimit(std::numeric_limits<std::size_t>::max());
    recover(world());
    u.exchangeGhosts();
    EXPECT_EQ(world().allReduce(static_cast<int>(u.allocatedBlocks().size()), MPI_SUM), 4); // a corner reaches three
}

/// Elements of a pool of views.
struct Cells {
    const double *at = nullptr;
    int count = 0;
};

/// nvcc compiles this for the device, too: handles are copied, assigned and ended there.
DNDS_HOST_DEVICE double lastOf(ObjectPool<Cells>::Owner owner, const ObjectPool<Cells>::Weak &weak) {
    ObjectPool<Cells>::Owner other;
    other = owner;
    const ObjectPool<Cells>::Weak same = weak;
    const Cells &cells = same;
    return other.at[cells.count - 1];
}

TEST(ObjectPool, HandlesOfViewsExistInDeviceCode) {
    const double values[] = {1, 2, 3};
    ObjectPool<Cells> pool("cells", [&](std::size_t count) { return Cells{values, static_cast<int>(count)}; });
    const auto owner = pool.get(3);
    EXPECT_EQ(lastOf(owner, owner.weak()), 3);
    EXPECT_EQ(owner.useCount(), 1U);
}

} // namespace
} // namespace DNDS::test
